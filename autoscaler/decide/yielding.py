"""Who yields to whom: by class, by proven idleness, or by priority where little is used."""

from dataclasses import replace

from autoscaler.decide.assess import assess_alone
from autoscaler.decide.proposal import Judged
from autoscaler.decide.seats import Rank
from autoscaler.decide.world import Unit, World
from autoscaler.model.duration import format_duration


def alone(world: World, judged: Judged, position: int) -> Judged:
    """A unit by itself: its peers may be pending, unmeasured or protected."""
    unit = judged.case.units[position]
    held = unit.shape.demand.get(judged.case.resource, 0)
    return Judged(
        case=replace(judged.case, units=(unit,), held=held),
        assessment=assess_alone(world, judged.assessment, position, unit),
        fleet=judged.fleet,
    )


def best_rank(world: World, unit: Unit, priority: int) -> Rank | None:
    """The lowest rank that the unit may turn out to have for work of a priority, by what it states; None for none."""
    rules, own = world.policy.yields, unit.shape.priority
    if own > priority:
        return None  # the scheduler keeps a nominated seat from equal and lower priorities alone: it would be back
    if unit.shape.priority_class in rules.classes:
        return Rank(interactive=False, tier=0, priority=own)
    if rules.idle or (rules.lower_priority and own < priority):
        return Rank(interactive=False, tier=1, priority=own)
    return None


def rank_of(world: World, judged: Judged, priority: int) -> Rank | None:
    """The rank of a unit that is measured, for work of a priority; None where it does not yield to it."""
    rules, (unit,), assessment = world.policy.yields, judged.case.units, judged.assessment
    own = unit.shape.priority
    idle = assessment.verdict == "idle" and assessment.idle_ms >= world.policy.methods.idle_floor
    lower = rules.lower_priority and own < priority
    interactive = assessment.role == "interactive"
    if unit.shape.priority_class in rules.classes:
        return Rank(interactive, 0, own)
    if idle and (rules.idle or lower):
        return Rank(interactive, 1, own)
    if lower and assessment.verdict in {"idle", "under-used"}:
        return Rank(interactive, 2, own)
    return None


def why_it_yields(judged: Judged, rank: Rank) -> str:
    """The same in words."""
    (unit,), assessment = judged.case.units, judged.assessment
    if rank.tier == 0:
        return f"its class {unit.shape.priority_class} yields"
    if rank.tier == 1:
        return f"it is idle for {format_duration(assessment.idle_ms // 1000 * 1000)}"
    return f"it is of priority {rank.priority} and uses {assessment.use_ratio or 0:.0%} of its boards"
