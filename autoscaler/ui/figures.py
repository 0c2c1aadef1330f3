"""Numbers as people read them; one spelling for every view."""

from datetime import UTC, datetime

from autoscaler.model.duration import format_duration
from autoscaler.model.ledger import Change
from autoscaler.model.plan import Action, ExplainRow, Lever, Need, ThroughRef
from autoscaler.model.quality import Quality

_LAST_MS = 253_402_300_800_000
"""The year 10000, which the calendar in use does not have."""
UNKNOWN = "-"
"""No figure: never a zero."""


def boards(milli: int) -> str:
    """Milli-boards as boards: "1.25", "2"."""
    return f"{milli / 1000:.2f}".rstrip("0").rstrip(".")


def share(ratio: float | None) -> str:
    """A ratio in percent: "12 %"; a dash where it is not known."""
    return UNKNOWN if ratio is None else f"{ratio * 100:.0f} %"


def span(ms: int | None) -> str:
    """A length of time: "1m30s"; a dash where it is not known."""
    return UNKNOWN if ms is None else format_duration(ms)


def interval(quality: Quality) -> str:
    """The sample interval, and whether it was measured or stated; a dash without samples."""
    if not quality.interval_ms:
        return UNKNOWN
    return f"{span(quality.interval_ms)} ({'measured' if quality.interval_measured else 'stated'})"


def source(quality: Quality) -> str:
    """The exporter profile and the signal that was read; a dash where none was."""
    return f"{quality.profile} {quality.signal}".strip() or UNKNOWN


def need_range(need: Need | None) -> str:
    """Lower, target and upper bound of one unit's need."""
    return (
        UNKNOWN if need is None else "/".join(boards(part) for part in (need.lower, need.target, need.upper))
    )


def moment(time_ms: int) -> str:
    """A time in UTC; as the number where no calendar has it (a snapshot file may say anything)."""
    if not 0 <= time_ms < _LAST_MS:
        return f"{time_ms} ms"
    return datetime.fromtimestamp(time_ms / 1000, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def change(action: Action) -> str:
    """What an action changes, before and after; of an eviction, the pod and the boards it holds."""
    if action.lever == "evict":
        return f"evict pod {action.pod.name if action.pod else UNKNOWN} ({action.before} boards)"
    return f"{_noun(action.lever, action.through)} {action.before} -> {action.after}"


def ours(held: Change) -> str:
    """A value of ours that is in force, and what its owner had there."""
    return f"{_noun(held.lever, held.through)} {held.current} (was {held.original})"


def restored(held: Change) -> str:
    """What putting a value of ours back changes."""
    return f"{_noun(held.lever, held.through)} {held.current} -> {held.original}"


def _noun(lever: Lever, through: ThroughRef | None) -> str:
    if through is not None:
        return through.field
    return "replicas" if lever == "scale" else "boards per pod"


def decision(row: ExplainRow) -> str:
    """The row's outcome in a few words."""
    if row.action is None:
        return f"left alone: {row.reason}"
    held = ", ".join(row.action.held_by)
    return f"{change(row.action)} ({row.action.reason}{f'; held by {held}' if held else ''})"
