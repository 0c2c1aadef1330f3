"""A plan: what would be done, what was refused and why, and one explained row for each workload."""

from typing import Final, Literal

import msgspec

from autoscaler.model.breaker import FleetHealth
from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.quality import Explanation, Quality
from autoscaler.model.reasons import Reason

Method = Literal["make-room", "right-size", "scale-in", "idle", "deactivate"]
Verdict = Literal["busy", "under-used", "idle", "saturated", "unknown"]
Role = Literal["training", "serving", "interactive", "unstated"]
KUEUE_GROUP: Final = "kueue.x-k8s.io"
Lever = Literal["template", "scale", "bounds", "evict", "deactivate"]
ThroughKind = Literal["Workload", "HorizontalPodAutoscaler"]
_THROUGH: Final[dict[ThroughKind, str]] = {"Workload": KUEUE_GROUP, "HorizontalPodAutoscaler": "autoscaling"}


class PodRef(msgspec.Struct, frozen=True, order=True, gc=False):
    """One pod: its name may be used again, its uid is not."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Seat(msgspec.Struct, frozen=True, gc=False):
    """The place that evictions free: the waiting pod it is for, and the node.

    `more` is how many evictions the seat still needs after this one.
    """

    pod: PodRef
    node: str
    priority: int = 0
    more: int = 0


class ThroughRef(msgspec.Struct, frozen=True, order=True, gc=False):
    """The object of another controller, in the same namespace, by which a workload is changed.

    A Workload, by which Kueue has admitted it, or the HorizontalPodAutoscaler that holds its replicas.
    """

    name: str
    uid: str
    kind: ThroughKind = "Workload"

    @property
    def group(self) -> str:
        """Its API group."""
        return _THROUGH[self.kind]

    @property
    def field(self) -> str:
        """The field of it that is changed, in words."""
        what = "active" if self.kind == "Workload" else "minReplicas"
        return f"{what} of {self.kind} {self.name}"


class Action(msgspec.Struct, frozen=True):
    """One lawful change, as data.

    `before` and `after` are boards per pod (template), replicas (scale), the least replicas that an autoscaler keeps
    (bounds), the boards that a pod holds and 0 (evict), or 1 for active and 0 for not (deactivate).
    `id` is stable: the same change of the same object has the same id. `held_by` is empty only for a change that
    the mode lets through. `preconditions` are what must still be true when it is sent. `target` and `uid` are of the
    workload; an eviction also names its `pod` and the `seat` it frees, and actions that share a seat are carried out
    in the plan's order. `leaving` are the pods that a smaller Deployment should lose. `ready_within_ms` is the time
    that new pods are given. What another controller holds is changed `through` an object of it, whose version
    `resource_version` then is; `pods` is how many a release through Kueue ends.
    """

    id: str
    method: Method
    reason: Reason
    lever: Lever
    target: WorkloadRef
    uid: str
    resource_version: str
    resource: str
    container: str
    before: int
    after: int
    saved_milli_boards: int
    because: str
    preconditions: tuple[str, ...] = ()
    held_by: tuple[Reason, ...] = ()
    pod: PodRef | None = None
    seat: Seat | None = None
    leaving: tuple[PodRef, ...] = ()
    ready_within_ms: int = 0
    through: ThroughRef | None = None
    pods: int = 0

    @property
    def written(self) -> tuple[WorkloadRef, str]:
        """The object that is changed, and its uid: the target, or the one of another controller that stands for it."""
        return written_object(self.target, self.uid, self.through)


def written_object(target: WorkloadRef, uid: str, through: ThroughRef | None) -> tuple[WorkloadRef, str]:
    """The object that an act on a workload changes, and its uid."""
    if through is None:
        return target, uid
    return WorkloadRef(through.group, through.kind, target.namespace, through.name), through.uid


class Refusal(msgspec.Struct, frozen=True):
    """What was considered and which guard said no, on what evidence, and what would change the answer."""

    target: WorkloadRef
    method: Method | None
    reason: Reason
    guard: str
    evidence: str
    remedy: str = ""
    before: int | None = None
    after: int | None = None


class Need(msgspec.Struct, frozen=True):
    """What one unit requires, in milli-boards; thin history widens the bounds.

    `activity` and `memory` are the two floors before margin and confidence; `active_peak` is the most boards
    that were ever active at once; `confidence` is history in confidence units.
    """

    lower: int
    target: int
    upper: int
    activity: int
    memory: int
    active_peak: int
    confidence: float


class Check(msgspec.Struct, frozen=True, gc=False):
    """One rule with its numbers, for the explanation."""

    rule: str
    passed: bool
    detail: str


class ExplainRow(msgspec.Struct, frozen=True):
    """Everything a view shows of one workload; every table, page and report is made of these rows.

    `explanation` is filled in where one workload is asked for, never in a plan.
    """

    workload: WorkloadRef
    resource: str
    units: int
    held: int
    verdict: Verdict
    reason: Reason
    detail: str
    role: Role
    role_cause: str
    use_ratio: float | None = None
    coverage: float | None = None
    need: Need | None = None
    signal: str = ""
    queries: tuple[str, ...] = ()
    action: Action | None = None
    refusals: tuple[Refusal, ...] = ()
    checks: tuple[Check, ...] = ()
    remedy: str = ""
    quality: Quality = Quality()
    explanation: Explanation | None = None


class Fleet(msgspec.Struct, frozen=True):
    """The whole cluster in numbers: boards are whole devices of sizeable resources."""

    boards: int
    held: int
    needed_milli: int
    reclaimable_milli: int
    units: int
    measured: int
    coverage: float
    workloads: int
    faults: tuple[str, ...] = ()
    health: FleetHealth = FleetHealth()


class Plan(msgspec.Struct, frozen=True):
    """The result of one cycle; ordered, and byte for byte the same for the same snapshot and policy."""

    taken_ms: int
    mode: str
    fleet: Fleet
    actions: tuple[Action, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    rows: tuple[ExplainRow, ...] = ()

    def refusals_by_reason(self) -> dict[str, int]:
        """Workloads left alone, counted by the reason of their row."""
        counts: dict[str, int] = {}
        for row in self.rows:
            if row.action is None:
                counts[row.reason.value] = counts.get(row.reason.value, 0) + 1
        return dict(sorted(counts.items()))


def encode_plan(plan: Plan) -> bytes:
    """Deterministic JSON."""
    return msgspec.json.encode(plan, order="deterministic")
