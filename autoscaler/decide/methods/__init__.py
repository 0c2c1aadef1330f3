"""Methods propose changes; each is a function `(world, judged) -> Proposal | Ruling`.

A ruling says why the method has nothing to propose; guards judge the proposals.
"""

from collections.abc import Callable
from typing import TypeAlias

from autoscaler.decide.guards.kueue import admitted_by
from autoscaler.decide.methods.deactivate import propose_deactivation
from autoscaler.decide.methods.idle import propose_release
from autoscaler.decide.methods.rightsize import propose_right_size
from autoscaler.decide.methods.scale_in import propose_scale_in
from autoscaler.decide.proposal import Judged, Proposal, Ruling
from autoscaler.decide.world import World

MethodFunction: TypeAlias = Callable[[World, Judged], Proposal | Ruling]


def methods_for(world: World, judged: Judged) -> tuple[MethodFunction, ...]:
    """The methods in the order they are tried for this workload; the first whose proposal passes is planned.

    An idle unit is released rather than trimmed; serving prefers fewer replicas over smaller ones. What Kueue has
    admitted is given back through Kueue or not at all: it undoes any other change.
    """
    switches = world.policy.methods
    if admitted_by(world, judged.case) is not None:
        return (propose_deactivation,) if switches.deactivate else ()
    right_size = (propose_right_size,) if switches.right_size else ()
    scale_in = (propose_scale_in,) if switches.scale_in else ()
    idle = (propose_release,) if switches.idle and judged.assessment.verdict == "idle" else ()
    if judged.assessment.role == "serving":
        return (*idle, *scale_in, *right_size)
    return (*idle, *right_size, *scale_in)


__all__ = ["MethodFunction", "methods_for"]
