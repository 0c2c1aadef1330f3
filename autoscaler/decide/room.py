"""Room on the nodes while seats are given out: what is free now, and what is free once leaving pods have left."""

from collections.abc import Mapping
from typing import TypeAlias

from autoscaler.decide.placement import admits, place
from autoscaler.decide.world import POD_SEATS, Unit, World
from autoscaler.model.cluster import TERMINAL, NodeRow
from autoscaler.model.resources import Vector, add, fits, subtract

Kin: TypeAlias = tuple[int, frozenset[str]]


def seat_demand(unit: Unit) -> Vector:
    """What a pod takes of its node, its pod seat included."""
    return {**unit.shape.demand, POD_SEATS: 1}


class Room:
    """What is left as seats are given out, the most urgent first; only this class changes it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.now: dict[str, Vector] = dict(world.free)
        self.soon: dict[str, Vector] = dict(world.free)
        for index, pod in enumerate(world.snapshot.pods):
            if pod.deleting and pod.phase not in TERMINAL and pod.node in self.soon:
                leaving = Unit(index, pod, world.snapshot.shapes[pod.shape])
                self.soon[pod.node] = add(self.soon[pod.node], seat_demand(leaving))
        self._admitting: dict[Kin, dict[str, NodeRow]] = {}
        self._full: set[Kin] = set()
        """Pods, by what they share, that no node had room for; it only gets less until an eviction gives some back."""

    def admitting(self, unit: Unit) -> Mapping[str, NodeRow]:
        """Nodes whose state, labels and taints let the pod in, room aside, by name."""
        kin = self.kin(unit)
        found = self._admitting.get(kin)
        if found is None:
            nodes, barred = self._world.nodes, kin[1]
            found = {
                name: nodes[name]
                for name in sorted(nodes)
                if name not in barred and admits(nodes[name], unit.shape)
            }
            self._admitting[kin] = found
        return found

    def kin(self, unit: Unit) -> Kin:
        """Equal for pods that may run on the same nodes and take as much there."""
        return unit.pod.shape, self._world.repulsions.barred(unit.pod)

    def place(self, unit: Unit) -> tuple[str, bool] | None:
        """The node that the pod fits without any eviction, and whether it does so now; None where there is none.

        Where a seat is kept for it, that one comes first.
        """
        if self.kin(unit) in self._full:
            return None
        nodes, kept = self.admitting(unit), unit.pod.nominated_node
        if kept in nodes and fits(seat_demand(unit), self.soon[kept]):
            return kept, fits(seat_demand(unit), self.now[kept])
        for free in (self.now, self.soon):
            found = place(unit.shape, unit.shape.demand, 1, nodes=nodes, free=free)
            if found:
                return found[0], free is self.now
        self._full.add(self.kin(unit))
        return None

    def take(self, unit: Unit, node: str, freed: Vector | None = None) -> None:
        """The seat is spoken for; `freed` is what evictions give, of which nothing is there yet."""
        wanted = seat_demand(unit)
        if freed:
            self._full.clear()
        self.soon[node] = subtract(add(self.soon[node], freed or {}), wanted)
        owed = subtract(wanted, freed or {})
        self.now[node] = subtract(self.now[node], {name: max(0, amount) for name, amount in owed.items()})
