"""The text of every query, for a fixed number of them per cycle.

Each returns the whole fleet, grouped by the labels that the profile reads. Sums and counts are asked for instead of
means: they add up exactly when one device has several series (an exporter restarted, another label changed), and a
value that is not a number shows in a sum, while `max` and `min` hide it. How much of a window is covered is counted in
parts, since a sum would take two scrapers that both miss the same half for a whole.

`source` is the matcher of the trusted scrape job; it is in every selector.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from autoscaler.observe.profiles import Memory, Profile, Signal
from autoscaler.observe.quoting import quoted

_NEWEST_STEPS: Final = 60
_FIRST_STEPS: Final = 48
_PACE_PARTS: Final = 4
_BUSIEST_STEPS: Final = 672
_COVERED_PARTS: Final = 12
"""Copies of a series are told apart by part: a restart inside one costs at most half of it, 4 % of the window."""
_COVERED_HISTORY_PARTS: Final = 48
_ENERGY_PARTS: Final = 6
_ENERGY_SAMPLES: Final = 4
"""An idle board draws 40 W: a counter in millijoules that is the same in so many scrapes is not read any more."""


class SignalQueries(msgspec.Struct, frozen=True):
    """The queries of one signal over the evidence window.

    `best` is the count of the best covered series, `pace` the best count of any series in any part of the window;
    `covered` adds up the best count of each part by owner and device.
    """

    maximum: str
    minimum: str
    mean: str
    total: str
    count: str
    newest: str
    covered: str
    best: str
    pace: str


class HistoryQueries(msgspec.Struct, frozen=True):
    """The queries of one signal over the history window; `total` only shows what is not a number.

    `busiest` is the highest mean of any evidence window, `count` is covered by parts as `SignalQueries.covered` is.
    """

    p95: str
    maximum: str
    busiest: str
    count: str
    first: str
    total: str


class BoardQueries(msgspec.Struct, frozen=True):
    """What a profile says beside activity, over the evidence window; None where it has no such metric.

    The size is `total`, or the least used plus the most free (and reserved), which were true at the same instant.
    `energy` is by how much the counter moved in the newest part of the window, `energy_least` in the part where it moved
    least; parts with too few samples are left out.
    """

    used: str | None = None
    least_used: str | None = None
    most_free: str | None = None
    reserved: str | None = None
    total: str | None = None
    power: str | None = None
    energy: str | None = None
    energy_least: str | None = None
    last_active: str | None = None


class BoardHistoryQueries(msgspec.Struct, frozen=True):
    """Memory of a profile over the history window: a peak of last night is a peak."""

    used: str | None = None


def selector(metric: str, match: Mapping[str, str], *more: str) -> str:
    """An instant selector; label values are escaped, metric and label names were validated with the profile.

    `more` are matchers as text, empty ones are none.
    """
    pairs = [f"{label}={quoted(value)}" for label, value in sorted(match.items())]
    pairs += [matcher for matcher in more if matcher]
    return f"{metric}{{{','.join(pairs)}}}" if pairs else metric


def pinned_jobs(pattern: str) -> str:
    """The matcher of scrape jobs by regular expression; the store anchors it at both ends."""
    return f"job=~{quoted(pattern)}" if pattern else ""


def one_job(name: str) -> str:
    """The matcher of exactly this scrape job; an empty name matches series without one."""
    return f"job={quoted(name)}"


def jobs_query(profile: Profile, *, window_ms: int, source: str = "") -> str:
    """Which scrape jobs published any metric of a profile in the window: one row for each."""
    return " or ".join(
        f"count by (job) (count_over_time({selector(metric, profile.match, source)}[{_range(window_ms)}]))"
        for metric in profile.metrics
    )


def signal_queries(
    profile: Profile, signal: Signal, *, window_ms: int, source: str = "", everyone: str | None = None
) -> SignalQueries:
    """The queries of a signal over the window that ends at the evaluation time.

    `everyone` is the matcher without a restriction to namespaces: the newest samples are a census of who was on a device.
    """
    series, window = selector(signal.metric, profile.match, source), _range(window_ms)
    anyone = selector(signal.metric, profile.match, source if everyone is None else everyone)
    step, pace = _range(max(1000, window_ms // _NEWEST_STEPS)), _range(pace_range_ms(window_ms))
    return SignalQueries(
        maximum=_by("max", profile, f"max_over_time({series}[{window}])"),
        minimum=_by("min", profile, f"min_over_time({series}[{window}])"),
        # The highest of any copy: a second exporter that reads 0 must not halve it.
        mean=_by("max", profile, f"avg_over_time({series}[{window}])"),
        total=_by("sum", profile, f"sum_over_time({series}[{window}])"),
        count=_by("sum", profile, f"count_over_time({series}[{window}])"),
        # A plain timestamp() shows no series that has ended; the subquery finds those, to the step.
        newest=_by(
            "max", profile, f"timestamp({anyone}) or max_over_time(timestamp({anyone})[{window}:{step}])"
        ),
        covered=_covered(profile, signal, source, window_ms, covered_part_ms(window_ms)),
        best=f"max(count_over_time({series}[{window}]))",
        pace=f"max(max_over_time(count_over_time({series}[{pace}])[{window}:{pace}]))",
    )


def pace_range_ms(window_ms: int) -> int:
    """The part of the window by whose best count the sample interval is checked: gaps elsewhere do not stretch it."""
    return max(1000, window_ms // _PACE_PARTS)


def covered_part_ms(window_ms: int) -> int:
    """The part of the window by which samples are counted."""
    return max(1000, window_ms // _COVERED_PARTS)


def history_queries(
    profile: Profile, signal: Signal, *, history_ms: int, window_ms: int, source: str = ""
) -> HistoryQueries:
    """The queries of a signal over the history that ends at the evaluation time."""
    series, window = selector(signal.metric, profile.match, source), _range(history_ms)
    step = _range(max(1000, history_ms // _FIRST_STEPS))
    part_ms = max(1000, history_ms // _COVERED_HISTORY_PARTS)
    apart_ms = busiest_step_ms(window_ms, history_ms=history_ms)
    means = f"avg_over_time({series}[{_range(max(window_ms, apart_ms))}])"
    return HistoryQueries(
        p95=_by("max", profile, f"quantile_over_time(0.95, {series}[{window}])"),
        maximum=_by("max", profile, f"max_over_time({series}[{window}])"),
        busiest=_by("max", profile, f"max_over_time({means}[{window}:{_range(apart_ms)}])"),
        count=_covered(profile, signal, source, history_ms, part_ms),
        first=_by("min", profile, f"min_over_time(timestamp({series})[{window}:{step}])"),
        total=_by("sum", profile, f"sum_over_time({series}[{window}])"),
    )


def busiest_step_ms(window_ms: int, *, history_ms: int) -> int:
    """How far apart the windows lie whose means are compared: half a window, so none is missed by more than a quarter.

    The store holds a point of every step for every series at once: a week of 15 min, for 64,000 boards, is 43 of the 50
    million that Prometheus allows by default (measured: it takes the time of a plain `max_over_time`).
    """
    return max(1000, window_ms // 2, history_ms // _BUSIEST_STEPS)


def board_queries(profile: Profile, *, window_ms: int, source: str = "") -> BoardQueries:
    """The queries of a profile's memory and power."""
    window = _range(window_ms)

    def over(function: str, aggregate: str, metric: str | None) -> str | None:
        if metric is None:
            return None
        series = selector(metric, profile.match, source)
        return _by(aggregate, profile, f"{function}_over_time({series}[{window}])")

    memory: Memory | None = profile.memory
    sized = memory is not None and memory.free is not None
    moved = _moved(selector(profile.energy, profile.match, source), window_ms) if profile.energy else None
    part = _range(energy_part_ms(window_ms))
    return BoardQueries(
        used=over("max", "max", memory.used if memory else None),
        least_used=over("min", "min", memory.used if memory and sized else None),
        most_free=over("max", "max", memory.free if memory else None),
        reserved=over("max", "max", memory.reserved if memory else None),
        total=over("max", "max", memory.total if memory else None),
        power=over("max", "max", profile.power.metric if profile.power else None),
        energy=_by("max", profile, moved) if moved else None,
        energy_least=_by("max", profile, f"min_over_time(({moved})[{window}:{part}])") if moved else None,
        last_active=over("min", "min", profile.last_active),
    )


def energy_part_ms(window_ms: int) -> int:
    """The part of the window in which a counter of energy must have moved."""
    return max(1000, window_ms // _ENERGY_PARTS)


def _moved(counter: str, window_ms: int) -> str:
    """By how much a counter moved in a part; nothing where the part has too few samples to tell."""
    series = f"{counter}[{_range(energy_part_ms(window_ms))}]"
    moved = f"max_over_time({series}) - min_over_time({series})"
    return f"{moved} and count_over_time({series}) >= {_ENERGY_SAMPLES}"


def traffic_queries(profile: Profile, *, window_ms: int, source: str = "") -> tuple[str, ...]:
    """The highest traffic over the evidence window, one query for each traffic metric of the profile."""
    return tuple(
        _by(
            "max", profile, f"max_over_time({selector(t.metric, profile.match, source)}[{_range(window_ms)}])"
        )
        for t in profile.traffic
    )


def board_activity_query(profile: Profile, *, window_ms: int, source: str = "") -> str | None:
    """The highest activity of whole boards over the evidence window, where they have series of their own."""
    if profile.board is None:
        return None
    series = selector(profile.board.metric, profile.match, source)
    labels = ", ".join(profile.board.device.split("+"))
    return f"max by ({labels}) (max_over_time({series}[{_range(window_ms)}]))"


def board_history_queries(profile: Profile, *, history_ms: int, source: str = "") -> BoardHistoryQueries:
    """The queries of a profile's memory over the history."""
    return BoardHistoryQueries(used=board_queries(profile, window_ms=history_ms, source=source).used)


def _covered(profile: Profile, signal: Signal, source: str, window_ms: int, part_ms: int) -> str:
    """Samples by owner and device, each part of the window counted by its best series.

    A series that follows another adds to it, one beside it does not. The owner is read here as `Positions` reads it: by
    the first group of labels that names a pod, so that a scrape target's own labels keep no two copies apart.
    """
    parts: list[str] = []
    unnamed: list[str] = []
    window, part = _range(window_ms), _range(part_ms)
    device = {label for key in profile.device_keys for label in key} | {*profile.slices, *profile.shares}
    device |= {label for read in profile.signals for label in read.void}
    groups: dict[str, set[str]] = {}
    for owner in profile.owners:
        found = {label for label in (owner.pod, owner.namespace, owner.container, owner.uid) if label}
        groups.setdefault(owner.pod, set()).update(found)
    for pod, owner_labels in groups.items():
        series = selector(signal.metric, profile.match, source, *unnamed, f'{pod}!=""')
        listed = ", ".join(sorted(device | owner_labels))
        parts.append(f"max by ({listed}) (count_over_time({series}[{part}]))")
        unnamed.append(f'{pod}=""')
    if not parts:
        series = selector(signal.metric, profile.match, source)
        parts.append(f"max by ({', '.join(sorted(device))}) (count_over_time({series}[{part}]))")
    return _by("max", profile, f"sum_over_time(({' or '.join(parts)})[{window}:{part}])")


def _by(aggregate: str, profile: Profile, expression: str) -> str:
    return f"{aggregate} by ({', '.join(profile.labels)}) ({expression})"


def _range(duration_ms: int) -> str:
    return f"{duration_ms}ms"
