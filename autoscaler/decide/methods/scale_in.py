"""Scale in: fewer replicas where fewer carry the load, its seen peak included."""

from typing import Final

from autoscaler.decide.methods.replicas import consent_to_fewer, fewer, load_of, obstacle, part_of_the_run
from autoscaler.decide.proposal import Judged, Proposal, Ruling
from autoscaler.decide.world import World
from autoscaler.model.reasons import Reason

GUARD: Final = "scale-in"


def floor_of(judged: Judged) -> int:
    """The least replicas that the owner allows, never under one here."""
    stated = judged.case.stated.floor
    return max(1, *stated.values) if stated and stated.values else 1


def propose_scale_in(world: World, judged: Judged) -> Proposal | Ruling:
    """The replicas that hold the load, at most one step of the workload's budget down, or why not fewer."""
    refusal = obstacle(GUARD, judged)
    if refusal:
        return refusal
    before, floor = judged.case.workload.replicas, floor_of(judged)
    if before <= floor:
        return Ruling(GUARD, f"{before} replicas, the floor is {floor}", Reason.LADDER_END)
    refusal = part_of_the_run(GUARD, judged) or consent_to_fewer(GUARD, judged)
    return refusal or fewer(world, judged, GUARD, floor=floor, load=load_of(world, judged))
