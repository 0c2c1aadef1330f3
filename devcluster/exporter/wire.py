"""The few fields of nodes and pods that the exporter reads, and what they mean for boards."""

from typing import Any

import msgspec

from devcluster.exporter.allocation import BoundPod, Claim, NodeBoards

ACCELERATORS_ANNOTATION = "devcluster.gpu-autoscaler.io/accelerators"
MODEL_ANNOTATION = "devcluster.gpu-autoscaler.io/gpu-model"
MEMORY_ANNOTATION = "devcluster.gpu-autoscaler.io/gpu-memory-mib"

_ENDED = frozenset({"Succeeded", "Failed"})
_RUN_SUFFIX_DIGITS = frozenset("0123456789")


class Owner(msgspec.Struct, frozen=True):
    """A reference to an owner."""

    kind: str
    name: str
    controller: bool = False


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """What identifies an object."""

    name: str
    uid: str = ""
    namespace: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[Owner] | None = None
    creation_timestamp: str = ""


class ResourceAmounts(msgspec.Struct, frozen=True):
    """A container's resources."""

    requests: dict[str, Any] | None = None
    limits: dict[str, Any] | None = None


class Container(msgspec.Struct, frozen=True, rename="camel"):
    """A container's name, amounts and whether it keeps running as a sidecar."""

    name: str
    resources: ResourceAmounts = ResourceAmounts()
    restart_policy: str = ""


class PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    """Where a pod is and what it runs."""

    node_name: str = ""
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None


class PodStatus(msgspec.Struct, frozen=True):
    """A pod's phase."""

    phase: str = ""


class Pod(msgspec.Struct, frozen=True):
    """A pod."""

    metadata: Metadata
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class NodeStatus(msgspec.Struct, frozen=True):
    """A node's capacity."""

    capacity: dict[str, Any] | None = None


class Node(msgspec.Struct, frozen=True):
    """A node."""

    metadata: Metadata
    status: NodeStatus = NodeStatus()


def node_boards(node: Node) -> NodeBoards:
    """The boards that a fake node's annotations and capacity describe."""
    annotations = node.metadata.annotations or {}
    capacity = node.status.capacity or {}
    resources = [name for name in annotations.get(ACCELERATORS_ANNOTATION, "").split(",") if name]
    return NodeBoards(
        name=node.metadata.name,
        counts=tuple((name, int(capacity.get(name, 0))) for name in resources),
        model=annotations.get(MODEL_ANNOTATION, ""),
        memory_mib=int(annotations.get(MEMORY_ANNOTATION, 0)),
    )


def bound_pod(pod: Pod, accelerators: frozenset[str]) -> BoundPod | None:
    """The pod's claims on boards; None while it is not bound, when it has ended, or when it asks for none."""
    claims = _claims(pod.spec, accelerators)
    if not pod.spec.node_name or pod.status.phase in _ENDED or not claims:
        return None
    return BoundPod(
        uid=pod.metadata.uid,
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        node=pod.spec.node_name,
        claims=claims,
        workloads=workloads_of(pod.metadata),
        is_running=pod.status.phase == "Running",
        created_at=pod.metadata.creation_timestamp,
    )


def workloads_of(metadata: Metadata) -> tuple[tuple[str, str], ...]:
    """Kind and name of everything whose load the pod may carry, the nearest first.

    The owner of a ReplicaSet and of a CronJob's Job follow from their names, so no further kinds are read.
    """
    found = [("Pod", metadata.name)]
    for owner in metadata.owner_references or []:
        if not owner.controller:
            continue
        found.append((owner.kind, owner.name))
        pod_hash = (metadata.labels or {}).get("pod-template-hash", "")
        if owner.kind == "ReplicaSet" and pod_hash:
            found.append(("Deployment", owner.name.removesuffix(f"-{pod_hash}")))
        stem, _, run = owner.name.rpartition("-")
        if owner.kind == "Job" and stem and _RUN_SUFFIX_DIGITS.issuperset(run):
            found.append(("CronJob", stem))
    return tuple(found)


def _claims(spec: PodSpec, accelerators: frozenset[str]) -> tuple[Claim, ...]:
    sidecars = [one for one in spec.init_containers or [] if one.restart_policy == "Always"]
    return tuple(
        Claim(container=container.name, resource=resource, count=int(amount))
        for container in [*sidecars, *(spec.containers or [])]
        for resource, amount in sorted((container.resources.limits or {}).items())
        if resource in accelerators and int(amount) > 0
    )
