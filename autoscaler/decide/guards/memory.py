"""What we did to a workload before and what came of it: whether it is ours to change again."""

from autoscaler.decide.proposal import Judged, Proposal, Ruling
from autoscaler.decide.tally import Tally
from autoscaler.decide.world import World
from autoscaler.model.cluster import PastAct, WorkloadRef
from autoscaler.model.duration import format_duration
from autoscaler.model.reasons import Reason


def guard_contested(world: World, judged: Judged, proposal: Proposal, tally: Tally) -> Ruling:
    """Others put our changes back too often: a service that insists would fight them."""
    del proposal, tally
    name, limit = "contested", world.policy.guards.max_reversals
    reversals = max((act.reversals for act in world.acts_of(judged.case.workload.ref)), default=0)
    if reversals >= limit:
        detail = f"others put our change back {reversals} times, at {limit} we stop"
        return Ruling(name, detail, Reason.CONTESTED)
    return Ruling(name, f"{reversals} of {limit} reversals")


def guard_backoff(world: World, judged: Judged, proposal: Proposal, tally: Tally) -> Ruling:
    """After a failure, an eviction or an undo the workload is left alone for a while, longer each time."""
    del proposal, tally
    name, ref = "back-off", judged.case.workload.ref
    longest = max(reversed(world.acts_of(ref)), key=lambda act: act.not_before_ms, default=None)
    if longest is None or longest.not_before_ms <= world.now_ms:
        return Ruling(name, "no back-off is running")
    left_ms = longest.not_before_ms - world.now_ms
    words = longest.why or "it was left alone"
    reason = Reason.EVICTION_MEMORY if longest.method == "make-room" else Reason.COOLDOWN
    return Ruling(name, f"{words}: another {format_duration(left_ms)} to go", reason)


def eviction_of(world: World, ref: WorkloadRef) -> PastAct | None:
    """The last eviction of a workload that is still remembered: what replaces its pod causes no eviction itself."""
    guards = world.policy.guards
    return next(
        (
            act
            for act in reversed(world.acts_of(ref))
            if act.method == "make-room"
            and (act.not_before_ms > world.now_ms or world.now_ms - act.at_ms < guards.backoff)
        ),
        None,
    )
