"""Idle: scale what is proven idle to the floor that its owner stated; never before the promised time."""

from autoscaler.decide import marks
from autoscaler.decide.guards.budgets import step_limit
from autoscaler.decide.methods.scale_in import SCALABLE, consent_to_fewer
from autoscaler.decide.proposal import Judged, Proposal, Ruling
from autoscaler.decide.world import World
from autoscaler.model.duration import format_duration
from autoscaler.model.reasons import Reason

GUARD = "idle"


def propose_release(world: World, judged: Judged) -> Proposal | Ruling:
    """Replicas down to the stated floor once the idleness is proven for long enough, or why not."""
    case, policy = judged.case, world.policy.methods
    idle_ms = judged.assessment.idle_ms
    if case.workload.ref.kind not in SCALABLE:
        return Ruling(GUARD, f"kind {case.workload.ref.kind} has no lever to stop it", Reason.NO_LEVER)
    if idle_ms < policy.idle_floor:
        detail = f"idle for {format_duration(idle_ms)}, the floor is {policy.idle_floor}"
        return Ruling(GUARD, detail, Reason.THIN_HISTORY)
    statement = marks.minimum_replicas(case.workload.annotations)
    if statement and statement.fault:
        return Ruling(GUARD, statement.fault, Reason.NEEDS_CONSENT)
    stated = statement.values[0] if statement else (0 if policy.allow_zero_replicas else 1)
    before = case.workload.replicas
    if stated == 0 and judged.assessment.role == "serving":
        detail = f"serving ({judged.assessment.role_cause}): at 0 replicas nothing here would wake it"
        return Ruling(
            GUARD, detail, Reason.NEEDS_CONSENT, "put a waker such as KEDA in front, or state another role"
        )
    if before <= stated:
        return _at_floor(before, stated, agreed=statement is not None or before < 1)
    consent = consent_to_fewer(judged)
    if consent:
        return Ruling(GUARD, consent.detail, consent.reason, consent.remedy)
    after = max(stated, before - step_limit(world, before))
    return Proposal(
        method="idle",
        reason=Reason.RELEASED,
        lever="scale",
        before=before,
        after=after,
        saved_boards=(before - after) * case.held,
        because=f"no activity on any board for {format_duration(idle_ms // 1000 * 1000)}",
    )


def _at_floor(before: int, stated: int, *, agreed: bool) -> Ruling:
    if agreed:
        return Ruling(GUARD, f"{before} replicas, the owner's floor is {stated}", Reason.LADDER_END)
    remedy = f'set annotation {marks.MIN_REPLICAS}: "0" on the workload'
    return Ruling(
        GUARD, f"idle at its last replica; nobody agreed to {before - 1}", Reason.NEEDS_CONSENT, remedy
    )
