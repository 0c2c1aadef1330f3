"""Who wrote the fields we might change: ``managedFields`` reduced to a few booleans while decoding.

The field sets of ``managedFields`` are trees of keys such as ``f:spec`` and ``k:{"name":"main"}``. They are often larger than
the object itself, so they are decoded along the few paths that matter and dropped at once; only ``FieldOwner`` rows stay.
"""

import msgspec

from autoscaler.kube.wire.meta import ObjectMeta, Present, Wire


class _ResourceFields(Wire):
    limits: dict[str, Present] | None = msgspec.field(name="f:limits", default=None)
    requests: dict[str, Present] | None = msgspec.field(name="f:requests", default=None)


class _ContainerFields(Wire):
    resources: _ResourceFields | None = msgspec.field(name="f:resources", default=None)


class _PodSpecFields(Wire):
    containers: dict[str, _ContainerFields] | None = msgspec.field(name="f:containers", default=None)
    init_containers: dict[str, _ContainerFields] | None = msgspec.field(name="f:initContainers", default=None)


class _TemplateFields(Wire):
    spec: _PodSpecFields | None = msgspec.field(name="f:spec", default=None)


class _SpecFields(Wire):
    replicas: Present | None = msgspec.field(name="f:replicas", default=None)
    min_replicas: Present | None = msgspec.field(name="f:minReplicas", default=None)
    suspend: Present | None = msgspec.field(name="f:suspend", default=None)
    parallelism: Present | None = msgspec.field(name="f:parallelism", default=None)
    template: _TemplateFields | None = msgspec.field(name="f:template", default=None)
    job_template: "_JobTemplateFields | None" = msgspec.field(name="f:jobTemplate", default=None)


class _JobTemplateFields(Wire):
    spec: _SpecFields | None = msgspec.field(name="f:spec", default=None)


class _FieldSet(Wire):
    spec: _SpecFields | None = msgspec.field(name="f:spec", default=None)


class _ManagedFieldsEntry(Wire):
    manager: str = ""
    operation: str = ""
    subresource: str = ""
    fields: _FieldSet | None = msgspec.field(name="fieldsV1", default=None)


class FieldOwner(Wire):
    """A field manager that owns at least one field a lever could turn."""

    manager: str
    operation: str = ""
    subresource: str = ""
    owns_replicas: bool = False
    owns_minimum: bool = False
    owns_resources: bool = False
    owns_suspend: bool = False
    owns_parallelism: bool = False


class WorkloadMeta(ObjectMeta):
    """Metadata of a workload kind. ``field_owners`` is filled from ``managedFields``, which is then dropped."""

    managed_fields: list[_ManagedFieldsEntry] | None = None
    field_owners: tuple[FieldOwner, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.managed_fields is not None:
            owners = (_reduce(entry) for entry in self.managed_fields)
            self.field_owners = tuple(owner for owner in owners if owner is not None)
            self.managed_fields = None


def _reduce(entry: _ManagedFieldsEntry) -> FieldOwner | None:
    """The row for one entry, or nothing when it owns none of the fields we could turn."""
    outer = entry.fields.spec if entry.fields is not None else None
    if outer is None:
        return None
    inner = outer.job_template.spec if outer.job_template is not None else None
    owner = FieldOwner(
        manager=entry.manager,
        operation=entry.operation,
        subresource=entry.subresource,
        owns_replicas=outer.replicas is not None,
        owns_minimum=outer.min_replicas is not None,
        owns_resources=_touches_resources(outer) or (inner is not None and _touches_resources(inner)),
        owns_suspend=outer.suspend is not None,
        owns_parallelism=outer.parallelism is not None
        or (inner is not None and inner.parallelism is not None),
    )
    turns = (
        owner.owns_replicas,
        owner.owns_minimum,
        owner.owns_resources,
        owner.owns_suspend,
        owner.owns_parallelism,
    )
    return owner if any(turns) else None


def _touches_resources(spec: _SpecFields) -> bool:
    pod = spec.template.spec if spec.template is not None else None
    if pod is None:
        return False
    return any(
        container.resources is not None and (container.resources.limits or container.resources.requests)
        for containers in (pod.containers, pod.init_containers)
        for container in (containers or {}).values()
    )
