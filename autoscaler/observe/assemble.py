"""Stores and series become the snapshot that one cycle judges.

Pure: the same views and reading give the same snapshot, byte for byte, whatever order anything arrived in. Safe to run in
a thread, since views never change.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec
import numpy as np

from autoscaler.model.cluster import NOTHING_DONE, Memory, NodeRow, PodRow, PriorityClassRow, Workload
from autoscaler.model.evidence import ACTIVITY_SCALE, MISSING_ACTIVITY, HolderTable, Telemetry, UnownedDevice
from autoscaler.model.shapes import PodShape
from autoscaler.model.snapshot import KindAccess, Snapshot
from autoscaler.observe.attribution import AMBIGUOUS, UNOWNED, Owners, Roster, attribute
from autoscaler.observe.holders import Activity, HolderRows
from autoscaler.observe.hosts import Hosts
from autoscaler.observe.owners import Key, OwnedRow, OwnerWalk
from autoscaler.observe.plausible import plausible
from autoscaler.observe.pods import NodeUse, PodEntry
from autoscaler.observe.series import ProfileSeries, SeriesReading
from autoscaler.observe.shapes import content_key
from autoscaler.observe.stores import StoresView

_HANDOVER_INTERVALS: Final = 2
"""An exporter may show the former owner for as many scrapes after a device changed hands."""

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
        _pod_row(entry, shape, workload_index[key])
        for entry, shape, key in zip(entries, pod_shapes, keys, strict=True)
    )
    holders, telemetry = join(
        reading, Roster.of(pods, stores.pods.pods), frozenset(row.name for row in stores.nodes.values())
    )
    return Snapshot(
        taken_ms=now_ms,
        server_version=server_version,
        shapes=shapes.rows,
        pods=pods,
        nodes=_nodes(stores.nodes, stores.pods.taken),
        namespaces=_by_key(stores.namespaces),
        priority_classes=_by_key(stores.priority_classes),
        workloads=workloads,
        quotas=_by_key(stores.quotas),
        limit_ranges=_by_key(stores.limit_ranges),
        budgets=_by_key(stores.budgets),
        autoscalers=_by_key(stores.autoscalers),
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
    ghosts, newest_ms = 0, -1
    unowned: list[UnownedDevice] = []
    hosts = Hosts.of(nodes)
    for read in reading.profiles:
        series = plausible(read, dropped=dropped)
        intervals = [signal.source.interval_ms for signal in series.signals]
        owners = attribute(series, roster, handover_ms=_HANDOVER_INTERVALS * max(intervals, default=0))
        activity = rows.add_profile(series, owners, roster)
        unowned.extend(_unowned(series, owners, activity, roster, hosts))
        ghosts += owners.ghosts
        newest_ms = max(newest_ms, int(owners.newest_ms.max(initial=-1)))
    if nowhere := sum(1 for device in unowned if not device.node):
        dropped[NODE_UNKNOWN] += nowhere
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
        unowned=tuple(sorted(unowned, key=lambda row: (row.node, row.device))),
        dropped=dict(sorted(dropped.items())),
        ghosts=ghosts,
    )
    return rows.table(), telemetry


def _unowned(
    series: ProfileSeries,
    owners: Owners,
    activity: Sequence[Activity],
    roster: Roster,
    hosts: Hosts,
) -> Iterable[UnownedDevice]:
    """Devices whose newest samples name no owner, and names that several pods bear (once for each one's node)."""
    peaks = np.zeros(len(series.identities), dtype=np.int64)
    for read in activity:
        peaks = np.maximum(peaks, np.where(read.peak == MISSING_ACTIVITY, 0, read.peak))
    newest: dict[str, int] = {}
    for i in np.flatnonzero(owners.codes != UNOWNED).tolist():
        device = series.identities[i].device
        newest[device] = max(newest.get(device, -1), int(owners.newest_ms[i]))
    found: dict[tuple[str, str], int] = {}
    for i in np.flatnonzero((owners.codes == UNOWNED) & (owners.newest_ms >= 0)).tolist():
        device = series.identities[i].device
        if device and int(owners.newest_ms[i]) > newest.get(device, -1):
            place = (device, hosts.node(series.nodes[i]))
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


def _pod_row(entry: PodEntry, shape: int, workload: int) -> PodRow:
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
    )


def _nodes(nodes: Mapping[str, NodeRow], taken: Mapping[str, NodeUse]) -> tuple[NodeRow, ...]:
    """Nodes with what plain pods take of them; pods on nodes that are not known (yet) count nowhere."""
    rows = []
    for row in _by_key(nodes):
        use = taken.get(row.name)
        rows.append(
            row if use is None else msgspec.structs.replace(row, taken=use.taken, taken_pods=use.pods)
        )
    return tuple(rows)


R = TypeVar("R")


def _by_key(table: Mapping[str, R]) -> tuple[R, ...]:
    return tuple(table[key] for key in sorted(table))
