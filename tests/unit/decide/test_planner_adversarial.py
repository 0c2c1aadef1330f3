import pytest
from build import GPU, HOUR_MS, NOW_MS, Board, Spec, boards, cluster, node, policy
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from worlds import worlds

from autoscaler.decide import plan
from autoscaler.model.cluster import Budget, Quota
from autoscaler.model.plan import Plan
from autoscaler.model.policy import Policy
from autoscaler.model.selectors import LabelSelector
from autoscaler.model.snapshot import KindAccess, Snapshot

HALF = Spec(gpus=2, seen=(boards(0.5, 0.0),))


def planned(snapshot: Snapshot, **sections: object) -> Plan:
    return plan(snapshot, policy(**sections), NOW_MS)  # type: ignore[arg-type]


def test_an_empty_snapshot_has_an_empty_plan() -> None:
    found = plan(Snapshot(taken_ms=0), Policy(), 0)

    assert (found.actions, found.refusals, found.rows) == ((), (), ())
    assert (
        found.fleet.boards,
        found.fleet.held,
        found.fleet.needed_milli,
        found.fleet.coverage,
        found.fleet.reclaimable_milli,
    ) == (0, 0, 0, 0.0, 0)


@pytest.mark.parametrize("now_ms", [-(2**62), 0, NOW_MS + 10_000 * HOUR_MS, 2**62])
def test_any_time_of_day_gives_a_plan(now_ms: int) -> None:
    assert len(plan(cluster(HALF), policy(), now_ms).rows) == 1


def test_before_the_pods_started_nothing_is_done() -> None:
    assert plan(cluster(HALF), policy(), 0).actions == ()


def test_every_workload_at_once_keeps_to_the_quota_surge_and_budget_sums() -> None:
    specs = [HALF.but(name=f"w{n}") for n in range(5)]
    quota = Quota("team", "q", {f"requests.{GPU}": 12}, {f"requests.{GPU}": 10})
    surges = planned(cluster(*specs, quotas=(quota,)))
    seats = planned(cluster(*specs, nodes=(node(gpus=13),)))
    hour = planned(cluster(*specs, nodes=(node(gpus=100),)), budgets={"fleetPerHour": 0.04})
    flight = planned(cluster(*specs), budgets={"inFlight": 1})

    assert tuple(len(found.actions) for found in (surges, seats, hour, flight)) == (2, 3, 4, 1)
    assert {"QuotaShort"} == {row.reason for row in surges.rows if not row.action}
    assert {"NoSurge"} == {row.reason for row in seats.rows if not row.action}
    assert {"BudgetSpent"} == {row.reason for row in hour.rows if not row.action}


def test_a_budget_over_two_workloads_is_spent_once() -> None:
    three = Spec(seen=(boards(0.05),) * 3)
    pdb = Budget("team", "pdb", LabelSelector(), unavailable="1", allowed=1)
    found = planned(cluster(three, three.but(name="other"), budgets=(pdb,)))

    assert [row.reason for row in found.rows] == ["ScaledIn", "DisruptionBudget"]


def test_what_only_the_budget_holds_back_is_counted_as_reclaimable() -> None:
    specs = [HALF.but(name=f"w{n}", seen=HALF.seen * 2, replicas=2) for n in range(2)]
    specs.append(
        Spec("z", gpus=2, seen=(boards(0.04, 0.0),) * 3, annotations={"gpu-autoscaler.io/role": "serving"})
    )
    found = planned(cluster(*specs), budgets={"inFlight": 1}, methods={"rightSize": True})
    alone = planned(cluster(specs[2]), budgets={"inFlight": 0}, methods={"rightSize": False})

    assert found.fleet.reclaimable_milli == 2000 + 2000 + 2000
    assert alone.fleet.reclaimable_milli == 2000


def test_the_second_best_is_taken_where_the_best_is_refused() -> None:
    serving = Spec(gpus=2, seen=(boards(0.04, 0.0),) * 3, container={"ports": (80,)})
    owned = serving.but(annotations={"gpu-autoscaler.io/role": "serving"})
    pdb = Budget("team", "pdb", LabelSelector(), unavailable="0", allowed=0)
    found = planned(cluster(owned, budgets=(pdb,)))

    assert [action.method for action in found.actions] == ["right-size"]
    assert [action.method for action in planned(cluster(owned)).actions] == ["scale-in"]


@pytest.mark.parametrize(
    ("modes", "held_by", "reason"),
    [
        ({"default": "observe"}, None, "ModeRecommend"),
        ({"default": "apply", "rightSize": "observe"}, None, "ModeRecommend"),
        ({"default": "recommend"}, ("ModeRecommend",), "RightSized"),
        ({"default": "apply"}, (), "RightSized"),
        ({"default": "observe", "rightSize": "apply"}, (), "RightSized"),
    ],
)
def test_each_method_has_its_own_switch(
    modes: dict[str, str], held_by: tuple[str, ...] | None, reason: str
) -> None:
    (row,) = planned(cluster(HALF), modes=modes, methods={"scaleIn": False}).rows

    assert reason == row.reason
    assert held_by == (row.action.held_by if row.action else None)
    assert row.action or row.remedy == "set the mode of right-size to recommend"


def test_interactive_work_is_never_more_than_recommended() -> None:
    notebook = HALF.but(container={"image": "jupyter/base-notebook"})
    (action,) = planned(cluster(notebook), modes={"default": "apply"}).actions

    assert action.held_by == ("ModeRecommend",)


def test_an_action_says_what_must_still_be_true_when_it_is_sent() -> None:
    (size,) = planned(cluster(HALF)).actions
    (scale,) = planned(cluster(Spec(seen=(boards(0.05), boards(0.01), boards(0.05))))).actions
    (ordered,) = planned(
        cluster(Spec(seen=(boards(0.05), boards(0.0)), kind="StatefulSet", workload={"resource_version": ""}))
    ).actions

    assert size.preconditions == (
        "uid is uid-team-web",
        "resourceVersion is 100",
        "nvidia.com/gpu of container main is 2",
    )
    assert scale.preconditions[-1] == "controller.kubernetes.io/pod-deletion-cost is lowest on web-1"
    assert ordered.preconditions == ("uid is uid-team-web", "replicas is 2")


@pytest.mark.parametrize(
    ("resources", "rows"),
    [
        ({"namespaces": ["team"]}, 1),
        ({"namespaces": ["lab"]}, 0),
        ({"podSelector": "gpu=true"}, 0),
        ({"podSelector": "!gpu"}, 1),
        ({"podSelector": "app=web"}, 1),
        ({"boards": ["amd.com/gpu"]}, 0),
    ],
)
def test_the_policy_narrows_the_fleet(resources: dict[str, object], rows: int) -> None:
    assert rows == len(planned(cluster(HALF), resources=resources).rows)


def test_a_workload_without_pods_is_in_scope_by_its_own_labels() -> None:
    empty = HALF.but(seen=(), replicas=0, labels={"gpu": "true"})

    assert len(planned(cluster(empty), resources={"podSelector": "gpu=true"}).rows) == 1
    assert len(planned(cluster(empty), resources={"podSelector": "gpu=false"}).rows) == 0


def test_the_fleet_s_faults_are_told() -> None:
    told = {"warnings": ("slow",), "dropped": {"NaN": 2}, "ghosts": 3, "fault": "refused"}
    access = (KindAccess("Node", "forbidden", "no"), KindAccess("Lease", "available"))
    faults = planned(cluster(HALF, telemetry=told, access=access)).fleet.faults

    assert faults == (
        "metrics store: refused",
        "metrics store warned: slow",
        "2 samples dropped: NaN",
        "3 series belong to no known pod",
        "may not read Node: no",
    )


def test_two_rows_for_the_same_workload_do_not_share_an_action() -> None:
    twin = HALF.but(seen=((Board(0.5, device="a"), Board(0.0, device="b")),))
    snapshot = cluster(HALF, twin)
    found = planned(
        replace(snapshot, workloads=(snapshot.workloads[0], replace(snapshot.workloads[1], uid="other")))
    )

    assert len({row.action.uid for row in found.rows if row.action}) == 2


@given(worlds(), st.integers(-(2**62), 2**62))
def test_no_moment_makes_it_raise(snapshot: Snapshot, now_ms: int) -> None:
    assert plan(snapshot, Policy(), now_ms).taken_ms == snapshot.taken_ms
