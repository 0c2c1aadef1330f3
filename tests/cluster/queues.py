"""Kueue in a room: a queue of the room's own with its quota, and Jobs that stand in it."""

from collections.abc import Mapping
from typing import Any

from devcluster.exporter.load import Constant, WorkloadLoad
from devcluster.rooms import DEFAULT_RESOURCE, Room
from tests.cluster.acting import live
from tests.cluster.polling import eventually

API = "kueue.x-k8s.io/v1beta2"
CONSENT = {"gpu-autoscaler.io/min-replicas": "0"}
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"


def quota(boards: int, *, borrowing: int | None = None, lending: int | None = None) -> dict[str, Any]:
    """The boards of a queue, or of a cohort."""
    limits = {"borrowingLimit": borrowing, "lendingLimit": lending}
    stated = {name: str(limit) for name, limit in limits.items() if limit is not None}
    return {"name": DEFAULT_RESOURCE, "nominalQuota": str(boards), **stated}


def flavor(room: Room) -> dict[str, Any]:
    """The room's nodes as a flavor."""
    return {"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": room.namespace}}


def queue(room: Room, name: str, boards: Mapping[str, Any], *, cohort: str = "") -> list[dict[str, Any]]:
    """A queue of the room, cluster-wide under a name of the room's own, and the door to it."""
    whole = f"{room.namespace}-{name}"
    spec: dict[str, Any] = {"namespaceSelector": {}, "resourceGroups": [_group(room, boards)]}
    if cohort:
        spec["cohortName"] = f"{room.namespace}-{cohort}"
    door = {"name": name, "namespace": room.namespace}
    return [
        {"apiVersion": API, "kind": "ClusterQueue", "metadata": {"name": whole}, "spec": spec},
        {"apiVersion": API, "kind": "LocalQueue", "metadata": door, "spec": {"clusterQueue": whole}},
    ]


def cohort(
    room: Room, name: str, boards: Mapping[str, Any] | None = None, *, parent: str = ""
) -> dict[str, Any]:
    """A cohort of the room's queues."""
    spec: dict[str, Any] = {"resourceGroups": [_group(room, boards)]} if boards else {}
    if parent:
        spec["parentName"] = f"{room.namespace}-{parent}"
    metadata = {"name": f"{room.namespace}-{name}"}
    return {"apiVersion": API, "kind": "Cohort", "metadata": metadata, "spec": spec}


def _group(room: Room, boards: Mapping[str, Any]) -> dict[str, Any]:
    flavors = [{"name": room.namespace, "resources": [dict(boards)]}]
    return {"coveredResources": [DEFAULT_RESOURCE], "flavors": flavors}


def job(
    room: Room,
    name: str,
    *,
    queue: str = "main",
    boards: int = 1,
    pods: int = 1,
    annotations: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A Job that stands in a queue, of pods that run on."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": room.namespace,
            "labels": {QUEUE_LABEL: queue},
            "annotations": dict(annotations or {}),
        },
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "suspend": True,
            "template": {
                "metadata": {
                    "labels": {"app": name, "gpu": "true"},
                    "annotations": {"devcluster.gpu-autoscaler.io/keeps-running": "true"},
                },
                "spec": room.pod_spec(boards, restartPolicy="Never"),
            },
        },
    }


def load(room: Room, name: str, offered: float) -> WorkloadLoad:
    """What a Job does with its boards."""
    return WorkloadLoad(namespace=room.namespace, kind="Job", name=name, offered=Constant(offered))


async def kueue_workload(room: Room, name: str) -> dict[str, Any] | None:
    """Kueue's Workload of a Job, once it has made one."""
    listed = await room.cluster.api.get(f"/apis/{API}/namespaces/{room.namespace}/workloads")
    owned = [
        item
        for item in listed["items"]
        if any(ref["name"] == name for ref in item["metadata"].get("ownerReferences", []))
    ]
    return dict(owned[0]) if owned else None


def holds(item: Mapping[str, Any] | None, condition: str) -> bool:
    """Whether a condition of an object is true."""
    conditions = ((item or {}).get("status") or {}).get("conditions", [])
    return any(one["type"] == condition and one["status"] == "True" for one in conditions)


async def until_admitted(room: Room, name: str, *, timeout_s: float = 30) -> dict[str, Any]:
    """The Workload of a Job that Kueue has admitted."""
    found = await eventually(
        lambda: kueue_workload(room, name),
        lambda item: holds(item, "Admitted"),
        what=f"{name} to be admitted",
        timeout_s=timeout_s,
    )
    assert found is not None
    return found


async def until_queued(room: Room, name: str, *, timeout_s: float = 30) -> dict[str, Any]:
    """The Workload of a Job that waits, and Kueue has said so."""

    def waits(item: Mapping[str, Any] | None) -> bool:
        conditions = ((item or {}).get("status") or {}).get("conditions", [])
        return any(one["type"] == "QuotaReserved" and one["status"] == "False" for one in conditions)

    found = await eventually(
        lambda: kueue_workload(room, name), waits, what=f"{name} to be queued", timeout_s=timeout_s
    )
    assert found is not None
    return found


async def is_suspended(room: Room, name: str) -> bool:
    """Whether a Job is suspended now."""
    return bool((await live(room, "job", name))["spec"].get("suspend"))
