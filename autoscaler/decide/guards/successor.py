"""Whether the pods that replace the old ones would find a place."""

from autoscaler.decide.guards.rollout import surge_of, unavailable_of, waits_for_next_run
from autoscaler.decide.placement import admits, place
from autoscaler.decide.proposal import Judged, Proposal, Ruling, successor_demand, successor_shape
from autoscaler.decide.tally import Tally
from autoscaler.decide.world import POD_SEATS, World
from autoscaler.model.reasons import Reason
from autoscaler.model.resources import add, fits


def guard_scheduler(world: World, judged: Judged, proposal: Proposal, tally: Tally) -> Ruling:
    """Pods of a scheduler whose rules are not known here are not replaced."""
    del tally
    name, shape = "scheduler", judged.case.shape
    if proposal.lever != "template" or shape is None or waits_for_next_run(judged):
        return Ruling(name, "no pod is replaced")
    if shape.scheduler not in world.policy.guards.schedulers:
        return Ruling(name, f"placed by {shape.scheduler}", Reason.FOREIGN_SCHEDULER)
    return Ruling(name, shape.scheduler)


def guard_volumes(world: World, judged: Judged, proposal: Proposal, tally: Tally) -> Ruling:
    """A surge pod that shares a claim with the pod it replaces may never start; a pod with claims returns to its node."""
    del tally
    name, shape = "volumes", judged.case.shape
    replaced = proposal.lever == "template" and not waits_for_next_run(judged)
    away = displaced(world, judged, proposal) if replaced else 0
    if shape is not None and away and (shape.volume_claims or shape.resource_claims):
        detail = (
            f"{away} pods could not return to their node, and where their claims let them run is not known"
        )
        return Ruling(name, detail, Reason.VOLUME_BOUND)
    if shape is not None and surge_of(judged, proposal) and (shape.volume_claims or shape.resource_claims):
        what = "a volume claim" if shape.volume_claims else "a resource claim"
        remedy = "use strategy Recreate or maxSurge 0"
        return Ruling(
            name, f"the surge pod would share {what} with its predecessor", Reason.VOLUME_BOUND, remedy
        )
    return Ruling(name, "no claim in the way")


def surge_places(world: World, judged: Judged, proposal: Proposal, tally: Tally) -> tuple[str, ...] | None:
    """Nodes for the pods that need another seat than their predecessor's; None where they do not fit."""
    shape = successor_shape(judged)
    if proposal.lever != "template" or shape is None or waits_for_next_run(judged):
        return ()
    count = max(surge_of(judged, proposal), displaced(world, judged, proposal))
    barred = _barred(world, judged)
    nodes = {name: row for name, row in world.nodes.items() if name not in barred} if barred else world.nodes
    return place(shape, successor_demand(judged, proposal), count, nodes=nodes, free=tally.free)


def _barred(world: World, judged: Judged) -> frozenset[str]:
    """Nodes that other pods keep its pods out of; live ones stand for their successors."""
    return frozenset[str]().union(*(world.repulsions.barred(unit.pod) for unit in judged.case.units))


def displaced(world: World, judged: Judged, proposal: Proposal) -> int:
    """Units whose successor could not take the seat they leave: their node would not let it in, or has lost room."""
    shape, asked = successor_shape(judged), {**successor_demand(judged, proposal), POD_SEATS: 1}
    count, barred = 0, _barred(world, judged)
    for unit in judged.case.units:
        node = world.nodes.get(unit.pod.node)
        if node is None or shape is None or node.name in barred or not admits(node, shape):
            count += 1
        else:
            count += not fits(asked, add(world.free[node.name], {**unit.shape.demand, POD_SEATS: 1}))
    return count


def guard_placement(world: World, judged: Judged, proposal: Proposal, tally: Tally) -> Ruling:
    """Every successor has a seat: its predecessor's or a free one; and a surge fits, unless an old pod may go first."""
    name, shape, workload = "placement", successor_shape(judged), judged.case.workload
    if shape is None or proposal.lever != "template" or waits_for_next_run(judged):
        return Ruling(name, "no pod is placed")
    if shape.unmodelled:
        return Ruling(name, f"not modelled here: {', '.join(shape.unmodelled)}", Reason.NO_PLACEMENT)
    surge, without_seat = surge_of(judged, proposal), displaced(world, judged, proposal)
    places = surge_places(world, judged, proposal, tally)
    if places is None and without_seat:
        detail = f"{without_seat} pods could not take their predecessor's seat and no node has room for them"
        return Ruling(name, detail, Reason.NO_PLACEMENT)
    if places is None and unavailable_of(judged, proposal) == 0:
        return Ruling(name, f"no node has room for {surge} surge pods", Reason.NO_SURGE)
    if judged.assessment.role == "serving" and workload.replicas == 1 and not (surge and places):
        detail = "the only replica of a server would be away until its successor is ready"
        return Ruling(name, detail, Reason.NO_SURGE)
    if places is None and world.node_autoscaler:
        detail = f"{surge} surge pods would wait, and {world.node_autoscaler} buy a node for them"
        return Ruling(name, detail, Reason.NO_SURGE)
    if places is None:
        return Ruling(name, "no room for the surge, an old pod may go first")
    if not places:
        return Ruling(name, "the successor takes the seat it frees")
    return Ruling(name, f"{len(places)} pods fit {', '.join(sorted(set(places)))}")
