"""A synthetic cluster, arithmetic from pod numbers: objects as the API server prints them, about 3 KB a pod, and its boards.

Of every fifteen owners four hold accelerators, one board a pod in two of five cases and two boards in the others: 150,000
pods are 5,000 nodes, 37,500 ReplicaSets and 40,000 pods that hold 64,000 boards. No node has a board to spare.
"""

import json
from collections.abc import Iterator
from typing import Any, Final

PAGE: Final = 500
NAMESPACES: Final = 500
REPLICAS_PER_OWNER: Final = 4
PODS_PER_NODE: Final = 30
GPU: Final = "nvidia.com/gpu"

_CYCLE: Final = 15
_HOLDING: Final = {0: 0, 4: 1, 8: 2, 12: 3}
"""Which of every fifteen owners hold accelerators, and as the how manieth: spread, so that nodes are alike."""


def pod_document(index: int, *, gpus: int) -> dict[str, Any]:
    """One pod with what real ones carry: managed fields, tokens, probes, statuses."""
    owner = index // REPLICAS_PER_OWNER
    name, namespace = f"app-{owner}-7c9f8d6b5-{index % 100000:05d}", f"team-{owner % NAMESPACES}"
    amounts = {"cpu": "4", "memory": "32Gi", **({GPU: str(gpus)} if gpus else {})}
    container = {
        "name": "server",
        "image": f"registry.invalid/app-{owner % 2000}:1.2.3",
        "args": ["--port=8080", "--workers=4", "--log-level=info"],
        "env": [{"name": f"SETTING_{n}", "value": f"value-{n}"} for n in range(6)],
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
        "resources": {"requests": amounts, "limits": amounts},
        "readinessProbe": {
            "httpGet": {"path": "/ready", "port": 8080, "scheme": "HTTP"},
            "periodSeconds": 10,
        },
        "volumeMounts": [
            {"name": f"kube-api-access-{index:05x}", "mountPath": "/var/run/secrets", "readOnly": True},
            {"name": "cache", "mountPath": "/cache"},
        ],
        "terminationMessagePath": "/dev/termination-log",
        "imagePullPolicy": "IfNotPresent",
    }
    return {
        "metadata": {
            "name": name,
            "generateName": f"app-{owner}-7c9f8d6b5-",
            "namespace": namespace,
            "uid": f"00000000-0000-4000-8000-{index:012d}",
            "resourceVersion": str(1_000_000 + index),
            "creationTimestamp": "2026-11-01T08:00:00Z",
            "labels": {
                "app": f"app-{owner}",
                "team": namespace,
                "pod-template-hash": "7c9f8d6b5",
                "gpu": "true",
            },
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "8080"},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": f"app-{owner}-7c9f8d6b5",
                    "uid": f"10000000-0000-4000-8000-{owner:012d}",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "managedFields": [
                {
                    "manager": manager,
                    "operation": "Update",
                    "apiVersion": "v1",
                    "time": "2026-11-01T08:00:00Z",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {
                        "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                        "f:spec": {"f:containers": {}},
                    },
                }
                for manager in ("kube-controller-manager", "kubelet")
            ],
        },
        "spec": {
            "volumes": [
                {"name": f"kube-api-access-{index:05x}", "projected": {"defaultMode": 420, "sources": []}},
                {"name": "cache", "emptyDir": {}},
            ],
            "containers": [container],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "nodeSelector": {"gpu-type": "a100"},
            "serviceAccountName": "default",
            "nodeName": f"node-{index // PODS_PER_NODE}",
            "securityContext": {},
            "schedulerName": "default-scheduler",
            "priority": 0,
            "preemptionPolicy": "PreemptLowerPriority",
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{k}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for k in ("not-ready", "unreachable")
            ],
        },
        "status": {
            "phase": "Running",
            "startTime": "2026-11-01T08:00:01Z",
            "qosClass": "Burstable",
            "podIP": "10.0.0.1",
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": "2026-11-01T08:00:20Z"}
                for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
            ],
            "containerStatuses": [
                {
                    "name": "server",
                    "state": {"running": {"startedAt": "2026-11-01T08:00:05Z"}},
                    "lastState": {},
                    "ready": True,
                    "restartCount": 0,
                    "image": "registry.invalid/app:1.2.3",
                    "imageID": "registry.invalid/app@sha256:" + "0" * 64,
                    "containerID": "containerd://" + "0" * 64,
                    "started": True,
                }
            ],
        },
    }


def holder_number(owner: int) -> int:
    """Owners that hold accelerators are numbered from 0; -1 for all others."""
    turn, place = divmod(owner, _CYCLE)
    return turn * len(_HOLDING) + _HOLDING[place] if place in _HOLDING else -1


def gpus_of(index: int) -> int:
    """Boards of a pod."""
    number = holder_number(index // REPLICAS_PER_OWNER)
    if number < 0:
        return 0
    return 1 if number % 5 < 2 else 2


def node_boards(node: int) -> int:
    """Boards of a node: as many as its pods hold."""
    return sum(gpus_of(index) for index in range(node * PODS_PER_NODE, (node + 1) * PODS_PER_NODE))


def pending_pod_document(number: int, *, gpus: int) -> dict[str, Any]:
    """A pod of high priority, in a namespace of its own, for which the scheduler found no node."""
    document = pod_document(number, gpus=gpus)
    meta, spec, status = document["metadata"], document["spec"], document["status"]
    name = f"urgent-{number}"
    meta |= {"name": name, "namespace": "urgent", "uid": f"20000000-0000-4000-8000-{number:012d}"}
    meta |= {"ownerReferences": [], "labels": {"app": name, "gpu": "true"}, "resourceVersion": "6000000"}
    spec |= {"priority": 1_000_000, "priorityClassName": "high-priority-serving"}
    del spec["nodeName"]
    unplaced = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    status.clear()
    status |= {"phase": "Pending", "conditions": [{**unplaced, "message": "Insufficient nvidia.com/gpu"}]}
    return document


def pod_json(index: int) -> bytes:
    """One pod as compact JSON."""
    return json.dumps(pod_document(index, gpus=gpus_of(index)), separators=(",", ":")).encode()


def pod_pages(count: int, *, resource_version: int = 2_000_000) -> Iterator[bytes]:
    """List pages of pods, as bytes."""
    for first in range(0, count, PAGE):
        items = b",".join(pod_json(index) for index in range(first, min(first + PAGE, count)))
        more = f'"continue":"{first + PAGE}",' if first + PAGE < count else ""
        head = f'{{"kind":"PodList","apiVersion":"v1","metadata":{{{more}"resourceVersion":"{resource_version}"}},"items":['
        yield head.encode() + items + b"]}"


def watch_lines(count: int, *, pods: int, first_version: int = 3_000_000) -> Iterator[bytes]:
    """MODIFIED events over the pods in turn, as the lines of a watch."""
    for number in range(count):
        document = pod_document(number % pods, gpus=gpus_of(number % pods))
        document["metadata"]["resourceVersion"] = str(first_version + number)
        event = {"type": "MODIFIED", "object": {"kind": "Pod", "apiVersion": "v1", **document}}
        yield json.dumps(event, separators=(",", ":")).encode() + b"\n"
