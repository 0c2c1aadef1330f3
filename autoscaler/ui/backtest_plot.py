"""Drawings of a backtest as inline SVG: no script, no library, and no colour that the page's light or dark mode does not set."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from autoscaler.model.backtest import COMPUTE, PodLoad, PodOutcome, ReplicaLine
from autoscaler.ui.escape import printable

_WIDTH: Final = 560
_HEIGHT: Final = 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 90, 14, 46
_LABEL_STEP: Final = 13.0
"""Labels nearer than this would touch."""
_LETTER: Final = 6.0
"""A letter's width; labels are set at 11 px."""
STRIP_WIDTH: Final = 720
STRIP_HEIGHT: Final = 34
_STRIP_LEFT: Final = 150
_STRIP_GAP: Final = 4


@dataclass(frozen=True, kw_only=True)
class Mark:
    """One policy in a frontier plot."""

    name: str
    harm: float
    saved: float
    broken: str = ""
    """Why the place alone flatters it, such as "7 out of memory"; drawn as a cross."""

    @property
    def ours(self) -> bool:
        """Whether it is one of this program's policies."""
        return is_ours(self.name)


def is_ours(policy: str) -> bool:
    """Whether a policy is this program's."""
    return policy.startswith("autoscaler")


def frontier(
    marks: Iterable[Mark], *, harm_axis: str, saved_axis: str, saved_top: float, least_power: int = -2
) -> str:
    """Saved (up is good) against harm (left is good, logarithmic above ten to the least power). Savings above the top are cut off there."""
    shown = sorted(marks, key=lambda mark: (-mark.saved, mark.harm, mark.name))
    most = max((mark.harm for mark in shown), default=0.0)
    top_harm = 10.0 ** math.ceil(math.log10(max(most, 1.0)))
    plot = _Plot(top_harm, saved_top, least_power)
    parts = [
        f'<svg class="frontier" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{_text(saved_axis)} against {_text(harm_axis)}">'
    ]
    parts += plot.grid()
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(
        f'<text class="axis" x="{middle:.0f}" y="{_HEIGHT - 8}" text-anchor="middle">{_text(harm_axis)}</text>'
    )
    parts.append(
        f'<text class="axis" transform="translate(13 {(_TOP + _HEIGHT - _BOTTOM) / 2:.0f}) rotate(-90)" '
        f'text-anchor="middle">{_text(saved_axis)}</text>'
    )
    places = [(plot.x(mark.harm), plot.y(mark.saved)) for mark in shown]
    taken = [_Box(x - 5, x + 5, y) for x, y in places]
    for mark, (x, y) in zip(shown, places, strict=True):
        parts += _marked(mark, x, y, taken)
    parts.append("</svg>")
    return "".join(parts)


@dataclass(frozen=True)
class _Plot:
    top_harm: float
    top_saved: float
    least_power: int

    def x(self, harm: float) -> float:
        span = math.log10(self.top_harm) - self.least_power
        along = (math.log10(max(harm, 10.0**self.least_power)) - self.least_power) / span
        return _LEFT + along * (_WIDTH - _LEFT - _RIGHT)

    def y(self, saved: float) -> float:
        along = min(max(saved, 0.0), self.top_saved) / self.top_saved
        return _HEIGHT - _BOTTOM - along * (_HEIGHT - _TOP - _BOTTOM)

    def grid(self) -> list[str]:
        lines: list[str] = []
        for power in range(self.least_power, round(math.log10(self.top_harm)) + 1):
            x = self.x(10.0**power)
            label = f"{10.0**power:g}" if power > self.least_power else "0"
            lines.append(
                f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}"/>'
            )
            lines.append(
                f'<text class="tick" x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 15}" text-anchor="middle">{label}</text>'
            )
        for part in range(5):
            saved = self.top_saved * part / 4
            y = self.y(saved)
            lines.append(
                f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            )
            lines.append(
                f'<text class="tick" x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{saved:g}</text>'
            )
        return lines


@dataclass(frozen=True)
class _Box:
    """The room that a label or a mark takes."""

    left: float
    right: float
    y: float

    def touches(self, other: "_Box") -> bool:
        return abs(self.y - other.y) < _LABEL_STEP and self.left < other.right and other.left < self.right


def _marked(mark: Mark, x: float, y: float, taken: list[_Box]) -> list[str]:
    """The mark and its label, at the side that has room; it moves away from the bottom until it touches nothing."""
    kind = "ours" if mark.ours else "broken" if mark.broken else "other"
    note = f"{mark.name}: {mark.saved:g} saved, {mark.harm:g} harm{f', {mark.broken}' if mark.broken else ''}"
    if mark.broken:
        shape = f'<path class="{kind}" d="M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8"/>'
    else:
        shape = f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{6 if mark.ours else 4}"/>'
    words = f"{mark.name} ({mark.broken})" if mark.broken else mark.name
    width = len(words) * _LETTER
    leftward = x + 9 + width > _WIDTH
    left = x - 9 - width if leftward else x + 9
    move = 1.0 if y < _TOP + 4 * _LABEL_STEP else -1.0
    box = _Box(left, left + width, y + 4)
    while any(box.touches(other) for other in taken):
        box = _Box(box.left, box.right, box.y + move)
    taken.append(box)
    anchor = ' text-anchor="end"' if leftward else ""
    return [
        f"<g><title>{_text(note)}</title>{shape}",
        f'<text class="label {kind}" x="{x - 9 if leftward else x + 9:.1f}" y="{box.y:.1f}"{anchor}>{_text(words)}</text></g>',
    ]


def decisions(
    load: PodLoad, outcomes: Sequence[PodOutcome], *, steps: int, board_gib: float, key: str
) -> str:
    """One strip a policy: the pod's load behind, what the policy let it hold as a line over it. ``key`` is unique in the page."""
    strip = STRIP_HEIGHT + _STRIP_GAP
    height = strip * (len(outcomes) + 1)
    scale = STRIP_WIDTH / max(steps, 1)
    duty, memory = f"duty-{key}", f"memory-{key}"
    parts = [
        f'<svg class="strips" viewBox="0 0 {_STRIP_LEFT + STRIP_WIDTH} {height}" role="img" aria-label="load and allocations">',
        f'<defs><path id="{duty}" d="{_area(load, load.duty, 1.0, scale)}"/>',
        f'<path id="{memory}" d="{_line(load, load.memory_gib, board_gib, scale)}"/></defs>',
        _strip_label("load and memory", 0),
        f'<use class="load" href="#{duty}" x="{_STRIP_LEFT}"/><use class="memory" href="#{memory}" x="{_STRIP_LEFT}"/>',
    ]
    for number, outcome in enumerate(outcomes, start=1):
        y = number * strip
        kind = "ours" if is_ours(outcome.policy) else "other"
        parts += [
            _strip_label(outcome.policy, y),
            f'<use class="load" href="#{duty}" x="{_STRIP_LEFT}" y="{y}"/>',
            f'<path class="held {kind}" transform="translate({_STRIP_LEFT} {y})" d="{_held(load, outcome, scale)}">',
            f"<title>{_text(_told(outcome))}</title></path>",
        ]
    parts.append("</svg>")
    return "".join(parts)


def replicas(lines: Sequence[ReplicaLine]) -> str:
    """One strip a policy: the service's load behind, the replicas that the policy requested as a line over it."""
    strip = STRIP_HEIGHT + _STRIP_GAP
    full = float(max(1, *(max(line.requested, default=1) for line in lines)))
    parts = [
        f'<svg class="strips" viewBox="0 0 {_STRIP_LEFT + STRIP_WIDTH} {strip * len(lines)}" role="img" aria-label="load and replicas">'
    ]
    for number, line in enumerate(lines):
        y = number * strip
        scale = STRIP_WIDTH / max(1, len(line.load))
        load = "L".join(f"{at * scale:.1f} {_height(value / full):.1f}" for at, value in enumerate(line.load))
        held = "".join(
            f"H{at * scale:.1f}V{_height(value / full):.1f}" for at, value in enumerate(line.requested)
        )
        parts += [
            _strip_label(line.policy, y),
            f'<g transform="translate({_STRIP_LEFT} {y})"><path class="load" d="M0 {STRIP_HEIGHT}L{load}L{STRIP_WIDTH} {STRIP_HEIGHT}Z"/>',
            f'<path class="{"ours" if is_ours(line.policy) else "other"}" d="M0 {STRIP_HEIGHT}{held}H{STRIP_WIDTH}"/></g>',
        ]
    parts.append("</svg>")
    return "".join(parts)


def _strip_label(words: str, y: int) -> str:
    return f'<text class="tick" x="0" y="{y + STRIP_HEIGHT // 2 + 4}">{_text(words)}</text>'


def _height(share: float) -> float:
    return STRIP_HEIGHT * (1 - min(max(share, 0.0), 1.0))


def _points(load: PodLoad, values: Sequence[float], full: float, scale: float) -> list[str]:
    first = load.first_step // load.bucket_steps
    return [
        f"{(first + number) * load.bucket_steps * scale:.1f} {_height(value / full):.1f}"
        for number, value in enumerate(values)
    ]


def _area(load: PodLoad, values: Sequence[float], full: float, scale: float) -> str:
    points = _points(load, values, full, scale)
    start, end = load.first_step * scale, (load.last_step + 1) * scale
    return f"M{start:.1f} {STRIP_HEIGHT}L{'L'.join(points)}L{end:.1f} {STRIP_HEIGHT}Z"


def _line(load: PodLoad, values: Sequence[float], full: float, scale: float) -> str:
    return f"M{'L'.join(_points(load, values, full, scale))}"


def _held(load: PodLoad, outcome: PodOutcome, scale: float) -> str:
    """The allocation as a staircase; it begins with the whole board."""
    path = [f"M{load.first_step * scale:.1f} {_height(1.0):.1f}"]
    for index, step in outcome.changes:
        if index > load.last_step:
            break
        path.append(f"H{index * scale:.1f}V{_height(COMPUTE[step]):.1f}")
    path.append(f"H{(load.last_step + 1) * scale:.1f}")
    return "".join(path)


def _told(outcome: PodOutcome) -> str:
    return (
        f"{outcome.policy}: freed {outcome.freed_pct:g} %, lost {outcome.lost_pct:g} % of demand, {outcome.wrong} wrong, "
        f"{outcome.oom} out of memory, {outcome.restarts} restarts, {outcome.cold_starts} cold starts"
    )


def _text(words: str) -> str:
    return escape(printable(words))
