import pytest
from build import Spec, boards, cluster, judge, policy, rescale, resize
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.decide.guards.fleet import guard_access, guard_clock_skew, guard_fleet_coverage
from autoscaler.decide.proposal import Proposal
from autoscaler.decide.tally import Tally
from autoscaler.model.snapshot import KindAccess


def fleet(dark: int, seen: int, **dark_changes: object) -> str | None:
    specs = [Spec(f"dark-{n}", seen=(None,), **dark_changes) for n in range(dark)]  # type: ignore[arg-type]
    specs += [Spec(f"seen-{n}") for n in range(seen)]
    return guard_fleet_coverage(*judge(cluster(Spec(), *specs))).reason


@pytest.mark.parametrize(
    ("dark", "seen", "reason"),
    [(0, 0, None), (1, 3, None), (1, 2, "FleetBlind"), (2, 7, None), (3, 8, "FleetBlind")],
)
def test_too_small_a_measured_share_freezes_the_fleet(dark: int, seen: int, reason: str | None) -> None:
    assert reason == fleet(dark, seen)


@pytest.mark.parametrize(
    "changes",
    [
        {"age_ms": 60_000},
        {"pod": {"phase": "Pending"}},
        {"pod": {"started_ms": -1}},
        {"resource": "nvidia.com/mig-1g.10gb"},
    ],
)
def test_units_that_are_new_or_hold_no_board_are_not_blind(changes: dict[str, object]) -> None:
    assert fleet(9, 0, **changes) is None


@pytest.mark.parametrize(
    ("skew_ms", "reason"),
    [(0, None), (30_000, None), (-30_000, None), (30_001, "ClockSkew"), (-30_001, "ClockSkew")],
)
def test_clocks_that_disagree_are_a_refusal(skew_ms: int, reason: str | None) -> None:
    assert reason == guard_clock_skew(*judge(cluster(Spec(), telemetry={"skew_ms": skew_ms}))).reason


@pytest.mark.parametrize(
    ("kind", "template", "scale"),
    [
        ("Namespace", True, True),
        ("ReplicaSet", True, True),
        ("PodDisruptionBudget", True, True),
        ("ResourceQuota", True, False),
        ("LimitRange", True, False),
        ("Node", True, False),
        ("HorizontalPodAutoscaler", True, True),
        ("CronJob", False, False),
    ],
)
def test_a_limit_that_may_not_be_read_is_not_assumed_to_be_absent(
    kind: str, template: bool, scale: bool
) -> None:
    row = KindAccess(kind, "forbidden", "no list")
    world, judged = judge(cluster(Spec(gpus=2, seen=(boards(0.5, 0.0),)), access=(row,)))

    def refused(change: Proposal) -> bool:
        return guard_access(world, judged, change, Tally.of(world)).reason == "Forbidden"

    assert (template, scale) == (refused(resize(2, 1)), refused(rescale(2, 1)))


@pytest.mark.parametrize(("detail", "told"), [("no list", "no list"), ("", "forbidden")])
def test_what_is_not_readable_is_told_with_what_is_known_of_it(detail: str, told: str) -> None:
    row = KindAccess("Node", "forbidden", detail)
    world, judged = judge(cluster(Spec(gpus=2, seen=(boards(0.5, 0.0),)), access=(row,)))

    assert guard_access(world, judged, resize(2, 1), Tally.of(world)).detail == f"may not read Node: {told}"


@given(st.integers(0, 9), st.integers(0, 9), st.floats(0, 1))
def test_a_higher_bar_never_lets_more_through(dark: int, seen: int, least: float) -> None:
    snapshot = cluster(
        *[Spec(f"dark-{n}", seen=(None,)) for n in range(dark)],
        *[Spec(f"seen-{n}") for n in range(seen)],
        Spec(),
    )

    def blind(share: float) -> bool:
        return (
            guard_fleet_coverage(*judge(snapshot, policy(evidence={"fleetCoverage": share}))).reason
            is not None
        )

    assert blind(least) or not blind(least / 2)
