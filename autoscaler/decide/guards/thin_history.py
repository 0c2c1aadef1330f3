"""Nothing shrinks on thin history."""

from autoscaler.decide.proposal import Judged, Proposal, Ruling
from autoscaler.decide.tally import Tally
from autoscaler.decide.world import World
from autoscaler.model.reasons import Reason

GUARD = "history"


def guard_history(world: World, judged: Judged, proposal: Proposal, tally: Tally) -> Ruling:
    """Sizing needs the policy's confidence; a release has its own floor of proven idleness."""
    del tally
    need, least = judged.assessment.need, world.policy.need.min_confidence
    if proposal.method == "idle":
        return Ruling(GUARD, "a release is judged by proven idleness")
    confidence = need.confidence if need else 0.0
    numbers = f"confidence {confidence:.2f} units of {world.policy.need.confidence_unit}, {least:g} needed"
    if confidence < least:
        return Ruling(GUARD, numbers, Reason.THIN_HISTORY)
    return Ruling(GUARD, numbers)
