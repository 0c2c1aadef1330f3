"""To zero and back: only where something outside the replicas tells that they are wanted, and at once when it does.

A server at zero says nothing of its queue, so its own metrics cannot wake it. The wake signal is a queue or a request count
of whatever stands in front of it. Where that signal goes silent, nobody could tell demand from none: that wakes, too.
"""

from collections.abc import Sequence

import msgspec

from autoscaler.decide.scaling.rules import ScalingRules
from autoscaler.model.duration import Duration


class Wake(msgspec.Struct, frozen=True, kw_only=True):
    """A demand signal that exists while there are no replicas: requests that wait, and when it was last heard.

    `cold_starts_ms` are measured times from a wake-up to the first answer, newest last.
    """

    requests: float
    heard_ms: int
    cold_starts_ms: Sequence[int] = ()

    @property
    def cold_start(self) -> Duration | None:
        """The longest start that was measured; None where none was."""
        return Duration(max(self.cold_starts_ms)) if self.cold_starts_ms else None


def obstacle_to_zero(
    wake: Wake | None, *, now_ms: int, idle_since_ms: int | None, rules: ScalingRules
) -> str | None:
    """Why the last replica stays; None where it may go."""
    if wake is None:
        return "at 0 replicas nothing would tell of demand: there is no wake signal"
    if is_silent(wake, now_ms=now_ms, rules=rules):
        return f"the wake signal was last heard {Duration(now_ms - wake.heard_ms)} ago"
    if wake.requests > 0:
        return f"{wake.requests:g} requests wait"
    if wake.cold_start is None:
        return "no cold start was measured: how long a wake-up takes is not known"
    idle = 0 if idle_since_ms is None else now_ms - idle_since_ms
    if idle < int(rules.idle_floor):
        return f"without demand for {Duration(idle)} of {rules.idle_floor}"
    return None


def reason_to_wake(wake: Wake | None, *, now_ms: int, rules: ScalingRules) -> str | None:
    """Why a workload at zero has to come back; None where it may sleep on."""
    if wake is None:
        return "there is no wake signal any more"
    if is_silent(wake, now_ms=now_ms, rules=rules):
        return f"the wake signal was last heard {Duration(now_ms - wake.heard_ms)} ago"
    if wake.requests > 0:
        start = f", ready within {wake.cold_start} as measured" if wake.cold_start else ""
        return f"{wake.requests:g} requests wait{start}"
    return None


def is_silent(wake: Wake, *, now_ms: int, rules: ScalingRules) -> bool:
    """Whether the signal missed two intervals."""
    return now_ms - wake.heard_ms > 2 * int(rules.interval)
