"""Make room: who has to leave so that waiting work of high priority gets a seat that it really fits.

Seats that waiting pods fit anyway are spoken for first, in the scheduler's own order; what is leaving already counts as
free soon. Only then is the cheapest set of units on one node looked for. A workload gives up one unit at a time.
"""

from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

import msgspec

from autoscaler.decide.actions import eviction_of, held_by, mode_for
from autoscaler.decide.coming import Coming
from autoscaler.decide.explain import Trail
from autoscaler.decide.guards.budgets import guard_budgets, never_fits
from autoscaler.decide.guards.disruption import budgets_of, guard_disruption_budgets
from autoscaler.decide.guards.freeze import guard_freeze
from autoscaler.decide.guards.victim import judge_victim
from autoscaler.decide.proposal import Judged, Proposal, Ruling, refuse
from autoscaler.decide.room import Kin, Room, seat_demand
from autoscaler.decide.seats import Candidate, Cost, Rank, sets_by_cost, shortage
from autoscaler.decide.successors import successor_seats
from autoscaler.decide.tally import Effect, Tally
from autoscaler.decide.waiting import (
    GUARD,
    Waiting,
    is_beneficiary,
    is_placeable,
    waiting_pods,
    why_no_seat_is_made,
)
from autoscaler.decide.world import Unit, World, is_board
from autoscaler.decide.yielding import alone, best_rank, rank_of, why_it_yields
from autoscaler.model.plan import Action, PodRef, Seat
from autoscaler.model.policy import Mode
from autoscaler.model.policy_sections import strictest
from autoscaler.model.reasons import Reason
from autoscaler.model.resources import Vector, fits, total

MOST_NODES: Final = 200
"""Nodes that are searched for one pod, the most promising first: one cycle judges the whole fleet in a second."""
MOST_SETS: Final = 64
"""Sets of one node that are held against budgets; the next ones would only be dearer."""
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class _Found:
    """A seat with its price, and the tally once it is paid."""

    cost: Cost
    chosen: tuple[Candidate, ...]
    tally: Tally
    successors: tuple[tuple[Unit, str], ...]


@dataclass(frozen=True, slots=True)
class _Look:
    """What was seen on a node that gave no seat: who stays and why, or which limit the cheapest set is over."""

    node: str
    missing: int
    stays: tuple[tuple[Unit, Ruling], ...]
    over: Ruling | None


@dataclass(slots=True)
class _Round:
    """One plan's seats: room and tally move on with each that is given."""

    world: World
    trails: dict[int, Trail]
    tally: Tally
    room: Room
    coming: Coming
    on_node: dict[str, list[tuple[Trail, int]]]
    actions: list[Action] = field(default_factory=list)
    refused: dict[int, list[tuple[Unit, Ruling]]] = field(default_factory=dict)
    judged: dict[int, tuple[Judged, tuple[Ruling, ...]]] = field(default_factory=dict)
    """Units by themselves and what the guards say of them, by index: it is the same for whoever waits."""
    failed: dict[tuple[Kin, str, int], Ruling] = field(default_factory=dict)
    """By shape and nodes, namespace and own peers: until a seat is given there is only ever less room, so one search does for all."""


def make_room(world: World, trails: list[Trail], tally: Tally) -> tuple[tuple[Action, ...], Tally]:
    """The evictions in the order in which they are to be made, and what is left for the other methods.

    Victims' trails get their action, waiting pods' trails their ruling: the seat, or why there is none.
    """
    placed = {trail.judged.case.units[0].pod.workload: trail for trail in trails if trail.judged.case.units}
    on_node: dict[str, list[tuple[Trail, int]]] = {}
    for trail in trails:
        for position, unit in enumerate(trail.judged.case.units):
            if unit.pod.node and not unit.pod.deleting:
                on_node.setdefault(unit.pod.node, []).append((trail, position))
    state = _Round(world, placed, tally, Room(world), Coming(world), on_node)
    for one in waiting_pods(world, {index: trail.judged for index, trail in placed.items()}):
        _serve(state, one)
    for index, refused in state.refused.items():
        _explain(placed[index], refused)
    return tuple(state.actions), replace(state.tally, free=state.room.now)


def _serve(state: _Round, one: Waiting) -> None:
    world, unit, room = state.world, one.unit, state.room
    trail, wanted = state.trails.get(unit.pod.workload), is_beneficiary(world, unit)
    expected = ""
    if is_placeable(world, unit):
        place = room.place(unit)
        if place:
            node, now = place
            room.take(unit, node)
            if trail and wanted:
                when = "now" if now else "once pods have left that are leaving"
                trail.rulings.append(Ruling(GUARD, f"pod {unit.pod.name} fits {node} {when}"))
            return
        expected = state.coming.take(unit)
    if trail and wanted and world.policy.methods.make_room:
        ruling = why_no_seat_is_made(world, unit, trail.judged)
        if ruling is None and expected and not unit.pod.nominated_node:
            ruling = Ruling(GUARD, expected, Reason.NODE_ON_ITS_WAY)
        ruling = ruling or _find(state, unit, trail)
        if ruling is None:
            return
        state.refused.setdefault(unit.pod.workload, []).append((unit, ruling))
    if unit.pod.nominated_node in room.now:
        # The scheduler keeps this seat for it against its equals and lesser, whatever is decided here.
        room.take(unit, unit.pod.nominated_node)


def _find(state: _Round, unit: Unit, trail: Trail) -> Ruling | None:
    """Gives the pod a seat, or says why there is none; a seat that was begun is gone on with."""
    in_flight, allowed = state.tally.in_flight, state.world.policy.budgets.in_flight
    if in_flight >= allowed:
        detail = f"{in_flight} changes are planned or not yet verified, {allowed} allowed"
        return Ruling(GUARD, detail, Reason.BUDGET_SPENT)
    nodes, kept = tuple(state.room.admitting(unit)), unit.pod.nominated_node
    if kept in nodes:
        found = _search(state, unit, (kept,))
        if isinstance(found, _Found):
            _accept(state, unit, trail, found)
            return None
        if found.reason in {Reason.BUDGET_SPENT, Reason.DISRUPTION_BUDGET, Reason.FREEZE_WINDOW}:
            return found
    own = unit.pod.workload if len(trail.judged.case.units) > 1 else -1
    key = (state.room.kin(unit), unit.pod.namespace, own)
    if key not in state.failed:
        found = _search(state, unit, nodes)
        if isinstance(found, _Found):
            _accept(state, unit, trail, found)
            return None
        state.failed[key] = found
    return state.failed[key]


def _search(state: _Round, unit: Unit, nodes: tuple[str, ...]) -> _Found | Ruling:
    """The cheapest seat on any of these nodes, by bounds from what units state before anything of them is judged."""
    wanted, bounds = seat_demand(unit), []
    boards = _boards(state.world, unit)
    for node in nodes:
        short = shortage(wanted, state.room.soon[node])
        bound = _bound(state, unit, node, short, boards)
        if bound is not None:
            bounds.append((bound, node, short))
    bounds.sort(key=lambda entry: entry[:2])
    best: _Found | None = None
    looks: list[_Look] = []
    for bound, node, short in bounds[:MOST_NODES]:
        if best and (best.cost.top, best.cost.surplus, best.cost.boards, best.cost.pods) <= bound:
            break
        found = _on_node(state, unit, node, short, best)
        if isinstance(found, _Found):
            best = found
        else:
            looks.append(found)
    return best or _no_seat(looks, admitting=len(nodes), promising=len(bounds))


def _useful(state: _Round, unit: Unit, node: str, short: Vector) -> list[tuple[Trail, int, Rank]]:
    """Units that could yield to the pod, by what they state, and hold something that it lacks."""
    found = []
    for trail, position in state.on_node.get(node, ()):
        other = trail.judged.case.units[position]
        rank = best_rank(state.world, other, unit.shape.priority)
        if (
            rank is not None
            and trail.action is None
            and other.pod.workload != unit.pod.workload
            and any(seat_demand(other).get(name, 0) > 0 for name in short)
        ):
            found.append((trail, position, rank))
    return sorted(found, key=lambda entry: (entry[2], entry[0].judged.case.units[entry[1]].pod.name))


def _bound(
    state: _Round, unit: Unit, node: str, short: Vector, boards: tuple[str, ...]
) -> tuple[Rank, int, int, int] | None:
    """What no set of the node can be cheaper than, by rank, surplus, boards and pods; None where all would not do."""
    freed: Vector = {}
    useful = _useful(state, unit, node, short)
    demands = [seat_demand(trail.judged.case.units[position]) for trail, position, _ in useful]
    least, fewest = sum(short.get(name, 0) for name in boards), 0
    sizes = sorted((sum(demand.get(name, 0) for name in boards) for demand in demands), reverse=True)
    while fewest < len(sizes) and sum(sizes[:fewest]) < least:
        fewest += 1
    for (_, _, rank), demand in zip(useful, demands, strict=True):
        freed = total((freed, demand))
        if fits(short, freed):
            return rank, 0, least, max(1, fewest)
    return None


def _on_node(state: _Round, unit: Unit, node: str, short: Vector, best: _Found | None) -> _Found | _Look:
    """A seat that is cheaper than the best one so far, else what is in the way."""
    candidates: list[Candidate] = []
    stays: list[tuple[Unit, Ruling]] = []
    for trail, position, _ in _useful(state, unit, node, short):
        found = _candidate(state, unit, node, trail, position)
        if isinstance(found, Candidate):
            candidates.append(found)
        else:
            stays.append((trail.judged.case.units[position], found))
    boards = _boards(state.world, unit)
    over: Ruling | None = None
    for cost, chosen in islice(sets_by_cost(candidates, short, node=node, boards=boards), MOST_SETS):
        if best and best.cost < cost:
            break
        paid = _pay(state.world, chosen, state.tally)
        if isinstance(paid, Ruling):
            over = over or paid
            continue
        seats = successor_seats(state.world, state.room, node, [one.unit for one in chosen])
        if isinstance(seats, Ruling):
            over = over or seats
            continue
        return _Found(cost, chosen, paid, seats)
    left = shortage(short, total(one.gives for one in candidates))
    return _Look(node, sum(left.get(name, 0) for name in boards), tuple(stays), over)


def _boards(world: World, unit: Unit) -> tuple[str, ...]:
    return tuple(name for name in unit.shape.demand if is_board(name, world.policy.resources))


def _candidate(state: _Round, unit: Unit, node: str, trail: Trail, position: int) -> Candidate | Ruling:
    """The unit with what every guard says of it, or the first refusal."""
    other = trail.judged.case.units[position]
    if other.index not in state.judged:
        judged = alone(state.world, trail.judged, position)
        rulings = judge_victim(state.world, judged, _eviction(judged, "", ""), state.tally)
        state.judged[other.index] = (judged, rulings)
    judged, rulings = state.judged[other.index]
    if rulings[-1].reason:
        return rulings[-1]
    if mode_for(state.world.policy, judged, "make-room") == "observe":
        return Ruling("mode", "make-room is in mode observe there: nothing is planned", Reason.MODE_RECOMMEND)
    rank = rank_of(state.world, judged, unit.shape.priority)
    if rank is None:
        detail = f"it is {judged.assessment.verdict}, of priority {other.shape.priority}"
        return Ruling("yield", detail, Reason.NO_PLACEMENT)
    waits = f"pod {unit.pod.namespace}/{unit.pod.name} of priority {unit.shape.priority} waits for {node}"
    proposal = _eviction(judged, f"{waits}: {why_it_yields(judged, rank)}", unit.pod.namespace)
    return Candidate(other, judged, proposal, rank, seat_demand(other), rulings)


def _eviction(judged: Judged, because: str, given_to: str) -> Proposal:
    return Proposal(
        method="make-room",
        reason=Reason.MADE_ROOM,
        lever="evict",
        before=judged.case.held,
        after=0,
        saved_boards=judged.case.held,
        because=because,
        given_to=given_to,
    )


def _pay(world: World, chosen: tuple[Candidate, ...], tally: Tally) -> Tally | Ruling:
    """The tally once all of them are evicted, or the limit that this would go over."""
    boards = sum(one.proposal.saved_boards for one in chosen)
    too_many = never_fits(world, boards, method="make-room", pods=len(chosen))
    if too_many:
        return too_many
    for one in chosen:
        for guard in (guard_freeze, guard_disruption_budgets, guard_budgets):
            ruling = guard(world, one.judged, one.proposal, tally)
            if ruling.reason:
                return ruling
        tally = tally.after(
            Effect(
                namespace=one.unit.pod.namespace,
                disruptions=tuple((budget.name, 1) for budget in budgets_of(world, one.judged)),
                boards=one.proposal.saved_boards,
                given_to=one.proposal.given_to,
                in_flight=int(one is chosen[-1]),
                method=one.proposal.method,
                pods=1,
            )
        )
    return tally


def _accept(state: _Round, unit: Unit, trail: Trail, found: _Found) -> None:
    world, node, pod = state.world, found.cost.node, unit.pod
    state.tally = found.tally
    state.failed.clear()
    held = held_by(world, _mode(world, found.chosen, pod.namespace))
    for number, one in enumerate(found.chosen, start=1):
        seat = Seat(
            PodRef(pod.namespace, pod.name, pod.uid),
            node,
            priority=unit.shape.priority,
            more=len(found.chosen) - number,
        )
        victim = state.trails[one.unit.pod.workload]
        victim.rulings = list(one.rulings)
        victim.action = eviction_of(one.judged, one.proposal, seat, held=held)
        state.actions.append(victim.action)
    state.room.take(unit, node, total(one.gives for one in found.chosen))
    for successor, place in found.successors:
        state.room.take(successor, place)
    names = ", ".join(f"{one.unit.pod.namespace}/{one.unit.pod.name}" for one in found.chosen)
    trail.rulings.append(Ruling(GUARD, f"pod {pod.name} gets {node} once {names} left"))


def _mode(world: World, chosen: tuple[Candidate, ...], beneficiary: str) -> Mode:
    """One victim that may only be recommended holds back the whole seat: half a seat would be taken for nothing."""
    modes = [mode_for(world.policy, one.judged, "make-room") for one in chosen]
    return strictest((*modes, world.policy.modes.of("make-room", beneficiary)))


def _no_seat(looks: list[_Look], *, admitting: int, promising: int) -> Ruling:
    """The nearest reason, with what was seen on the nearest nodes."""
    if not admitting:
        return Ruling(GUARD, "no node's state, labels and taints let it in", Reason.NO_PLACEMENT)
    if not looks:
        detail = f"{admitting} nodes let it in, and none would have room whoever yields there"
        return Ruling(GUARD, detail, Reason.NO_PLACEMENT)
    looks = sorted(looks, key=lambda look: (look.over is None, look.missing, len(look.stays), look.node))
    nearest = looks[0]
    detail = "; ".join(_words(look) for look in looks[:_SHOWN])
    if promising > _SHOWN:
        detail += f"; and {promising - _SHOWN} more nodes"
    ruling = nearest.over or (nearest.stays[0][1] if nearest.stays else None)
    if ruling is None or ruling.reason is None:
        return Ruling(GUARD, detail, Reason.NO_PLACEMENT)
    return Ruling(GUARD, detail, ruling.reason, ruling.remedy)


def _words(look: _Look) -> str:
    if look.over:
        return f"{look.node}: {look.over.detail}"
    stays = [f"{u.pod.namespace}/{u.pod.name} ({r.guard}: {r.detail})" for u, r in look.stays[:_SHOWN]]
    if len(look.stays) > _SHOWN:
        stays.append(f"{len(look.stays) - _SHOWN} more")
    kept = f"stays: {', '.join(stays)}" if stays else "a workload gives up one unit at a time"
    return f"{look.node}: {look.missing} boards short, {kept}"


def _explain(trail: Trail, refused: list[tuple[Unit, Ruling]]) -> None:
    """One refusal for all pods that were refused for the same reason."""
    pods: dict[Ruling, list[str]] = {}
    for unit, ruling in refused:
        pods.setdefault(ruling, []).append(unit.pod.name)
    for ruling, names in pods.items():
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        told = replace(ruling, detail=f"pod {names[0]}{others} waits: {ruling.detail}")
        trail.rulings.append(told)
        trail.seat_refusals.append(msgspec.structs.replace(refuse(trail.judged, told), method="make-room"))
