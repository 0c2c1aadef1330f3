import pytest
from build import HOUR_MS, MINUTE_MS, NOW_MS, Spec, boards, cluster, judge, policy, rescale, resize
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.decide.guards.pace import guard_cooldown, guard_savings_floor, guard_worth_restart
from autoscaler.decide.tally import Tally
from autoscaler.model.cluster import PastAct, WorkloadRef

REF = WorkloadRef("apps", "Deployment", "team", "web")


def cool(*ages_ms: int, ref: WorkloadRef = REF, **sections: object) -> str | None:
    acts = tuple(PastAct(ref, NOW_MS - age) for age in ages_ms)
    world, judged = judge(cluster(Spec(), acts=acts), policy(**sections))  # type: ignore[arg-type]
    return guard_cooldown(world, judged, resize(2, 1), Tally.of(world)).reason


@pytest.mark.parametrize(
    ("ages", "reason"),
    [
        ((), None),
        ((0,), "Cooldown"),
        ((HOUR_MS - 1,), "Cooldown"),
        ((HOUR_MS,), None),
        ((9 * HOUR_MS, 5), "Cooldown"),
    ],
)
def test_a_workload_changes_once_in_a_cool_down(ages: tuple[int, ...], reason: str | None) -> None:
    assert reason == cool(*ages)


def test_acts_on_others_do_not_count() -> None:
    assert cool(0, ref=WorkloadRef("apps", "StatefulSet", "team", "web")) is None


@given(st.integers(0, 3 * HOUR_MS), st.integers(0, HOUR_MS))
def test_a_cool_down_only_ever_runs_out(age_ms: int, more_ms: int) -> None:
    assert cool(age_ms) == "Cooldown" or cool(age_ms + more_ms) is None


@pytest.mark.parametrize(
    ("floor", "saved", "reason"),
    [(0.25, 1, None), (1.0, 1, None), (1.5, 1, "BelowSavingsFloor"), (0.25, 0, "BelowSavingsFloor")],
)
def test_a_change_saves_at_least_the_floor(floor: float, saved: int, reason: str | None) -> None:
    world, judged = judge(cluster(Spec()), policy(methods={"savingsFloor": floor}))

    assert reason == guard_savings_floor(world, judged, rescale(5, 5 - saved), Tally.of(world)).reason


@pytest.mark.parametrize(
    ("ready_after_ms", "held", "after", "reason"),
    [
        (20_000, 2, 1, None),
        (10 * MINUTE_MS - 1, 2, 1, None),
        (10 * MINUTE_MS, 2, 1, "NotWorthRestart"),
        (30 * MINUTE_MS, 8, 1, "NotWorthRestart"),
        (17 * MINUTE_MS, 8, 1, None),
        (18 * MINUTE_MS, 8, 1, "NotWorthRestart"),
    ],
)
def test_a_restart_must_be_worth_its_board_hours(
    ready_after_ms: int, held: int, after: int, reason: str | None
) -> None:
    # saved x 1 h cool-down > 3 x boards x time to Ready
    spec = Spec(gpus=held, seen=(boards(*[0.0] * held),) * 2, ready_after_ms=ready_after_ms)
    world, judged = judge(cluster(spec))

    assert (
        reason == guard_worth_restart(world, judged, resize(held, after, replicas=2), Tally.of(world)).reason
    )


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        ({"started_ms": 0, "ready_ms": 0}, None),
        ({"started_ms": 0, "ready_ms": -1}, "NotWorthRestart"),
        ({"started_ms": -1, "ready_ms": 0}, "NotWorthRestart"),
    ],
)
def test_a_restart_whose_time_is_not_known_is_not_worth_it(pod: dict[str, int], reason: str | None) -> None:
    world, judged = judge(cluster(Spec(gpus=2, seen=(boards(0.0, 0.0),), pod=pod)))

    assert reason == guard_worth_restart(world, judged, resize(2, 1), Tally.of(world)).reason


def test_a_scale_in_restarts_nothing() -> None:
    world, judged = judge(cluster(Spec(pod={"ready_ms": -1})))

    assert guard_worth_restart(world, judged, rescale(2, 1), Tally.of(world)).reason is None
