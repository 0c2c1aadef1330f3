import re

import pytest
from build import NOW_MS, Spec, boards, cluster, judge, node, policy, rescale, resize
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.decide.guards.budgets import at_least_one, guard_budgets, pods_of, step_limit
from autoscaler.decide.proposal import Proposal, Ruling
from autoscaler.decide.tally import Effect, Tally
from autoscaler.model.cluster import Control, PastAct, WorkloadRef
from autoscaler.model.policy import policy_from_dict
from autoscaler.model.reasons import Reason

ELSEWHERE = WorkloadRef("apps", "Deployment", "lab", "other")
HERE = WorkloadRef("apps", "Deployment", "team", "other")


def ruling(saved: int, *acts: PastAct, fleet: int = 100, **budgets: object) -> Ruling:
    rules = policy_from_dict({"budgets": budgets})
    snapshot = cluster(Spec(seen=(boards(0.0),) * 20), nodes=(node(gpus=fleet),), acts=acts)
    world, judged = judge(snapshot, rules)
    return guard_budgets(world, judged, rescale(20, 20 - saved), Tally.of(world))


def rule(saved: int, *acts: PastAct, fleet: int = 100, **budgets: object) -> str | None:
    return ruling(saved, *acts, fleet=fleet, **budgets).reason


@pytest.mark.parametrize(
    ("share", "boards", "allowed"),
    [(0.02, 100, 2), (0.02, 99, 1), (0.02, 0, 1), (0.0, 1000, 1), (1.0, 7, 7), (0.29, 100, 29), (0.1, 30, 3)],
)
def test_a_share_rounds_down_and_is_never_under_one(share: float, boards: int, allowed: int) -> None:
    assert allowed == at_least_one(share, boards)


@pytest.mark.parametrize(
    ("saved", "acts", "budgets", "reason"),
    [
        (2, (), {"namespaceShare": 1.0}, None),
        (3, (), {"namespaceShare": 1.0}, "BudgetSpent"),
        (1, (), {}, None),
        (2, (), {}, "BudgetSpent"),
        (2, (PastAct(ELSEWHERE, NOW_MS, 1000),), {"namespaceShare": 1.0}, "BudgetSpent"),
        (2, (PastAct(HERE, NOW_MS - 3_600_000, 1000),), {"namespaceShare": 1.0}, None),
        (2, (PastAct(HERE, NOW_MS - 3_600_000, 9000),), {"namespaceShare": 1.0}, "BudgetSpent"),
        (1, (PastAct(HERE, NOW_MS, 1000),), {"fleetPerHour": 0.1, "namespaceShare": 0.1}, "BudgetSpent"),
        (1, (PastAct(ELSEWHERE, NOW_MS, 1000),), {"fleetPerHour": 0.1, "namespaceShare": 0.1}, None),
        (1, (PastAct(ELSEWHERE, 0, 0, verified=False),) * 2, {}, None),
        (1, (PastAct(ELSEWHERE, 0, 0, verified=False),) * 3, {}, "BudgetSpent"),
        (1, (), {"inFlight": 0}, "BudgetSpent"),
    ],
)
def test_a_change_fits_every_budget_or_is_refused(
    saved: int, acts: tuple[PastAct, ...], budgets: dict[str, object], reason: str | None
) -> None:
    assert reason == rule(saved, *acts, **budgets)


@pytest.mark.parametrize(
    ("rollout", "replicas", "reason"),
    [
        ({}, 4, None),
        ({}, 8, "BudgetSpent"),
        ({"max_unavailable": "1"}, 8, None),
        ({"max_unavailable": "2"}, 20, None),
        ({"max_unavailable": "3"}, 20, "BudgetSpent"),
        ({"recreate": True}, 1, None),
        ({"recreate": True}, 2, "BudgetSpent"),
    ],
)
def test_a_rollout_takes_no_more_pods_at_once_than_the_workload_s_share(
    rollout: dict[str, object], replicas: int, reason: str | None
) -> None:
    spec = Spec(gpus=2, seen=(boards(0.5, 0.0),) * replicas, rollout=rollout)
    world, judged = judge(cluster(spec))

    assert reason == guard_budgets(world, judged, resize(2, 1, replicas=replicas), Tally.of(world)).reason


@pytest.mark.parametrize(
    ("saved", "fleet", "budgets", "remedy"),
    [
        (8, 96, {"namespaceShare": 1.0}, "raise budgets.fleetPerHour to at least 0.09"),
        (8, 96, {}, "raise budgets.fleetPerHour to at least 0.09, budgets.namespaceShare to at least 1"),
        (8, 40, {"namespaceShare": 1.0}, "raise budgets.fleetPerHour to at least 0.2, budgets.fleetPerDay to at least 0.2"),
        (3, 200, {}, "raise budgets.namespaceShare to at least 0.75"),
        (2, 100, {}, "raise budgets.namespaceShare to at least 1"),
        (20, 20, {"namespaceShare": 1.0}, "raise budgets.fleetPerHour to at least 1, budgets.fleetPerDay to at least 1"),
        (3, 100, {"namespaceShare": 1.0, "fleetPerHourByKind": {"scale-in": 0.03}}, "raise budgets.fleetPerHour to at least 0.03"),
        (2, 1, {}, "no budget admits it: the nodes that are known offer 1 boards"),
        (1, 100, {"inFlight": 0}, "raise budgets.inFlight to at least 1"),
    ],
)  # fmt: skip
def test_a_change_over_an_untouched_budget_is_told_what_would_admit_it(
    saved: int, fleet: int, budgets: dict[str, object], remedy: str
) -> None:
    found = ruling(saved, fleet=fleet, **budgets)

    assert (found.reason, found.remedy) == ("BudgetSpent", remedy)


def test_a_spent_budget_is_waited_for() -> None:
    act = PastAct(ELSEWHERE, NOW_MS, 1000)

    assert ruling(2, act, namespaceShare=1.0).remedy == ""
    waits = PastAct(ELSEWHERE, 0, verified=False)
    assert ruling(1, waits, inFlight=1).detail == "1 changes are planned or not yet verified, 1 allowed"
    assert ruling(1, waits, inFlight=1).remedy == ""


@given(
    st.integers(1, 20),
    st.integers(20, 5000),
    st.sampled_from([0.0, 0.001, 0.02]),
    st.sampled_from([0.0, 0.3, 1.0]),
)
def test_the_value_that_a_refusal_names_admits_the_change(
    saved: int, fleet: int, share: float, here: float
) -> None:
    budgets = {"fleetPerHour": share, "fleetPerDay": share, "namespaceShare": here}
    found = ruling(saved, fleet=fleet, **budgets)
    if found.reason:
        told = re.findall(r"budgets\.(\w+) to at least ([0-9.]+)", found.remedy)
        assert told
        assert (
            ruling(saved, fleet=fleet, **{**budgets, **{name: float(value) for name, value in told}}).reason
            is None
        )


def test_a_rollout_over_the_workload_s_share_is_told_the_share() -> None:
    world, judged = judge(
        cluster(Spec(gpus=2, seen=(boards(0.5, 0.0),) * 20, rollout={"max_unavailable": "3"}))
    )
    found = guard_budgets(world, judged, resize(2, 1, replicas=20), Tally.of(world))

    assert found.remedy == "lower maxUnavailable, or raise budgets.podsPerWorkload to at least 0.15"


@given(st.integers(0, 20), st.integers(0, 9), st.sampled_from([0.0, 0.02, 0.5, 1.0]))
def test_more_spent_or_a_smaller_share_never_allows_more(saved: int, spent: int, share: float) -> None:
    fresh = rule(saved, fleetPerHour=share, namespaceShare=1.0)
    after = rule(saved, PastAct(ELSEWHERE, NOW_MS, spent * 1000), fleetPerHour=share / 2, namespaceShare=1.0)

    assert fresh is None or after is not None


@pytest.mark.parametrize(
    ("replicas", "share", "at_once"), [(1, 0.1, 1), (10, 0.1, 1), (29, 0.1, 2), (30, 0.1, 3), (5, 1.0, 5)]
)
def test_a_workload_loses_its_share_of_replicas_at_once_or_one(
    replicas: int, share: float, at_once: int
) -> None:
    world, _ = judge(cluster(Spec()), policy(budgets={"podsPerWorkload": share}))

    assert at_once == step_limit(world, replicas)


@pytest.mark.parametrize(
    ("clean_days", "most", "hour"),
    [(0, 2, 2), (1, 2, 4), (2, 2, 8), (9, 2, 8), (9, 0, 2), (6, 6, 100), (-3, 2, 2)],
)
def test_the_rates_double_after_each_clean_day_up_to_the_policy_s_limit(
    clean_days: int, most: int, hour: int
) -> None:
    rules = policy_from_dict(
        {"budgets": {"namespaceShare": 1.0, "fleetPerDay": 1.0, "maxDoublings": most, "podsPerWorkload": 1.0}}
    )
    snapshot = cluster(
        Spec(seen=(boards(0.0),) * 102), nodes=(node(gpus=100),), control=Control(clean_days=clean_days)
    )
    world, judged = judge(snapshot, rules)

    def reason(saved: int) -> str | None:
        return guard_budgets(world, judged, rescale(102, 102 - saved), Tally.of(world)).reason

    assert (reason(hour), reason(hour + 1)) == (None, "BudgetSpent")


def test_a_doubled_rate_is_told_and_the_day_s_grows_with_it() -> None:
    world, judged = judge(
        cluster(Spec(seen=(boards(0.0),) * 50), nodes=(node(gpus=100),), control=Control(clean_days=1)),
        policy_from_dict({"budgets": {"fleetPerHour": 0.1, "namespaceShare": 1.0}}),
    )
    spent = PastAct(ELSEWHERE, NOW_MS - 2 * 3_600_000, 15_000)
    told = guard_budgets(world, judged, rescale(50, 30), Tally.of(world))
    late, also = judge(
        cluster(
            Spec(seen=(boards(0.0),) * 50),
            nodes=(node(gpus=100),),
            control=Control(clean_days=1),
            acts=(spent,),
        ),
        world.policy,
    )

    assert (told.reason, told.detail) == (None, "0 + 20 of 20 boards this hour, 2 x after clean days")
    assert [guard_budgets(late, also, rescale(50, 50 - n), Tally.of(late)).reason for n in (5, 6)] == [
        None,
        "BudgetSpent",
    ]


OF_KIND = {"fleetPerHour": 1.0, "fleetPerDay": 1.0, "namespaceShare": 1.0}


@pytest.mark.parametrize(
    ("saved", "acts", "share", "reason"),
    [
        (3, (), 0.03, None),
        (4, (), 0.03, "BudgetSpent"),
        (1, (PastAct(ELSEWHERE, NOW_MS, 3000, method="scale-in"),), 0.03, "BudgetSpent"),
        (1, (PastAct(ELSEWHERE, NOW_MS, 3000, method="idle"),), 0.03, None),
        (1, (PastAct(ELSEWHERE, NOW_MS - 3_600_000, 3000, method="scale-in"),), 0.03, None),
        (1, (), 0.0, None),
    ],
)
def test_a_kind_of_action_has_a_rate_of_its_own(
    saved: int, acts: tuple[PastAct, ...], share: float, reason: str | None
) -> None:
    assert reason == rule(saved, *acts, fleetPerHourByKind={"scale-in": share}, **OF_KIND)
    assert rule(saved, *acts, fleetPerHourByKind={"idle": 0.0}, **OF_KIND) is None


def test_a_rate_of_a_kind_admits_no_more_than_the_fleet_s() -> None:
    assert rule(3, fleetPerHourByKind={"scale-in": 1.0}, namespaceShare=1.0) == "BudgetSpent"
    assert rule(2, fleetPerHourByKind={"scale-in": 1.0}, namespaceShare=1.0) is None


def test_a_change_over_the_whole_rate_of_its_kind_is_told_the_value() -> None:
    found = ruling(4, fleetPerHourByKind={"scale-in": 0.03}, **OF_KIND)

    assert (
        found.detail
        == "4 boards at once are over the whole budget (hour 100, day 100, namespace 100, scale-in 3)"
    )
    assert found.remedy == "raise budgets.fleetPerHourByKind of scale-in to at least 0.04"


@pytest.mark.parametrize(
    ("saved", "acts", "allowed", "reason", "remedy"),
    [
        (3, (), 3, None, ""),
        (4, (), 3, "BudgetSpent", "raise budgets.podsPerHour to at least 4"),
        (1, (PastAct(ELSEWHERE, NOW_MS, pods=3),), 3, "BudgetSpent", ""),
        (1, (PastAct(ELSEWHERE, NOW_MS - 3_600_000, pods=3),), 3, None, ""),
        (
            1,
            (PastAct(ELSEWHERE, NOW_MS, pods=-9),),
            0,
            "BudgetSpent",
            "raise budgets.podsPerHour to at least 1",
        ),
    ],
)
def test_pods_are_counted_as_well(
    saved: int, acts: tuple[PastAct, ...], allowed: int, reason: str | None, remedy: str
) -> None:
    found = ruling(saved, *acts, podsPerHour=allowed, **OF_KIND)

    assert (found.reason, found.remedy) == (reason, remedy)


@pytest.mark.parametrize(("kind", "ended"), [("Deployment", 4), ("StatefulSet", 4), ("CronJob", 0)])
def test_a_new_template_ends_every_pod_and_none_where_the_next_run_has_it(kind: str, ended: int) -> None:
    _, judged = judge(cluster(Spec(kind=kind, gpus=2, seen=(boards(0.5, 0.0),) * 4)))

    assert ended == pods_of(judged, resize(2, 1, replicas=4))


def test_an_eviction_ends_one_pod_and_a_release_through_kueue_all_that_are_there() -> None:
    _, judged = judge(cluster(Spec(seen=(boards(0.0),) * 3, replicas=5)))
    evicted, stopped = (
        Proposal(method, Reason.MADE_ROOM, lever, 1, 0, 0, "a test says so")
        for method, lever in (("make-room", "evict"), ("deactivate", "deactivate"))
    )

    assert (pods_of(judged, evicted), pods_of(judged, stopped)) == (1, 3)


def test_growth_is_told_only_where_there_is_any() -> None:
    assert ruling(1, namespaceShare=1.0).detail == "0 + 1 of 2 boards this hour"


@pytest.mark.parametrize(
    ("planned", "allowed", "reason", "remedy"),
    [
        (1, 2, None, ""),
        (2, 2, "BudgetSpent", ""),
        (0, 0, "BudgetSpent", "raise budgets.actsPerCycle to at least 1"),
    ],
)
def test_one_plan_begins_no_more_acts_than_allowed(
    planned: int, allowed: int, reason: str | None, remedy: str
) -> None:
    rules = policy_from_dict({"budgets": {"actsPerCycle": allowed, "inFlight": 9, **OF_KIND}})
    world, judged = judge(cluster(Spec(seen=(boards(0.0),) * 20), nodes=(node(gpus=100),)), rules)
    tally = Tally.of(world)
    for _ in range(planned):
        tally = tally.after(Effect("lab", method="idle", boards=1, pods=1))
    found = guard_budgets(world, judged, rescale(20, 19), tally)

    assert (found.reason, found.remedy) == (reason, remedy)
    assert (tally.method_boards, tally.pods_hour) == ({"idle": planned} if planned else {}, planned)
