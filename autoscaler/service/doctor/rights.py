"""Which rights a mode needs: the same list that the shipped roles grant, less what nothing asks for."""

from collections.abc import Iterator
from typing import Final

from autoscaler.act import control, ledger, shards
from autoscaler.kube.kinds import HORIZONTAL_POD_AUTOSCALER, KINDS, KUEUE_WORKLOAD
from autoscaler.model.policy import Policy
from autoscaler.service.doctor.gathered import Right
from autoscaler.service.settings import Settings
from autoscaler.service.wiring import LEASE

READ: Final = "ClusterRole gpu-autoscaler-read, k8s/base/read.yaml"
OWN: Final = "Role gpu-autoscaler-own, k8s/base/own.yaml"
READ_AGAIN: Final = "ClusterRole gpu-autoscaler-read-again, k8s/components/ledger"
LEDGER: Final = "Role gpu-autoscaler-ledger, k8s/components/ledger"
EVENTS: Final = "ClusterRole gpu-autoscaler-events, k8s/components/events"
RIGHT_SIZE: Final = "ClusterRole gpu-autoscaler-right-size, k8s/components/right-size"
SCALE_IN: Final = "ClusterRole gpu-autoscaler-scale-in, k8s/components/scale-in"
MAKE_ROOM: Final = "ClusterRole gpu-autoscaler-make-room, k8s/components/make-room"
BOUNDS: Final = "ClusterRole gpu-autoscaler-bounds, k8s/components/bounds"
DEACTIVATE: Final = "ClusterRole gpu-autoscaler-deactivate, k8s/components/deactivate"
_KUEUE: Final = (KUEUE_WORKLOAD.group, KUEUE_WORKLOAD.plural)
_SIZED: Final = (("apps", "deployments"), ("apps", "statefulsets"), ("batch", "cronjobs"))
_ACTED_ON: Final = (*_SIZED, ("batch", "jobs"), ("", "pods"))
"""Read once more, one by one, right before an act."""


def rights_needed(policy: Policy, settings: Settings) -> tuple[Right, ...]:
    """Every right that the service asks for under this policy, each once, sorted."""
    found: dict[tuple[str, ...], Right] = {}
    for right in _rights(policy, settings):
        found.setdefault((right.group, right.resource, right.verb, right.namespace, right.name), right)
    return tuple(sorted(found.values()))


def _rights(policy: Policy, settings: Settings) -> Iterator[Right]:
    for kind in KINDS.values():
        for verb in ("list", "watch"):
            yield Right(group=kind.group, resource=kind.plural, verb=verb, kind=kind.name, role=READ)
    if settings.leader_election != "false" or policy.modes.acting:
        yield from _named("coordination.k8s.io", "leases", LEASE, settings.namespace, OWN)
    if settings.events == "true":
        yield Right(group="events.k8s.io", resource="events", verb="create", role=EVENTS)
    if policy.modes.acting:
        yield from _acting(policy, settings.namespace)


def _acting(policy: Policy, namespace: str) -> Iterator[Right]:
    for group, resource in _ACTED_ON:
        yield Right(group=group, resource=resource, verb="get", role=READ_AGAIN)
    for number in range(ledger.SHARDS):
        yield from _named("", "configmaps", f"{shards.NAME}-{number}", namespace, LEDGER)
    yield Right(
        group="", resource="configmaps", verb="get", namespace=namespace, name=control.NAME, role=LEDGER
    )
    applies = policy.modes.applies
    if applies("right-size"):
        for group, resource in _SIZED:
            yield Right(group=group, resource=resource, verb="patch", role=RIGHT_SIZE)
        yield Right(group="", resource="pods/eviction", verb="create", role=RIGHT_SIZE)
    if applies("scale-in") or applies("idle"):
        yield from _of_replicas(policy)
    if applies("deactivate"):
        for verb in ("get", "patch"):
            yield Right(
                group=_KUEUE[0], resource=_KUEUE[1], verb=verb, kind=KUEUE_WORKLOAD.name, role=DEACTIVATE
            )
    if applies("make-room"):
        yield Right(group="", resource="pods/eviction", verb="create", role=MAKE_ROOM)
        yield Right(group="", resource="pods/status", verb="patch", role=MAKE_ROOM)


def _of_replicas(policy: Policy) -> Iterator[Right]:
    for resource in ("deployments", "statefulsets"):
        yield Right(group="apps", resource=resource, verb="patch", role=SCALE_IN)
        yield Right(group="apps", resource=f"{resource}/scale", verb="patch", role=SCALE_IN)
    yield Right(group="", resource="pods", verb="patch", role=SCALE_IN)
    if policy.modes.applies("idle"):
        yield Right(group="batch", resource="jobs", verb="patch", role=SCALE_IN)
    hpa, through = HORIZONTAL_POD_AUTOSCALER, policy.methods.autoscaler_bounds != "never"
    for verb in ("get", "patch") if through else ():
        yield Right(group=hpa.group, resource=hpa.plural, verb=verb, role=BOUNDS)


def _named(group: str, resource: str, name: str, namespace: str, role: str) -> Iterator[Right]:
    """Our own object: no name can be demanded of what is created."""
    yield Right(group=group, resource=resource, verb="create", namespace=namespace, role=role)
    for verb in ("get", "update"):
        yield Right(group=group, resource=resource, verb=verb, namespace=namespace, name=name, role=role)
