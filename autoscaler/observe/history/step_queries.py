"""The text of the range queries by which the history is filled: one point for each step and series.

Maxima are asked for where a device has several series in one step (an exporter restarted, two scrapers): the highest mean
holds more, the best covered series counts once.
"""

import msgspec

from autoscaler.observe.profiles import Profile, Signal
from autoscaler.observe.queries import selector


class StepQueries(msgspec.Struct, frozen=True):
    """The queries of one signal; `busiest` is the mean over the evidence window, None where that is one step."""

    mean: str
    peak: str
    count: str
    busiest: str | None = None


def step_queries(
    profile: Profile, signal: Signal, *, step_ms: int, window_ms: int, source: str = ""
) -> StepQueries:
    """The queries of a signal for steps of that length; `source` is the matcher of the trusted scrape job."""

    def over(function: str, range_ms: int) -> str:
        return _highest(
            profile, f"{function}({selector(signal.metric, profile.match, source)}[{range_ms}ms])"
        )

    return StepQueries(
        mean=over("avg_over_time", step_ms),
        peak=over("max_over_time", step_ms),
        count=over("count_over_time", step_ms),
        busiest=over("avg_over_time", window_ms) if window_ms > step_ms else None,
    )


def memory_query(profile: Profile, *, step_ms: int, source: str = "") -> str | None:
    """The query of a profile's memory in use; None where it has none."""
    if profile.memory is None:
        return None
    series = selector(profile.memory.used, profile.match, source)
    return _highest(profile, f"max_over_time({series}[{step_ms}ms])")


def labels_of(profile: Profile) -> tuple[str, ...]:
    """The labels that tell whose a series is: nodes and uids are not asked for, labels are most of an answer."""
    beside = {*profile.nodes, *(owner.uid for owner in profile.owners)}
    needed = {label for key in profile.device_keys for label in key} | {*profile.slices, *profile.shares}
    named = [name for owner in profile.owners for name in (owner.pod, owner.namespace, owner.container)]
    needed |= {name for name in named if name}
    return tuple(label for label in profile.labels if label not in beside or label in needed)


def _highest(profile: Profile, expression: str) -> str:
    return f"max by ({', '.join(labels_of(profile))}) ({expression})"
