import pytest
from build import HOUR_MS, NOW_MS, Spec, boards, cluster, judge, policy, rescale, resize

from autoscaler.decide.guards.pace import guard_cooldown, guard_savings_floor, guard_worth_restart
from autoscaler.decide.tally import Tally
from autoscaler.model.cluster import PastAct, WorkloadRef

REF = WorkloadRef("apps", "Deployment", "team", "web")
HUGE = 2**62


@pytest.mark.parametrize("at_ms", [NOW_MS + 9 * HOUR_MS, HUGE])
def test_an_act_from_the_future_keeps_the_cool_down(at_ms: int) -> None:
    world, judged = judge(cluster(Spec(), acts=(PastAct(REF, at_ms),)))

    assert guard_cooldown(world, judged, resize(2, 1), Tally.of(world)).reason == "Cooldown"


@pytest.mark.parametrize("pod", [{"ready_ms": -1}, {"started_ms": -1}, {"started_ms": -1, "ready_ms": -1}])
def test_a_time_to_ready_that_is_not_known_is_not_zero(pod: dict[str, int]) -> None:
    world, judged = judge(cluster(Spec(pod=pod)))

    assert guard_worth_restart(world, judged, resize(2, 1), Tally.of(world)).reason == "NotWorthRestart"


def test_one_replica_with_a_known_time_is_enough() -> None:
    world, judged = judge(cluster(Spec(gpus=2, seen=(boards(0.5, 0.0),) * 2)))

    assert guard_worth_restart(world, judged, resize(2, 1, replicas=2), Tally.of(world)).reason is None


@pytest.mark.parametrize("pod", [{"ready_ms": 0}, {"started_ms": NOW_MS + HOUR_MS}])
def test_ready_before_started_costs_nothing_and_does_not_pay(pod: dict[str, int]) -> None:
    world, judged = judge(cluster(Spec(gpus=2, seen=(boards(0.5, 0.0),), pod=pod)))

    assert guard_worth_restart(world, judged, resize(2, 1), Tally.of(world)).reason is None
    assert guard_worth_restart(world, judged, resize(2, 2), Tally.of(world)).reason == "NotWorthRestart"


def test_huge_numbers_can_be_told() -> None:
    spec = Spec(gpus=2, seen=(boards(0.5, 0.0),), pod={"ready_ms": HUGE}, replicas=HUGE)
    rules = policy(methods={"restartFactor": 1000}, guards={"cooldown": "99999d"})
    world, judged = judge(cluster(spec), rules)

    assert guard_worth_restart(world, judged, resize(2, 1), Tally.of(world)).reason == "NotWorthRestart"


@pytest.mark.parametrize("saved", [-1, -HUGE])
def test_a_change_that_costs_boards_is_below_any_floor(saved: int) -> None:
    world, judged = judge(cluster(Spec()), policy(methods={"savingsFloor": 0.0}))

    assert (
        guard_savings_floor(world, judged, rescale(1, 1 - saved), Tally.of(world)).reason
        == "BelowSavingsFloor"
    )
