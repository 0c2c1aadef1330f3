import pytest
from build import DAY_MS, HOUR_MS, MINUTE_MS, NOW_MS, Board, Spec, boards, cluster, judge, policy
from hypothesis import given
from worlds import policies, worlds

from autoscaler.decide import plan
from autoscaler.decide.marks import MIN_REPLICAS, ROLE
from autoscaler.decide.methods.idle import propose_release
from autoscaler.decide.planner import judge_fleet
from autoscaler.decide.proposal import Proposal, Ruling
from autoscaler.decide.world import World
from autoscaler.model.policy import Policy
from autoscaler.model.snapshot import Snapshot

QUIET = boards(0.0)


def propose(spec: Spec, **sections: object) -> Proposal | Ruling:
    return propose_release(*judge(cluster(spec), policy(**sections)))  # type: ignore[arg-type]


def floor(text: str, role: str = "") -> dict[str, str]:
    return {MIN_REPLICAS: text} | ({ROLE: role} if role else {})


@pytest.mark.parametrize(
    ("spec", "sections", "after"),
    [
        (Spec(seen=(QUIET,), annotations=floor("0")), {}, 0),
        (Spec(seen=(QUIET,)), {"methods": {"allowZeroReplicas": True}}, 0),
        (Spec(seen=(QUIET,) * 3), {}, 2),
        (Spec(seen=(QUIET,) * 3), {"budgets": {"podsPerWorkload": 1.0}}, 1),
        (Spec(seen=(QUIET,) * 3, annotations=floor("2")), {"budgets": {"podsPerWorkload": 1.0}}, 2),
        (Spec(seen=(QUIET,) * 3, annotations=floor("1", "training")), {}, 2),
        (Spec(seen=(QUIET,) * 3, annotations={ROLE: "serving"}), {}, 2),
        (Spec(seen=(QUIET,) * 3, kind="StatefulSet"), {}, 2),
    ],
)
def test_what_is_proven_idle_goes_to_the_stated_floor_step_by_step(
    spec: Spec, sections: dict[str, object], after: int
) -> None:
    found = propose(spec, **sections)

    assert isinstance(found, Proposal)
    assert (len(spec.seen), after) == (found.before, found.after)
    assert (found.method, found.reason, found.lever) == ("idle", "Released", "scale")


@pytest.mark.parametrize(
    ("spec", "reason", "detail"),
    [
        (Spec(seen=(QUIET,)), "NeedsConsent", "idle at its last replica; nobody agreed to 0"),
        (Spec(seen=(QUIET,), annotations=floor("1")), "LadderEnd", "1 replicas, the owner's floor is 1"),
        (Spec(seen=(QUIET,), annotations=floor("none")), "NeedsConsent", "is not a whole number: 'none'"),
        (Spec(seen=(QUIET,), annotations=floor("0", "serving")), "NeedsConsent", "at 0 replicas nothing here would wake it"),
        (Spec(seen=(QUIET,) * 2, annotations={ROLE: "training"}), "NeedsConsent", "its replicas are part of the run"),
        (Spec(seen=(QUIET,) * 2, container={"parallelism": ("--tp",)}), "NeedsConsent", "(--tp)"),
        (Spec(seen=(QUIET,), kind="Notebook", annotations=floor("0")), "NoLever", "kind Notebook has no replicas to lower"),
        (Spec(seen=(boards(0.0, peak=0.02),), annotations=floor("0")), "ThinHistory", "idle for 0s, the floor is 30m"),
        (Spec(seen=(boards(0.0, history_ms=29 * MINUTE_MS),), annotations=floor("0")), "ThinHistory", "idle for 29m, the floor is 30m"),
    ],
)  # fmt: skip
def test_anything_else_stays_and_has_a_reason(spec: Spec, reason: str, detail: str) -> None:
    found = propose(spec)

    assert isinstance(found, Ruling)
    assert reason == found.reason
    assert detail in found.detail


@pytest.mark.parametrize(
    ("board", "idle_floor", "released"),
    [
        (Board(history_ms=3 * HOUR_MS), "2h", True),
        (Board(history_ms=HOUR_MS), "2h", False),
        (Board(history_ms=3 * HOUR_MS, history_peak=0.5), "2h", False),
        (Board(history_ms=3 * HOUR_MS, history_peak=0.5), "30m", True),
    ],
)
def test_a_longer_promise_needs_a_longer_proof(board: Board, idle_floor: str, released: bool) -> None:
    spec = Spec(seen=((board,),), annotations=floor("0"))

    assert released == isinstance(propose(spec, methods={"idleFloor": idle_floor}), Proposal)


DAYS = {"history_p95": 0.95, "history_peak": 1.0, "history_busiest": 0.9, "history_ms": 7 * DAY_MS}
NIGHT = Spec(seen=(boards(0.0, **DAYS),) * 4, container={"image": "vllm/vllm-openai", "ports": (8000,)})


def test_a_quiet_night_takes_no_replica_that_the_days_need() -> None:
    found = propose(NIGHT)

    assert isinstance(found, Ruling)
    assert found.reason == "BelowSavingsFloor"
    assert "(upper bound and peaks)" in found.detail


@pytest.mark.parametrize(
    ("annotations", "sections", "after"),
    [(floor("1"), {}, 3), (floor("2"), {"budgets": {"podsPerWorkload": 1.0}}, 2)],
)
def test_a_stated_floor_may_rest_on_proven_idleness_alone(
    annotations: dict[str, str], sections: dict[str, object], after: int
) -> None:
    found = propose(NIGHT.but(annotations=annotations), **sections)

    assert isinstance(found, Proposal)
    assert (found.after, found.agreed) == (after, True)


def test_so_may_a_policy_that_allows_zero() -> None:
    worker = NIGHT.but(container={}, seen=(boards(0.0, **DAYS),) * 2)

    assert isinstance(propose(worker), Ruling)
    assert isinstance(propose(worker, methods={"allowZeroReplicas": True}), Proposal)


@pytest.mark.parametrize(
    ("board", "after"),
    [
        (Board(0.0, history_peak=0.5), 2),
        (Board(0.0, history_peak=0.8), 4),
        (Board(0.0, history_peak=0.3, history_busiest=0.3), 3),
        (Board(0.0, history_peak=0.01, history_ms=7 * DAY_MS), 1),
    ],
)
def test_without_a_stated_floor_the_peaks_and_the_load_that_lasted_are_one(board: Board, after: int) -> None:
    found = propose(Spec(seen=((board,),) * 4), budgets={"podsPerWorkload": 1.0})

    assert after == (found.after if isinstance(found, Proposal) else 4)


def test_thin_history_releases_nobody_without_a_stated_floor() -> None:
    young = (Board(0.0, history_ms=45 * MINUTE_MS, history_peak=0.005),)
    found = propose(Spec(seen=(young,) * 4))
    (row,) = plan(cluster(Spec(seen=(young,) * 4)), policy(), NOW_MS).rows

    assert isinstance(found, Proposal)
    assert not found.agreed
    assert (row.action, row.reason) == (None, "ThinHistory")


@pytest.mark.parametrize(("history_peak", "released"), [(0.2, False), (0.01, True)])
def test_a_stateful_set_keeps_ordinals_that_were_ever_used(history_peak: float, released: bool) -> None:
    shards = ((Board(0.0, history_peak=0.2),), (Board(0.0, history_peak=history_peak),))

    assert released == isinstance(propose(Spec(kind="StatefulSet", seen=shards)), Proposal)
    assert isinstance(propose(Spec(kind="StatefulSet", seen=shards, annotations=floor("1"))), Proposal)


@given(worlds(), policies())
def test_a_release_never_goes_under_the_stated_floor_nor_before_the_promise(
    snapshot: Snapshot, rules: Policy
) -> None:
    world = World(snapshot, rules, snapshot.taken_ms)
    for judged in judge_fleet(world)[0]:
        found = propose_release(world, judged)
        if isinstance(found, Proposal):
            stated = judged.case.stated.floor
            least = stated.values[0] if stated else 0 if rules.methods.allow_zero_replicas else 1
            assert found.agreed == (stated is not None or rules.methods.allow_zero_replicas)
            assert least <= found.after < found.before
            assert rules.methods.idle_floor <= judged.assessment.idle_ms
            assert found.after > 0 or judged.assessment.role != "serving"
