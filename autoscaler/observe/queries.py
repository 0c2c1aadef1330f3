"""The text of every query, for a fixed number of them per cycle.

Each returns the whole fleet, grouped by the labels that the profile reads. Sums and counts are asked for instead of
means: they add up exactly when one device has several series (an exporter restarted, another label changed), and a
value that is not a number shows in a sum, while `max` and `min` hide it.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from autoscaler.observe.profiles import Memory, Profile, Signal

_NEWEST_STEPS: Final = 60
_FIRST_STEPS: Final = 48
_PACE_PARTS: Final = 4


class SignalQueries(msgspec.Struct, frozen=True):
    """The queries of one signal over the evidence window.

    `best` is the count of the best covered series, `pace` the best count of any series in any part of the window.
    """

    maximum: str
    minimum: str
    total: str
    count: str
    newest: str
    copies: str
    best: str
    pace: str


class HistoryQueries(msgspec.Struct, frozen=True):
    """The queries of one signal over the history window; `total` only shows what is not a number."""

    p95: str
    maximum: str
    count: str
    first: str
    total: str


class BoardQueries(msgspec.Struct, frozen=True):
    """Memory and power of a profile over the evidence window; None where the profile has none.

    The size is `total`, or the least used plus the most free, which were true at the same instant.
    """

    used: str | None = None
    least_used: str | None = None
    most_free: str | None = None
    total: str | None = None
    power: str | None = None


def selector(metric: str, match: Mapping[str, str]) -> str:
    """An instant selector; label values are escaped, metric and label names were validated with the profile."""
    if not match:
        return metric
    pairs = ",".join(f'{label}="{_escaped(value)}"' for label, value in sorted(match.items()))
    return f"{metric}{{{pairs}}}"


def signal_queries(profile: Profile, signal: Signal, *, window_ms: int) -> SignalQueries:
    """The queries of a signal over the window that ends at the evaluation time."""
    series, window = selector(signal.metric, profile.match), _range(window_ms)
    step, pace = _range(max(1000, window_ms // _NEWEST_STEPS)), _range(pace_range_ms(window_ms))
    return SignalQueries(
        maximum=_by("max", profile, f"max_over_time({series}[{window}])"),
        minimum=_by("min", profile, f"min_over_time({series}[{window}])"),
        total=_by("sum", profile, f"sum_over_time({series}[{window}])"),
        count=_by("sum", profile, f"count_over_time({series}[{window}])"),
        # A plain timestamp() shows no series that has ended; the subquery finds those, to the step.
        newest=_by(
            "max", profile, f"timestamp({series}) or max_over_time(timestamp({series})[{window}:{step}])"
        ),
        copies=_by("count", profile, series),
        best=f"max(count_over_time({series}[{window}]))",
        pace=f"max(max_over_time(count_over_time({series}[{pace}])[{window}:{pace}]))",
    )


def pace_range_ms(window_ms: int) -> int:
    """The part of the window by whose best count the sample interval is checked: gaps elsewhere do not stretch it."""
    return max(1000, window_ms // _PACE_PARTS)


def history_queries(profile: Profile, signal: Signal, *, history_ms: int) -> HistoryQueries:
    """The queries of a signal over the history that ends at the evaluation time."""
    series, window = selector(signal.metric, profile.match), _range(history_ms)
    step = _range(max(1000, history_ms // _FIRST_STEPS))
    return HistoryQueries(
        p95=_by("max", profile, f"quantile_over_time(0.95, {series}[{window}])"),
        maximum=_by("max", profile, f"max_over_time({series}[{window}])"),
        count=_by("sum", profile, f"count_over_time({series}[{window}])"),
        first=_by("min", profile, f"min_over_time(timestamp({series})[{window}:{step}])"),
        total=_by("sum", profile, f"sum_over_time({series}[{window}])"),
    )


def board_queries(profile: Profile, *, window_ms: int) -> BoardQueries:
    """The queries of a profile's memory and power."""
    window = _range(window_ms)

    def over(function: str, aggregate: str, metric: str | None) -> str | None:
        if metric is None:
            return None
        return _by(aggregate, profile, f"{function}_over_time({selector(metric, profile.match)}[{window}])")

    memory: Memory | None = profile.memory
    sized = memory is not None and memory.free is not None
    return BoardQueries(
        used=over("max", "max", memory.used if memory else None),
        least_used=over("min", "min", memory.used if memory and sized else None),
        most_free=over("max", "max", memory.free if memory else None),
        total=over("max", "max", memory.total if memory else None),
        power=over("max", "max", profile.power.metric if profile.power else None),
    )


def _by(aggregate: str, profile: Profile, expression: str) -> str:
    return f"{aggregate} by ({', '.join(profile.labels)}) ({expression})"


def _range(duration_ms: int) -> str:
    return f"{duration_ms}ms"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
