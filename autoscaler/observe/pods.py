"""The pod store: most of the cluster's objects, so most of the memory.

A pod that holds or wants accelerators keeps its row; its shape, labels and names are shared with its peers. Any other
pod keeps its name, its node and a shared demand, and what such pods take of each node is added up as they come and
go. A finished pod keeps its name only: it holds nothing, but its series are no strangers.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from autoscaler.kube import wire
from autoscaler.model.resources import Vector
from autoscaler.model.shapes import PodShape, Repulsion
from autoscaler.observe.entries import OwnerRef, controller_of
from autoscaler.observe.marks import MIRROR, kept_marks, time_ms
from autoscaler.observe.shapes import DEVICE_CLASS_PREFIX, ShapeTable

_TERMINAL: Final = frozenset({"Succeeded", "Failed"})
_REVISIONS: Final = ("pod-template-hash", "controller-revision-hash")
_SHARED_LABELS: Final = 8192
_key_encoder = msgspec.msgpack.Encoder()


class PodClaims(msgspec.Struct, frozen=True, gc=False):
    """The resource claims of a pod, by name in its namespace.

    `named` are those that its specification lists; `extended` is the one that the scheduler made for the extended
    resources `backed`, empty where there is none.
    """

    named: tuple[str, ...] = ()
    extended: str = ""
    backed: tuple[str, ...] = ()


_NONE_YET: Final = PodClaims()


class PodEntry(msgspec.Struct, frozen=True, gc=False):
    """A pod that holds or wants accelerators, or has claims that may be for such; its fields are those of `PodRow`.

    The owner is not yet walked, and the devices of claims are not yet part of the shape's demand. `volumes` names its
    persistent volume claims.
    """

    namespace: str
    name: str
    uid: str
    shape: PodShape
    owner: OwnerRef | None
    labels: dict[str, str]
    annotations: dict[str, str]
    node: str
    phase: str
    revision: str
    created_ms: int
    started_ms: int
    ready_ms: int
    ready: bool
    deleting: bool
    mirror: bool
    unschedulable: str
    restarts: int
    nominated_node: str
    claims: PodClaims | None = None
    volumes: tuple[str, ...] = ()


class PlainPod(msgspec.Struct, frozen=True, gc=False):
    """Any other pod; a finished one has no node and no demand. `repels` is shared by equal pods."""

    node: str
    demand: Vector
    repels: tuple[Repulsion, ...] = ()


class NodeUse(msgspec.Struct, gc=False):
    """What plain pods take of a node; never changed once a view has it."""

    taken: Vector
    pods: int


Entry: TypeAlias = PodEntry | PlainPod
FINISHED: Final = PlainPod("", {})


class PodsView(msgspec.Struct, frozen=True):
    """All pods at one moment, by "namespace/name", and what plain pods take by node.

    `claimants` are the keys of pods that have claims, `repelling` those of plain pods that keep others out.
    """

    pods: Mapping[str, Entry] = {}
    taken: Mapping[str, NodeUse] = {}
    claimants: frozenset[str] = frozenset()
    repelling: frozenset[str] = frozenset()


class _Table:
    """One consistent set of pods with its sums."""

    def __init__(self) -> None:
        self.pods: dict[str, Entry] = {}
        self._taken: dict[str, NodeUse] = {}
        self._claimants: set[str] = set()
        self._repelling: set[str] = set()
        self._unseen: set[str] = set()
        """Nodes whose sums no view has: these may be changed in place."""

    def put(self, key: str, entry: Entry) -> None:
        old = self.pods.get(key)
        self.pods[key] = entry
        if old is not None:
            self._forget(key, old)
        if type(entry) is PlainPod:
            self._count(entry, 1)
            if entry.repels:
                self._repelling.add(key)
        elif type(entry) is PodEntry and entry.claims is not None:
            self._claimants.add(key)

    def drop(self, key: str) -> None:
        old = self.pods.pop(key, None)
        if old is not None:
            self._forget(key, old)

    def _forget(self, key: str, old: Entry) -> None:
        self._claimants.discard(key)
        self._repelling.discard(key)
        if type(old) is PlainPod:
            self._count(old, -1)

    def freeze(self) -> PodsView:
        self._unseen.clear()
        return PodsView(
            dict(self.pods), dict(self._taken), frozenset(self._claimants), frozenset(self._repelling)
        )

    def _count(self, entry: PlainPod, sign: int) -> None:
        if not entry.node:
            return
        use = self._use(entry.node)
        use.pods += sign
        taken = use.taken
        for name, amount in entry.demand.items():
            if amount:
                taken[name] = taken.get(name, 0) + sign * amount
        if sign < 0:
            self._tidy(entry.node, use)

    def _use(self, node: str) -> NodeUse:
        use = self._taken.get(node)
        if use is None:
            use = self._taken[node] = NodeUse({}, 0)
            self._unseen.add(node)
        elif node not in self._unseen:
            use = self._taken[node] = NodeUse(dict(use.taken), use.pods)
            self._unseen.add(node)
        return use

    def _tidy(self, node: str, use: NodeUse) -> None:
        """The same pods give the same sums, whatever came and went before: no zeros stay behind."""
        if use.pods == 0:
            del self._taken[node]
            self._unseen.discard(node)
            return
        for name in [name for name, amount in use.taken.items() if amount == 0]:
            del use.taken[name]


class PodStore:
    """The writer of all pods, in the protocol of `autoscaler.kube.StoreWriter`."""

    def __init__(self, shapes: ShapeTable) -> None:
        self._shapes = shapes
        self._live = _Table()
        self._side: _Table | None = None
        self._labels: dict[bytes, dict[str, str]] = {}

    def __len__(self) -> int:
        return len(self._live.pods)

    def begin_relist(self) -> None:
        """Start a side table; an unfinished one is thrown away."""
        self._side = _Table()

    def relist_page(self, items: Sequence[wire.Pod], /) -> None:
        """Put pods into the side table; a pod that has not changed keeps its present row."""
        if self._side is None:
            raise RuntimeError("a page came before its relist began")
        known, entry_of, put = self._live.pods, self._entry, self._side.put
        for pod in items:
            key, entry = entry_of(pod)
            old = known.get(key)
            put(key, old if old is not None and old == entry else entry)

    def commit_relist(self, resource_version: str, /) -> None:  # noqa: ARG002 - part of the writer protocol
        """Readers see the side table from now on; what only the old one used is forgotten."""
        if self._side is None:
            raise RuntimeError("a relist ended that never began")
        self._live, self._side = self._side, None
        self._shapes.retain(e.shape for e in self._live.pods.values() if isinstance(e, PodEntry))
        self._labels.clear()

    def apply(self, obj: wire.Pod, /) -> None:
        """The pod is new or changed."""
        self._live.put(*self._entry(obj))

    def delete(self, obj: wire.Pod, /) -> None:
        """The pod is gone."""
        self._live.drop(f"{obj.metadata.namespace}/{obj.metadata.name}")

    def freeze(self) -> PodsView:
        """The pods as they are now."""
        return self._live.freeze()

    def _entry(self, pod: wire.Pod) -> tuple[str, Entry]:
        meta, spec, status = pod.metadata, pod.spec, pod.status
        key = f"{meta.namespace}/{meta.name}"
        if status.phase in _TERMINAL:
            return key, FINISHED
        demand = self._shapes.plain_demand(spec)
        # Asked here already: most pods have none, and there are many.
        has_claims = spec.resource_claims or status.extended_resource_claim_status is not None
        claims = claims_of(spec, status) if has_claims else None
        if demand is None or claims is not None:
            return key, self._accelerated(meta, spec, status, claims)
        repels = self._shapes.repels(spec) if spec.affinity is not None else ()
        return key, PlainPod(sys.intern(spec.node_name), demand, repels)

    def _accelerated(
        self, meta: wire.ObjectMeta, spec: wire.PodSpec, status: wire.PodStatus, claims: PodClaims | None
    ) -> PodEntry:
        labels = self._share(meta.labels or {})
        ready, ready_ms, unschedulable = _conditions(status.conditions or ())
        shape = self._shapes.shape(spec)
        if claims is None and any(name.startswith(DEVICE_CLASS_PREFIX) for name in shape.demand):
            claims = _NONE_YET
        return PodEntry(
            namespace=sys.intern(meta.namespace),
            name=meta.name,
            uid=meta.uid,
            shape=shape,
            owner=controller_of(meta),
            labels=labels,
            annotations=kept_marks(meta.annotations),
            node=sys.intern(spec.node_name),
            phase=sys.intern(status.phase or "Pending"),
            revision=_revision(labels),
            created_ms=max(0, time_ms(meta.creation_timestamp)),
            started_ms=time_ms(status.start_time),
            ready_ms=ready_ms,
            ready=ready,
            deleting=meta.deletion_timestamp is not None,
            mirror=MIRROR in (meta.annotations or {}),
            unschedulable=unschedulable,
            restarts=sum([container.restart_count for container in status.container_statuses or ()]),
            nominated_node=sys.intern(status.nominated_node_name),
            claims=claims,
            volumes=volumes_of(meta.name, spec),
        )

    def _share(self, labels: dict[str, str]) -> dict[str, str]:
        key = _key_encoder.encode(labels)
        if len(self._labels) >= _SHARED_LABELS:
            self._labels.clear()
        return self._labels.setdefault(key, labels)


def _revision(labels: Mapping[str, str]) -> str:
    """The hash that the pod's controller gave its template; empty where it gives none."""
    for name in _REVISIONS:
        if name in labels:
            return sys.intern(labels[name])
    return ""


def volumes_of(pod_name: str, spec: wire.PodSpec) -> tuple[str, ...]:
    """The persistent volume claims of a pod; an ephemeral one is named after its pod and volume."""
    claims = [
        volume.persistent_volume_claim.claim_name
        if volume.persistent_volume_claim is not None
        else f"{pod_name}-{volume.name}"
        for volume in spec.volumes or ()
        if volume.persistent_volume_claim is not None or volume.ephemeral is not None
    ]
    return tuple(sorted(set(claims))) if claims else ()


def claims_of(spec: wire.PodSpec, status: wire.PodStatus) -> PodClaims | None:
    """The claims that a pod has by now; None where it names none and none was made for it."""
    backing = status.extended_resource_claim_status
    if not spec.resource_claims and backing is None:
        return None
    made = {found.name: found.resource_claim_name for found in status.resource_claim_statuses or ()}
    names = (claim.resource_claim_name or made.get(claim.name) for claim in spec.resource_claims or ())
    backed = (backing.request_mappings or ()) if backing else ()
    return PodClaims(
        named=tuple(sorted({name for name in names if name})),
        extended=backing.resource_claim_name if backing else "",
        backed=tuple(sorted({mapping.resource_name for mapping in backed})),
    )


def _conditions(conditions: Sequence[wire.Condition]) -> tuple[bool, int, str]:
    """Whether the pod is ready, since when (-1: not), and why the scheduler could not place it (empty: it could)."""
    ready, ready_ms, unschedulable = False, -1, ""
    for condition in conditions:
        if condition.type == "Ready" and condition.status == "True":
            ready, ready_ms = True, time_ms(condition.last_transition_time)
        elif (
            condition.type == "PodScheduled"
            and condition.status == "False"
            and condition.reason == "Unschedulable"
        ):
            unschedulable = condition.message or condition.reason
    return ready, ready_ms, unschedulable
