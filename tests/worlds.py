"""Generated clusters, and what may happen to one: evidence that degrades, a plan that is carried out, a reshuffle.

`worlds(wild=False)` draws clusters in which much can be done: clean evidence, room on every node, no limits.
`worlds()` draws anything, also what no API server would send.
"""

from typing import Any

import msgspec
import numpy as np
from build import (
    BOARD_MIB,
    DAY_MS,
    GPU,
    HOUR_MS,
    MINUTE_MS,
    NOW_MS,
    WINDOW_MS,
    Board,
    Spec,
    cluster,
    node,
    waiting,
)
from hypothesis import strategies as st

from autoscaler.decide.marks import ALLOWED_GPUS, DO_NOT_DISRUPT, EVICTABLE, MIN_REPLICAS, ROLE
from autoscaler.model.cluster import (
    Autoscaler,
    Budget,
    Control,
    FieldOwner,
    Limit,
    LimitRangeRow,
    NamespaceRow,
    PastAct,
    Quota,
    WorkloadRef,
)
from autoscaler.model.evidence import HolderTable, Source, UnownedDevice
from autoscaler.model.history import WorkloadHistory
from autoscaler.model.kueue import ClusterQueueRow, CohortRow, KueueWorkload
from autoscaler.model.plan import Action, Plan, Seat
from autoscaler.model.policy import Policy, policy_from_dict
from autoscaler.model.selectors import LabelRequirement, LabelSelector
from autoscaler.model.shapes import PodShape, Taint
from autoscaler.model.snapshot import KindAccess, Snapshot

COLUMNS = (
    "pod",
    "source",
    "samples",
    "mean",
    "peak",
    "last_ms",
    "history_samples",
    "history_p95",
    "history_peak",
    "history_busiest",
    "history_first_ms",
    "memory_peak_mib",
    "memory_total_mib",
    "flags",
)
INT_OR_PERCENT = ("0", "1", "2", "25%", "50%", "100%", "")
JUNK_AMOUNT = ("junk", "-1", "1.5", "%", "999999999999%", " 1", "٣")


def mostly(usual: Any, *others: Any) -> st.SearchStrategy[Any]:
    """The usual value four times as often as each other one."""
    return st.sampled_from([usual] * 4 + list(others))


@st.composite
def seen_boards(draw: st.DrawFn, *, wild: bool) -> Board:
    mean = draw(st.sampled_from([0.0, 0.0, 0.0, 0.004, 0.03, 0.1, 0.25, 0.55, 0.8, 1.0]))
    peak = min(1.0, mean + draw(st.sampled_from([0.0, 0.0, 0.005, 0.2])))
    p95 = draw(st.sampled_from([0.0, mean, mean, min(1.0, mean + 0.1)]))
    calm: dict[str, Any] = {
        "mean": mean,
        "peak": peak,
        "history_p95": p95,
        "history_peak": max(peak, p95, draw(st.sampled_from([0.0, 0.0, 0.0, 1.0]))),
        "history_busiest": max(mean, draw(mostly(0.0, 0.3, 1.0))),
        "memory_mib": draw(mostly(1_000, 0, 60_000)),
        "history_ms": draw(mostly(30 * DAY_MS, 4 * DAY_MS, 2 * DAY_MS, HOUR_MS)),
    }
    if not wild:
        return Board(**calm)
    return Board(
        **calm
        | {
            "memory_mib": draw(mostly(1_000, None, BOARD_MIB, 2 * BOARD_MIB)),
            "total_mib": draw(mostly(BOARD_MIB, None, 0, 1)),
            "coverage": draw(mostly(1.0, 0.96, 0.94, 0.0, 2.0)),
            "age_ms": draw(mostly(0, 30_000, HOUR_MS, -HOUR_MS)),
            "history_ms": draw(mostly(30 * DAY_MS, 0, HOUR_MS)),
            "history_p95": draw(mostly(p95, 6.5535, 1.0)),
            "history_busiest": draw(mostly(calm["history_busiest"], 6.5535, 0.0)),
            "peak": draw(mostly(peak, 6.5535, 3.4, 0.0)),
            "flags": draw(mostly(0, 0, 1, 2, 4, 8, 15)),
            "device": draw(mostly("", "gpu-7")),
            "source": draw(mostly(0, 1)),
        }
    )


def _calm_annotations() -> st.SearchStrategy[dict[str, str]]:
    return st.fixed_dictionaries(
        {},
        optional={
            ALLOWED_GPUS: st.sampled_from(["1", "1,2", "1,2,4,8", "2,4"]),
            MIN_REPLICAS: st.sampled_from(["0", "1", "2"]),
            ROLE: st.sampled_from(["serving", "training", "interactive"]),
        },
    )


def _wild_annotations() -> st.SearchStrategy[dict[str, str]]:
    junk = ["", "0", "-1", "true", "false", "no", "1,,2", "4h", "2026-01-01T00:00:00Z", "9" * 30, "٣"]
    keys = [ALLOWED_GPUS, MIN_REPLICAS, ROLE, DO_NOT_DISRUPT, "karpenter.sh/do-not-disrupt"]
    return st.dictionaries(st.sampled_from(keys), st.sampled_from(junk), max_size=2)


@st.composite
def specs(draw: st.DrawFn, *, name: str, wild: bool) -> Spec:
    gpus = draw(st.sampled_from([1, 2, 2, 4, 8]))
    replicas = draw(st.integers(0 if wild else 1, 3))
    board = seen_boards(wild=wild)
    alike = draw(st.booleans())
    one = tuple(draw(st.lists(board, min_size=gpus, max_size=gpus)))
    seen: list[tuple[Board, ...] | None] = []
    for _ in range(replicas):
        fresh = one if alike else tuple(draw(st.lists(board, min_size=gpus, max_size=gpus)))
        seen.append(draw(mostly(fresh, None, fresh[1:])) if wild else fresh)
    base = Spec(
        name=name,
        namespace=draw(st.sampled_from(["team", "lab"])) if wild else f"ns-{name}",
        kind=draw(mostly("Deployment", "StatefulSet")),
        gpus=gpus,
        seen=tuple(seen),
        annotations=draw(_calm_annotations()),
        container={
            "parallelism": draw(mostly((), ("--tensor-parallel-size",), ("WORLD_SIZE",))),
            "ports": draw(mostly((), (8080,))),
        },
        labels=draw(mostly({}, {MIN_REPLICAS: "2"}, {ROLE: "training"})),
        pod=draw(mostly({}, {"annotations": draw(_calm_annotations())})),
        rollout=draw(mostly({}, {"max_surge": "0", "max_unavailable": "1"}, {"recreate": True})),
    )
    return _wilder(draw, base) if wild else base


def _wilder(draw: st.DrawFn, spec: Spec) -> Spec:
    amount = st.sampled_from(INT_OR_PERCENT + JUNK_AMOUNT)
    owner = FieldOwner("argocd-controller", replicas=True, template_resources=True)
    return spec.but(
        kind=draw(mostly(spec.kind, "Job", "CronJob", "Pod", "DaemonSet", "Notebook")),
        group=draw(mostly("apps", "batch", "apps.kruise.io")),
        resource=draw(mostly(GPU, "nvidia.com/gpu.shared", "gpuconfig.com/gpu")),
        replicas=draw(st.sampled_from([None, None, None, None, 0, 1, 5, -1])),
        annotations=draw(st.one_of(st.just(spec.annotations), _wild_annotations())),
        labels=draw(mostly(spec.labels, {"kueue.x-k8s.io/queue-name": "q"}, {"gpu": "true"})),
        node=draw(mostly("node-1", "node-2", "", "gone")),
        age_ms=draw(mostly(60 * DAY_MS, 5 * MINUTE_MS, -HOUR_MS)),
        pod=draw(
            mostly(
                spec.pod,
                {"started_ms": -1},
                {"phase": "Pending", "ready": False},
                {"phase": "Failed"},
                {"ready": False},
                {"deleting": True},
                {"ready_ms": -1},
            )
        ),
        shape=draw(
            mostly(
                {},
                {"priority": 2_000_001_000},
                {"priority": 500},
                {"scheduler": "volcano"},
                {"volume_claims": True},
                {"resource_claims": True},
                {"unmodelled": ("pod affinity",)},
                {"faults": ("resources.limits",)},
                {"demand": {}},
                {"demand": {GPU: 2**62}},
            )
        ),
        rollout=draw(
            mostly(
                spec.rollout,
                {"max_surge": draw(amount), "max_unavailable": draw(amount)},
                {"paused": True},
                {"updated": 0},
                {"partition": 1},
                {"on_delete": True},
            )
        ),
        workload=draw(mostly({}, {"field_owners": (owner,)}, {"template": -1}, {"deleting": True})),
    )


@st.composite
def limits(draw: st.DrawFn, *, used: int = 10) -> dict[str, Any]:
    """Quotas, limit ranges, budgets, autoscalers, past acts and missing rights over the namespaces of `worlds()`."""
    few = st.integers(0, 1)

    def some(build: Any) -> tuple[Any, ...]:
        return tuple(build(n) for n in range(draw(few)))

    amount = st.sampled_from(("", "", *INT_OR_PERCENT, *JUNK_AMOUNT[:2]))
    key = f"requests.{GPU}"
    selector = st.sampled_from(
        [
            LabelSelector(),
            LabelSelector({"app": "w0"}),
            LabelSelector(expressions=(LabelRequirement("app", "Odd"),)),
        ]
    )
    return {
        "namespaces": some(
            lambda _: NamespaceRow(
                "team",
                labels=draw(mostly({}, {MIN_REPLICAS: "2"}, {ROLE: "batch"})),
                annotations=draw(mostly({}, {}, {DO_NOT_DISRUPT: "true"}, {ALLOWED_GPUS: "1,2"})),
            )
        ),
        "quotas": some(
            lambda _: Quota(
                "team",
                "quota",
                hard={key: used + draw(st.integers(-1, 5)), "pods": 100},
                used=draw(mostly({key: used, "pods": 3}, {key: used, "pods": 3}, {})),
                unreadable=draw(mostly((), (), ("requests.cpu",))),
            )
        ),
        "limit_ranges": some(
            lambda _: LimitRangeRow(
                "team",
                "range",
                limits=(
                    Limit(
                        draw(mostly("Container", "Pod", "PersistentVolumeClaim")),
                        maximum=draw(mostly({}, {GPU: 1}, {"cpu": 10})),
                        minimum=draw(st.sampled_from([{}, {}, {GPU: 2}])),
                    ),
                ),
                unreadable=draw(mostly((), ("max",))),
            )
        ),
        "budgets": some(
            lambda n: Budget(
                "team",
                f"budget-{n}",
                draw(selector),
                minimum=draw(amount),
                unavailable=draw(amount),
                allowed=draw(st.integers(-1, 4)),
                expected_pods=draw(st.integers(0, 5)),
                observed=draw(mostly(True, True, False)),
            )
        ),
        "autoscalers": some(
            lambda n: Autoscaler(
                "team",
                f"hpa-{n}",
                "Deployment",
                "w0",
                draw(st.integers(1, 4)),
                5,
                uid=f"uid-hpa-{n}",
                controller=draw(mostly("", "ScaledObject queue")),
                scales_in=draw(mostly(True, False)),
                blind=draw(mostly("", "ScalingActive is False: no metric")),
            )
        ),
        "access": some(
            lambda _: KindAccess(
                draw(
                    st.sampled_from(
                        ["PodDisruptionBudget", "ResourceQuota", "HorizontalPodAutoscaler", "Lease"]
                    )
                ),
                draw(st.sampled_from(["available", "absent", "forbidden", "timeout"])),
            )
        ),
        "acts": some(
            lambda _: PastAct(
                WorkloadRef("apps", "Deployment", "team", "w0"),
                NOW_MS - draw(st.sampled_from([-HOUR_MS, 0, 2 * HOUR_MS, 2 * DAY_MS])),
                draw(st.sampled_from([-1000, 0, 1000, 4000])),
                draw(mostly(True, False)),
                method=draw(mostly("right-size", "", "make-room")),
                reversals=draw(mostly(0, 1, 2)),
                not_before_ms=NOW_MS + draw(mostly(-1, HOUR_MS)),
                why="a test says so",
                given_to=draw(mostly("", "team", "lab")),
                pods=draw(mostly(0, 1, 4, -1)),
            )
        ),
        "control": Control(clean_days=draw(mostly(0, -1, 1, 2, 8))),
        "kueue_workloads": tuple(draw(admissions(name=f"w{n}")) for n in range(draw(st.integers(0, 3)))),
        "cluster_queues": some(
            lambda _: ClusterQueueRow(
                "gpus", cohort=draw(mostly("", "all")), unreadable=draw(mostly((), ("x",)))
            )
        ),
        "cohorts": some(lambda _: CohortRow("all", parent=draw(mostly("", "all", "up")))),
    }


@st.composite
def admissions(draw: st.DrawFn, *, name: str) -> KueueWorkload:
    """A Workload of Kueue that may stand for a workload of `worlds()`, for a pod of it, or for nothing that is there."""
    owner = f"uid-team-{name}"
    return KueueWorkload(
        namespace=draw(mostly("team", "lab")),
        name=f"job-{name}",
        uid=f"uid-job-{name}",
        resource_version="7",
        controller=draw(mostly(owner, "", "uid-of-nobody")),
        owners=draw(mostly((owner,), (f"{owner}-0",), (owner, f"{owner}-0"), ())),
        queue="main",
        active=draw(mostly(True, False)),
        reserved=draw(mostly(True, False)),
        admitted=draw(mostly(True, False)),
        finished=draw(mostly(False, True)),
        evicted=draw(mostly("", "Preempted")),
        cluster_queue=draw(mostly("gpus", "", "gone")),
        asks=draw(mostly({GPU: 1}, {}, {GPU: 2**62})),
    )


@st.composite
def worlds(draw: st.DrawFn, *, wild: bool = True, at_most: int = 4) -> Snapshot:
    """A cluster of up to `at_most` workloads."""
    count = draw(st.integers(1, at_most))
    found = [draw(specs(name=f"w{n}", wild=wild and draw(st.booleans()))) for n in range(count)]
    if not wild:
        return cluster(*found)
    found = [spec.but(namespace="team") if draw(st.booleans()) else spec for spec in found]
    changes = draw(
        mostly(
            {},
            {"unschedulable": True},
            {"taints": (Taint("gpu", "", "NoSchedule"),)},
            {"labels": {"nvidia.com/gpu.product": "A100-SHARED"}},
            {"allocatable": {}},
        )
    )
    return cluster(
        *found,
        nodes=(node(gpus=draw(st.integers(0, 64)), **changes), node("node-2", gpus=8)),
        sources=(
            Source("dcgm", "engine", draw(mostly(15_000, 0, -1, HOUR_MS)), interval_measured=True),
            Source("seed", "gpu util", 15_000, interval_measured=False, queries=("up",)),
        ),
        telemetry=draw(
            mostly(
                {},
                {"fault": "refused"},
                {"warnings": ("partial response",)},
                {"store_ms": -1},
                {"skew_ms": -HOUR_MS},
                {"window_ms": 0},
                {"lag_ms": -5},
                {"read_ms": 40_000},
                {"unowned": (UnownedDevice("gpu-x", "node-1", 9_000), UnownedDevice("gpu-y", "", 9_000))},
                {"dropped": {"NaN": 3}, "ghosts": 2},
            )
        ),
        **draw(limits()),
    )


BOUNDS = st.sampled_from(["never", "agreed", "always"])


def policies(*, wild: bool = True) -> st.SearchStrategy[Policy]:
    """Valid policies: with wide budgets, or with any numbers at all."""
    share = st.sampled_from([0.0, 0.02, 0.3, 0.5, 0.95, 1.0])
    wide = {
        "inFlight": 1000,
        "actsPerCycle": 1000,
        "podsPerHour": 100_000,
        "fleetPerHour": 1.0,
        "fleetPerDay": 1.0,
        "namespaceShare": 1.0,
        "podsPerWorkload": 1.0,
    }
    calm = {
        "need": {"confidenceUnit": mostly("1d", "1h"), "targetUtilization": mostly(0.7, 0.5, 1.0)},
        "methods": {"allowZeroReplicas": st.booleans(), "autoscalerBounds": BOUNDS},
        "modes": {"default": st.sampled_from(["observe", "recommend", "apply", "apply"])},
    }
    if not wild:
        sections = {name: st.fixed_dictionaries({}, optional=fields) for name, fields in calm.items()}
        return st.fixed_dictionaries({**sections, "budgets": st.just(wide)}).map(policy_from_dict)
    extremes: dict[str, dict[str, Any]] = {
        "resources": {
            "steps": st.sampled_from([[], [1], [2, 4], [10**9]]),
            "podSelector": st.sampled_from(["", "gpu=true", "!gpu"]),
            "namespaces": st.sampled_from([[], ["team"], ["nowhere"]]),
            "boards": st.sampled_from([[GPU], [GPU, "gpuconfig.com/gpu"], []]),
        },
        "evidence": {
            "minCoverage": share,
            "maxLag": st.sampled_from(["0", "5m", "100d"]),
            "lowWatermark": share,
            "saturation": share,
            "fleetCoverage": share,
        },
        "need": {
            "targetUtilization": st.sampled_from([0.01, 0.7, 1.0]),
            "memoryTarget": st.sampled_from([0.01, 0.9, 1.0]),
            "margin": st.sampled_from([0.0, 10.0]),
            "confidenceUnit": st.sampled_from(["1ms", "1d", "99999d"]),
            "minConfidence": st.sampled_from([0.0, 1.0, 1e300]),
        },
        "methods": {
            "rightSize": st.booleans(),
            "idle": st.booleans(),
            "allowZeroReplicas": st.booleans(),
            "autoscalerBounds": BOUNDS,
            "savingsFloor": st.sampled_from([0.0, 0.25, 1e300]),
            "restartFactor": st.sampled_from([0, 3, 1000]),
        },
        "guards": {
            "priorityFloor": st.sampled_from([None, 0, 100]),
            "cooldown": st.sampled_from(["0", "1h", "999d"]),
        },
        "budgets": {
            "inFlight": st.sampled_from([0, 1, 1000]),
            "actsPerCycle": st.sampled_from([0, 1, 1000]),
            "podsPerHour": st.sampled_from([0, 3, 1000]),
            "maxDoublings": st.integers(0, 6),
            "fleetPerHourByKind": st.dictionaries(st.sampled_from(["idle", "make-room", "scale-in"]), share),
            "fleetPerHour": share,
            "fleetPerDay": share,
            "namespaceShare": share,
            "podsPerWorkload": share,
        },
        "modes": {"default": st.sampled_from(["observe", "recommend", "apply"])},
    }
    anything = st.fixed_dictionaries({n: st.fixed_dictionaries({}, optional=f) for n, f in extremes.items()})
    return st.one_of(policies(wild=False), anything.map(policy_from_dict))


def with_columns(snapshot: Snapshot, **columns: Any) -> Snapshot:
    """The snapshot with these columns of the holder table replaced."""
    return msgspec.structs.replace(snapshot, holders=msgspec.structs.replace(snapshot.holders, **columns))


def rows_of(snapshot: Snapshot, pods: set[int]) -> list[int]:
    """The holder rows of these pods."""
    return [row for row, pod in enumerate(snapshot.holders.pod.tolist()) if pod in pods]


def pods_of(snapshot: Snapshot, ref: WorkloadRef) -> set[int]:
    """The indices of a workload's pods."""
    return {n for n, pod in enumerate(snapshot.pods) if snapshot.workloads[pod.workload].ref == ref}


def only_rows(snapshot: Snapshot, keep: list[int]) -> Snapshot:
    """The snapshot with these holder rows, in this order."""
    table = snapshot.holders
    return msgspec.structs.replace(
        snapshot,
        holders=HolderTable(
            device=tuple(table.device[row] for row in keep),
            container=tuple(table.container[row] for row in keep),
            **{name: getattr(table, name)[keep] for name in COLUMNS},
        ),
    )


def degrade(snapshot: Snapshot, rows: list[int], how: str) -> Snapshot:
    """The snapshot with one quality of the evidence lost for these rows."""
    table = snapshot.holders
    if how == "absent":
        return only_rows(snapshot, [row for row in range(len(table)) if row not in rows])
    column, value = _LOSSES[how]
    values = getattr(table, column).astype(np.int64)
    values[rows] = values[rows] | value if column == "flags" else value
    return with_columns(snapshot, **{column: values})


_LOSSES: dict[str, tuple[str, int]] = {
    "too few samples": ("samples", int(0.9 * WINDOW_MS / 15_000)),
    "no sample": ("samples", 0),
    "too old": ("last_ms", NOW_MS - HOUR_MS),
    "from the future": ("last_ms", NOW_MS + HOUR_MS),
    "shared": ("flags", 1),
    "contradictory": ("flags", 2),
    "not a number": ("flags", 4),
    "mean missing": ("mean", 65_535),
    "peak missing": ("peak", 65_535),
    "percentile missing": ("history_p95", 65_535),
    "history peak missing": ("history_peak", 65_535),
    "busiest window missing": ("history_busiest", 65_535),
}
LOSSES = ("absent", *_LOSSES)


def shuffled(snapshot: Snapshot, seed: Any) -> Snapshot:
    """The same cluster with every table in another order; `seed` is a `random.Random`."""
    pods = _order(len(snapshot.pods), seed)
    workloads = _order(len(snapshot.workloads), seed)
    rows = _order(len(snapshot.holders), seed)
    pod_at = {old: new for new, old in enumerate(pods)}
    workload_at = {old: new for new, old in enumerate(workloads)}
    mixed = only_rows(snapshot, rows)
    mixed = with_columns(
        mixed, pod=np.array([pod_at[pod] for pod in mixed.holders.pod.tolist()], dtype=np.int64)
    )
    tables = ("nodes", "namespaces", "quotas", "limit_ranges", "budgets", "autoscalers", "access", "acts")
    return msgspec.structs.replace(
        mixed,
        pods=tuple(
            msgspec.structs.replace(snapshot.pods[old], workload=workload_at[snapshot.pods[old].workload])
            for old in pods
        ),
        workloads=tuple(snapshot.workloads[old] for old in workloads),
        telemetry=msgspec.structs.replace(
            snapshot.telemetry,
            unowned=tuple(seed.sample(snapshot.telemetry.unowned, len(snapshot.telemetry.unowned))),
        ),
        **{
            name: tuple(seed.sample(getattr(snapshot, name), len(getattr(snapshot, name)))) for name in tables
        },
    )


def _order(count: int, seed: Any) -> list[int]:
    return list(seed.sample(range(count), count))


@st.composite
def autoscaled_worlds(draw: st.DrawFn) -> Snapshot:
    """Calm clusters in which autoscalers hold the replicas of some workloads, mostly at their minimum."""
    snapshot = draw(worlds(wild=False))
    rows = tuple(
        Autoscaler(
            row.ref.namespace,
            f"hpa-{n}-{twin}",
            row.ref.kind,
            row.ref.name,
            draw(mostly(max(1, row.replicas), 1, 2)),
            9,
            uid=f"uid-hpa-{n}-{twin}",
            controller=draw(mostly("", "ScaledObject queue")),
            scales_in=draw(mostly(True, False)),
            blind=draw(mostly("", "ScalingActive is False: no metric")),
        )
        for n, row in enumerate(snapshot.workloads)
        for twin in range(draw(mostly(1, 0, 2)))
    )
    return msgspec.structs.replace(snapshot, autoscalers=rows)


def carry_out(snapshot: Snapshot, plan: Plan, *, at_ms: int = NOW_MS) -> Snapshot:
    """The cluster once every action is done: the load is divided over what is left, and clipped at one board."""
    for action in plan.actions:
        snapshot = _carried_out(snapshot, action)
        boards_milli = action.before * 1000 if action.lever == "evict" else action.saved_milli_boards
        act = PastAct(action.target, at_ms, boards_milli, method=action.method)
        snapshot = msgspec.structs.replace(snapshot, acts=(*snapshot.acts, act))
    return snapshot


def _carried_out(snapshot: Snapshot, action: Action) -> Snapshot:
    (index,) = [n for n, w in enumerate(snapshot.workloads) if w.uid == action.uid]
    if action.pod and action.seat:
        return _evicted(snapshot, action.pod.uid, action.seat)
    pods = sorted(pods_of(snapshot, action.target), key=lambda n: snapshot.pods[n].name)
    if action.lever == "template":
        for pod in pods:
            snapshot = _redivided(snapshot, rows_of(snapshot, {pod}), action.after)
        return _retemplated(snapshot, index, pods, action)
    if action.through is not None:
        lowered = {action.through.uid: {"minimum": action.after}}
        autoscalers = tuple(
            msgspec.structs.replace(row, **lowered.get(row.uid, {})) for row in snapshot.autoscalers
        )
        snapshot = msgspec.structs.replace(snapshot, autoscalers=autoscalers)
    rows = rows_of(snapshot, set(pods))
    gone = set(pods[action.after :])
    keep = len([row for row in rows if snapshot.holders.pod[row] not in gone])
    ordered = sorted(rows, key=lambda row: (snapshot.holders.pod[row] in gone, row))
    return _rescaled(_redivided(snapshot, ordered, keep), index, gone, action.after)


def _evicted(snapshot: Snapshot, victim: str, seat: Seat) -> Snapshot:
    """The victim's successor waits under a new name, the beneficiary runs once the last of its victims has left."""
    (at,) = [n for n, pod in enumerate(snapshot.pods) if pod.uid == victim]
    rows = [row for row in range(len(snapshot.holders)) if row not in rows_of(snapshot, {at})]
    waits = {"phase": "Pending", "ready": False, "unschedulable": "no room", "started_ms": -1, "ready_ms": -1}
    runs = {"phase": "Running", "ready": True, "unschedulable": "", "started_ms": NOW_MS, "ready_ms": NOW_MS}
    pods = []
    for n, pod in enumerate(snapshot.pods):
        changes: dict[str, Any] = {}
        if n == at:
            changes = {**waits, "node": "", "name": f"{pod.name}-again", "uid": f"{pod.uid}-again"}
        elif pod.uid == seat.pod.uid:
            changes = {**runs, "node": seat.node} if seat.more == 0 else {"nominated_node": seat.node}
        pods.append(msgspec.structs.replace(pod, **changes))
    return msgspec.structs.replace(only_rows(snapshot, rows), pods=tuple(pods))


def _redivided(snapshot: Snapshot, rows: list[int], keep: int) -> Snapshot:
    """The use of these rows, put on the first `keep` of them."""
    table = snapshot.holders
    columns = {}
    for name in ("mean", "peak", "history_p95", "history_peak", "history_busiest"):
        values = getattr(table, name).astype(np.int64)
        values[rows[:keep]] = min(10_000, -(-int(values[rows].sum()) // keep)) if keep else 0
        columns[name] = values
    gone = set(rows[keep:])
    return only_rows(with_columns(snapshot, **columns), [row for row in range(len(table)) if row not in gone])


def _retemplated(snapshot: Snapshot, index: int, pods: list[int], action: Action) -> Snapshot:
    old = snapshot.shapes[snapshot.workloads[index].template]
    amount = {action.resource: action.after}
    containers = tuple(
        msgspec.structs.replace(c, requests={**c.requests, **amount}, limits={**c.limits, **amount})
        if c.name == action.container
        else c
        for c in old.containers
    )
    new: PodShape = msgspec.structs.replace(old, containers=containers, demand={**old.demand, **amount})
    shapes, at = (*snapshot.shapes, new), len(snapshot.shapes)
    return msgspec.structs.replace(
        snapshot,
        shapes=shapes,
        pods=tuple(
            msgspec.structs.replace(pod, shape=at) if n in pods else pod
            for n, pod in enumerate(snapshot.pods)
        ),
        workloads=tuple(
            msgspec.structs.replace(w, template=at) if n == index else w
            for n, w in enumerate(snapshot.workloads)
        ),
    )


def _rescaled(snapshot: Snapshot, index: int, gone: set[int], after: int) -> Snapshot:
    left = [n for n in range(len(snapshot.pods)) if n not in gone]
    at = {old: new for new, old in enumerate(left)}
    rollout = msgspec.structs.replace(
        snapshot.workloads[index].rollout, updated=after, ready=after, available=after, total=after
    )
    workload = msgspec.structs.replace(snapshot.workloads[index], replicas=after, rollout=rollout)
    moved = np.array([at[pod] for pod in snapshot.holders.pod.tolist()], dtype=np.int64)
    return msgspec.structs.replace(
        with_columns(snapshot, pod=moved),
        pods=tuple(snapshot.pods[n] for n in left),
        workloads=tuple(workload if n == index else w for n, w in enumerate(snapshot.workloads)),
    )


@st.composite
def eager_specs(draw: st.DrawFn, *, name: str) -> Spec:
    """A workload for which there is something to do, and whose evidence is clean."""
    gpus = draw(st.sampled_from([1, 2, 2, 4]))
    replicas = draw(st.integers(1, 4))
    means = draw(st.sampled_from([(0.0,) * gpus, (0.25, *[0.0] * (gpus - 1)), (0.05, *[0.0] * (gpus - 1))]))
    quiet, seen = (0.0,) * gpus, [means] * replicas
    peak, busiest = draw(mostly((0.0, 0.0), (1.0, 0.0), (0.4, 0.3), (1.0, 0.8)))
    rest = {"history_ms": draw(mostly(30 * DAY_MS, 2 * DAY_MS)), "age_ms": draw(mostly(0, 20_000))}
    if draw(st.booleans()):
        seen[-1] = quiet
    return Spec(
        name=name,
        gpus=gpus,
        kind=draw(mostly("Deployment", "StatefulSet")),
        seen=tuple(
            tuple(
                Board(mean, history_peak=max(mean, peak), history_busiest=max(mean, busiest), **rest)
                for mean in found
            )
            for found in seen
        ),
        annotations=draw(
            st.sampled_from([{}, {}, {MIN_REPLICAS: "0"}, {MIN_REPLICAS: "1"}, {ALLOWED_GPUS: "1,2,4"}])
        ),
        shape={"priority": draw(mostly(0, 50, 50, 2_000_000_000))},
        node=draw(mostly("node-1", "node-2")),
        rollout=draw(
            st.sampled_from(
                [
                    {},
                    {},
                    {"max_surge": "1", "max_unavailable": "0"},
                    {"max_surge": "100%", "max_unavailable": "0"},
                    {"max_surge": "0", "max_unavailable": "50%"},
                    {"recreate": True},
                    {"updated": 0},
                ]
            )
        ),
        pod=draw(
            mostly(
                {},
                {"ready": False},
                {"annotations": {MIN_REPLICAS: "2"}},
                {"annotations": {ALLOWED_GPUS: "2"}},
                {"labels": {ROLE: "training"}},
            )
        ),
    )


@st.composite
def bounded_worlds(draw: st.DrawFn) -> Snapshot:
    """Clean evidence under every kind of limit, so that it is the limits that decide."""
    found = [draw(eager_specs(name=f"w{n}")) for n in range(draw(st.integers(1, 4)))]
    held = [sum(spec.gpus * len(spec.seen) for spec in found if spec.node == f"node-{n}") for n in (1, 2)]
    changes = draw(mostly({}, {}, {"unschedulable": True}))
    nodes = (
        node(gpus=held[0] + draw(st.integers(0, 4)), **changes),
        node("node-2", gpus=held[1] + draw(st.integers(0, 4))),
    )
    telemetry = draw(mostly({}, {"read_ms": 15_000}))
    return cluster(*found, nodes=nodes, telemetry=telemetry, **draw(limits(used=sum(held))))


@st.composite
def worlds_with_a_past(draw: st.DrawFn) -> Snapshot:
    """One workload, quiet now, whose history says more: peaks, load that lasted, or too little of either."""
    share = st.sampled_from([0.0, 0.1, 0.35, 0.7, 1.0])
    gpus, quiet = draw(st.sampled_from([1, 2, 4])), draw(st.sampled_from([0.0, 0.02]))

    def board() -> Board:
        busiest = draw(share)
        past = {"history_p95": draw(mostly(quiet, 0.1)), "history_peak": max(quiet, busiest, draw(share))}
        return Board(quiet, history_busiest=max(quiet, busiest), history_ms=history_ms, **past)

    history_ms = draw(mostly(30 * DAY_MS, 2 * DAY_MS))
    stated = {ALLOWED_GPUS: "1,2,4"} if draw(st.booleans()) else {}
    kind, pods = draw(mostly("Deployment", "StatefulSet")), draw(st.integers(1, 5))
    busiest, total = draw(share), draw(share)
    before = WorkloadHistory(
        ref=WorkloadRef("apps", kind, "team", "web"),
        container=draw(mostly("main", "gone")),
        load_milli=round(1_000 * draw(share)),
        busiest_milli=round(1_000 * busiest * gpus),
        peak_milli=1_000 * gpus,
        total_milli=round(1_000 * total * gpus * pods),
        total_peak_milli=round(1_000 * max(total, draw(share)) * gpus * pods),
        active_boards=draw(st.integers(0, gpus)),
        boards=draw(mostly(gpus, 1)),
        memory_peak_mib=0,
        history_ms=draw(mostly(7 * DAY_MS, 2 * DAY_MS)),
        first_ms=0,
    )
    return cluster(
        Spec(
            "web",
            gpus=gpus,
            kind=kind,
            seen=tuple(tuple(board() for _ in range(gpus)) for _ in range(pods)),
            annotations={**stated, **draw(mostly({}, {MIN_REPLICAS: "1"}))},
            rollout=draw(mostly({}, {"max_unavailable": "3"})),
        ),
        histories=(before,) if draw(st.booleans()) else (),
    )


def rates() -> st.SearchStrategy[Policy]:
    """Policies that differ in their budgets, floors and cool-down only."""
    share = st.sampled_from([0.0, 0.1, 0.5, 1.0])
    return st.fixed_dictionaries(
        {
            "budgets": st.fixed_dictionaries(
                {
                    "inFlight": mostly(1000, 0, 1, 2),
                    "actsPerCycle": mostly(1000, 0, 1, 2),
                    "podsPerHour": mostly(1000, 0, 3),
                    "maxDoublings": st.integers(0, 6),
                    "fleetPerHourByKind": st.dictionaries(
                        st.sampled_from(["right-size", "make-room"]),
                        st.sampled_from([0.0, 0.1, 1.0]),
                        max_size=1,
                    ),
                    "fleetPerHour": mostly(1.0, 0.0, 0.1, 0.5),
                    "fleetPerDay": mostly(1.0, 0.0, 0.1, 0.5),
                    "namespaceShare": mostly(1.0, 0.0, 0.1, 0.5),
                    "podsPerWorkload": share,
                }
            ),
            "guards": st.fixed_dictionaries(
                {"priorityFloor": st.sampled_from([None, None, 50]), "cooldown": mostly("1h", "0")}
            ),
            "methods": st.fixed_dictionaries({"restartFactor": st.just(0.1), "scaleIn": mostly(True, False)}),
        }
    ).map(policy_from_dict)


CLASSES = (
    ("gpu-burst", 1_000_000),
    ("medium-priority-a100", 100_000),
    ("", 0),
    ("high-priority-a100", 1_000_000),
)


@st.composite
def crowded_specs(draw: st.DrawFn, *, name: str, wild: bool) -> Spec:
    """A unit or two that hold boards on one of two nodes, of any class, priority and use; if `wild`, it may have to stay."""

    def rarely(*others: Any) -> Any:
        return draw(mostly({}, *others)) if wild else {}

    gpus, use = draw(st.sampled_from([1, 1, 2])), draw(st.sampled_from([0.0, 0.1, 0.9]))
    owners = [("Deployment", "apps"), ("StatefulSet", "apps"), ("Job", "batch")]
    kind, group = draw(st.sampled_from([*owners, ("Pod", ""), ("DaemonSet", "apps")] if wild else owners))
    board = Board(use, **rarely({"coverage": 0.5}, {"age_ms": HOUR_MS}, {"flags": 1}))
    replicas = draw(mostly(1, 2)) if group == "apps" else 1
    class_name, priority = draw(st.sampled_from(CLASSES))
    return Spec(
        name=name,
        namespace=draw(mostly("team", "lab")),
        kind=kind,
        group=group,
        gpus=gpus,
        seen=((board,) * gpus,) * replicas,
        node=draw(st.sampled_from(["node-1", "node-2"])),
        container=rarely({"ports": (8080,)}, {"image": "jupyter:1"}, {"parallelism": ("WORLD_SIZE",)}),
        shape={"priority_class": class_name, "priority": priority}
        | rarely({"priority": 2_000_000_000}, {"scheduler": "volcano"}),
        pod=rarely(
            {"annotations": {EVICTABLE: "true"}},
            {"annotations": {DO_NOT_DISRUPT: "true"}},
            {"deleting": True},
            {"ready": False},
            {"restarts": 6},
            {"started_ms": NOW_MS - MINUTE_MS},
        ),
        workload=rarely({"backoff_limit": 0}, {"failed_pods": 6}, {"deleting": True}),
    )


@st.composite
def waiting_specs(draw: st.DrawFn, *, name: str, wild: bool) -> Spec:
    """A pod that waits, mostly of the class that room is made for."""

    def rarely(*others: Any) -> Any:
        return draw(mostly({}, *others)) if wild else {}

    return waiting(
        name,
        draw(st.sampled_from([1, 2, 2, 3, 4])),
        namespace=draw(mostly("team", "lab")),
        cpu_milli=draw(mostly(1_000, 200_000)) if wild else 1_000,
        pod={"created_ms": NOW_MS - draw(st.sampled_from([0, 1, HOUR_MS]))}
        | draw(mostly({}, {"nominated_node": "node-1"}, {"nominated_node": "node-2"}))
        | rarely({"unschedulable": ""}, {"deleting": True}, {"nominated_node": "gone"}),
        shape=draw(mostly({}, {"priority": 2_000_000}, {"node_selector": {"gpu-type": "a100"}}))
        | rarely(
            {"priority_class": "gpu-burst"},
            {"priority_class": "medium-priority-a100", "priority": 100_000},
            {"unmodelled": ("podAffinity",)},
            {"volume_claims": True},
            {"scheduler": "volcano"},
        ),
    )


@st.composite
def crowded_worlds(draw: st.DrawFn) -> Snapshot:
    """Two nodes that are full or nearly so, and pods that wait for them: with clean evidence, or under every kind of limit."""
    wild = draw(mostly(False, True, True))
    held = [draw(crowded_specs(name=f"w{n}", wild=wild)) for n in range(draw(st.integers(1, 8)))]
    asking = [draw(waiting_specs(name=f"p{n}", wild=wild)) for n in range(draw(st.integers(1, 3)))]
    boards = [sum(s.gpus * len(s.seen) for s in held if s.node == f"node-{n}") for n in (1, 2)]
    taint = {"taints": (Taint("gpu", "", "NoSchedule"),)}
    changes = draw(mostly({}, {"unschedulable": True}, taint, {"taken_pods": 108})) if wild else {}
    nodes = (
        node(gpus=boards[0] + draw(mostly(0, 1)), **changes),
        node("node-2", gpus=boards[1] + draw(mostly(0, 1)), labels={"gpu-type": "a100"}),
    )
    return cluster(*held, *asking, nodes=nodes, **(draw(limits(used=sum(boards))) if wild else {}))


def yielding() -> st.SearchStrategy[Policy]:
    """Policies that differ in who yields to whom, and in their budgets."""
    share = mostly(1.0, 0.5, 0.2)
    return st.fixed_dictionaries(
        {
            "yield": st.fixed_dictionaries(
                {
                    "idle": st.booleans(),
                    "lowerPriority": st.booleans(),
                    "beneficiaries": mostly(["high-priority-"], [""]),
                    "classes": mostly(["gpu-burst"], []),
                }
            ),
            "budgets": st.fixed_dictionaries(
                {
                    "inFlight": mostly(1000, 0, 1, 2),
                    "actsPerCycle": mostly(1000, 0, 1, 2),
                    "podsPerHour": mostly(1000, 0, 3),
                    "maxDoublings": st.integers(0, 6),
                    "fleetPerHourByKind": st.dictionaries(
                        st.sampled_from(["right-size", "make-room"]),
                        st.sampled_from([0.0, 0.1, 1.0]),
                        max_size=1,
                    ),
                    "fleetPerHour": share,
                    "namespaceShare": share,
                    "fleetPerDay": share,
                }
            ),
            "guards": st.fixed_dictionaries({"priorityFloor": mostly(None, 1_000_000)}),
            "evidence": st.fixed_dictionaries({"fleetCoverage": mostly(0.0, 0.8)}),
            "methods": st.fixed_dictionaries({"makeRoom": mostly(True, True, False)}),
            "modes": st.fixed_dictionaries({"default": mostly("apply", "recommend", "observe")}),
        }
    ).map(policy_from_dict)
