"""Nodes, quotas, limits, budgets and other scalers: wire objects as rows of a snapshot.

What cannot be read is named in the row. A rule that selects nothing has no row.
"""

from collections.abc import Iterable

from autoscaler.kube import wire
from autoscaler.model.cluster import (
    Autoscaler,
    Budget,
    Limit,
    LimitRangeRow,
    NamespaceRow,
    NodeClaimRow,
    NodeRow,
    PriorityClassRow,
    Quota,
)
from autoscaler.model.shapes import Requirement, Taint
from autoscaler.observe.marks import kept_marks, time_ms
from autoscaler.observe.quantities import ratios_of, vector_of
from autoscaler.observe.shapes import Places, label_selector, node_requirements

_CALM_MS = 300_000
"""The controller manager's own default before an autoscaler goes down (horizontal-pod-autoscaler-downscale-stabilization)."""


def node_row(item: wire.Node) -> NodeRow:
    """A node without what is taken of it; an unreadable amount counts as nothing there."""
    meta = item.metadata
    conditions = item.status.conditions or ()
    return NodeRow(
        name=meta.name,
        labels=dict(sorted((meta.labels or {}).items())),
        taints=tuple(Taint(t.key, t.value, t.effect) for t in item.spec.taints or ()),
        allocatable=vector_of(item.status.allocatable, []),
        ready=any(c.type == "Ready" and c.status == "True" for c in conditions),
        unschedulable=item.spec.unschedulable,
        deleting=meta.deletion_timestamp is not None,
        annotations=kept_marks(meta.annotations),
        conditions=tuple(sorted(c.type for c in conditions if c.status == "True" and c.type != "Ready")),
        created_ms=max(0, time_ms(meta.creation_timestamp)),
    )


def node_claim_row(item: wire.NodeClaim) -> NodeClaimRow:
    """An ordered node; an unreadable amount counts as nothing there."""
    meta, spec, status = item.metadata, item.spec, item.status
    ordered = spec.resources.requests if spec.resources else None
    return NodeClaimRow(
        name=meta.name,
        node=status.node_name,
        labels=dict(sorted((meta.labels or {}).items())),
        requirements=tuple(
            Requirement(r.key, r.operator, tuple(r.values or ())) for r in spec.requirements or ()
        ),
        taints=tuple(Taint(t.key, t.value, t.effect) for t in spec.taints or ()),
        room=vector_of(status.allocatable or ordered, []),
        created_ms=max(0, time_ms(meta.creation_timestamp)),
        deleting=meta.deletion_timestamp is not None,
    )


def bound_volume(item: wire.PersistentVolumeClaim) -> str | None:
    """The volume that a claim is bound to; None where it is bound to none."""
    return item.spec.volume_name or None


def volume_places(item: wire.PersistentVolume) -> Places | None:
    """Where a volume can be mounted, as alternatives of requirements; None where that is anywhere."""
    affinity = item.spec.node_affinity
    if affinity is None or affinity.required is None:
        return None
    return tuple(map(node_requirements, affinity.required.node_selector_terms or ()))


def namespace_row(item: wire.Namespace) -> NamespaceRow:
    """A namespace and its marks."""
    meta = item.metadata
    return NamespaceRow(meta.name, dict(sorted((meta.labels or {}).items())), kept_marks(meta.annotations))


def priority_class_row(item: wire.PriorityClass) -> PriorityClassRow:
    """A priority class."""
    return PriorityClassRow(
        name=item.metadata.name,
        value=item.value,
        preemption_policy=item.preemption_policy or "PreemptLowerPriority",
        global_default=item.global_default,
    )


def quota_row(item: wire.ResourceQuota) -> Quota:
    """A quota with what the server enforces (its status) before what was asked of it (its spec)."""
    faults: list[str] = []
    scopes = [Requirement(name, "Exists") for name in item.spec.scopes or ()]
    selected = item.spec.scope_selector.match_expressions if item.spec.scope_selector else None
    scopes.extend(Requirement(r.scope_name, r.operator, tuple(r.values or ())) for r in selected or ())
    hard = {**(item.spec.hard or {}), **(item.status.hard or {})}
    return Quota(
        namespace=item.metadata.namespace,
        name=item.metadata.name,
        hard=vector_of(hard, faults, where="hard "),
        used=vector_of(item.status.used, faults, where="used "),
        scopes=tuple(scopes),
        unreadable=tuple(faults),
    )


def limit_range_row(item: wire.LimitRange) -> LimitRangeRow:
    """A limit range."""
    faults: list[str] = []
    limits = tuple(
        Limit(
            kind=limit.type,
            maximum=vector_of(limit.max, faults, where="max "),
            minimum=vector_of(limit.min, faults, where="min "),
            default=vector_of(limit.default, faults, where="default "),
            default_request=vector_of(limit.default_request, faults, where="defaultRequest "),
            ratio_milli=ratios_of(limit.max_limit_request_ratio, faults),
        )
        for limit in item.spec.limits or ()
    )
    return LimitRangeRow(item.metadata.namespace, item.metadata.name, limits, tuple(faults))


def budget_row(item: wire.PodDisruptionBudget) -> Budget | None:
    """A disruption budget; None where no selector is stated, which selects nothing."""
    spec, status = item.spec, item.status
    if spec.selector is None:
        return None
    return Budget(
        namespace=item.metadata.namespace,
        name=item.metadata.name,
        selector=label_selector(spec.selector),
        minimum="" if spec.min_available is None else str(spec.min_available),
        unavailable="" if spec.max_unavailable is None else str(spec.max_unavailable),
        allowed=status.disruptions_allowed,
        current_healthy=status.current_healthy,
        desired_healthy=status.desired_healthy,
        expected_pods=status.expected_pods,
        observed=status.observed_generation >= item.metadata.generation,
    )


def autoscaler_row(item: wire.HorizontalPodAutoscaler) -> Autoscaler:
    """A horizontal autoscaler and its target."""
    spec = item.spec
    rules = (spec.behavior.scale_down if spec.behavior else None) or wire.ScalingRules()
    return Autoscaler(
        namespace=item.metadata.namespace,
        name=item.metadata.name,
        target_kind=spec.scale_target_ref.kind,
        target_name=spec.scale_target_ref.name,
        minimum=1 if spec.min_replicas is None else spec.min_replicas,
        maximum=spec.max_replicas,
        uid=item.metadata.uid,
        resource_version=item.metadata.resource_version,
        controller=next(
            (f"{ref.kind} {ref.name}" for ref in item.metadata.owner_references or () if ref.controller), ""
        ),
        minimum_owners=tuple(sorted({o.manager for o in item.metadata.field_owners if o.owns_minimum})),
        scales_in=rules.select_policy != "Disabled",
        calm_ms=_CALM_MS
        if rules.stabilization_window_seconds is None
        else max(0, rules.stabilization_window_seconds) * 1000,
        blind=_blind(item.status.conditions or ()),
        deleting=item.metadata.deletion_timestamp is not None,
    )


def _blind(conditions: Iterable[wire.Condition]) -> str:
    """Why an autoscaler does not scale; ScalingDisabled is said where its target has no replicas."""
    return next(
        (
            f"{one.type} is {one.status}: {one.reason}"
            for one in conditions
            if one.type in {"AbleToScale", "ScalingActive"} and one.status != "True"
        ),
        "",
    )
