"""Which pods a scoped ResourceQuota counts (kube-apiserver, quota/v1/evaluator/core `podMatchesScopeFunc`)."""

from collections.abc import Iterable

from autoscaler.model.cluster import Quota
from autoscaler.model.selectors import meets
from autoscaler.model.shapes import PodShape, Requirement

_QOS_RESOURCES = ("cpu", "memory")
"""Only these decide the QoS class: a pod that asks for boards alone is BestEffort."""


def why_not_counted(quota: Quota, shapes: Iterable[PodShape]) -> str:
    """The scope by which a quota counts no pod of any of these shapes, in words; empty where it may count one."""
    wanted = list(shapes)
    for scope in quota.scopes:
        if wanted and not any(_in_scope(scope, shape) for shape in wanted):
            values = f" {scope.operator} {','.join(scope.values)}" if scope.values else ""
            return f"quota {quota.name} is for {scope.key}{values}"
    return ""


def _in_scope(scope: Requirement, shape: PodShape) -> bool:
    """Whether a pod of the shape is in a scope; one that is not known may be."""
    match scope.key:
        case "Terminating":
            return shape.deadline
        case "NotTerminating":
            return not shape.deadline
        case "BestEffort":
            return is_best_effort(shape)
        case "NotBestEffort":
            return not is_best_effort(shape)
        case "CrossNamespacePodAffinity":
            return shape.cross_namespace
        case "PriorityClass":
            name = shape.priority_class
            return (
                meets({"PriorityClass": name} if name else {}, "PriorityClass", scope.operator, scope.values)
                is not False
            )
        case _:
            return True


def is_best_effort(shape: PodShape) -> bool:
    """Whether no container states CPU or memory (core/v1 `ComputePodQOS`)."""
    return not any(
        amounts.get(name, 0) > 0
        for container in shape.containers
        for amounts in (container.requests, container.limits)
        for name in _QOS_RESOURCES
    )
