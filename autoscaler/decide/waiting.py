"""Pods that wait for a node, and for which of them others may be asked to leave."""

from collections.abc import Iterator
from dataclasses import dataclass

from autoscaler.decide.gangs import gang_of
from autoscaler.decide.guards.memory import eviction_of
from autoscaler.decide.proposal import Judged, Ruling
from autoscaler.decide.world import Unit, World, is_board
from autoscaler.model.duration import format_duration
from autoscaler.model.reasons import Reason

GUARD = "seat"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pod without a node; `judged` is its workload's, None where that is not in scope."""

    unit: Unit
    judged: Judged | None

    @property
    def urgency(self) -> tuple[int, bool, int, str, str, str]:
        """The highest priority first; then who has a seat kept already, and who waits longest."""
        pod = self.unit.pod
        return (
            -self.unit.shape.priority,
            not pod.nominated_node,
            pod.created_ms,
            pod.namespace,
            pod.name,
            pod.uid,
        )


def waiting_pods(world: World, fleet: dict[int, Judged]) -> tuple[Waiting, ...]:
    """Every pod that the scheduler will seat when it can, the most urgent first; `fleet` is by workload index."""
    return tuple(sorted(_waiting(world, fleet), key=lambda one: one.urgency))


def _waiting(world: World, fleet: dict[int, Judged]) -> Iterator[Waiting]:
    for index, units in world.units_of.items():
        for unit in units:
            pod = unit.pod
            if not pod.node and not pod.deleting and pod.phase == "Pending":
                yield Waiting(unit, fleet.get(index))


def is_placeable(world: World, unit: Unit) -> bool:
    """Whether it is known here where the scheduler may put the pod."""
    shape = unit.shape
    return shape.scheduler in world.policy.guards.schedulers and not (
        shape.unmodelled or shape.volume_claims or shape.resource_claims or shape.faults
    )


def is_beneficiary(world: World, unit: Unit) -> bool:
    """Whether room is made for pods of its class, and it asks for boards that the scheduler did not find."""
    rules, shape = world.policy.yields, unit.shape
    return (
        bool(unit.pod.unschedulable)
        and shape.priority_class.startswith(rules.beneficiaries)
        and shape.priority_class not in rules.classes
        and unit.pod.namespace not in world.policy.guards.system_namespaces
        and any(
            amount > 0 and is_board(name, world.policy.resources) for name, amount in shape.demand.items()
        )
    )


def why_no_seat_is_made(world: World, unit: Unit, judged: Judged) -> Ruling | None:
    """What rules out that anybody leaves for this pod, whoever it would be; None where nothing does."""
    shape, past = unit.shape, eviction_of(world, judged.case.workload.ref)
    if shape.scheduler not in world.policy.guards.schedulers:
        return Ruling(GUARD, f"placed by {shape.scheduler}", Reason.FOREIGN_SCHEDULER)
    if shape.faults:
        return Ruling(GUARD, f"unreadable: {shape.faults[0]}", Reason.NO_PLACEMENT, "correct the named field")
    if shape.unmodelled:
        detail = f"not modelled here: {', '.join(shape.unmodelled)}"
        return Ruling(GUARD, detail, Reason.NO_PLACEMENT)
    if shape.volume_claims or shape.resource_claims:
        what = "volume claims" if shape.volume_claims else "resource claims"
        return Ruling(GUARD, f"where its {what} let it run is not known here", Reason.VOLUME_BOUND)
    gang = gang_of(judged)
    if gang:
        return Ruling(GUARD, f"{gang}: one seat of several would be of no use", Reason.GANG_MEMBER)
    if past is not None:
        ago = format_duration(max(0, world.now_ms - past.at_ms) // 1000 * 1000)
        detail = f"its workload was evicted {ago} ago: who was asked to leave does not make others leave"
        return Ruling(GUARD, detail, Reason.EVICTION_MEMORY)
    if world.policy.modes.of("make-room", unit.pod.namespace) == "observe":
        detail = "make-room is in mode observe: nothing is planned"
        return Ruling(GUARD, detail, Reason.MODE_RECOMMEND, "set the mode of make-room to recommend")
    return None
