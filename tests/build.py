"""Builders: a cluster in a few words, with every value that matters visible in the test."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from autoscaler.decide.planner import judge_fleet
from autoscaler.decide.proposal import Judged, Proposal
from autoscaler.decide.world import World
from autoscaler.model.cluster import NodeRow, PodRow, Rollout, Workload, WorkloadRef
from autoscaler.model.duration import parse_duration
from autoscaler.model.evidence import MISSING_MIB, HolderTable, Source, Telemetry
from autoscaler.model.policy import Policy, policy_from_dict
from autoscaler.model.reasons import Reason
from autoscaler.model.shapes import ContainerShape, PodShape, scheduler_demand
from autoscaler.model.snapshot import Snapshot

GPU = "nvidia.com/gpu"
NOW_MS = 1_800_000_000_000
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
WINDOW_MS = 30 * MINUTE_MS
INTERVAL_MS = 15_000
BOARD_MIB = 81_920


@dataclass(frozen=True)
class Board:
    """Use of one board: shares of 1, memory in MiB; history follows the window unless it is stated."""

    mean: float = 0.0
    peak: float | None = None
    history_p95: float | None = None
    history_peak: float | None = None
    history_busiest: float | None = None
    memory_mib: int | None = 1_000
    total_mib: int | None = BOARD_MIB
    coverage: float = 1.0
    age_ms: int = 0
    history_ms: int = 30 * DAY_MS
    flags: int = 0
    device: str = ""
    source: int = 0


def boards(*means: float, **same: Any) -> tuple[Board, ...]:
    """Boards with these mean activities and otherwise the same values."""
    return tuple(Board(mean=mean, **same) for mean in means)


@dataclass(frozen=True)
class Spec:
    """A workload and, for each replica, the boards that were seen (None: the pod has no series)."""

    name: str = "web"
    namespace: str = "team"
    kind: str = "Deployment"
    group: str = "apps"
    gpus: int = 1
    resource: str = GPU
    seen: tuple[tuple[Board, ...] | None, ...] = (boards(0.5),)
    replicas: int | None = None
    annotations: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    pod: dict[str, Any] = field(default_factory=dict)
    shape: dict[str, Any] = field(default_factory=dict)
    container: dict[str, Any] = field(default_factory=dict)
    rollout: dict[str, Any] = field(default_factory=dict)
    workload: dict[str, Any] = field(default_factory=dict)
    cpu_milli: int = 1_000
    node: str = "node-1"
    age_ms: int = 60 * DAY_MS
    ready_after_ms: int = 20_000

    def but(self, **changes: Any) -> "Spec":
        """The same workload with some values changed."""
        return replace(self, **changes)


def waiting(name: str = "urgent", gpus: int = 1, **changes: Any) -> Spec:
    """A bare pod of high priority that the scheduler found no node for."""
    short = f"0/1 nodes are available: 1 Insufficient {GPU}."
    pod = {"phase": "Pending", "ready": False, "started_ms": -1, "ready_ms": -1, "unschedulable": short}
    shape = {
        "priority_class": "high-priority-a100",
        "priority": 1_000_000,
        "preemption_policy": "Never",
    }
    spec = Spec(name, kind="Pod", group="", gpus=gpus, seen=(None,), node="")
    spec = spec.but(**{key: value for key, value in changes.items() if key not in {"pod", "shape"}})
    return spec.but(pod=pod | changes.get("pod", {}), shape=shape | changes.get("shape", {}))


def burst(name: str = "burst", gpus: int = 1, use: float = 0.9, **changes: Any) -> Spec:
    """A busy Deployment of the class that yields."""
    shape = {"priority_class": "gpu-burst", "priority": 1_000_000} | changes.pop("shape", {})
    return Spec(name, gpus=gpus, seen=(boards(*[use] * gpus),), shape=shape, **changes)


def node(name: str = "node-1", gpus: int = 16, **changes: Any) -> NodeRow:
    """A ready node with plenty of everything but boards."""
    room = {"cpu": 256_000, "memory": 2**42, GPU: gpus, "pods": 110}
    return NodeRow(**{"name": name, "allocatable": room, **changes})


def shape_of(spec: Spec) -> PodShape:
    """The pod shape of a workload."""
    amounts = {"cpu": spec.cpu_milli, spec.resource: spec.gpus}
    container = ContainerShape(
        **{
            "name": "main",
            "image": "app:1",
            "requests": amounts,
            "limits": {spec.resource: spec.gpus},
            **spec.container,
        }
    )
    containers = spec.shape.get("containers", (container,))
    return PodShape(
        **{"containers": containers, "demand": scheduler_demand(containers, {}), **spec.shape},
    )


def cluster(
    *specs: Spec,
    nodes: Iterable[NodeRow] | None = None,
    telemetry: dict[str, Any] | None = None,
    sources: Sequence[Source] | None = None,
    **tables: Any,
) -> Snapshot:
    """A snapshot with these workloads, taken at `NOW_MS`, on nodes with room unless nodes are given."""
    shapes: list[PodShape] = []
    workloads: list[Workload] = []
    pods: list[PodRow] = []
    seen: list[tuple[int, str, Board]] = []
    for spec in specs:
        shapes.append(shape_of(spec))
        replicas = len(spec.seen) if spec.replicas is None else spec.replicas
        rollout = {
            "updated": replicas,
            "ready": replicas,
            "available": replicas,
            "total": replicas,
            **({"max_surge": "0", "max_unavailable": "1"} if spec.kind == "StatefulSet" else {}),
            **spec.rollout,
        }
        workloads.append(
            Workload(
                **{
                    "ref": WorkloadRef(spec.group, spec.kind, spec.namespace, spec.name),
                    "uid": f"uid-{spec.namespace}-{spec.name}",
                    "resource_version": "100",
                    "template": -1 if spec.kind == "Pod" else len(shapes) - 1,
                    "replicas": replicas,
                    "labels": spec.labels,
                    "annotations": spec.annotations,
                    "rollout": Rollout(**rollout),
                    **spec.workload,
                }
            )
        )
        for ordinal, found in enumerate(spec.seen):
            pods.append(_pod(spec, ordinal, len(shapes) - 1, len(workloads) - 1))
            for index, board in enumerate(found or ()):
                device = board.device or f"gpu-{spec.namespace}-{spec.name}-{ordinal}-{index}"
                seen.append((len(pods) - 1, device, board))
    return Snapshot(
        taken_ms=NOW_MS,
        shapes=tuple(shapes),
        pods=tuple(pods),
        nodes=tuple(nodes) if nodes is not None else (node(gpus=max(64, 4 * len(pods) * 8)),),
        workloads=tuple(workloads),
        holders=_holders(seen),
        telemetry=Telemetry(
            **{
                "store_ms": NOW_MS,
                "window_ms": WINDOW_MS,
                "history_window_ms": 30 * DAY_MS,
                "sources": tuple(sources or (Source("dcgm", "engine", INTERVAL_MS, interval_measured=True),)),
                **(telemetry or {}),
            }
        ),
        **tables,
    )


def _pod(spec: Spec, ordinal: int, shape: int, workload: int) -> PodRow:
    started_ms = NOW_MS - spec.age_ms
    return PodRow(
        **{
            "namespace": spec.namespace,
            "name": f"{spec.name}-{ordinal}",
            "uid": f"uid-{spec.namespace}-{spec.name}-{ordinal}",
            "shape": shape,
            "workload": workload,
            "labels": {"app": spec.name, **spec.labels},
            "node": spec.node,
            "phase": "Running",
            "revision": "r1",
            "created_ms": started_ms,
            "started_ms": started_ms,
            "ready_ms": started_ms + spec.ready_after_ms,
            "ready": True,
            **spec.pod,
        }
    )


def _holders(seen: list[tuple[int, str, Board]]) -> HolderTable:
    def column(values: Iterable[float]) -> np.ndarray:
        return np.array([round(value) for value in values], dtype=np.int64)

    expected = WINDOW_MS / INTERVAL_MS
    peaks = [b.mean if b.peak is None else b.peak for _, _, b in seen]
    return HolderTable(
        device=tuple(device for _, device, _ in seen),
        container=("main",) * len(seen),
        pod=column(pod for pod, _, _ in seen),
        source=column(b.source for _, _, b in seen),
        samples=column(b.coverage * expected for _, _, b in seen),
        mean=column(b.mean * 10_000 for _, _, b in seen),
        peak=column(peak * 10_000 for peak in peaks),
        last_ms=column(NOW_MS - b.age_ms for _, _, b in seen),
        history_samples=column(b.history_ms / INTERVAL_MS for _, _, b in seen),
        history_p95=column((b.mean if b.history_p95 is None else b.history_p95) * 10_000 for _, _, b in seen),
        history_busiest=column(
            (b.mean if b.history_busiest is None else b.history_busiest) * 10_000 for _, _, b in seen
        ),
        history_peak=column(
            (peak if b.history_peak is None else b.history_peak) * 10_000
            for peak, (_, _, b) in zip(peaks, seen, strict=True)
        ),
        history_first_ms=column(NOW_MS - b.history_ms for _, _, b in seen),
        memory_peak_mib=column(MISSING_MIB if b.memory_mib is None else b.memory_mib for _, _, b in seen),
        memory_total_mib=column(MISSING_MIB if b.total_mib is None else b.total_mib for _, _, b in seen),
        flags=column(b.flags for _, _, b in seen),
    )


def judge(snapshot: Snapshot, rules: Policy | None = None, name: str = "web") -> tuple[World, Judged]:
    """The world of a snapshot and one of its workloads, judged."""
    world = World(snapshot, rules or policy(), NOW_MS)
    (found,) = [judged for judged in judge_fleet(world)[0] if judged.case.workload.ref.name == name]
    return world, found


def resize(before: int, after: int, *, replicas: int = 1) -> Proposal:
    """A right-size from and to these boards per pod."""
    saved = (before - after) * replicas
    return Proposal("right-size", Reason.RIGHT_SIZED, "template", before, after, saved, "a test says so")


def rescale(before: int, after: int, *, held: int = 1) -> Proposal:
    """A scale-in from and to these replicas."""
    return Proposal(
        "scale-in", Reason.SCALED_IN, "scale", before, after, (before - after) * held, "a test says so"
    )


def policy(**sections: dict[str, Any]) -> Policy:
    """The default policy with wide budgets, and these fields changed (keys as in the policy file)."""
    wide = {
        "inFlight": 1000,
        "actsPerCycle": 1000,
        "podsPerHour": 100_000,
        "fleetPerHour": 1.0,
        "fleetPerDay": 1.0,
        "namespaceShare": 1.0,
    }
    document = {"budgets": wide} | {k: v for k, v in sections.items() if k != "budgets"}
    document["budgets"] = wide | sections.get("budgets", {})
    return policy_from_dict(document)


def ms(text: str) -> int:
    """Milliseconds of a duration text."""
    return int(parse_duration(text))
