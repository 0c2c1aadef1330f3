"""Whether a pod of a shape would find a node, by the scheduler's own filters as far as they are modelled.

What is not modelled (pod affinity, topology spread, claims) is named in `PodShape.unmodelled` and never counts as a
fit.
"""

from collections.abc import Iterable, Mapping

from autoscaler.decide.node_marks import why_leaving
from autoscaler.decide.world import POD_SEATS
from autoscaler.model.cluster import NodeRow
from autoscaler.model.resources import Vector, fits, subtract
from autoscaler.model.selectors import meets
from autoscaler.model.shapes import PodShape, Requirement, Taint, Toleration


def tolerates(tolerations: tuple[Toleration, ...], taint: Taint) -> bool:
    """Whether a toleration matches the taint (core/v1 `Toleration.ToleratesTaint`)."""
    return any(
        (not t.effect or t.effect == taint.effect)
        and (not t.key or t.key == taint.key)
        and (
            t.operator == "Exists" or (t.operator in {"Equal", ""} and bool(t.key) and t.value == taint.value)
        )
        for t in tolerations
    )


def requirement_holds(requirement: Requirement, labels: Mapping[str, str], *, name: str = "") -> bool:
    """Whether a node's labels, or its name, meet a node-selector requirement; an unknown operator or field is not met."""
    if requirement.of_name:
        named = {"metadata.name": name} if name else {}
        return name != "" and meets(named, requirement.key, requirement.operator, requirement.values) is True
    if requirement.operator in {"Gt", "Lt"}:
        return _compares(requirement, labels.get(requirement.key))
    return meets(labels, requirement.key, requirement.operator, requirement.values) is True


def _compares(requirement: Requirement, value: str | None) -> bool:
    try:
        left, right = int(value or ""), int(requirement.values[0])
    except (ValueError, IndexError):
        return False
    return left > right if requirement.operator == "Gt" else left < right


def holds_any(node: NodeRow, terms: Iterable[tuple[Requirement, ...]]) -> bool:
    """Whether the node meets one of the alternatives; one that states nothing is met by none (core/v1 `NodeSelectorTerm`)."""
    return any(all(requirement_holds(r, node.labels, name=node.name) for r in term) for term in terms if term)


def admits(node: NodeRow, shape: PodShape) -> bool:
    """Whether the node's state, labels and taints let a pod of this shape in, room aside."""
    if not node.ready or why_leaving(node):
        return False
    if any(node.labels.get(key) != value for key, value in shape.node_selector.items()):
        return False
    if shape.node_terms and not holds_any(node, shape.node_terms):
        return False
    return all(
        taint.effect not in {"NoSchedule", "NoExecute"} or tolerates(shape.tolerations, taint)
        for taint in node.taints
    )


def place(
    shape: PodShape, demand: Vector, count: int, *, nodes: Mapping[str, NodeRow], free: Mapping[str, Vector]
) -> tuple[str, ...] | None:
    """Nodes for `count` pods, tightest first by what they ask of the scarcest component; None if they do not fit."""
    left: dict[str, Vector] = {}
    chosen: list[str] = []
    asked = {**demand, POD_SEATS: 1}
    for _ in range(count):
        room = [
            name
            for name in sorted(nodes)
            if admits(nodes[name], shape) and fits(asked, left.get(name, free.get(name, {})))
        ]
        if not room:
            return None
        best = min(room, key=lambda name: (_slack(asked, left.get(name, free[name])), name))
        left[best] = subtract(left.get(best, free[best]), asked)
        chosen.append(best)
    return tuple(chosen)


def _slack(asked: Mapping[str, int], free: Mapping[str, int]) -> float:
    """What would be left of the least plentiful component, as a share of what is asked."""
    return min((free.get(n, 0) - a) / a for n, a in asked.items() if a > 0)
