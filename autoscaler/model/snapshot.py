"""The frozen state of a cluster that one cycle judges, and its file form (gzipped JSON)."""

import gzip
import io
import zlib
from typing import Any, Final

import msgspec
import numpy as np

from autoscaler.model.breaker import FleetWatch
from autoscaler.model.cluster import (
    Autoscaler,
    Budget,
    Control,
    LimitRangeRow,
    NamespaceRow,
    NodeClaimRow,
    NodeRow,
    PastAct,
    PodRow,
    PriorityClassRow,
    Quota,
    Repeller,
    Workload,
)
from autoscaler.model.duration import LATEST_MS, Instant
from autoscaler.model.evidence import HolderTable, Telemetry
from autoscaler.model.history import WorkloadHistory
from autoscaler.model.kueue import ClusterQueueRow, CohortRow, KueueWorkload, LocalQueueRow
from autoscaler.model.shapes import PodShape

FORMAT: Final = 1
MAX_BYTES: Final = 2 * 1024**3


class SnapshotError(ValueError):
    """The file is not a snapshot that this build can read."""


class KindAccess(msgspec.Struct, frozen=True):
    """Whether a kind could be read: `available`, `absent` (no such API) or `forbidden`, with the server's words."""

    kind: str
    state: str
    detail: str = ""


class Snapshot(msgspec.Struct, frozen=True):
    """Everything `plan` looks at; equal snapshots give equal plans, byte for byte.

    `taken_ms` is the API server's clock. `access` tells which kinds were readable. `watch` is what earlier cycles of the same
    process found, so that a fall can be told from a fleet that was always so.
    """

    taken_ms: Instant
    server_version: str = ""
    shapes: tuple[PodShape, ...] = ()
    pods: tuple[PodRow, ...] = ()
    nodes: tuple[NodeRow, ...] = ()
    node_claims: tuple[NodeClaimRow, ...] = ()
    repellers: tuple[Repeller, ...] = ()
    namespaces: tuple[NamespaceRow, ...] = ()
    priority_classes: tuple[PriorityClassRow, ...] = ()
    workloads: tuple[Workload, ...] = ()
    quotas: tuple[Quota, ...] = ()
    limit_ranges: tuple[LimitRangeRow, ...] = ()
    budgets: tuple[Budget, ...] = ()
    autoscalers: tuple[Autoscaler, ...] = ()
    kueue_workloads: tuple[KueueWorkload, ...] = ()
    cluster_queues: tuple[ClusterQueueRow, ...] = ()
    local_queues: tuple[LocalQueueRow, ...] = ()
    cohorts: tuple[CohortRow, ...] = ()
    holders: HolderTable = msgspec.field(default_factory=HolderTable)
    telemetry: Telemetry = Telemetry()
    histories: tuple[WorkloadHistory, ...] = ()
    access: tuple[KindAccess, ...] = ()
    acts: tuple[PastAct, ...] = ()
    control: Control = Control()
    watch: FleetWatch = FleetWatch()
    format: int = FORMAT


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """Gzipped JSON with a fixed key order and no timestamp: equal snapshots give equal bytes."""
    text = msgspec.json.encode(snapshot, enc_hook=_column_to_list, order="deterministic")
    return gzip.compress(text, compresslevel=6, mtime=0)


def decode_snapshot(data: bytes) -> Snapshot:
    """The snapshot in gzipped or plain JSON; raises `SnapshotError` saying what is wrong with it."""
    try:
        text = _unpacked(data)
        version = msgspec.json.decode(text, type=_Version).format
        if version != FORMAT:
            raise SnapshotError(f"snapshot format {version} is not readable, expected {FORMAT}")
        snapshot = msgspec.json.decode(text, type=Snapshot, dec_hook=_list_to_column)
    except (OSError, EOFError, zlib.error, msgspec.MsgspecError, ValueError, RecursionError) as error:
        if isinstance(error, SnapshotError):
            raise
        raise SnapshotError(f"not a snapshot: {error}") from error
    _check_references(snapshot)
    return snapshot


def _unpacked(data: bytes) -> bytes:
    """The JSON text, never more than `MAX_BYTES` of it: a small file can hold a very large one."""
    if data[:2] != b"\x1f\x8b":
        return data
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
        text = packed.read(MAX_BYTES + 1)
    if len(text) > MAX_BYTES:
        raise SnapshotError(f"a snapshot of over {MAX_BYTES} bytes is not read")
    return text


class _Version(msgspec.Struct):
    format: int


def _column_to_list(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise NotImplementedError(type(value).__name__)


def _list_to_column(kind: type, value: Any) -> Any:
    if kind is np.ndarray or getattr(kind, "__origin__", None) is np.ndarray:
        return np.array(value)
    raise NotImplementedError(str(kind))


def _check_references(snapshot: Snapshot) -> None:
    for pod in snapshot.pods:
        if not (0 <= pod.shape < len(snapshot.shapes) and 0 <= pod.workload < len(snapshot.workloads)):
            raise SnapshotError(f"pod {pod.namespace}/{pod.name} refers to a missing shape or workload")
    for workload in snapshot.workloads:
        if not -1 <= workload.template < len(snapshot.shapes):
            raise SnapshotError(f"workload {workload.ref} refers to a missing shape")
    holders = snapshot.holders
    if len(holders) and not (holders.pod.min() >= 0 and holders.pod.max() < len(snapshot.pods)):
        raise SnapshotError("holders refer to missing pods")
    if len(holders) and not (
        holders.source.min() >= 0 and holders.source.max() < len(snapshot.telemetry.sources)
    ):
        raise SnapshotError("holders refer to missing sources")
    for name in ("last_ms", "history_first_ms"):
        column = getattr(holders, name)
        if len(column) and not (column.min() >= -1 and column.max() <= LATEST_MS):
            raise SnapshotError(f"holders' {name} is no time")
