"""Incidents of the whole fleet: blind monitoring, clocks apart, rights that are missing."""

from autoscaler.decide.proposal import Judged, Proposal, Ruling
from autoscaler.decide.tally import Tally
from autoscaler.decide.world import World
from autoscaler.model.duration import format_duration
from autoscaler.model.reasons import Reason


def guard_fleet_coverage(world: World, judged: Judged) -> Ruling:
    """Nothing is taken away during an incident of the monitoring, nor before a full window has passed since."""
    name, fleet = "fleet coverage", judged.fleet
    if fleet.frozen:
        return Ruling(name, fleet.frozen, Reason.FLEET_BLIND)
    least = world.policy.evidence.fleet_coverage
    return Ruling(name, f"{fleet.measured} of {fleet.units} units measured, {least:.0%} needed")


def guard_clock_skew(world: World, judged: Judged) -> Ruling:
    """The clocks of the API server and the metrics store must agree."""
    del judged
    name, skew_ms, limit = "clock skew", world.snapshot.telemetry.skew_ms, world.policy.evidence.max_skew
    if abs(skew_ms) > limit:
        detail = f"the metrics store is {format_duration(skew_ms)} from the API server, {limit} allowed"
        return Ruling(name, detail, Reason.CLOCK_SKEW)
    return Ruling(name, f"{format_duration(skew_ms)} apart")


_NEEDED_ALWAYS = ("Namespace", "ReplicaSet", "PodDisruptionBudget", "HorizontalPodAutoscaler")
_NEEDED_BY_LEVER = {
    "template": ("ResourceQuota", "LimitRange", "Node"),
    "scale": (),
    "bounds": (),
    "deactivate": ("Workload",),
    "evict": ("Node", "Job", "NodeClaim", "PersistentVolumeClaim", "PersistentVolume", "Workload"),
}


def guard_access(world: World, judged: Judged, proposal: Proposal, tally: Tally) -> Ruling:
    """A limit that cannot be read is not assumed to be absent."""
    del judged, tally
    name, needed = "access", (*_NEEDED_ALWAYS, *_NEEDED_BY_LEVER[proposal.lever])
    for row in sorted(world.snapshot.access, key=lambda row: row.kind):
        if row.state not in {"available", "absent"} and row.kind in needed:
            detail = f"may not read {row.kind}: {row.detail or row.state}"
            return Ruling(name, detail, Reason.FORBIDDEN, f"grant list and watch on {row.kind}")
    return Ruling(name, "every limit that matters is readable")
