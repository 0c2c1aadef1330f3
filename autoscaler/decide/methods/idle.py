"""Idle: scale what is proven idle to the floor that its owner stated; never before the promised time.

Where nobody stated a floor, half an hour of silence is a quiet night: what is left must carry the days as well.
"""

from typing import Final

from autoscaler.decide.jobs import opted_in
from autoscaler.decide.marks import MIN_REPLICAS
from autoscaler.decide.methods.replicas import consent_to_fewer, fault_of_floor, fewer, load_of, obstacle
from autoscaler.decide.proposal import Judged, Proposal, Ruling
from autoscaler.decide.world import World
from autoscaler.model.duration import format_duration
from autoscaler.model.reasons import Reason

GUARD: Final = "idle"


def propose_release(world: World, judged: Judged) -> Proposal | Ruling:
    """Replicas down to the stated floor once the idleness is proven for long enough, or why not."""
    case, policy = judged.case, world.policy.methods
    job = case.workload.ref.kind == "Job" and opted_in(case.workload)
    refusal = fault_of_floor(GUARD, judged) if job else obstacle(GUARD, judged)
    if refusal:
        return refusal
    idle_ms, before = judged.assessment.idle_ms, case.workload.replicas
    if idle_ms < policy.idle_floor:
        detail = f"idle for {format_duration(idle_ms)}, the floor is {policy.idle_floor}"
        return Ruling(GUARD, detail, Reason.THIN_HISTORY)
    stated, agreed = case.stated.floor, case.stated.floor is not None or policy.allow_zero_replicas
    floor = stated.values[0] if stated else 0 if policy.allow_zero_replicas else 1
    if job:
        floor = max(1, floor)  # parallelism 0 would pause it for good
    if floor == 0 and judged.assessment.role == "serving":
        detail = f"serving ({judged.assessment.role_cause}): at 0 replicas nothing here would wake it"
        return Ruling(
            GUARD, detail, Reason.NEEDS_CONSENT, "put a waker such as KEDA in front, or state another role"
        )
    if before <= floor:
        return _at_floor(before, floor, agreed=agreed or before < 1)
    why = f"no activity on any board for {format_duration(idle_ms // 1000 * 1000)}"
    load = None if agreed else load_of(world, judged)
    return consent_to_fewer(GUARD, judged) or fewer(world, judged, GUARD, floor=floor, load=load, why=why)


def _at_floor(before: int, floor: int, *, agreed: bool) -> Ruling:
    if agreed:
        return Ruling(GUARD, f"{before} replicas, the owner's floor is {floor}", Reason.LADDER_END)
    remedy = f'set annotation {MIN_REPLICAS}: "0" on the workload'
    return Ruling(
        GUARD, f"idle at its last replica; nobody agreed to {before - 1}", Reason.NEEDS_CONSENT, remedy
    )
