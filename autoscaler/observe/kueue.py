"""Kueue's objects as rows of a snapshot. What cannot be read is named, never guessed."""

from collections.abc import Iterable
from typing import Final

from autoscaler.kube import wire
from autoscaler.model.kueue import (
    ClusterQueueRow,
    CohortRow,
    FlavorQuota,
    FlavorUse,
    KueueWorkload,
    LocalQueueRow,
)
from autoscaler.model.resources import Vector, add, maximum, total
from autoscaler.observe.marks import time_ms
from autoscaler.observe.quantities import vector_of

_WORDS: Final = 200
_NO_STOP: Final = frozenset({"", "None"})


def workload_row(item: wire.KueueWorkload) -> KueueWorkload:
    """A Workload; an amount that cannot be read counts as nothing asked for, Kueue itself would not have taken it."""
    meta, spec, status = item.metadata, item.spec, item.status
    conditions = {one.type: one for one in status.conditions or ()}
    reserved, evicted = conditions.get("QuotaReserved"), conditions.get("Evicted")
    owners = meta.owner_references or ()
    admission = status.admission or wire.Admission()
    return KueueWorkload(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
        controller=next((ref.uid for ref in owners if ref.controller), ""),
        owners=tuple(sorted({ref.uid for ref in owners})),
        queue=spec.queue_name,
        active=spec.active is not False,
        reserved=_holds(reserved),
        reserved_ms=time_ms(reserved.last_transition_time) if reserved and _holds(reserved) else -1,
        admitted=_holds(conditions.get("Admitted")),
        finished=_holds(conditions.get("Finished")),
        evicted=evicted.reason if evicted and _holds(evicted) else "",
        cluster_queue=admission.cluster_queue,
        asks=_asks(spec.pod_sets or ()),
        uses=_reserved(admission.pod_set_assignments or ()),
        waits_because=reserved.message[:_WORDS] if reserved and not _holds(reserved) else "",
    )


def cluster_queue_row(item: wire.ClusterQueue) -> ClusterQueueRow:
    """A ClusterQueue."""
    spec, faults = item.spec, list[str]()
    uses = (
        FlavorUse(flavor.name, name, amount)
        for flavor in item.status.flavors_reservation or ()
        for name, amount in vector_of({r.name: r.total for r in flavor.resources or ()}, faults).items()
    )
    return ClusterQueueRow(
        name=item.metadata.name,
        cohort=spec.cohort_name,
        stop=_stop(spec.stop_policy),
        quotas=_quotas(spec.resource_groups or (), faults),
        uses=tuple(sorted(uses)),
        unreadable=tuple(faults),
    )


def local_queue_row(item: wire.LocalQueue) -> LocalQueueRow:
    """A LocalQueue."""
    meta, spec = item.metadata, item.spec
    return LocalQueueRow(meta.namespace, meta.name, spec.cluster_queue, _stop(spec.stop_policy))


def cohort_row(item: wire.Cohort) -> CohortRow:
    """A Cohort."""
    faults = list[str]()
    quotas = _quotas(item.spec.resource_groups or (), faults)
    return CohortRow(item.metadata.name, item.spec.parent_name, quotas, tuple(faults))


def _holds(condition: wire.Condition | None) -> bool:
    return condition is not None and condition.status == "True"


def _stop(policy: str | None) -> str:
    return "" if policy is None or policy in _NO_STOP else policy


def _asks(pod_sets: Iterable[wire.PodSet]) -> Vector:
    """What all pods ask for together: a limit without a request is one, as Kueue has it (`pkg/workload/resources.go`)."""
    asked: Vector = {}
    for pod_set in pod_sets:
        spec = pod_set.template.spec if pod_set.template else None
        containers = spec.containers if spec else None
        one = total(_requests(containers or ()))
        for first in _requests((spec.init_containers if spec else None) or ()):
            one = maximum(one, first)
        asked = add(asked, {name: amount * pod_set.count for name, amount in one.items()})
    return asked


def _requests(containers: Iterable[wire.QueuedContainer]) -> Iterable[Vector]:
    for one in containers:
        if one.resources is not None:
            yield vector_of({**(one.resources.limits or {}), **(one.resources.requests or {})}, [])


def _reserved(assignments: Iterable[wire.PodSetAssignment]) -> tuple[FlavorUse, ...]:
    amounts: dict[tuple[str, str], int] = {}
    for one in assignments:
        flavors = one.flavors or {}
        for name, amount in vector_of(one.resource_usage, []).items():
            key = (flavors.get(name, ""), name)
            amounts[key] = amounts.get(key, 0) + amount
    return tuple(FlavorUse(flavor, name, amounts[flavor, name]) for flavor, name in sorted(amounts))


def _quotas(groups: Iterable[wire.ResourceGroup], faults: list[str]) -> tuple[FlavorQuota, ...]:
    """Every quota that can be read whole: one with an unreadable part is named and left out."""
    quotas = []
    for group in groups:
        for flavor in group.flavors or ():
            for stated in flavor.resources or ():
                quota = _quota(flavor.name, stated, faults)
                if quota is not None:
                    quotas.append(quota)
    return tuple(sorted(quotas, key=lambda quota: (quota.flavor, quota.resource)))


def _quota(flavor: str, stated: wire.QueueResource, faults: list[str]) -> FlavorQuota | None:
    unread: list[str] = []
    amounts = [
        None if text is None else vector_of({stated.name: text}, unread, where=f"{flavor} ").get(stated.name)
        for text in (stated.nominal_quota, stated.borrowing_limit, stated.lending_limit)
    ]
    faults.extend(unread)
    if unread:
        return None
    nominal, borrowing, lending = amounts
    return FlavorQuota(flavor, stated.name, nominal or 0, borrowing, lending)
