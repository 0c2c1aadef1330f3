"""Where a node autoscaler watches, an evicted pod's successor needs a seat: one that waits would buy a node."""

from collections.abc import Iterable

from autoscaler.decide.placement import place
from autoscaler.decide.proposal import Ruling
from autoscaler.decide.room import Room, seat_demand
from autoscaler.decide.waiting import GUARD, is_placeable
from autoscaler.decide.world import Unit, World
from autoscaler.model.reasons import Reason
from autoscaler.model.resources import subtract


def successor_seats(
    world: World, room: Room, node: str, leaving: Iterable[Unit]
) -> tuple[tuple[Unit, str], ...] | Ruling:
    """A seat that is free now, on another node, for the successor of each unit that leaves; none where nobody buys nodes."""
    buyer, seats = world.node_autoscaler, list[tuple[Unit, str]]()
    if not buyer:
        return ()
    free = {name: left for name, left in room.now.items() if name != node}
    for unit in leaving:
        name = f"{unit.pod.namespace}/{unit.pod.name}"
        if not is_placeable(world, unit):
            detail = f"where {name} may run next is not known: its successor may wait, and {buyer} buy a node"
            bound = unit.shape.volume_claims or unit.shape.resource_claims
            return Ruling(GUARD, detail, Reason.VOLUME_BOUND if bound else Reason.NO_PLACEMENT)
        found = place(unit.shape, unit.shape.demand, 1, nodes=room.admitting(unit), free=free)
        if not found:
            detail = f"the successor of {name} would wait, and {buyer} buy a node"
            return Ruling(GUARD, detail, Reason.NO_PLACEMENT)
        free[found[0]] = subtract(free[found[0]], seat_demand(unit))
        seats.append((unit, found[0]))
    return tuple(seats)
