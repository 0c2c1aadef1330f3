"""Kueue's objects (kueue.x-k8s.io/v1beta2), as far as it matters who holds which quota.

Names are those of the API, with `Kueue` before the one that would be taken for a word of our own.
"""

import msgspec

from autoscaler.kube.wire.meta import Condition, Int32, ObjectMeta, Wire


class _Resources(Wire):
    limits: dict[str, str] | None = None
    requests: dict[str, str] | None = None


class QueuedContainer(Wire):
    """One container of a pod that waits or runs."""

    resources: _Resources | None = None


class _PodSpec(Wire):
    containers: list[QueuedContainer] | None = None
    init_containers: list[QueuedContainer] | None = None


class _Template(Wire):
    spec: _PodSpec | None = None


class PodSet(Wire):
    """So many pods of one template."""

    count: Int32 = 0
    template: _Template | None = None


class KueueWorkloadSpec(Wire):
    """What is asked for, and whether it may be admitted at all: unset means yes."""

    queue_name: str = ""
    active: bool | None = None
    pod_sets: list[PodSet] | None = None


class PodSetAssignment(Wire):
    """The flavor of each resource, and how much of it is reserved."""

    flavors: dict[str, str] | None = None
    resource_usage: dict[str, str] | None = None


class Admission(Wire):
    """Where quota is reserved."""

    cluster_queue: str = ""
    pod_set_assignments: list[PodSetAssignment] | None = None


class KueueWorkloadStatus(Wire):
    """How far admission has come."""

    conditions: list[Condition] | None = None
    admission: Admission | None = None


class KueueWorkload(Wire):
    """A Workload of Kueue."""

    metadata: ObjectMeta
    spec: KueueWorkloadSpec = msgspec.field(default_factory=KueueWorkloadSpec)
    status: KueueWorkloadStatus = msgspec.field(default_factory=KueueWorkloadStatus)


class QueueResource(Wire):
    """Quota of one resource; an absent limit is none."""

    name: str = ""
    nominal_quota: str = "0"
    borrowing_limit: str | None = None
    lending_limit: str | None = None


class FlavorQuotas(Wire):
    """Quotas of one flavor."""

    name: str = ""
    resources: list[QueueResource] | None = None


class ResourceGroup(Wire):
    """Flavors that stand in for each other."""

    flavors: list[FlavorQuotas] | None = None


class ResourceUse(Wire):
    """How much of a resource is reserved."""

    name: str = ""
    total: str = "0"


class FlavorUses(Wire):
    """What is reserved of one flavor."""

    name: str = ""
    resources: list[ResourceUse] | None = None


class ClusterQueueSpec(Wire):
    """Quotas and the cohort that they are shared in."""

    cohort_name: str = ""
    stop_policy: str | None = None
    resource_groups: list[ResourceGroup] | None = None


class ClusterQueueStatus(Wire):
    """Reservations, which come before use."""

    flavors_reservation: list[FlavorUses] | None = None


class ClusterQueue(Wire):
    """A ClusterQueue."""

    metadata: ObjectMeta
    spec: ClusterQueueSpec = msgspec.field(default_factory=ClusterQueueSpec)
    status: ClusterQueueStatus = msgspec.field(default_factory=ClusterQueueStatus)


class LocalQueueSpec(Wire):
    """The queue behind the door."""

    cluster_queue: str = ""
    stop_policy: str | None = None


class LocalQueue(Wire):
    """A LocalQueue."""

    metadata: ObjectMeta
    spec: LocalQueueSpec = msgspec.field(default_factory=LocalQueueSpec)


class CohortSpec(Wire):
    """Quotas of a cohort itself, and the cohort that it is part of."""

    parent_name: str = ""
    resource_groups: list[ResourceGroup] | None = None


class Cohort(Wire):
    """A Cohort."""

    metadata: ObjectMeta
    spec: CohortSpec = msgspec.field(default_factory=CohortSpec)
