"""The object as it is now, read right before it is changed: only what a change needs to know of it."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from autoscaler.kube.wire import Wire
from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.plan import Lever
from autoscaler.model.quantity import QuantityError, parse_quantity

OWN_MANAGER: Final = "gpu-autoscaler"
_JOB_ENDS: Final = frozenset({"Complete", "Failed"})
PARTS: Final = ("limits", "requests")


class _Meta(Wire):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    annotations: dict[str, str] | None = None
    managed_fields: list["_Manager"] | None = None


class _Manager(Wire):
    manager: str = ""
    subresource: str = ""


class _Resources(Wire):
    limits: dict[str, Any] | None = None
    requests: dict[str, Any] | None = None


class _Container(Wire):
    name: str = ""
    resources: _Resources | None = None


class _PodSpec(Wire):
    containers: list[_Container] | None = None


class _Template(Wire):
    spec: _PodSpec | None = None


class _JobSpec(Wire):
    template: _Template | None = None


class _JobTemplate(Wire):
    spec: _JobSpec | None = None


class _Spec(Wire):
    active: bool | None = None
    replicas: int | None = None
    min_replicas: int | None = None
    parallelism: int | None = None
    template: _Template | None = None
    job_template: _JobTemplate | None = None


class _Condition(Wire):
    type: str = ""
    status: str = ""


class _Status(Wire):
    conditions: list[_Condition] | None = None


class WorkloadObject(Wire):
    """A Deployment, StatefulSet, Job, CronJob, Scale, autoscaler or Workload of Kueue, as far as it is looked at."""

    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class _PodSpecNode(Wire):
    node_name: str = ""


class _PodStatus(Wire):
    phase: str = ""
    nominated_node_name: str = ""


class PodObject(Wire):
    """A pod, as far as it is looked at."""

    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _PodSpecNode = msgspec.field(default_factory=_PodSpecNode)
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)


workload_decoder = msgspec.json.Decoder(WorkloadObject)
pod_decoder = msgspec.json.Decoder(PodObject)


class LiveWorkload(msgspec.Struct, frozen=True):
    """A workload as it is now.

    `amounts` maps a container of the template to its limits and requests as they are written. `own_entries` are the
    indexes of our entries in `managedFields`. `active` is a Workload's of Kueue, `minimum` an autoscaler's least
    replicas. A Job that `ended`, well or badly, makes no more pods.
    """

    ref: WorkloadRef
    uid: str
    resource_version: str
    deleting: bool = False
    replicas: int = 1
    amounts: Mapping[str, Mapping[str, Mapping[str, Any]]] = {}
    own_entries: tuple[int, ...] = ()
    active: bool = True
    minimum: int = 1
    ended: bool = False

    def stated(self, container: str, resource: str) -> tuple[str, ...]:
        """Which of limits and requests the container states for a resource."""
        parts = self.amounts.get(container, {})
        return tuple(part for part in PARTS if resource in parts.get(part, {}))

    def value(self, lever: Lever, *, resource: str = "", container: str = "") -> int | None:
        """Replicas, the least of them, 1 for active, or the boards that the template states; None where it states none or contradicts itself."""
        if lever == "scale":
            return self.replicas
        if lever == "deactivate":
            return int(self.active)
        if lever == "bounds":
            return self.minimum
        parts = self.amounts.get(container, {})
        amounts = {_whole(parts[part][resource]) for part in self.stated(container, resource)}
        return amounts.pop() if len(amounts) == 1 else None


class LivePod(msgspec.Struct, frozen=True):
    """A pod as it is now; `nominated_by_us`: the nomination is what we wrote."""

    uid: str
    resource_version: str = ""
    node: str = ""
    nominated: str = ""
    nominated_by_us: bool = False
    phase: str = ""
    deleting: bool = False
    annotations: Mapping[str, str] = {}


def live_workload(ref: WorkloadRef, item: WorkloadObject, *, of_scale: bool = False) -> LiveWorkload:
    """The object of a GET, or the answer to a patch.

    `of_scale` is for the answer of a scale subresource: it leaves the replicas out where they are 0, while a workload
    that states none has 1. The replicas of a Job are its parallelism.
    """
    meta, spec = item.metadata, item.spec
    unstated = 0 if of_scale else 1
    replicas = spec.parallelism if ref.kind == "Job" else spec.replicas
    template = spec.template
    if spec.job_template is not None and spec.job_template.spec is not None:
        template = spec.job_template.spec.template
    containers = (
        template.spec.containers if template is not None and template.spec is not None else None
    ) or ()
    return LiveWorkload(
        ref=ref,
        uid=meta.uid,
        resource_version=meta.resource_version,
        deleting=meta.deletion_timestamp is not None,
        replicas=unstated if replicas is None else replicas,
        amounts={container.name: _amounts(container) for container in containers},
        active=spec.active is not False,
        minimum=1 if spec.min_replicas is None else spec.min_replicas,
        own_entries=tuple(
            index for index, entry in enumerate(meta.managed_fields or ()) if entry.manager == OWN_MANAGER
        ),
        ended=ref.kind == "Job"
        and any(one.type in _JOB_ENDS and one.status == "True" for one in item.status.conditions or ()),
    )


def live_pod(item: PodObject) -> LivePod:
    """The object of a GET."""
    return LivePod(
        uid=item.metadata.uid,
        resource_version=item.metadata.resource_version,
        node=item.spec.node_name,
        nominated=item.status.nominated_node_name,
        # The nomination is all that we ever write of a pod's status; once somebody else writes it, our entry goes.
        nominated_by_us=any(
            entry.manager == OWN_MANAGER and entry.subresource == "status"
            for entry in item.metadata.managed_fields or ()
        ),
        phase=item.status.phase,
        deleting=item.metadata.deletion_timestamp is not None,
        annotations=item.metadata.annotations or {},
    )


def _amounts(container: _Container) -> dict[str, dict[str, Any]]:
    stated = container.resources or _Resources()
    return {"limits": stated.limits or {}, "requests": stated.requests or {}}


def _whole(text: Any) -> int | None:
    """A quantity that is a whole number."""
    try:
        amount = parse_quantity(str(text))
    except QuantityError:
        return None
    return int(amount) if amount == int(amount) else None
