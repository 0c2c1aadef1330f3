"""The cheapest set of units whose eviction frees a seat on one node: an exact search, since few units share a node.

Better sets come first: the top victim of the lowest rank, the fewest boards freed beyond need and at all, the fewest
pods, names.
No set has a member that it could do without, and none has two units of one workload.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from autoscaler.decide.proposal import Judged, Proposal, Ruling
from autoscaler.decide.world import Unit
from autoscaler.model.resources import Vector, add, fits, subtract

EXACT: Final = 12
"""Up to so many candidates on a node every set is looked at (4,095 of them), beyond that one is built greedily."""


@dataclass(frozen=True, slots=True, order=True)
class Rank:
    """How readily a unit is asked to leave; the lowest go first.

    Tiers: 0 yields by its class, 1 is proven idle, 2 is under-used and of lower priority. Interactive work comes last.
    """

    interactive: bool
    tier: int
    priority: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """A unit that every guard lets go, by itself, with what it would give."""

    unit: Unit
    judged: Judged
    proposal: Proposal
    rank: Rank
    gives: Vector
    rulings: tuple[Ruling, ...]

    @property
    def name(self) -> tuple[str, str, str]:
        """Breaks ties."""
        return (self.unit.pod.namespace, self.unit.pod.name, self.unit.pod.uid)


@dataclass(frozen=True, slots=True, order=True)
class Cost:
    """What sets are compared by, in this order."""

    top: Rank
    surplus: int
    boards: int
    pods: int
    node: str
    names: tuple[tuple[str, str, str], ...]


def shortage(demand: Mapping[str, int], free: Mapping[str, int]) -> Vector:
    """What is missing of each component that is asked for; empty where the demand fits."""
    missing = {name: amount - free.get(name, 0) for name, amount in demand.items() if amount > 0}
    return {name: amount for name, amount in missing.items() if amount > 0}


def sets_by_cost(
    candidates: Sequence[Candidate], short: Vector, *, node: str, boards: Sequence[str]
) -> Iterator[tuple[Cost, tuple[Candidate, ...]]]:
    """Every smallest set that covers the shortage, the cheapest first; one greedy set where there are too many candidates."""
    ordered = sorted(candidates, key=lambda one: (one.rank, one.name))
    found = _every_set(ordered, short) if len(ordered) <= EXACT else _greedy_set(ordered, short, boards)
    priced = [(_cost(chosen, short, node=node, boards=boards), chosen) for chosen in found]
    return iter(sorted(priced, key=lambda pair: pair[0]))


def _cost(chosen: Sequence[Candidate], short: Vector, *, node: str, boards: Sequence[str]) -> Cost:
    freed = _sum(chosen)
    return Cost(
        top=max(one.rank for one in chosen),
        surplus=sum(freed.get(name, 0) - short.get(name, 0) for name in boards),
        boards=sum(freed.get(name, 0) for name in boards),
        pods=len(chosen),
        node=node,
        names=tuple(one.name for one in chosen),
    )


def _sum(chosen: Sequence[Candidate]) -> Vector:
    freed: Vector = {}
    for one in chosen:
        freed = add(freed, one.gives)
    return freed


def _every_set(ordered: Sequence[Candidate], short: Vector) -> Iterator[tuple[Candidate, ...]]:
    for size in range(1, len(ordered) + 1):
        for chosen in combinations(ordered, size):
            if len({one.unit.pod.workload for one in chosen}) == size and _is_smallest(chosen, short):
                yield chosen


def _is_smallest(chosen: Sequence[Candidate], short: Vector) -> bool:
    freed = _sum(chosen)
    return fits(short, freed) and not any(fits(short, subtract(freed, one.gives)) for one in chosen)


def _greedy_set(
    ordered: Sequence[Candidate], short: Vector, boards: Sequence[str]
) -> Iterator[tuple[Candidate, ...]]:
    """By rank, the largest first, until it is enough; then whoever is not needed stays, the highest rank first."""

    def size(one: Candidate) -> int:
        return sum(one.gives.get(name, 0) for name in boards)

    chosen: list[Candidate] = []
    for one in sorted(ordered, key=lambda one: (one.rank, -size(one), one.name)):
        if fits(short, _sum(chosen)):
            break
        if all(one.unit.pod.workload != other.unit.pod.workload for other in chosen):
            chosen.append(one)
    if not fits(short, _sum(chosen)):
        return
    for one in reversed(chosen.copy()):
        rest = [other for other in chosen if other is not one]
        if fits(short, _sum(rest)):
            chosen = rest
    yield tuple(sorted(chosen, key=lambda one: (one.rank, one.name)))
