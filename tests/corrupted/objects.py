"""The API server's side of a world: nodes, workloads, their pods, the exporters' own pods and those that wait."""

from collections.abc import Iterator
from typing import Any

import msgspec
from corrupted.worlds import DAY_MS, MINUTE_MS, SLICES, WHOLE, Unit, Work, World
from unit.observe.observed import owner, time_text

from autoscaler.kube import wire
from autoscaler.model.policy import Resources
from autoscaler.observe.stores import Stores


def stores_of(world: World, *, skew_ms: int = 0) -> Stores:
    """Stores with the objects; their times are by the API server's clock, which is `skew_ms` behind the store's."""
    stores = Stores(Resources())
    for kind, document in _objects(world, skew_ms):
        decoded = msgspec.json.decode(msgspec.json.encode(document), type=getattr(wire, kind))
        stores.writers[kind].apply(decoded)
    return stores


def _objects(world: World, skew_ms: int) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, node in enumerate(world.nodes):
        offer = {WHOLE: str(len(node.devices))}
        if node.mig:
            offer = {
                f"nvidia.com/mig-{profile}": str(sum(device.profile == profile for device in node.devices))
                for profile in SLICES
            }
        yield (
            "Node",
            {
                "metadata": {
                    "name": node.name,
                    "labels": {"nvidia.com/mig.strategy": "mixed"} if node.mig else {},
                },
                "status": {
                    "allocatable": {"cpu": "256", "memory": "2Ti", "pods": "110", **offer},
                    "conditions": [{"type": "Ready", "status": "True"}],
                },
            },
        )
        exporter = {"containers": [{"name": "exporter"}]}
        started_ms = world.times[0] - 30 * DAY_MS
        yield "Pod", _pod(f"dcgm-exporter-{number}", "monitoring", exporter, node.name, started_ms - skew_ms)
    for namespace in {work.namespace for work in world.works}:
        yield "Namespace", {"metadata": {"name": namespace}}
    for work in world.works:
        yield from _work(work, skew_ms)
    if world.waiting:
        yield "Pod", _waiting(world, skew_ms)


def _spec(work: Work, boards: int) -> dict[str, Any]:
    amounts = {"cpu": "1", work.resource: str(boards)}
    container = {
        "name": work.container,
        "image": work.image,
        "resources": {"requests": amounts, "limits": amounts},
        "ports": [{"containerPort": port} for port in work.ports],
    }
    return {"containers": [container], "priority": work.priority}


def _work(work: Work, skew_ms: int) -> Iterator[tuple[str, dict[str, Any]]]:
    count, spec = len(work.units), _spec(work, len(work.units[0].devices))
    created_ms = min(unit.started_ms for unit in work.units) - DAY_MS - skew_ms
    meta = {
        "name": work.name,
        "namespace": work.namespace,
        "uid": f"uid-{work.namespace}-{work.name}",
        "resourceVersion": "100",
        "generation": 1,
        "creationTimestamp": time_text(created_ms),
        "annotations": work.annotations,
    }
    status: dict[str, Any] = {"observedGeneration": 1} | dict.fromkeys(
        ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), count
    )
    wish: dict[str, Any] = {"replicas": count, "template": {"spec": spec}}
    if work.kind == "Deployment":
        wish["strategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
        replica_set = {
            "name": f"{work.name}-7c9d5b6f8",
            "namespace": work.namespace,
            "uid": f"uid-rs-{work.name}",
        }
        replica_set |= {"ownerReferences": [owner("Deployment", work.name, uid=meta["uid"])]}
        yield "ReplicaSet", {"metadata": replica_set, "spec": {"replicas": count}}
        controller = owner("ReplicaSet", replica_set["name"], uid=replica_set["uid"])
    else:
        status |= {"currentRevision": "r1", "updateRevision": "r1", "currentReplicas": count}
        controller = owner("StatefulSet", work.name, uid=meta["uid"])
    yield work.kind, {"metadata": meta, "spec": wish, "status": status}
    for unit in work.units:
        yield "Pod", _held(work, unit, spec, controller, skew_ms)


def _held(
    work: Work, unit: Unit, spec: dict[str, Any], controller: dict[str, Any], skew_ms: int
) -> dict[str, Any]:
    pod = _pod(unit.name, work.namespace, spec, unit.node, unit.started_ms - skew_ms)
    revision = (
        {"pod-template-hash": "7c9d5b6f8"}
        if work.kind == "Deployment"
        else {"controller-revision-hash": "r1"}
    )
    pod["metadata"] |= {
        "uid": unit.uid,
        "ownerReferences": [controller],
        "labels": {"app": work.name} | revision,
    }
    return pod


def _pod(name: str, namespace: str, spec: dict[str, Any], node: str, started_ms: int) -> dict[str, Any]:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": time_text(started_ms + MINUTE_MS)}
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{namespace}-{name}",
            "creationTimestamp": time_text(started_ms),
        },
        "spec": {**spec, "nodeName": node},
        "status": {"phase": "Running", "startTime": time_text(started_ms), "conditions": [ready]},
    }


def _waiting(world: World, skew_ms: int) -> dict[str, Any]:
    asked = {"cpu": "1", WHOLE: str(world.waiting)}
    short = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": f"0/{len(world.nodes)} nodes are available: {len(world.nodes)} Insufficient {WHOLE}.",
    }
    spec = {
        "containers": [{"name": "main", "resources": {"requests": asked, "limits": asked}}],
        "priority": 1_000_000,
        "priorityClassName": "high-priority-a100",
        "preemptionPolicy": "Never",
        "schedulerName": "default-scheduler",
    }
    return {
        "metadata": {
            "name": "urgent",
            "namespace": f"{world.job}-urgent",
            "uid": f"uid-{world.job}-urgent",
            "creationTimestamp": time_text(world.times[-1] - 10 * MINUTE_MS - skew_ms),
        },
        "spec": spec,
        "status": {"phase": "Pending", "conditions": [short]},
    }
