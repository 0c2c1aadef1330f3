"""Nothing shrinks on thin history."""

from autoscaler.decide.guards.rollout import waits_for_next_run
from autoscaler.decide.proposal import Judged, Proposal, Ruling
from autoscaler.decide.tally import Tally
from autoscaler.decide.world import World
from autoscaler.model.duration import format_duration
from autoscaler.model.reasons import Reason

GUARD = "history"


def guard_history(world: World, judged: Judged, proposal: Proposal, tally: Tally) -> Ruling:
    """Every change needs the policy's confidence, but for a release to a floor that was agreed to."""
    del tally
    if waits_for_next_run(judged):
        return _enough_of_the_run(judged)
    need, least = judged.assessment.need, world.policy.need.min_confidence
    if proposal.agreed:
        return Ruling(GUARD, "a release to a stated floor is judged by proven idleness")
    confidence = need.confidence if need else 0.0
    numbers = f"confidence {confidence:.2f} units of {world.policy.need.confidence_unit}, {least:g} needed"
    if confidence < least:
        return Ruling(GUARD, numbers, Reason.THIN_HISTORY)
    return Ruling(GUARD, numbers)


def _enough_of_the_run(judged: Judged) -> Ruling:
    """Completed runs stand for the confidence (`guard_lever` counts them); the run under way must be half through.

    A run begins with loading: what it has used by then says nothing about what it will use.
    """
    longest_ms = max((run.took_ms for run in judged.case.workload.runs), default=-1)
    seen_ms = min((unit.history_ms for unit in judged.assessment.measured), default=0)
    numbers = f"{format_duration(seen_ms // 1000 * 1000)} of the run under way are seen"
    if longest_ms < 0:
        return Ruling(GUARD, f"{numbers}, how long a run takes is not known", Reason.THIN_HISTORY)
    numbers += f", the longest took {format_duration(longest_ms // 1000 * 1000)}"
    if 2 * seen_ms < longest_ms:
        return Ruling(GUARD, numbers, Reason.THIN_HISTORY, "wait until a run was seen for half of its time")
    return Ruling(GUARD, numbers)
