from typing import Any

import pytest

from autoscaler.model.reasons import Reason
from devcluster.demo.deeds import Deeds
from devcluster.demo.phases import Findings, Phase, Sight
from devcluster.demo.wire import Condition, Pod
from tests.unit.devcluster.demo.stories import (
    CLAIMS,
    entry,
    plan,
    pod,
    row,
    sandbox,
    sight,
    training,
    witness,
)

pytestmark = pytest.mark.unit


def found(phase: Phase, **known: Any) -> Findings:
    return CLAIMS.of(phase, sight(**known))


def night(*pods: tuple[Pod, float], **known: Any) -> Sight:
    seen = witness()
    for one, at_s in pods:
        seen.pod_seen(one, at_s)
    fields: dict[str, Any] = {
        "witness": seen,
        "runs": ("training-1",),
        "deeds": Deeds(evicted=(("batch", "helper-1"), ("batch", "sandbox-1"))),
        "idle": frozenset({("batch", "sandbox")}),
    }
    return sight(**{**fields, **known})


VISITORS = ((pod(), 1.0), (sandbox(), 1.0))
WAITS = (training(), 10.0)
KEPT = (training(nominated="node-0"), 11.0)
SEATED = (*VISITORS, WAITS, KEPT, (training(node="node-0", nominated="node-0", phase="Running"), 12.0))


def test_recommend_waits_for_the_expected_plan() -> None:
    assert found(Phase.RECOMMEND, plan=None).missing == ["no plan yet"]
    assert found(Phase.RECOMMEND).missing == ["ml/dark: not in the plan", "ml/server: not in the plan"]


def test_any_write_in_mode_recommend_is_a_breach_its_own_lease_too() -> None:
    assert found(Phase.RECOMMEND, deeds=Deeds(all=("update leases gpu-autoscaler/x 403",))).broken == [
        "written in mode recommend: update leases gpu-autoscaler/x 403"
    ]


@pytest.mark.parametrize(
    ("state", "missing"),
    [("verified", []), ("acted", ["ml/server: RightSized 2 -> 1 has not proved itself yet"])],
)
def test_apply_waits_until_each_planned_change_is_verified(state: Any, missing: list[str]) -> None:
    assert found(Phase.APPLY, entries=(entry(state=state),)) == Findings(missing)


def test_a_change_that_failed_its_verification_is_a_breach() -> None:
    assert found(Phase.APPLY, entries=(entry(state="failed"),)).broken == ["ml/server: template failed ()"]


def test_a_write_to_what_is_neither_its_own_nor_a_workload_is_a_breach_in_every_phase() -> None:
    for phase in Phase:
        told = found(phase, deeds=Deeds(strange=("patch nodes /n 200",))).broken

        assert "neither its own nor a workload's: patch nodes /n 200" in told


def test_what_the_ledger_held_before_a_phase_is_not_of_it() -> None:
    known = frozenset({"r1"})

    assert found(Phase.APPLY, entries=(entry(state="failed"),), known_records=known).broken == []


def test_what_the_witness_saw_is_a_breach_in_every_phase() -> None:
    seen = witness()
    seen.pod_seen(pod(conditions=(Condition("DisruptionTarget", "True", "PreemptionByScheduler"),)), 1)

    for phase in Phase:
        assert "the scheduler preempted batch/helper-1" in found(phase, witness=seen).broken


ROWS = (
    row("server"),
    row("helper", namespace="batch"),
    row("sandbox", namespace="batch", verdict="idle"),
)
FULL = (*(pod(f"helper-{number}") for number in range(1, 4)), sandbox())


def day(*pods: Pod, rows: tuple[Any, ...] = ROWS, **known: Any) -> Findings:
    seen = witness()
    seen.pods_listed(pods, 1)
    return found(Phase.DAY, witness=seen, plan=plan(*rows), **known)


def test_the_day_is_over_when_traffic_peaks_and_no_board_is_free() -> None:
    assert day(*FULL) == Findings()


def test_the_day_waits_for_visitors_on_every_free_board() -> None:
    assert day(*FULL[1:]).missing == ["node node-0: free boards: 2"]
    assert day(*FULL[:3]).missing == ["batch/sandbox: does not run", "node node-0: free boards: 2"]


def test_the_day_waits_for_traffic_and_for_the_evidence_that_the_night_needs() -> None:
    rows = (
        row("server", verdict="under-used"),
        row("helper", namespace="batch", verdict="unknown"),
        row("sandbox", namespace="batch", verdict="under-used"),
    )

    assert day(*FULL, rows=rows).missing == [
        "ml/server: not busy, under-used",
        "batch/helper: unknown",
        "batch/sandbox: under-used",
    ]


def test_a_busy_server_that_is_shrunk_is_a_breach() -> None:
    assert day(*FULL, entries=(entry(),)).broken == ["ml/server: template 2 -> 1 while it is busy"]


def test_a_night_is_told_when_the_training_has_the_seat_that_was_made_for_it() -> None:
    assert CLAIMS.of(Phase.NIGHT, night(*SEATED)) == Findings()


@pytest.mark.parametrize(
    ("pods", "missing"),
    [
        ((), "0 of 1 runs have a pod"),
        ((WAITS,), "ml/training-1-x: waits for a seat"),
        ((WAITS, KEPT, (training(node="node-0", nominated="node-0"), 12.0)), "ml/training-1-x: Pending"),
    ],
)
def test_a_night_waits_for_the_training(pods: Any, missing: str) -> None:
    assert CLAIMS.of(Phase.NIGHT, night(*VISITORS, *pods)) == Findings([missing])


def test_a_night_waits_for_each_of_its_runs() -> None:
    both = night(*SEATED, (training(2), 10.0), runs=("training-1", "training-2"))

    assert CLAIMS.of(Phase.NIGHT, both) == Findings(["ml/training-2-x: waits for a seat"])


@pytest.mark.parametrize(
    ("pods", "broken"),
    [
        (
            ((training(node="node-0"), 12.0),),
            "ml/training-1-x: a node had room for it, so no room was made",
        ),
        ((WAITS, (training(node="node-0"), 90.0)), "ml/training-1-x: waited 80.0 s for its seat"),
        (
            (WAITS, (training(node="node-0"), 12.0)),
            "ml/training-1-x: runs on node-0, its seat was nowhere",
        ),
        (
            (WAITS, (training(node="node-0", nominated="node-1"), 12.0)),
            "ml/training-1-x: runs on node-0, its seat was node-1",
        ),
    ],
)
def test_a_seat_that_was_not_made_as_told_is_a_breach(pods: Any, broken: str) -> None:
    assert CLAIMS.of(Phase.NIGHT, night(*VISITORS, *pods)).broken == [broken]


def test_a_night_waits_until_the_end_of_every_eviction_is_known() -> None:
    still_open = entry("helper", namespace="batch", lever="evict", state="acted")

    assert CLAIMS.of(Phase.NIGHT, night(*SEATED, entries=(still_open,))).missing == [
        "eviction of batch/helper-1: acted"
    ]


@pytest.mark.parametrize(
    ("evicted", "missing"),
    [
        ((), ["no helper has made room", "no idle unit has made room"]),
        ((("batch", "helper-1"),), ["no idle unit has made room"]),
        ((("batch", "sandbox-1"),), ["no helper has made room"]),
    ],
)
def test_burst_and_idle_units_both_make_room(
    evicted: tuple[tuple[str, str], ...], missing: list[str]
) -> None:
    assert CLAIMS.of(Phase.NIGHT, night(*SEATED, deeds=Deeds(evicted=evicted))) == Findings(missing)


def test_only_helpers_and_idle_units_that_come_back_may_be_evicted() -> None:
    bare = pod("bare", labels={"gpu": "true"})
    busy = pod("busy-1", priority_class="", labels={"app": "busy"})
    names = ("helper-1", "sandbox-1", "bare", "busy-1", "unknown")
    seen = night(
        *SEATED, (bare, 1.0), (busy, 1.0), deeds=Deeds(evicted=tuple(("batch", name) for name in names))
    )

    assert CLAIMS.of(Phase.NIGHT, seen).broken == [
        "evicted, but never seen by the witness",
        "evicted, but nothing brings it back: batch/bare",
        "evicted, but neither a helper nor idle: batch/busy-1",
    ]


def test_a_sandbox_that_no_plan_called_idle_may_not_be_evicted() -> None:
    assert CLAIMS.of(Phase.NIGHT, night(*SEATED, idle=frozenset())).broken == [
        "evicted, but neither a helper nor idle: batch/sandbox-1"
    ]


def test_the_next_dawn_waits_for_the_trainings_end_and_for_as_many_pods_as_before() -> None:
    running = night(*SEATED, seated=3)
    ended = (training(node="node-0", nominated="node-0", phase="Succeeded"), 20.0)
    back = night(*SEATED, ended, (pod("helper-2"), 21.0), seated=3)

    assert CLAIMS.of(Phase.DAWN, running).missing == [
        "ml/training-1-x: Running",
        "2 of 3 helpers and others run again",
    ]
    assert CLAIMS.of(Phase.DAWN, back) == Findings()


def test_the_evening_is_over_when_no_visitor_is_left() -> None:
    seen = night(*SEATED)
    waits = CLAIMS.of(Phase.EVENING, seen)
    for name in ("helper-1", "sandbox-1"):
        seen.witness.pod_gone(f"uid-{name}")

    assert waits.missing == ["batch/helper-1: still there", "batch/sandbox-1: still there"]
    assert CLAIMS.of(Phase.EVENING, seen) == Findings()


def test_the_expected_plan_is_compared_workload_by_workload() -> None:
    rows = plan(row("server"), row("dark", reason=Reason.EVIDENCE_ABSENT))

    assert found(Phase.RECOMMEND, plan=rows).missing == [
        "ml/server: expected RightSized 2 -> 1, is BelowSavingsFloor ()"
    ]
