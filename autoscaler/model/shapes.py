"""What a pod asks for and where it may run: shared by all pods of one template."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, Literal

import msgspec

from autoscaler.model.resources import Vector, add, maximum
from autoscaler.model.selectors import LabelSelector

ContainerRole = Literal["main", "sidecar", "init"]


class ContainerShape(msgspec.Struct, frozen=True):
    """One container: amounts as the object states them, and hints that its count of devices is built in.

    `parallelism` names the arguments and environment variables that carry a device count or a parallel layout.
    """

    name: str
    role: ContainerRole = "main"
    image: str = ""
    requests: Vector = {}
    limits: Vector = {}
    parallelism: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    tty: bool = False


class Toleration(msgspec.Struct, frozen=True):
    """A toleration as the API states it; an empty key with operator Exists tolerates everything."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class Taint(msgspec.Struct, frozen=True):
    """A node's taint."""

    key: str
    value: str = ""
    effect: str = ""


class Requirement(msgspec.Struct, frozen=True):
    """One node-selector requirement (`In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt`, `Lt`).

    `of_name` says that it is about the node's name (`matchFields`), which has no other field.
    """

    key: str
    operator: str
    values: tuple[str, ...] = ()
    of_name: bool = False


class Repulsion(msgspec.Struct, frozen=True):
    """A required anti-affinity term: while its pod lives, no pod that it selects comes into the pod's domain.

    It reaches into its own namespace where `namespaces` is empty, into all where it is None (a selector of namespaces is
    not evaluated: at worst a seat is not seen).
    """

    topology_key: str
    selector: LabelSelector | None = None
    namespaces: tuple[str, ...] | None = ()

    def bars(self, namespace: str, labels: Mapping[str, str], *, own_namespace: str) -> bool:
        """Whether a pod with these labels is kept out by a pod of `own_namespace` that has the term."""
        within = self.namespaces is None or namespace in (self.namespaces or (own_namespace,))
        return within and self.selector is not None and self.selector.selects(labels)


class PodShape(msgspec.Struct, frozen=True):
    """A pod template's content, as far as sizing and placement read it.

    `demand` is what the scheduler counts. `repels` are its required anti-affinity terms, as they bind others.
    `node_terms` are alternatives (any of) of requirements (all of) from required node affinity.
    `deadline` says that it states activeDeadlineSeconds, `cross_namespace` that a term of pod affinity, required or
    preferred, reaches into other namespaces: quotas can count such pods alone.
    `unmodelled` names placement rules that this build cannot evaluate; `faults` names unreadable fields.
    """

    containers: tuple[ContainerShape, ...]
    demand: Vector = {}
    node_selector: dict[str, str] = {}
    node_terms: tuple[tuple[Requirement, ...], ...] = ()
    repels: tuple[Repulsion, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    scheduler: str = "default-scheduler"
    priority: int = 0
    priority_class: str = ""
    preemption_policy: str = "PreemptLowerPriority"
    restart_policy: str = "Always"
    unmodelled: tuple[str, ...] = ()
    volume_claims: bool = False
    resource_claims: bool = False
    deadline: bool = False
    cross_namespace: bool = False
    faults: tuple[str, ...] = ()


_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def layout_key(name: str) -> str:
    """An argument's or variable's name in one spelling: `--tensor-parallel-size`, `trainer.tensorParallelSize` and the like."""
    return _usual_key(name) if len(name) <= _USUAL else _key(name)


def _key(name: str) -> str:
    return _CAMEL.sub("_", name.lstrip("-+").rpartition(".")[2]).replace("-", "_").lower()


_USUAL: Final = 64
"""Longer names are not remembered: strangers choose them."""
_usual_key = lru_cache(maxsize=4096)(_key)


def scheduler_demand(containers: Iterable[ContainerShape], overhead: Mapping[str, int]) -> Vector:
    """What the scheduler and quota count for a pod: max(init, containers + sidecars) + overhead.

    Follows k8s.io/component-helpers `resource.PodRequests` (KEP-753 for sidecars).
    A limit without a request counts as the request, as API defaulting has it.
    """
    running: Vector = {}
    sidecars: Vector = {}
    peak: Vector = {}
    for container in containers:
        asked = {**container.limits, **container.requests}
        if container.role == "main":
            running = add(running, asked)
        elif container.role == "sidecar":
            sidecars = add(sidecars, asked)
            peak = maximum(peak, sidecars)
        else:
            peak = maximum(peak, add(asked, sidecars))
    return add(maximum(peak, add(running, sidecars)), overhead)
