"""Nothing shrinks on thin history."""

from autoscaler.decide.proposal import Judged, Proposal, Ruling
from autoscaler.decide.tally import Tally
from autoscaler.decide.world import World
from autoscaler.model.reasons import Reason

GUARD = "history"


def guard_history(world: World, judged: Judged, proposal: Proposal, tally: Tally) -> Ruling:
    """Every change needs the policy's confidence, but for a release to a floor that was agreed to."""
    del tally
    need, least = judged.assessment.need, world.policy.need.min_confidence
    if proposal.agreed:
        return Ruling(GUARD, "a release to a stated floor is judged by proven idleness")
    confidence = need.confidence if need else 0.0
    numbers = f"confidence {confidence:.2f} units of {world.policy.need.confidence_unit}, {least:g} needed"
    if confidence < least:
        return Ruling(GUARD, numbers, Reason.THIN_HISTORY)
    return Ruling(GUARD, numbers)
