"""Pod specifications as shapes, shared by content.

Thousands of pods of one template cost one shape: the shape-relevant part of a specification is encoded, and equal
bytes are the same object. Two levels, since environment and arguments differ between pods that are otherwise equal.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, Final, TypeAlias

import msgspec

from autoscaler.kube import wire
from autoscaler.model.policy import Resources
from autoscaler.model.resources import Vector
from autoscaler.model.selectors import LabelRequirement, LabelSelector
from autoscaler.model.shapes import (
    ContainerRole,
    ContainerShape,
    PodShape,
    Repulsion,
    Requirement,
    Toleration,
    scheduler_demand,
)
from autoscaler.observe.parallelism import parallelism_hints
from autoscaler.observe.quantities import AcceleratorNames, vector_of

DEVICE_CLASS_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""An extended resource of this name asks for devices of the class that follows (servers from 1.34)."""
_REMEMBERED: Final = 8192
"""Specifications recognised without being read again; each costs some 100 bytes."""

Places: TypeAlias = tuple[tuple[Requirement, ...], ...]
"""Alternatives (any of) of requirements (all of) on a node."""

_encoder = msgspec.msgpack.Encoder(order="deterministic")
_key_encoder = msgspec.msgpack.Encoder()
"""For look-ups: maps come sorted from the API server, and another order only costs one more look at the content."""


class ShapeTable:
    """Gives out one object for each distinct shape and each distinct plain demand.

    `templates` says that the specifications are of pods to come: what the server or the scheduler fills in is missing.
    """

    def __init__(self, resources: Resources, *, templates: bool = False) -> None:
        self._templates = templates
        self._accelerators = AcceleratorNames(resources)
        self._by_spec: dict[bytes, PodShape] = {}
        self._by_content: dict[bytes, PodShape] = {}
        self._demands: dict[bytes, Vector | None] = {}
        self._repels: dict[bytes, tuple[Repulsion, ...]] = {}

    def plain_demand(self, spec: wire.PodSpec) -> Vector | None:
        """What a pod without accelerators takes on its node; None where any container asks for an accelerator by its name.

        A device class asked for by name counts as one until it is known; claims do not. Not to be changed: equal pods
        share it.
        """
        key = _resources_key(spec)
        if key in self._demands:
            return self._demands[key]
        demand = None
        if not self._wants_accelerators(spec):
            demand = scheduler_demand(_containers(spec, []), vector_of(spec.overhead, []))
        if len(self._demands) >= _REMEMBERED:
            self._demands.clear()
        self._demands[key] = demand
        return demand

    def repels(self, spec: wire.PodSpec) -> tuple[Repulsion, ...]:
        """The pod's required anti-affinity terms; equal ones are one object."""
        found = repulsions(spec)
        if not found:
            return ()
        if len(self._repels) >= _REMEMBERED:
            self._repels.clear()
        return self._repels.setdefault(_encoder.encode(found), found)

    def _wants_accelerators(self, spec: wire.PodSpec) -> bool:
        asked = self._accelerators.asked
        needs = (
            container.resources
            for containers in (spec.containers, spec.init_containers)
            for container in containers or ()
        )
        amounts = (each for need in needs if need is not None for each in (need.limits, need.requests))
        return any(asked(each) or _names_a_class(each) for each in amounts)

    def shape(self, spec: wire.PodSpec) -> PodShape:
        """The shape of a specification; equal content gives the same object. Faults are in the shape."""
        key = sha256(_key_encoder.encode(_relevant(spec))).digest()
        shape = self._by_spec.get(key)
        if shape is None:
            built = shape_of(spec, template=self._templates)
            shape = self._by_content.setdefault(content_key(built), built)
            if len(self._by_spec) >= _REMEMBERED:
                self._by_spec.clear()
            self._by_spec[key] = shape
        return shape

    def retain(self, used: Iterable[PodShape]) -> None:
        """Forget shapes that are no longer used; called after a relist."""
        self._by_content = {content_key(shape): shape for shape in {id(s): s for s in used}.values()}
        kept = {id(shape) for shape in self._by_content.values()}
        self._by_spec = {key: shape for key, shape in self._by_spec.items() if id(shape) in kept}


def content_of(terms: tuple[Repulsion, ...]) -> bytes:
    """Equal for equal terms, whatever the order of their maps."""
    return _encoder.encode(terms)


def content_key(shape: PodShape) -> bytes:
    """Equal for equal shapes, whatever the order of their maps."""
    return _encoder.encode(shape)


def shape_of(spec: wire.PodSpec, *, template: bool = False) -> PodShape:
    """What sizing and placement read of a specification."""
    faults: list[str] = []
    containers = _containers(spec, faults)
    return PodShape(
        containers=containers,
        demand=scheduler_demand(containers, vector_of(spec.overhead, faults, where="overhead: ")),
        node_selector=dict(sorted((spec.node_selector or {}).items())),
        node_terms=_node_terms(spec),
        repels=repulsions(spec),
        tolerations=tuple(
            Toleration(key=t.key, operator=t.operator or "Equal", value=t.value, effect=t.effect)
            for t in spec.tolerations or ()
        ),
        scheduler=spec.scheduler_name or "default-scheduler",
        priority=spec.priority or 0,
        priority_class=spec.priority_class_name,
        preemption_policy=spec.preemption_policy or "PreemptLowerPriority",
        restart_policy=spec.restart_policy or "Always",
        unmodelled=_unmodelled(spec, template=template),
        volume_claims=_claims_volumes(spec),
        resource_claims=claims_devices(spec),
        deadline=spec.active_deadline_seconds is not None,
        cross_namespace=_crosses_namespaces(spec.affinity),
        faults=tuple(faults),
    )


def _resources_key(spec: wire.PodSpec) -> bytes:
    """Equal for what asks for equal amounts. Most pods have one container: it alone is encoded, and no list is like it."""
    containers, init = spec.containers or (), spec.init_containers
    if len(containers) == 1 and not init and not spec.overhead:
        return _key_encoder.encode(containers[0].resources)
    before = [(c.resources, c.restart_policy) for c in init] if init else None
    return _key_encoder.encode(([c.resources for c in containers], before, spec.overhead))


def _relevant(spec: wire.PodSpec) -> tuple[Any, ...]:
    """All that `shape_of` reads; volumes only by whether they claim, since their names differ from pod to pod."""
    return (
        spec.containers,
        spec.init_containers,
        spec.overhead,
        spec.node_selector,
        spec.affinity,
        spec.tolerations,
        spec.topology_spread_constraints,
        spec.scheduling_gates,
        spec.scheduler_name,
        spec.priority,
        spec.priority_class_name,
        spec.preemption_policy,
        spec.restart_policy,
        spec.active_deadline_seconds is not None,
        _claims_volumes(spec),
        claims_devices(spec),
        spec.host_network,
        bool(spec.node_name),
        spec.runtime_class_name,
    )


def _containers(spec: wire.PodSpec, faults: list[str]) -> tuple[ContainerShape, ...]:
    rows = [_container(c, "main", faults) for c in spec.containers or ()]
    for container in spec.init_containers or ():
        role: ContainerRole = "sidecar" if container.restart_policy == "Always" else "init"
        rows.append(_container(container, role, faults))
    return tuple(rows)


def _container(container: wire.Container, role: ContainerRole, faults: list[str]) -> ContainerShape:
    needs = container.resources or wire.ResourceRequirements()
    return ContainerShape(
        name=container.name,
        role=role,
        image=container.image,
        requests=vector_of(needs.requests, faults, where=f"{container.name}: requests "),
        limits=vector_of(needs.limits, faults, where=f"{container.name}: limits "),
        parallelism=_hints(container, faults),
        ports=tuple(port.container_port for port in container.ports or ()),
        tty=container.tty,
    )


def _hints(container: wire.Container, faults: list[str]) -> tuple[str, ...]:
    try:
        return parallelism_hints(container)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        faults.append(f"{container.name}: env: {error}")
        return ()


def _node_terms(spec: wire.PodSpec) -> tuple[tuple[Requirement, ...], ...]:
    return tuple(map(node_requirements, _required_terms(spec)))


def node_requirements(term: wire.NodeSelectorTerm) -> tuple[Requirement, ...]:
    """The requirements of one term, on labels and on the node's name; none match no node."""
    return tuple(
        Requirement(key=r.key, operator=r.operator, values=tuple(r.values or ()), of_name=of_name)
        for found, of_name in ((term.match_expressions, False), (term.match_fields, True))
        for r in found or ()
    )


def repulsions(spec: wire.PodSpec) -> tuple[Repulsion, ...]:
    """The required anti-affinity terms; `matchLabelKeys` are in the selector already, written there at admission."""
    affinity = spec.affinity.pod_anti_affinity if spec.affinity else None
    return tuple(
        Repulsion(
            topology_key=term.topology_key,
            selector=None if term.label_selector is None else label_selector(term.label_selector),
            namespaces=None if term.namespace_selector is not None else tuple(term.namespaces or ()),
        )
        for term in (affinity.required or () if affinity else ())
    )


def label_selector(selector: wire.LabelSelector) -> LabelSelector:
    """A selector as the model has it."""
    return LabelSelector(
        match_labels=dict(sorted((selector.match_labels or {}).items())),
        expressions=tuple(
            LabelRequirement(e.key, e.operator, tuple(e.values or ()))
            for e in selector.match_expressions or ()
        ),
    )


def _required_terms(spec: wire.PodSpec) -> Iterable[wire.NodeSelectorTerm]:
    affinity = spec.affinity.node_affinity if spec.affinity else None
    return (affinity.required.node_selector_terms or ()) if affinity and affinity.required else ()


def _unmodelled(spec: wire.PodSpec, *, template: bool) -> tuple[str, ...]:
    """Placement rules that this build cannot evaluate, by their field names.

    A live pod has a node by the scheduler's choice and its runtime class' node selector by admission; in a template the one
    is a rule and the other is still to come from an object that is not read.
    """
    affinity = spec.affinity
    rules = {
        "hostNetwork": spec.host_network,
        "hostPort": any(
            port.host_port
            for containers in (spec.containers, spec.init_containers)
            for container in containers or ()
            for port in container.ports or ()
        ),
        "nodeName": template and bool(spec.node_name),
        "podAffinity": bool(affinity and affinity.pod_affinity and affinity.pod_affinity.required),
        "podAntiAffinity": bool(
            affinity and affinity.pod_anti_affinity and affinity.pod_anti_affinity.required
        ),
        "runtimeClassName": template and bool(spec.runtime_class_name),
        "schedulingGates": bool(spec.scheduling_gates),
        "topologySpreadConstraints": any(
            rule.when_unsatisfiable == "DoNotSchedule" for rule in spec.topology_spread_constraints or ()
        ),
    }
    return tuple(name for name, present in rules.items() if present)


def _crosses_namespaces(affinity: wire.Affinity | None) -> bool:
    """As kube-apiserver's quota counts it: any term that names namespaces or has a selector of them, if only an empty one."""
    parts = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ()
    terms = (
        term
        for part in parts
        if part is not None
        for term in (*(part.required or ()), *(soft.pod_affinity_term for soft in part.preferred or ()))
    )
    return any(term.namespaces or term.namespace_selector is not None for term in terms)


def _claims_volumes(spec: wire.PodSpec) -> bool:
    return any(v.persistent_volume_claim is not None or v.ephemeral is not None for v in spec.volumes or ())


def _names_a_class(amounts: Mapping[str, str] | None) -> bool:
    return amounts is not None and any(name.startswith(DEVICE_CLASS_PREFIX) for name in amounts)


def claims_devices(spec: wire.PodSpec) -> bool:
    """Whether a specification lists resource claims."""
    return bool(spec.resource_claims) or any(
        container.resources is not None and bool(container.resources.claims)
        for containers in (spec.containers, spec.init_containers)
        for container in containers or ()
    )
