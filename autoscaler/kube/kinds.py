"""Which kinds we read, where they live, and how their lists and watch events decode.

One table, so that discovery, RBAC manifests and wiring cannot disagree about it.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, Generic, Literal, Protocol, TypeVar

import msgspec

from autoscaler.kube import wire


class Versioned(Protocol):
    """Any decoded object: it has metadata."""

    @property
    def metadata(self) -> wire.ObjectMeta:
        """Name, namespace and version."""


T = TypeVar("T", bound=Versioned)
EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]


class Page(wire.Wire, Generic[T]):
    """One page of a list. ``kind`` tells a list from a ``Status`` that came with a 200."""

    kind: str = ""
    metadata: wire.ListMeta = msgspec.field(default_factory=wire.ListMeta)
    items: list[T] | None = None


class WatchEvent(wire.Wire, Generic[T]):
    """One line of a watch. A bookmark's object has metadata only; an ``ERROR`` never decodes into this type's users."""

    type: EventType
    object: T


@dataclass(frozen=True)
class Kind(Generic[T]):
    """A kind of object at one version of its API; `older` are versions that read alike, the best first."""

    name: str
    plural: str
    group: str
    version: str
    struct: type[T]
    older: tuple[str, ...] = ()

    @property
    def versions(self) -> tuple["Kind[T]", ...]:
        """The kind at each version that can be read, the best first."""
        return (self, *(replace(self, version=version) for version in self.older))

    def served_by(self, resources: AbstractSet[str]) -> "Kind[T]":
        """The kind at the best version among a server's resources; unchanged where it has none."""
        return next((at for at in self.versions if at.resource in resources), self)

    @property
    def group_version(self) -> str:
        """``v1`` or ``<group>/<version>``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """``<group>/<version>/<plural>``, as discovery lists it."""
        return f"{self.group_version}/{self.plural}"

    @property
    def base_path(self) -> str:
        """``/api/v1`` or ``/apis/<group>/<version>``."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    @property
    def path(self) -> str:
        """Where all objects of the kind are listed and watched, over all namespaces."""
        return f"{self.base_path}/{self.plural}"

    @cached_property
    def page_decoder(self) -> msgspec.json.Decoder[Page[T]]:
        """Decodes a list page in one call."""
        return msgspec.json.Decoder(Page[self.struct])  # type: ignore[name-defined]

    @cached_property
    def event_decoder(self) -> msgspec.json.Decoder[WatchEvent[T]]:
        """Decodes watch lines that carry objects of this kind."""
        return msgspec.json.Decoder(WatchEvent[self.struct])  # type: ignore[name-defined]


POD = Kind("Pod", "pods", "", "v1", wire.Pod)
NODE = Kind("Node", "nodes", "", "v1", wire.Node)
NAMESPACE = Kind("Namespace", "namespaces", "", "v1", wire.Namespace)
PRIORITY_CLASS = Kind("PriorityClass", "priorityclasses", "scheduling.k8s.io", "v1", wire.PriorityClass)
DEPLOYMENT = Kind("Deployment", "deployments", "apps", "v1", wire.Deployment)
REPLICA_SET = Kind("ReplicaSet", "replicasets", "apps", "v1", wire.ReplicaSet)
STATEFUL_SET = Kind("StatefulSet", "statefulsets", "apps", "v1", wire.StatefulSet)
JOB = Kind("Job", "jobs", "batch", "v1", wire.Job)
CRON_JOB = Kind("CronJob", "cronjobs", "batch", "v1", wire.CronJob)
RESOURCE_QUOTA = Kind("ResourceQuota", "resourcequotas", "", "v1", wire.ResourceQuota)
LIMIT_RANGE = Kind("LimitRange", "limitranges", "", "v1", wire.LimitRange)
POD_DISRUPTION_BUDGET = Kind(
    "PodDisruptionBudget", "poddisruptionbudgets", "policy", "v1", wire.PodDisruptionBudget
)
HORIZONTAL_POD_AUTOSCALER = Kind(
    "HorizontalPodAutoscaler", "horizontalpodautoscalers", "autoscaling", "v2", wire.HorizontalPodAutoscaler
)
_DRA: Final = "resource.k8s.io"
_DRA_VERSIONS: Final = ("v1beta2", "v1beta1")
"""v1 is served from 1.34, the others from 1.33 and 1.32 where an operator switched them on."""
RESOURCE_CLAIM = Kind("ResourceClaim", "resourceclaims", _DRA, "v1", wire.ResourceClaim, _DRA_VERSIONS)
RESOURCE_SLICE = Kind("ResourceSlice", "resourceslices", _DRA, "v1", wire.ResourceSlice, _DRA_VERSIONS)
DEVICE_CLASS = Kind("DeviceClass", "deviceclasses", _DRA, "v1", wire.DeviceClass, _DRA_VERSIONS)
PERSISTENT_VOLUME_CLAIM = Kind(
    "PersistentVolumeClaim", "persistentvolumeclaims", "", "v1", wire.PersistentVolumeClaim
)
PERSISTENT_VOLUME = Kind("PersistentVolume", "persistentvolumes", "", "v1", wire.PersistentVolume)
NODE_CLAIM = Kind("NodeClaim", "nodeclaims", "karpenter.sh", "v1", wire.NodeClaim, ("v1beta1",))
_KUEUE: Final = "kueue.x-k8s.io"
KUEUE_WORKLOAD = Kind("Workload", "workloads", _KUEUE, "v1beta2", wire.KueueWorkload)
CLUSTER_QUEUE = Kind("ClusterQueue", "clusterqueues", _KUEUE, "v1beta2", wire.ClusterQueue)
LOCAL_QUEUE = Kind("LocalQueue", "localqueues", _KUEUE, "v1beta2", wire.LocalQueue)
COHORT = Kind("Cohort", "cohorts", _KUEUE, "v1beta2", wire.Cohort)

KINDS: Mapping[str, Kind[Any]] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            POD,
            NODE,
            NAMESPACE,
            PRIORITY_CLASS,
            DEPLOYMENT,
            REPLICA_SET,
            STATEFUL_SET,
            JOB,
            CRON_JOB,
            RESOURCE_QUOTA,
            LIMIT_RANGE,
            POD_DISRUPTION_BUDGET,
            HORIZONTAL_POD_AUTOSCALER,
            RESOURCE_CLAIM,
            RESOURCE_SLICE,
            DEVICE_CLASS,
            NODE_CLAIM,
            PERSISTENT_VOLUME_CLAIM,
            PERSISTENT_VOLUME,
            KUEUE_WORKLOAD,
            CLUSTER_QUEUE,
            LOCAL_QUEUE,
            COHORT,
        )
    }
)
"""All kinds that are read, by name."""
