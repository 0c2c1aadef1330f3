"""Which pod holds which board.

This plays the device plugins: a pod that is bound to a node gets the lowest free boards there and keeps them
until it is gone.  Pure state: events in, state out; whoever feeds it watches the API server.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class NodeBoards:
    """The boards of one node: how many of each accelerator resource, and what they are."""

    name: str
    counts: tuple[tuple[str, int], ...]
    model: str
    memory_mib: int

    @property
    def total(self) -> int:
        """How many boards the node has."""
        return sum(count for _, count in self.counts)

    def indices_of(self, resource: str) -> range:
        """The board indices that belong to a resource; resources follow each other in the order of `counts`."""
        first = 0
        for name, count in self.counts:
            if name == resource:
                return range(first, first + count)
            first += count
        return range(0)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What one container of a bound pod asks of one accelerator resource."""

    container: str
    resource: str
    count: int


@dataclass(frozen=True, kw_only=True)
class BoundPod:
    """A pod on a node, as far as boards are concerned."""

    uid: str
    namespace: str
    name: str
    node: str
    claims: tuple[Claim, ...]
    workloads: tuple[tuple[str, str], ...]
    is_running: bool
    created_at: str


@dataclass(frozen=True, order=True)
class HeldBoard:
    """One board in the hands of one container."""

    index: int
    container: str


class BoardAllocation:
    """Boards by pod; no board is ever held by two."""

    def __init__(self, held: Mapping[str, tuple[str, tuple[HeldBoard, ...]]] | None = None) -> None:
        self._nodes: dict[str, NodeBoards] = {}
        self._pods: dict[str, BoundPod] = {}
        self._held: dict[str, tuple[str, tuple[HeldBoard, ...]]] = dict(held or {})

    @property
    def nodes(self) -> Mapping[str, NodeBoards]:
        """The known nodes by name."""
        return self._nodes

    @property
    def pods(self) -> Mapping[str, BoundPod]:
        """The live pods that ask for boards, by uid, in order of arrival."""
        return self._pods

    @property
    def held(self) -> Mapping[str, tuple[str, tuple[HeldBoard, ...]]]:
        """Node and boards by pod uid; this is what must survive a restart."""
        return self._held

    def boards_of(self, uid: str) -> tuple[HeldBoard, ...]:
        """The boards that a pod holds; none while its node has too few free ones."""
        return self._held.get(uid, ("", ()))[1]

    def holders_on(self, node: str) -> dict[int, tuple[BoundPod, str]]:
        """Pod and container by board index on one node."""
        return {
            board.index: (pod, board.container)
            for uid, (held_on, boards) in self._held.items()
            if held_on == node and (pod := self._pods.get(uid)) is not None
            for board in boards
        }

    def node_seen(self, node: NodeBoards) -> None:
        """A node is there, new or changed."""
        self._nodes[node.name] = node
        self._seat_waiting()

    def node_gone(self, name: str) -> None:
        """A node is gone; pods that still name it keep their claim on its boards."""
        self._nodes.pop(name, None)

    def pod_seen(self, pod: BoundPod) -> None:
        """A pod is bound and alive, new or changed."""
        self._pods[pod.uid] = pod
        self._seat_waiting()

    def pod_gone(self, uid: str) -> None:
        """A pod was deleted or has ended; its boards are free at once."""
        self._pods.pop(uid, None)
        self._held.pop(uid, None)
        self._seat_waiting()

    def relisted(self, pods: Iterable[BoundPod]) -> None:
        """The complete list of bound and live pods: who is missing is gone, who is new is seated in order of age."""
        live = {pod.uid: pod for pod in sorted(pods, key=lambda pod: (pod.created_at, pod.uid))}
        self._held = {uid: held for uid, held in self._held.items() if uid in live}
        self._pods = live
        self._seat_waiting()

    def _seat_waiting(self) -> None:
        waiting = [pod for uid, pod in self._pods.items() if uid not in self._held]
        if not waiting:
            return
        taken: dict[str, set[int]] = defaultdict(set)
        for node, boards in self._held.values():
            taken[node].update(board.index for board in boards)
        for pod in waiting:
            boards_or_none = self._seats_for(pod, taken[pod.node])
            if boards_or_none is not None:
                self._held[pod.uid] = (pod.node, boards_or_none)
                taken[pod.node].update(board.index for board in boards_or_none)

    def _seats_for(self, pod: BoundPod, taken: set[int]) -> tuple[HeldBoard, ...] | None:
        node = self._nodes.get(pod.node)
        if node is None:
            return None
        seats: list[HeldBoard] = []
        chosen = set(taken)
        for claim in pod.claims:
            free = [index for index in node.indices_of(claim.resource) if index not in chosen][: claim.count]
            if len(free) < claim.count:
                return None
            chosen.update(free)
            seats += [HeldBoard(index, claim.container) for index in free]
        return tuple(seats)
