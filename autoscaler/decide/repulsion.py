"""Pods that keep others out of their node or domain, which the scheduler honours for whoever comes (InterPodAffinity)."""

from collections.abc import Iterator, Mapping

from autoscaler.model.cluster import TERMINAL, NodeRow, PodRow, Repeller
from autoscaler.model.shapes import Repulsion
from autoscaler.model.snapshot import Snapshot


class Repulsions:
    """The required anti-affinity terms of all live pods; nothing in it changes."""

    def __init__(self, snapshot: Snapshot, nodes: Mapping[str, NodeRow]) -> None:
        self._nodes = nodes
        self._terms: list[tuple[Repulsion, str, frozenset[str]]] = [
            (term, one.namespace, frozenset(self._values(term.topology_key, one.nodes)))
            for one in (*snapshot.repellers, *_holders(snapshot))
            for term in one.repels
        ]

    def _values(self, key: str, names: tuple[str, ...]) -> Iterator[str]:
        rows = (self._nodes[name] for name in names if name in self._nodes)
        return (row.labels[key] for row in rows if key in row.labels)

    def barred(self, pod: PodRow) -> frozenset[str]:
        """Nodes that other pods, there or in the same domain, keep a pod with these labels out of."""
        domains: dict[str, set[str]] = {}
        for term, own_namespace, values in self._terms:
            if values and term.bars(pod.namespace, pod.labels, own_namespace=own_namespace):
                domains.setdefault(term.topology_key, set()).update(values)
        return frozenset(
            name
            for key, values in domains.items()
            for name, node in self._nodes.items()
            if node.labels.get(key) in values
        )


def _holders(snapshot: Snapshot) -> list[Repeller]:
    """The same of pods that hold accelerators, by namespace and shape."""
    shapes = {index for index, shape in enumerate(snapshot.shapes) if shape.repels}
    groups: dict[tuple[str, int], set[str]] = {}
    for pod in snapshot.pods if shapes else ():
        if pod.shape in shapes and pod.phase not in TERMINAL:
            groups.setdefault((pod.namespace, pod.shape), set()).add(pod.node)
    return [
        Repeller(namespace, tuple(sorted(nodes)), snapshot.shapes[shape].repels)
        for (namespace, shape), nodes in groups.items()
    ]
