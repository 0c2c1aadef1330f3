"""Deactivate: what Kueue has admitted and nobody uses gives its quota back, by the one field that Kueue leaves to others.

Kueue then stops the workload as a whole, keeps its progress as far as its kind does, and admits whoever waits. Work in
memory is lost, so its owner must have agreed to a floor of nothing; what the policy lets go to no replicas is not enough.
"""

from typing import Final

from autoscaler.decide.marks import MIN_REPLICAS
from autoscaler.decide.proposal import Judged, Proposal, Ruling
from autoscaler.decide.world import World
from autoscaler.model.duration import format_duration
from autoscaler.model.reasons import Reason

GUARD: Final = "deactivate"
ACTIVE: Final = 1
STOPPED: Final = 0


def propose_deactivation(world: World, judged: Judged) -> Proposal | Ruling:
    """The release of an idle admitted workload once its idleness is proven for long enough, or why not."""
    case, policy, idle_ms = judged.case, world.policy.methods, judged.assessment.idle_ms
    if judged.assessment.verdict != "idle":
        detail = f"Kueue manages it, and it is {judged.assessment.verdict}: only what is idle is given back"
        return Ruling(GUARD, detail, Reason.KUEUE)
    if idle_ms < policy.idle_floor:
        detail = f"idle for {format_duration(idle_ms)}, the floor is {policy.idle_floor}"
        return Ruling(GUARD, detail, Reason.THIN_HISTORY)
    refusal = _without_consent(judged)
    if refusal:
        return refusal
    return Proposal(
        method="deactivate",
        reason=Reason.RELEASED,
        lever="deactivate",
        before=ACTIVE,
        after=STOPPED,
        saved_boards=case.total_held,
        because=f"no activity on any board for {format_duration(idle_ms // 1000 * 1000)}",
        agreed=True,
    )


def _without_consent(judged: Judged) -> Ruling | None:
    """Why its owner's word is missing; None where he agreed to a floor of nothing."""
    floor = judged.case.stated.floor
    if floor and floor.fault:
        return Ruling(GUARD, floor.fault, Reason.NEEDS_CONSENT)
    if judged.assessment.role == "serving":
        detail = f"serving ({judged.assessment.role_cause}): once stopped nothing here would wake it"
        return Ruling(
            GUARD, detail, Reason.NEEDS_CONSENT, "put a waker such as KEDA in front, or state another role"
        )
    if floor and floor.values[0] > 0:
        detail = f"the owner's floor is {floor.values[0]}: Kueue stops all of it or nothing"
        return Ruling(GUARD, detail, Reason.LADDER_END)
    if floor is None:
        remedy = f'set annotation {MIN_REPLICAS}: "0" on the workload'
        return Ruling(GUARD, "idle, and nobody agreed to its being stopped", Reason.NEEDS_CONSENT, remedy)
    return None
