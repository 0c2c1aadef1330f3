import pytest
from build import Spec, boards, cluster, judge, policy, resize

from autoscaler.decide.guards.fleet import guard_access, guard_clock_skew, guard_fleet_coverage
from autoscaler.decide.tally import Tally
from autoscaler.model.snapshot import KindAccess


@pytest.mark.parametrize("state", ["", "forbidden", "Forbidden", "timeout", "AVAILABLE"])
def test_any_other_state_than_read_or_absent_counts_as_not_read(state: str) -> None:
    rows = (
        KindAccess("ResourceQuota", state),
        KindAccess("LimitRange", "absent"),
        KindAccess("Node", "available"),
    )
    world, judged = judge(cluster(Spec(gpus=2, seen=(boards(0.5, 0.0),)), access=rows))

    assert guard_access(world, judged, resize(2, 1), Tally.of(world)).reason == "Forbidden"


def test_the_first_kind_by_name_is_told_whatever_the_order() -> None:
    rows = (KindAccess("ResourceQuota", "forbidden"), KindAccess("LimitRange", "forbidden", "no"))
    world, judged = judge(cluster(Spec(), access=rows))

    assert guard_access(world, judged, resize(2, 1), Tally.of(world)).detail == "may not read LimitRange: no"


@pytest.mark.parametrize("skew_ms", [2**62, -(2**62)])
def test_a_huge_skew_can_be_told(skew_ms: int) -> None:
    assert guard_clock_skew(*judge(cluster(Spec(), telemetry={"skew_ms": skew_ms}))).reason == "ClockSkew"


@pytest.mark.parametrize("least", [0.0, 1.0])
def test_a_fleet_in_which_nothing_can_be_judged_yet_is_not_blind(least: float) -> None:
    snapshot = cluster(Spec(age_ms=0, seen=(None,)))

    assert guard_fleet_coverage(*judge(snapshot, policy(evidence={"fleetCoverage": least}))).reason is None


def test_a_store_that_answers_nothing_blinds_the_fleet() -> None:
    blind = cluster(Spec(), telemetry={"fault": "refused"})

    assert guard_fleet_coverage(*judge(blind)).reason == "FleetBlind"
