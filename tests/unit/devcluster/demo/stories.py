"""Builders for the demonstration: pods, quotas and budgets as the API server tells them, plans and ledgers in a few words."""

from typing import Any

from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.ledger import Entry, Record, State
from autoscaler.model.plan import Action, ExplainRow, Fleet, Lever, Plan, PodRef, Verdict
from autoscaler.model.reasons import Reason
from devcluster.demo.cast import Cast
from devcluster.demo.deeds import Deeds
from devcluster.demo.expectation import Expected
from devcluster.demo.phases import Claims, Sight
from devcluster.demo.wire import (
    Budget,
    BudgetStatus,
    Condition,
    Container,
    Metadata,
    Pod,
    PodSpec,
    PodStatus,
    Quota,
    QuotaStatus,
    Resources,
)
from devcluster.demo.witness import Witness

GPU = "gpuconfig.com/gpu"
CAST = Cast(
    training=("ml", "training"),
    visitors=frozenset({("batch", "helper"), ("batch", "sandbox")}),
    idlers=frozenset({("batch", "sandbox")}),
    yielding=frozenset({"gpu-burst"}),
    peaking=frozenset({("ml", "server")}),
    resource=GPU,
    capacity={"node-0": 8},
    most_per_container={"ml": 4},
    seat_boards=2,
)
CLAIMS = Claims(CAST, {"ml/server": Expected("RightSized", 2, 1), "ml/dark": Expected("EvidenceAbsent")})


def witness() -> Witness:
    return Witness(resource=CAST.resource, capacity=CAST.capacity, most_per_container=CAST.most_per_container)


def pod(
    name: str = "helper-1",
    *,
    namespace: str = "batch",
    boards: int = 2,
    node: str = "node-0",
    phase: str = "Running",
    nominated: str = "",
    priority_class: str = "gpu-burst",
    labels: dict[str, str] | None = None,
    conditions: tuple[Condition, ...] = (),
) -> Pod:
    return Pod(
        Metadata(name=name, namespace=namespace, uid=f"uid-{name}", labels=labels or {"app": "helper"}),
        PodSpec([Container("main", Resources({GPU: str(boards)}))], node, priority_class),
        PodStatus(phase, nominated, list(conditions)),
    )


def sandbox(name: str = "sandbox-1", **fields: Any) -> Pod:
    return pod(name, priority_class="", labels={"app": "sandbox"}, **fields)


def training(run: int = 1, *, node: str = "", nominated: str = "", phase: str = "Pending") -> Pod:
    waits = () if node else (Condition("PodScheduled", "False", "Unschedulable", "no room"),)
    return pod(
        f"training-{run}-x",
        namespace="ml",
        node=node,
        phase=phase,
        nominated=nominated,
        priority_class="high-priority",
        labels={"batch.kubernetes.io/job-name": f"training-{run}"},
        conditions=waits,
    )


def quota(used: int, hard: int, key: str = f"requests.{GPU}") -> Quota:
    return Quota(
        Metadata("gpu-quota", "uid", "ml"), QuotaStatus(hard={key: str(hard)}, used={key: str(used)})
    )


def budget(healthy: int, desired: int) -> Budget:
    return Budget(Metadata("helper", "uid", "batch"), BudgetStatus(healthy, desired))


def row(
    name: str,
    *,
    namespace: str = "ml",
    verdict: Verdict = "busy",
    reason: Reason = Reason.BELOW_SAVINGS_FLOOR,
) -> ExplainRow:
    ref = WorkloadRef("apps", "Deployment", namespace, name)
    return ExplainRow(
        workload=ref,
        resource=GPU,
        units=1,
        held=1,
        verdict=verdict,
        reason=reason,
        detail="",
        role="serving",
        role_cause="",
    )


def plan(*rows: ExplainRow, mode: str = "apply") -> Plan:
    fleet = Fleet(
        boards=8, held=0, needed_milli=0, reclaimable_milli=0, units=0, measured=0, coverage=1.0, workloads=0
    )
    return Plan(taken_ms=0, mode=mode, fleet=fleet, rows=rows)


def entry(
    name: str = "server",
    *,
    namespace: str = "ml",
    lever: Lever = "template",
    state: State = "verified",
    record_id: str = "r1",
    at_ms: int = 0,
    **action: Any,
) -> Entry:
    ref = WorkloadRef("apps", "Deployment", namespace, name)
    act = Action(
        id="a1",
        method="right-size",
        reason=Reason.RIGHT_SIZED,
        lever=lever,
        target=ref,
        uid="uid",
        resource_version="1",
        resource=GPU,
        container="main",
        before=2,
        after=1,
        saved_milli_boards=1000,
        because="it uses one",
        pod=PodRef("batch", "helper-1", "uid-helper-1") if lever == "evict" else None,
        **action,
    )
    record = Record(
        id=record_id, action=act, state=state, actor="service", intended_ms=at_ms, settle_ms=at_ms
    )
    return Entry(ref=ref, uid="uid", records=(record,))


def sight(**known: Any) -> Sight:
    fields: dict[str, Any] = {"plan": plan(), "entries": (), "deeds": Deeds(), "witness": witness()}
    return Sight(**{**fields, **known})
