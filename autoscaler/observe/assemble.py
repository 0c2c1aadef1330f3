"""Stores and series become the snapshot that one cycle judges.

Pure: the same views and reading give the same snapshot, byte for byte, whatever order anything arrived in. Safe to run in
a thread, since views never change.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec
import numpy as np

from autoscaler.model.cluster import (
    NOTHING_DONE,
    Memory,
    NodeRow,
    PodRow,
    PriorityClassRow,
    Repeller,
    Workload,
)
from autoscaler.model.evidence import (
    ACTIVITY_SCALE,
    MISSING_ACTIVITY,
    HolderTable,
    ServingUse,
    Telemetry,
    UnownedDevice,
)
from autoscaler.model.shapes import PodShape, Repulsion
from autoscaler.model.snapshot import KindAccess, Snapshot
from autoscaler.observe.attribution import (
    AMBIGUOUS,
    UNOWNED,
    Owners,
    Roster,
    adopt,
    attribute,
    container_names,
    held_boards,
    owners_by_device,
    shared_with_others,
    sole_owners,
)
from autoscaler.observe.claims import device_owners
from autoscaler.observe.devices import with_devices
from autoscaler.observe.holders import Activity, HolderRows
from autoscaler.observe.hosts import Hosts
from autoscaler.observe.owners import Key, OwnedRow, OwnerWalk
from autoscaler.observe.plausible import plausible
from autoscaler.observe.pods import PlainPod, PodEntry, PodsView
from autoscaler.observe.series import ProfileSeries, SeriesReading, ServingRow
from autoscaler.observe.shapes import Places, content_key, content_of
from autoscaler.observe.stores import StoresView
from autoscaler.observe.unattributed import count_unattributed
from autoscaler.observe.volumes import volume_terms

_HANDOVER_INTERVALS: Final = 2
"""An exporter may show the former owner for as many scrapes after a device changed hands."""

_SHARING: Final = "nvidia.com/gpu.replicas"
"""The label by which a node says into how many units its boards are divided (NVIDIA gpu-feature-discovery)."""
_DIVISIBLE: Final = "nvidia.com/gpu"

NODE_UNKNOWN: Final = "un-owned, on a node that is not known"
"""A device that could be anybody's: it is in the plan's faults, since no unit can be doubted for it."""


def assemble(
    stores: StoresView,
    reading: SeriesReading,
    *,
    now_ms: int,
    access: Iterable[KindAccess] = (),
    memory: Memory = NOTHING_DONE,
    server_version: str = "",
) -> Snapshot:
    """The snapshot of one cycle; `now_ms` is the API server's clock."""
    claims, stores = stores, with_devices(stores)
    nodes = frozenset(row.name for row in stores.nodes.values())
    plain = {row.name for row in stores.nodes.values() if _SHARING not in row.labels}
    entries = sorted(
        (e for e in stores.pods.pods.values() if isinstance(e, PodEntry)),
        key=lambda e: (e.namespace, e.name, e.uid),
    )
    walk = OwnerWalk(stores)
    keys = [walk.of_pod(entry) for entry in entries]
    walk.add_templates()
    shapes = _Shapes(stores.priority_classes)
    pod_shapes = [shapes.index(entry.shape) for entry in entries]
    workloads, workload_index = _workloads(walk.rows, shapes, Counter(keys))
    pods = tuple(
        _pod_row(entry, shape, workload_index[key], volume_terms(entry, stores))
        for entry, shape, key in zip(entries, pod_shapes, keys, strict=True)
    )
    held = held_boards(pods, shapes.rows, boards=(_DIVISIBLE,), plain=plain)
    by_claim = device_owners(claims.claims, claims.pods)
    roster = Roster.of(
        pods,
        stores.pods.pods,
        device_owners=by_claim,
        held=held,
        containers=container_names(pods, shapes.rows),
    )
    holders, telemetry = join(reading, roster, nodes)
    return Snapshot(
        taken_ms=now_ms,
        server_version=server_version,
        shapes=shapes.rows,
        pods=pods,
        nodes=_nodes(stores),
        node_claims=_by_key(stores.node_claims),
        repellers=_repellers(stores.pods),
        namespaces=_by_key(stores.namespaces),
        priority_classes=_by_key(stores.priority_classes),
        workloads=workloads,
        quotas=_by_key(stores.quotas),
        limit_ranges=_by_key(stores.limit_ranges),
        budgets=_by_key(stores.budgets),
        autoscalers=_by_key(stores.autoscalers),
        kueue_workloads=_by_key(stores.kueue_workloads),
        cluster_queues=_by_key(stores.cluster_queues),
        local_queues=_by_key(stores.local_queues),
        cohorts=_by_key(stores.cohorts),
        holders=holders,
        telemetry=telemetry,
        access=tuple(sorted(access, key=lambda row: row.kind)),
        acts=tuple(sorted(memory.acts, key=lambda act: (act.at_ms, act.ref))),
        control=memory.control,
    )


def join(reading: SeriesReading, roster: Roster, nodes: frozenset[str]) -> tuple[HolderTable, Telemetry]:
    """The holder table and what there is to say about the reading."""
    dropped: Counter[str] = Counter()
    rows = HolderRows(reading=reading, dropped=dropped)
    found = _attributed(reading, roster, Hosts.of(nodes), dropped)
    newest: dict[str, int] = {}
    for series, owners in found:
        _add_newest(newest, series, owners)
    unowned: list[UnownedDevice] = []
    for series, owners in found:
        activity = rows.add_profile(series, owners, roster)
        unowned.extend(_unowned(series, owners, activity, roster, newest))
    if nowhere := sum(1 for device in unowned if not device.node):
        dropped[NODE_UNKNOWN] += nowhere
    unattributed = sum((count_unattributed(series, owners) for series, owners in found), Counter[str]())
    newest_ms = max((int(owners.newest_ms.max(initial=-1)) for _, owners in found), default=-1)
    telemetry = Telemetry(
        fault=reading.fault,
        warnings=reading.warnings,
        store_ms=reading.store_ms,
        skew_ms=reading.skew_ms,
        window_ms=reading.window_ms,
        history_window_ms=reading.history_window_ms,
        read_ms=reading.read_ms,
        source_job=reading.source_job,
        jobs=reading.jobs,
        untrusted=reading.untrusted,
        lag_ms=max(0, reading.store_ms - newest_ms) if newest_ms >= 0 else 0,
        sources=tuple(signal.source for series in reading.profiles for signal in series.signals),
        serving=_serving(reading, roster),
        unowned=tuple(sorted(unowned, key=lambda row: (row.node, row.device))),
        dropped=dict(sorted(dropped.items())),
        unattributed=dict(sorted(unattributed.items())),
        ghosts=sum(owners.ghosts for _, owners in found),
    )
    return rows.table(), telemetry


def _attributed(
    reading: SeriesReading, roster: Roster, hosts: Hosts, dropped: Counter[str]
) -> list[tuple[ProfileSeries, Owners]]:
    """Every profile's series with their owners; boards without owner labels take the pod that another exporter names."""
    read = []
    for profile in reading.profiles:
        series = plausible(profile, dropped=dropped)
        intervals = [signal.source.interval_ms for signal in series.signals]
        handover_ms = _HANDOVER_INTERVALS * max(intervals, default=0)
        owners = attribute(series, roster, handover_ms=handover_ms, now_ms=reading.store_ms, hosts=hosts)
        read.append((series, owners))
    known, everyone = sole_owners(read), owners_by_device(read)
    return [
        (series, shared_with_others(series, adopt(series, owners, roster, known), everyone))
        for series, owners in read
    ]


def _serving(reading: SeriesReading, roster: Roster) -> tuple[ServingUse, ...]:
    """What servers say of the pods that hold accelerators, in the order of pods and servers.

    Without a namespace it is said of every pod of that name: it can only speak against idleness there.
    """
    found = [
        ServingUse(
            pod=pod,
            server=row.server,
            samples=row.samples,
            expected=row.expected,
            queue_peak=row.queue_peak,
            running_peak=row.running_peak,
            cache_peak=row.cache_peak,
            counter_moves=row.counter_moves,
        )
        for row in reading.serving
        for pod in _pods_of(row, roster)
    ]
    return tuple(sorted(found, key=lambda use: (use.pod, use.server)))


def _pods_of(row: ServingRow, roster: Roster) -> tuple[int, ...]:
    if not row.namespace:
        return roster.by_name.get(row.pod, ())
    index = roster.index.get(f"{row.namespace}/{row.pod}")
    return () if index is None else (index,)


def _add_newest(newest: dict[str, int], series: ProfileSeries, owners: Owners) -> None:
    """When each device was last seen with an owner; a board of which a part is owned is not without owner itself."""
    for i in np.flatnonzero(owners.codes != UNOWNED).tolist():
        identity, seen_ms = series.identities[i], int(owners.newest_ms[i])
        for device in {identity.device, identity.board}:
            newest[device] = max(newest.get(device, -1), seen_ms)


def _unowned(
    series: ProfileSeries,
    owners: Owners,
    activity: Sequence[Activity],
    roster: Roster,
    newest: Mapping[str, int],
) -> Iterable[UnownedDevice]:
    """Devices whose newest samples name no owner, and names that several pods bear (once for each one's node)."""
    peaks = np.zeros(len(series.identities), dtype=np.int64)
    for signal, read in zip(series.signals, activity, strict=True):
        void = np.array([signal.is_void(identity) for identity in series.identities], dtype=np.bool_)
        peaks = np.maximum(peaks, np.where((read.peak == MISSING_ACTIVITY) | void, 0, read.peak))
    divided = {i.board for i in series.identities if i.sliced or i.share}
    found: dict[tuple[str, str], int] = {}
    for i in np.flatnonzero((owners.codes == UNOWNED) & (owners.newest_ms >= 0)).tolist():
        identity = series.identities[i]
        whole = identity.device == identity.board and identity.board in divided
        if identity.device and not whole and int(owners.newest_ms[i]) > newest.get(identity.device, -1):
            place = (identity.device, owners.nodes[i])
            found[place] = max(found.get(place, 0), int(peaks[i]))
    for i in np.flatnonzero((owners.codes == AMBIGUOUS) & (owners.newest_ms >= 0)).tolist():
        name = series.identities[i].pod
        for pod in roster.by_name.get(name, ()):
            place = (series.identities[i].device or name, roster.pods[pod].node)
            found[place] = max(found.get(place, 0), int(peaks[i]))
    return (
        UnownedDevice(device=device, node=node, peak=min(peak, ACTIVITY_SCALE))
        for (device, node), peak in found.items()
    )


class _Shapes:
    """Numbers shapes in the order of first use; equal content has one number."""

    def __init__(self, classes: Mapping[str, PriorityClassRow]) -> None:
        self._classes = {row.name: row for row in classes.values()}
        self._by_object: dict[int, int] = {}
        self._by_content: dict[bytes, int] = {}
        self._rows: list[PodShape] = []

    @property
    def rows(self) -> tuple[PodShape, ...]:
        """All shapes, in order."""
        return tuple(self._rows)

    def index(self, shape: PodShape) -> int:
        """The number of a live pod's shape."""
        number = self._by_object.get(id(shape))
        if number is None:
            number = self._by_content.setdefault(content_key(shape), len(self._rows))
            if number == len(self._rows):
                self._rows.append(shape)
            self._by_object[id(shape)] = number
        return number

    def template(self, shape: PodShape) -> int:
        """The number of a template's shape: its priority is that of its class, as admission would write it."""
        row = self._classes.get(shape.priority_class)
        if row is None or shape.priority:
            return self.index(shape)
        resolved = msgspec.structs.replace(shape, priority=row.value, preemption_policy=row.preemption_policy)
        number = self._by_content.setdefault(content_key(resolved), len(self._rows))
        if number == len(self._rows):
            self._rows.append(resolved)
        return number


def _workloads(
    found: Mapping[Key, OwnedRow], shapes: _Shapes, pods: Mapping[Key, int]
) -> tuple[tuple[Workload, ...], dict[Key, int]]:
    rows: list[Workload] = []
    index: dict[Key, int] = {}
    for key in sorted(found):
        owned = found[key]
        row = owned.row
        if owned.shape is not None:
            row = msgspec.structs.replace(row, template=shapes.template(owned.shape))
        elif row.resource_version == "":
            # Nothing of it is known but its name: the pods that it has are the count that is stated.
            row = msgspec.structs.replace(row, replicas=pods.get(key, row.replicas))
        index[key] = len(rows)
        rows.append(row)
    return tuple(rows), index


def _pod_row(entry: PodEntry, shape: int, workload: int, terms: tuple[Places, ...]) -> PodRow:
    return PodRow(
        namespace=entry.namespace,
        name=entry.name,
        uid=entry.uid,
        shape=shape,
        workload=workload,
        labels=entry.labels,
        annotations=entry.annotations,
        node=entry.node,
        phase=entry.phase,
        revision=entry.revision,
        created_ms=entry.created_ms,
        started_ms=entry.started_ms,
        ready_ms=entry.ready_ms,
        ready=entry.ready,
        deleting=entry.deleting,
        mirror=entry.mirror,
        unschedulable=entry.unschedulable,
        restarts=entry.restarts,
        nominated_node=entry.nominated_node,
        volume_terms=terms,
    )


def _repellers(pods: PodsView) -> tuple[Repeller, ...]:
    """Plain pods that keep others out, by namespace and terms."""
    groups: dict[tuple[str, bytes], tuple[tuple[Repulsion, ...], set[str]]] = {}
    keys: dict[int, bytes] = {}
    for name in pods.repelling:
        entry = pods.pods[name]
        if isinstance(entry, PlainPod) and entry.node:
            key = keys.get(id(entry.repels)) or keys.setdefault(id(entry.repels), content_of(entry.repels))
            group = groups.setdefault((name.partition("/")[0], key), (entry.repels, set()))
            group[1].add(entry.node)
    return tuple(
        Repeller(namespace, tuple(sorted(nodes)), repels)
        for (namespace, _), (repels, nodes) in sorted(groups.items(), key=lambda item: item[0])
    )


def _nodes(stores: StoresView) -> tuple[NodeRow, ...]:
    """Nodes with what plain pods take of them; pods on nodes that are not known (yet) count nowhere.

    A node whose order is being withdrawn is being deleted, whether its own object says so yet or not.
    """
    withdrawn = {claim.node for claim in stores.node_claims.values() if claim.deleting}
    rows = []
    for row in _by_key(stores.nodes):
        use = stores.pods.taken.get(row.name)
        if row.name in withdrawn:
            row = msgspec.structs.replace(row, deleting=True)  # noqa: PLW2901
        rows.append(
            row if use is None else msgspec.structs.replace(row, taken=use.taken, taken_pods=use.pods)
        )
    return tuple(rows)


R = TypeVar("R")


def _by_key(table: Mapping[str, R]) -> tuple[R, ...]:
    return tuple(table[key] for key in sorted(table))
