"""Workload kinds: what says how many pods there should be, of which size, and how a change would roll out."""

import msgspec

from autoscaler.kube.wire.meta import (
    Condition,
    Int32,
    Int64,
    IntOrString,
    LabelSelector,
    ObjectMeta,
    Present,
    TemplateMeta,
    Wire,
)
from autoscaler.kube.wire.ownership import WorkloadMeta
from autoscaler.kube.wire.pod import PodTemplate


class RollingUpdate(Wire):
    """``partition`` belongs to StatefulSets, ``max_surge`` to Deployments."""

    max_surge: IntOrString | None = None
    max_unavailable: IntOrString | None = None
    partition: Int32 | None = None


class UpdateStrategy(Wire):
    """``RollingUpdate``, ``Recreate`` or ``OnDelete``."""

    type: str = ""
    rolling_update: RollingUpdate | None = None


class DeploymentSpec(Wire):
    """A Deployment's wish."""

    replicas: Int32 | None = None
    selector: LabelSelector | None = None
    template: PodTemplate = msgspec.field(default_factory=PodTemplate)
    strategy: UpdateStrategy | None = None
    min_ready_seconds: Int32 = 0
    progress_deadline_seconds: Int32 | None = None
    paused: bool = False


class DeploymentStatus(Wire):
    """A Deployment's progress; behind ``metadata.generation`` it speaks of an older wish."""

    observed_generation: Int64 = 0
    replicas: Int32 = 0
    updated_replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    unavailable_replicas: Int32 = 0
    conditions: list[Condition] | None = None


class Deployment(Wire):
    """A Deployment."""

    metadata: WorkloadMeta
    spec: DeploymentSpec = msgspec.field(default_factory=DeploymentSpec)
    status: DeploymentStatus = msgspec.field(default_factory=DeploymentStatus)


class ReplicaSetSpec(Wire):
    """Only the number wanted: templates of old ReplicaSets are history."""

    replicas: Int32 | None = None


class ReplicaSet(Wire):
    """A link in the owner chain from a pod to its Deployment."""

    metadata: ObjectMeta
    spec: ReplicaSetSpec = msgspec.field(default_factory=ReplicaSetSpec)


class StatefulSetSpec(Wire):
    """A StatefulSet's wish."""

    replicas: Int32 | None = None
    selector: LabelSelector | None = None
    template: PodTemplate = msgspec.field(default_factory=PodTemplate)
    update_strategy: UpdateStrategy | None = None
    pod_management_policy: str = ""
    min_ready_seconds: Int32 = 0


class StatefulSetStatus(Wire):
    """A StatefulSet's progress; a rollout runs while the two revisions differ."""

    observed_generation: Int64 = 0
    replicas: Int32 = 0
    current_replicas: Int32 = 0
    updated_replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    current_revision: str = ""
    update_revision: str = ""
    conditions: list[Condition] | None = None


class StatefulSet(Wire):
    """A StatefulSet."""

    metadata: WorkloadMeta
    spec: StatefulSetSpec = msgspec.field(default_factory=StatefulSetSpec)
    status: StatefulSetStatus = msgspec.field(default_factory=StatefulSetStatus)


class JobSpec(Wire):
    """A Job's wish; also inside a CronJob."""

    suspend: bool = False
    parallelism: Int32 | None = None
    completions: Int32 | None = None
    completion_mode: str = ""
    backoff_limit: Int32 | None = None
    pod_failure_policy: Present | None = None
    selector: LabelSelector | None = None
    template: PodTemplate = msgspec.field(default_factory=PodTemplate)


class JobStatus(Wire):
    """A Job's progress; conditions ``Complete``, ``Failed`` and ``Suspended`` are the ends and pauses."""

    active: Int32 = 0
    ready: Int32 | None = None
    succeeded: Int32 = 0
    failed: Int32 = 0
    start_time: str | None = None
    completion_time: str | None = None
    conditions: list[Condition] | None = None


class Job(Wire):
    """A Job."""

    metadata: WorkloadMeta
    spec: JobSpec = msgspec.field(default_factory=JobSpec)
    status: JobStatus = msgspec.field(default_factory=JobStatus)


class JobTemplate(Wire):
    """What a CronJob stamps its Jobs from."""

    metadata: TemplateMeta = msgspec.field(default_factory=TemplateMeta)
    spec: JobSpec = msgspec.field(default_factory=JobSpec)


class CronJobSpec(Wire):
    """A CronJob's wish; the schedule is text in its own time zone."""

    schedule: str = ""
    time_zone: str | None = None
    suspend: bool = False
    concurrency_policy: str = ""
    job_template: JobTemplate = msgspec.field(default_factory=JobTemplate)


class CronJobStatus(Wire):
    """When a CronJob last started and last succeeded."""

    last_schedule_time: str | None = None
    last_successful_time: str | None = None


class CronJob(Wire):
    """A CronJob."""

    metadata: WorkloadMeta
    spec: CronJobSpec = msgspec.field(default_factory=CronJobSpec)
    status: CronJobStatus = msgspec.field(default_factory=CronJobStatus)
