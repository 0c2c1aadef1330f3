"""Nodes that are on their way: what waits and may fit one of them makes nobody leave."""

from collections.abc import Mapping
from dataclasses import dataclass

from autoscaler.decide.node_marks import is_starting_taint, should_have_boards, why_leaving
from autoscaler.decide.placement import requirement_holds, tolerates
from autoscaler.decide.room import seat_demand
from autoscaler.decide.world import POD_SEATS, Unit, World, is_board
from autoscaler.model.cluster import NodeClaimRow, NodeRow
from autoscaler.model.duration import format_duration
from autoscaler.model.resources import Vector, fits, subtract
from autoscaler.model.shapes import PodShape, Requirement, Taint


@dataclass(frozen=True, slots=True)
class _Order:
    """A node to come. What is not known of it (labels without a value here) may be what a pod wants."""

    words: str
    labels: Mapping[str, str]
    requirements: Mapping[str, tuple[Requirement, ...]]
    taints: tuple[Taint, ...]
    complete: bool

    def may_admit(self, shape: PodShape) -> bool:
        """Whether nothing that is known of it keeps a pod of the shape out."""
        return (
            all(self._may_hold(Requirement(k, "In", (v,))) for k, v in shape.node_selector.items())
            and (
                not shape.node_terms
                or any(all(self._may_hold(r) for r in term) for term in shape.node_terms if term)
            )
            and all(
                taint.effect not in {"NoSchedule", "NoExecute"} or tolerates(shape.tolerations, taint)
                for taint in self.taints
            )
        )

    def _may_hold(self, wanted: Requirement) -> bool:
        if self.complete or wanted.key in self.labels:
            return requirement_holds(wanted, self.labels)
        offered = [r.values for r in self.requirements.get(wanted.key, ()) if r.operator == "In"]
        return not offered or any(
            requirement_holds(wanted, {wanted.key: value}) for values in offered for value in values
        )


class Coming:
    """The nodes to come and what of them is not spoken for; only this class changes it."""

    def __init__(self, world: World) -> None:
        self._left: list[tuple[_Order, Vector | None]] = []
        """None: it has not said yet how many boards it will have."""
        wait_ms = world.policy.guards.node_wait
        claimed = {claim.node: claim for claim in world.snapshot.node_claims if claim.node}
        for node in world.snapshot.nodes:
            age_ms = world.now_ms - node.created_ms
            if age_ms < wait_ms and not why_leaving(node):
                self._add_node(world, node, claimed.get(node.name), age_ms)
        for claim in world.snapshot.node_claims:
            age_ms = world.now_ms - claim.created_ms
            if age_ms < wait_ms and not claim.deleting and claim.node not in world.nodes:
                self._left.append((_of_claim(claim, age_ms), claim.room))

    def _add_node(self, world: World, node: NodeRow, claim: NodeClaimRow | None, age_ms: int) -> None:
        offered = world.free[node.name]
        has_boards = any(a > 0 and is_board(n, world.policy.resources) for n, a in node.allocatable.items())
        starting = not node.ready or any(is_starting_taint(taint.key) for taint in node.taints)
        order = _Order(
            words=f"node {node.name} is {_age(age_ms)} old and not ready for it yet",
            labels=node.labels,
            requirements={},
            taints=tuple(taint for taint in node.taints if not is_starting_taint(taint.key)),
            complete=has_boards,
        )
        if has_boards and starting:
            self._left.append((order, offered))
        elif not has_boards and claim is not None:
            self._left.append((order, claim.room))
        elif not has_boards and should_have_boards(node):
            self._left.append((order, None))

    def take(self, unit: Unit) -> str:
        """The node that the pod may get, in words, and what it takes is spoken for; empty where none is to come."""
        wanted = {n: a for n, a in seat_demand(unit).items() if n != POD_SEATS}
        for position, (order, left) in enumerate(self._left):
            if order.may_admit(unit.shape) and (left is None or fits(wanted, left)):
                self._left[position] = (order, None if left is None else subtract(left, wanted))
                return order.words
        return ""


def _of_claim(claim: NodeClaimRow, age_ms: int) -> _Order:
    requirements: dict[str, tuple[Requirement, ...]] = {}
    for requirement in claim.requirements:
        requirements[requirement.key] = (*requirements.get(requirement.key, ()), requirement)
    return _Order(
        words=f"NodeClaim {claim.name} was ordered {_age(age_ms)} ago",
        labels=claim.labels,
        requirements=requirements,
        taints=tuple(taint for taint in claim.taints if not is_starting_taint(taint.key)),
        complete=False,
    )


def _age(age_ms: int) -> str:
    return format_duration(max(0, age_ms) // 1000 * 1000)
