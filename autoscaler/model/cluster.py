"""Rows of a snapshot: pods, nodes, workloads and the limits that a cluster states."""

from typing import Final, Literal

import msgspec

from autoscaler.model.duration import Instant, Span
from autoscaler.model.resources import Int64, Vector
from autoscaler.model.selectors import LabelSelector
from autoscaler.model.shapes import Repulsion, Requirement, Taint


class WorkloadRef(msgspec.Struct, frozen=True, order=True, gc=False):
    """Identity of a workload for history and policy; `group` is empty for the core API."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


TERMINAL: Final = frozenset({"Succeeded", "Failed"})
"""Phases of pods that hold nothing any more."""


class PodRow(msgspec.Struct, frozen=True, gc=False):
    """A pod that holds or wants accelerators.

    `shape` indexes `Snapshot.shapes`, `workload` indexes `Snapshot.workloads`.
    `annotations` holds only marks that guards read. Times are -1 where the event has not happened.
    `volume_terms` has an entry for each of its volumes that is tied to places: the alternatives (any of) of requirements
    (all of) on a node; no alternative at all where it is not known.
    `nominated_node` is where the scheduler, or we, keep a seat for a waiting pod.
    """

    namespace: str
    name: str
    uid: str
    shape: int
    workload: int
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    node: str = ""
    phase: str = "Pending"
    revision: str = ""
    created_ms: Instant = 0
    started_ms: Instant = -1
    ready_ms: Instant = -1
    ready: bool = False
    deleting: bool = False
    mirror: bool = False
    unschedulable: str = ""
    restarts: int = 0
    nominated_node: str = ""
    volume_terms: tuple[tuple[tuple[Requirement, ...], ...], ...] = ()


class NodeRow(msgspec.Struct, frozen=True, gc=False):
    """A node; `taken` and `taken_pods` are what pods without accelerators use there.

    `conditions` are the types of those that are true, other than Ready; `annotations` holds only marks that are read.
    """

    name: str
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    allocatable: Vector = {}
    ready: bool = True
    unschedulable: bool = False
    deleting: bool = False
    taken: Vector = {}
    taken_pods: int = 0
    annotations: dict[str, str] = {}
    conditions: tuple[str, ...] = ()
    created_ms: Instant = 0


class NodeClaimRow(msgspec.Struct, frozen=True, gc=False):
    """A node that Karpenter has ordered; `node` is empty until it has registered.

    `room` is what it will offer, as far as that is known: what it said itself, else what it was ordered for.
    """

    name: str
    node: str = ""
    labels: dict[str, str] = {}
    requirements: tuple[Requirement, ...] = ()
    taints: tuple[Taint, ...] = ()
    room: Vector = {}
    created_ms: Instant = 0
    deleting: bool = False


class Repeller(msgspec.Struct, frozen=True, gc=False):
    """Pods without accelerators, on these nodes, that keep others out of their domain."""

    namespace: str
    nodes: tuple[str, ...]
    repels: tuple[Repulsion, ...]


class FieldOwner(msgspec.Struct, frozen=True, gc=False):
    """A manager from `managedFields` and which of the fields we might change it holds."""

    manager: str
    replicas: bool = False
    template_resources: bool = False


class Rollout(msgspec.Struct, frozen=True, gc=False):
    """How a workload replaces its pods, and how far it has come."""

    max_surge: str = "25%"
    max_unavailable: str = "25%"
    recreate: bool = False
    on_delete: bool = False
    partition: int = 0
    paused: bool = False
    observed: bool = True
    updated: int = 0
    ready: int = 0
    available: int = 0
    total: int = 0
    progress_deadline_s: int = 600


class Run(msgspec.Struct, frozen=True, order=True, gc=False):
    """One Job that a CronJob made; `took_ms` is -1 until it ended."""

    created_ms: Instant
    state: Literal["running", "succeeded", "failed"]
    took_ms: Span = -1


class Workload(msgspec.Struct, frozen=True, gc=False):
    """The topmost owner of pods that hold or want accelerators.

    `template` indexes `Snapshot.shapes`, -1 where the template is unknown. `replicas` is the stated count.
    `annotations` holds only marks that guards read, `labels` all labels. `runs` are the Jobs of a CronJob that still
    exist, oldest first. Of a Job are `failed_pods`, `succeeded_pods`, `completions` (-1 where it states none, as a work
    queue does) and `indexed`.
    """

    ref: WorkloadRef
    uid: str
    resource_version: str = ""
    template: int = -1
    replicas: Int64 = 1
    created_ms: Instant = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    rollout: Rollout = Rollout()
    field_owners: tuple[FieldOwner, ...] = ()
    deleting: bool = False
    suspended: bool = False
    schedule: str = ""
    completed_runs: int = 0
    backoff_limit: int = 6
    failed_pods: int = 0
    succeeded_pods: int = 0
    completions: int = -1
    indexed: bool = False
    runs: tuple[Run, ...] = ()


class NamespaceRow(msgspec.Struct, frozen=True):
    """A namespace and the marks on it."""

    name: str
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class Quota(msgspec.Struct, frozen=True):
    """A ResourceQuota: `hard` and `used` in our units; `unreadable` names keys whose quantity did not parse.

    `scopes` are all to be met by a pod that it counts; a plain scope is one that `Exists`.
    """

    namespace: str
    name: str
    hard: Vector = {}
    used: Vector = {}
    scopes: tuple[Requirement, ...] = ()
    unreadable: tuple[str, ...] = ()


class Limit(msgspec.Struct, frozen=True):
    """One item of a LimitRange; `kind` is Container, Pod or PersistentVolumeClaim.

    `ratio_milli` is the largest limit per request, in thousandths whatever the resource.
    """

    kind: str
    maximum: Vector = {}
    minimum: Vector = {}
    default: Vector = {}
    default_request: Vector = {}
    ratio_milli: Vector = {}


class LimitRangeRow(msgspec.Struct, frozen=True):
    """A LimitRange."""

    namespace: str
    name: str
    limits: tuple[Limit, ...] = ()
    unreadable: tuple[str, ...] = ()


class Budget(msgspec.Struct, frozen=True):
    """A PodDisruptionBudget; `minimum` and `unavailable` are the stated values, empty where not stated."""

    namespace: str
    name: str
    selector: LabelSelector
    minimum: str = ""
    unavailable: str = ""
    allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    observed: bool = True


class Autoscaler(msgspec.Struct, frozen=True):
    """A HorizontalPodAutoscaler and the workload whose replicas it owns.

    `controller` is what keeps the autoscaler itself, as "Kind name"; `minimum_owners` are the field managers of its
    minimum. `blind` says why it does not scale at present. After `calm_ms` of lower need it goes down, if ever
    (`scales_in`).
    """

    namespace: str
    name: str
    target_kind: str
    target_name: str
    minimum: int = 1
    maximum: int = 1
    uid: str = ""
    resource_version: str = ""
    controller: str = ""
    minimum_owners: tuple[str, ...] = ()
    scales_in: bool = True
    calm_ms: Span = 300_000
    blind: str = ""
    deleting: bool = False

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class PriorityClassRow(msgspec.Struct, frozen=True):
    """A PriorityClass."""

    name: str
    value: int
    preemption_policy: str = "PreemptLowerPriority"
    global_default: bool = False


class PastAct(msgspec.Struct, frozen=True):
    """An act of ours as far as cool-downs, back-offs and budgets need it.

    `method` is the plan's method, empty for what was put back. `reversals` (by others) and `failures` (of
    verification) are the workload's up to now, the same on each of its rows. Before `not_before_ms` the workload is
    left alone, `why` says for what reason. `given_to` is the namespace that an eviction made room for. `pods` is how
    many it ended.
    """

    ref: WorkloadRef
    at_ms: Instant
    boards_milli: Int64 = 0
    verified: bool = True
    method: str = ""
    reversals: int = 0
    failures: int = 0
    not_before_ms: Instant = -1
    why: str = ""
    given_to: str = ""
    pods: Int64 = 0


class Control(msgspec.Struct, frozen=True):
    """What an operator or the ledger says about acting at all; both texts are empty where nothing is in the way.

    `paused` is who paused the service and why. `ledger_fault` is why the ledger cannot be relied on. Before
    `quiet_until_ms` the service has only just begun to lead. `clean_days` are the days in a row in which acts were
    verified and none went wrong.
    """

    paused: str = ""
    ledger_fault: str = ""
    quiet_until_ms: Instant = -1
    clean_days: Int64 = 0


class Memory(msgspec.Struct, frozen=True):
    """What we did and whether we may go on, as far as the next plan needs it."""

    acts: tuple[PastAct, ...] = ()
    control: Control = Control()


NOTHING_DONE: Final = Memory()
"""The memory of a service that changes nothing."""
