"""Look-ups over a snapshot, built once for each cycle, and the case of one workload."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar

from msgspec.structs import astuple

from autoscaler.decide.node_marks import node_autoscaler_of
from autoscaler.decide.queues import Queues
from autoscaler.decide.repulsion import Repulsions
from autoscaler.decide.statements import Carrier, Statements, read_statements
from autoscaler.model.cluster import (
    TERMINAL,
    Autoscaler,
    Budget,
    LimitRangeRow,
    NamespaceRow,
    NodeRow,
    PastAct,
    PodRow,
    Quota,
    Workload,
    WorkloadRef,
)
from autoscaler.model.evidence import POD_SCOPE, ServingUse, UnownedDevice
from autoscaler.model.freeze import open_until_ms
from autoscaler.model.history import WorkloadHistory
from autoscaler.model.policy import Policy, Resources
from autoscaler.model.policy_sections import FreezeWindow
from autoscaler.model.resources import Vector, add, subtract
from autoscaler.model.shapes import ContainerShape, PodShape
from autoscaler.model.snapshot import Snapshot

POD_SEATS = "pods"


def is_board(resource: str, resources: Resources) -> bool:
    """Whether one unit of the resource is a whole board."""
    return resource in resources.boards


def is_accelerator(resource: str, resources: Resources) -> bool:
    """Whether the resource is a board, a slice, a share or a vendor amount."""
    return resource in resources.boards or resource.startswith(resources.slices)


def accelerators(vector: Mapping[str, int], resources: Resources) -> Vector:
    """The accelerator components of a vector that are over zero, by name."""
    return {n: a for n, a in sorted(vector.items()) if a > 0 and is_accelerator(n, resources)}


@dataclass(frozen=True, slots=True)
class Unit:
    """A replica: its row, its index in the snapshot and its shape."""

    index: int
    pod: PodRow
    shape: PodShape


@dataclass(frozen=True)
class Case:
    """One workload with its live units, as the methods and guards see it.

    `held` is boards (or units of `resource`) per live unit, the largest where units differ; `container` is the
    template's container that asks for the resource, None where there is not exactly one; `stated` is what its
    owners say of it.
    """

    workload: Workload
    template: PodShape | None
    units: tuple[Unit, ...]
    resource: str
    resources: tuple[str, ...]
    held: int
    container: ContainerShape | None
    containers: int
    stated: Statements

    @property
    def total_held(self) -> int:
        """Units of the resource that all live pods hold together; one that has no node yet holds none."""
        return sum(unit.shape.demand.get(self.resource, 0) for unit in self.units if unit.pod.node)

    @property
    def shapes(self) -> tuple[PodShape, ...]:
        """The template's shape, where there is one, and those of the live units."""
        return (*((self.template,) if self.template else ()), *(unit.shape for unit in self.units))

    @property
    def distinct_shapes(self) -> tuple[PodShape, ...]:
        """The same, each once: thousands of units share a few."""
        return tuple({id(shape): shape for shape in self.shapes}.values())

    @property
    def parallelism(self) -> tuple[str, ...]:
        """Hints in any container, live or of the template, that a count is built into the application."""
        containers = (container for shape in self.distinct_shapes for container in shape.containers)
        return tuple(sorted({hint for container in containers for hint in container.parallelism}))

    @property
    def faults(self) -> tuple[str, ...]:
        """What could not be read of the template or a live unit."""
        return tuple(fault for shape in self.distinct_shapes for fault in shape.faults)

    @property
    def shape(self) -> PodShape | None:
        """The template's shape, or a live unit's where there is no template."""
        return self.template or (self.units[0].shape if self.units else None)


@dataclass(frozen=True)
class World:
    """A snapshot with the indices that judging needs; nothing in it changes."""

    snapshot: Snapshot
    policy: Policy
    now_ms: int

    @cached_property
    def units_of(self) -> dict[int, tuple[Unit, ...]]:
        """Live units by workload index, in the order of their names; finished pods hold nothing."""
        groups: dict[int, list[Unit]] = {}
        for index, pod in enumerate(self.snapshot.pods):
            if pod.phase not in TERMINAL:
                unit = Unit(index, pod, self.snapshot.shapes[pod.shape])
                groups.setdefault(pod.workload, []).append(unit)
        return {
            workload: tuple(sorted(units, key=lambda unit: (unit.pod.name, unit.pod.uid)))
            for workload, units in groups.items()
        }

    @cached_property
    def holder_rows(self) -> dict[int, tuple[int, ...]]:
        """Rows of the holder table by pod index, in the order of their devices."""
        table = self.snapshot.holders
        rows: dict[int, list[int]] = {}
        for row, pod in enumerate(table.pod.tolist()):
            rows.setdefault(pod, []).append(row)
        return {
            pod: tuple(sorted(found, key=lambda row: (table.device[row], table.container[row])))
            for pod, found in rows.items()
        }

    @cached_property
    def histories(self) -> dict[WorkloadRef, tuple[WorkloadHistory, ...]]:
        """What is remembered of each workload, by container."""
        groups: dict[WorkloadRef, list[WorkloadHistory]] = {}
        for row in self.snapshot.histories:
            groups.setdefault(row.ref, []).append(row)
        return {ref: tuple(rows) for ref, rows in groups.items()}

    @cached_property
    def serving(self) -> dict[int, tuple[ServingUse, ...]]:
        """What inference servers say of their demand, by pod index."""
        groups: dict[int, list[ServingUse]] = {}
        for use in self.snapshot.telemetry.serving:
            groups.setdefault(use.pod, []).append(use)
        return {pod: tuple(found) for pod, found in groups.items()}

    @cached_property
    def crowded(self) -> frozenset[tuple[str, str]]:
        """Devices, by node and name, that rows of several live pods name; shares of a board are meant to be several."""
        pods, holders = self.snapshot.pods, self.snapshot.holders
        owner: dict[tuple[str, str], int] = {}
        shared: set[tuple[str, str]] = set()
        for device, index, flags, shares in zip(
            holders.device,
            holders.pod.tolist(),
            holders.flags.tolist(),
            holders.shares.tolist(),
            strict=True,
        ):
            if not flags & POD_SCOPE and shares == 1 and pods[index].phase not in TERMINAL:
                key = (pods[index].node, device)
                if owner.setdefault(key, index) != index:
                    shared.add(key)
        return frozenset(shared)

    @cached_property
    def unowned(self) -> dict[str, tuple[UnownedDevice, ...]]:
        """Devices without owner by node, in the order of their names; under "" those whose node is not known."""
        groups: dict[str, list[UnownedDevice]] = {}
        for device in sorted(self.snapshot.telemetry.unowned, key=lambda d: (d.device, d.peak)):
            groups.setdefault(device.node, []).append(device)
        return {node: tuple(found) for node, found in groups.items()}

    @cached_property
    def _seen_boards(self) -> dict[str, int]:
        """How many boards have samples, by node."""
        holders, seen = self.snapshot.holders, dict[str, set[str]]()
        for device, index in zip(holders.device, holders.pod.tolist(), strict=True):
            seen.setdefault(self.snapshot.pods[index].node, set()).add(re.split("[/#]", device)[0])
        for unowned in self.snapshot.telemetry.unowned:
            seen.setdefault(unowned.node, set()).add(re.split("[/#]", unowned.device)[0])
        return {node: len(boards) for node, boards in seen.items()}

    def hides_boards(self, name: str) -> bool:
        """Whether a node offers more boards than have samples that say they are there."""
        node = self.nodes.get(name)
        offered = sum(node.allocatable.get(n, 0) for n in self.policy.resources.boards) if node else 0
        return node is None or offered > self._seen_boards.get(name, 0)

    @cached_property
    def namespaces(self) -> dict[str, NamespaceRow]:
        """Namespaces by name."""
        return {row.name: row for row in self.snapshot.namespaces}

    @cached_property
    def quotas(self) -> dict[str, tuple[Quota, ...]]:
        """Quotas by namespace."""
        return _by_namespace(self.snapshot.quotas)

    @cached_property
    def limit_ranges(self) -> dict[str, tuple[LimitRangeRow, ...]]:
        """Limit ranges by namespace."""
        return _by_namespace(self.snapshot.limit_ranges)

    @cached_property
    def budgets(self) -> dict[str, tuple[Budget, ...]]:
        """Disruption budgets by namespace."""
        return _by_namespace(self.snapshot.budgets)

    @cached_property
    def autoscalers(self) -> dict[tuple[str, str, str], Autoscaler]:
        """The first horizontal autoscaler of each target, by its (namespace, kind, name)."""
        return {target: rows[0] for target, rows in self.autoscalers_of.items()}

    @cached_property
    def autoscalers_of(self) -> dict[tuple[str, str, str], tuple[Autoscaler, ...]]:
        """All horizontal autoscalers of each target, by its (namespace, kind, name)."""
        found: dict[tuple[str, str, str], list[Autoscaler]] = {}
        for row in sorted(self.snapshot.autoscalers, key=lambda row: row.name):
            found.setdefault((row.namespace, row.target_kind, row.target_name), []).append(row)
        return {target: tuple(rows) for target, rows in found.items()}

    @cached_property
    def _acts(self) -> dict[WorkloadRef, tuple[PastAct, ...]]:
        groups: dict[WorkloadRef, list[PastAct]] = {}
        for act in sorted(self.snapshot.acts, key=lambda act: (act.at_ms, astuple(act))):
            groups.setdefault(act.ref, []).append(act)
        return {ref: tuple(acts) for ref, acts in groups.items()}

    def acts_of(self, ref: WorkloadRef) -> tuple[PastAct, ...]:
        """What was done to a workload before, the latest last."""
        return self._acts.get(ref, ())

    @cached_property
    def frozen(self) -> tuple[tuple[FreezeWindow, int], ...]:
        """Freeze windows that are open, with when they end."""
        windows = ((window, open_until_ms(window, self.now_ms)) for window in self.policy.freeze.windows)
        return tuple((window, until_ms) for window, until_ms in windows if until_ms is not None)

    @cached_property
    def nodes(self) -> dict[str, NodeRow]:
        """Nodes by name."""
        return {row.name: row for row in self.snapshot.nodes}

    @cached_property
    def queues(self) -> Queues:
        """Kueue's queues and who stands in them."""
        return Queues(self.snapshot)

    @cached_property
    def repulsions(self) -> Repulsions:
        """Who is kept out of which nodes by pods that live."""
        return Repulsions(self.snapshot, self.nodes)

    @cached_property
    def node_autoscaler(self) -> str:
        """Who buys a node for a pod that waits; empty where nobody does, as far as that is known."""
        stated = self.policy.guards.node_autoscaler
        if stated == "absent":
            return ""
        found = node_autoscaler_of(self.snapshot.nodes, self.snapshot.node_claims)
        return found or ("the node autoscaler" if stated == "present" else "")

    @cached_property
    def free(self) -> dict[str, Vector]:
        """What every node has left for the scheduler, pod seats included; components may be below zero."""
        left = {
            node.name: subtract(node.allocatable, add(node.taken, {POD_SEATS: node.taken_pods}))
            for node in self.snapshot.nodes
        }
        for pod in self.snapshot.pods:
            if pod.node in left and pod.phase not in TERMINAL:
                demand = self.snapshot.shapes[pod.shape].demand
                left[pod.node] = subtract(left[pod.node], {**demand, POD_SEATS: 1})
        return left

    @cached_property
    def fleet_boards(self) -> int:
        """Whole boards that the nodes offer."""
        boards = self.policy.resources.boards
        return sum(
            amount for node in self.snapshot.nodes for n, amount in node.allocatable.items() if n in boards
        )

    def case(self, index: int) -> Case:
        """The case of the workload at an index."""
        workload = self.snapshot.workloads[index]
        units = self.units_of.get(index, ())
        template = self.snapshot.shapes[workload.template] if workload.template >= 0 else None
        shapes = (*((template,) if template else ()), *(unit.shape for unit in units))
        names = sorted({n for shape in shapes for n in accelerators(shape.demand, self.policy.resources)})
        resource = next((n for n in names if is_board(n, self.policy.resources)), names[0] if names else "")
        held = max((unit.shape.demand.get(resource, 0) for unit in units), default=0)
        asking = [
            c for c in (template.containers if template else ()) if resource in {**c.limits, **c.requests}
        ]
        return Case(
            workload=workload,
            template=template,
            units=units,
            resource=resource,
            resources=tuple(names),
            held=held,
            container=asking[0] if len(asking) == 1 else None,
            containers=len(asking),
            stated=read_statements(self.carriers(workload, units)),
        )

    def carriers(self, workload: Workload, units: tuple[Unit, ...]) -> Iterator[Carrier]:
        """The places where owners may state something, the widest first."""
        namespace = self.namespaces.get(workload.ref.namespace)
        if namespace:
            yield from ((" on the namespace", texts) for texts in (namespace.annotations, namespace.labels))
        yield from (("", texts) for texts in (workload.annotations, workload.labels))
        for unit in units:
            yield from ((" on a pod", texts) for texts in (unit.pod.annotations, unit.pod.labels))


class _Namespaced(Protocol):
    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...


_Row = TypeVar("_Row", bound=_Namespaced)


def _by_namespace(rows: tuple[_Row, ...]) -> dict[str, tuple[_Row, ...]]:
    """The rows of each namespace, in the order of their names."""
    groups: dict[str, list[_Row]] = {}
    for row in sorted(rows, key=lambda row: row.name):
        groups.setdefault(row.namespace, []).append(row)
    return {namespace: tuple(found) for namespace, found in groups.items()}
