"""Who leaves for whom, with the priority classes that this project starts from."""

from typing import Any

import pytest
from build import (
    GPU,
    HOUR_MS,
    MINUTE_MS,
    NOW_MS,
    Spec,
    boards,
    burst,
    cluster,
    node,
    policy,
    waiting,
)
from law import broken_laws

from autoscaler.decide import plan
from autoscaler.model.cluster import Budget, PastAct, WorkloadRef
from autoscaler.model.plan import Action, ExplainRow, Plan
from autoscaler.model.selectors import LabelSelector
from autoscaler.model.snapshot import Snapshot

APPLY = {"default": "apply"}
MEDIUM = {"priority_class": "medium-priority-a100", "priority": 100_000}


def planned(snapshot: Snapshot, **sections: Any) -> Plan:
    rules = policy(**{"modes": APPLY, **sections})
    found = plan(snapshot, rules, NOW_MS)
    assert broken_laws(snapshot, found, rules, NOW_MS) == []
    return found


def full(*specs: Spec, spare: int = 0, **tables: Any) -> Snapshot:
    """All on one node, which has so many boards to spare."""
    held = sum(spec.gpus * len(spec.seen) for spec in specs if spec.node == "node-1")
    return cluster(*specs, **{"nodes": (node(gpus=held + spare),), **tables})


def leaving(snapshot: Snapshot, **sections: Any) -> list[str]:
    return [action.pod.name for action in planned(snapshot, **sections).actions if action.pod]


def only(snapshot: Snapshot, **sections: Any) -> Action:
    (action,) = planned(snapshot, **sections).actions
    return action


def row(found: Plan, name: str = "urgent") -> ExplainRow:
    (one,) = [row for row in found.rows if row.workload.name == name]
    return one


def test_burst_leaves_for_high_priority_though_both_have_the_same_value() -> None:
    action = only(full(burst(gpus=2), waiting(gpus=2)))

    assert (action.method, action.lever, action.reason) == ("make-room", "evict", "MadeRoom")
    assert (action.before, action.after, action.saved_milli_boards, action.held_by) == (2, 0, 0, ())
    assert action.pod is not None
    assert str(action.pod) == "team/burst-0"
    assert action.seat is not None
    assert (str(action.seat.pod), action.seat.node, action.seat.priority, action.seat.more) == (
        "team/urgent-0",
        "node-1",
        1_000_000,
        0,
    )
    assert action.because == (
        "pod team/urgent-0 of priority 1000000 waits for node-1: its class gpu-burst yields"
    )
    assert action.preconditions == (
        "uid is uid-team-burst",
        "pod burst-0 is uid-team-burst-0",
        "pod team/urgent-0 has no node",
    )


@pytest.mark.parametrize(
    ("victim", "rules", "expected"),
    [
        (burst("v"), {}, ["v-0"]),
        (Spec("v", seen=(boards(0.1),), shape=MEDIUM), {}, ["v-0"]),
        (Spec("v", seen=(boards(0.0),), shape=MEDIUM), {}, ["v-0"]),
        (Spec("v", seen=(boards(0.9),), shape=MEDIUM), {}, []),
        (Spec("v", seen=(boards(0.1),), shape=MEDIUM), {"lowerPriority": False}, []),
        (Spec("v", seen=(boards(0.1),), shape={"priority": 1_000_000}), {}, []),
        (Spec("v", seen=(boards(0.0),), shape={"priority": 1_000_000}), {"idle": False}, []),
        (Spec("v", seen=(boards(0.0),), shape={"priority": 9_000_000}), {"idle": True}, []),
        (Spec("v", seen=(boards(0.0),), shape={"priority": 1_000_000}), {"idle": True}, ["v-0"]),
        (Spec("v", seen=(boards(0.1),), shape={"priority": 1_000_000}), {"idle": True}, []),
        (burst("v"), {"classes": []}, []),
        (burst("v"), {"beneficiaries": []}, []),
        (burst("v"), {"beneficiaries": [""]}, ["v-0"]),
    ],
)
def test_who_yields(victim: Spec, rules: dict[str, Any], expected: list[str]) -> None:
    assert expected == leaving(full(victim, waiting()), **{"yield": rules})


def test_a_unit_is_proven_idle_only_after_the_promised_time() -> None:
    idle = Spec("v", seen=(boards(0.0, history_ms=40 * MINUTE_MS),), shape={"priority": 1_000_000})
    rules: dict[str, Any] = {"yield": {"idle": True}}

    assert leaving(full(idle, waiting()), methods={"idleFloor": "30m"}, **rules) == ["v-0"]
    assert leaving(full(idle, waiting()), methods={"idleFloor": "50m"}, **rules) == []


@pytest.mark.parametrize(
    "asking",
    [
        waiting(shape={"priority_class": "gpu-burst"}),
        waiting(shape=MEDIUM),
        waiting(pod={"unschedulable": ""}),
        waiting(pod={"deleting": True}),
        waiting(resource="nvidia.com/mig-1g.10gb"),
        waiting(namespace="kube-system"),
    ],
)
def test_who_is_no_beneficiary(asking: Spec) -> None:
    assert leaving(full(burst(), asking)) == []


def test_the_first_to_go_yields_by_class_then_is_idle_then_is_of_lower_priority() -> None:
    low = Spec("a-low", seen=(boards(0.1),), shape={"priority": 5})
    idle = Spec("b-idle", seen=(boards(0.0),), shape={"priority": 50})
    yielding = burst("c-burst")

    assert leaving(full(low, idle, yielding, waiting())) == ["c-burst-0"]
    assert leaving(full(low, idle, waiting())) == ["b-idle-0"]
    assert leaving(full(low, waiting())) == ["a-low-0"]


def test_the_lowest_top_priority_goes_whatever_the_node() -> None:
    ten = Spec("ten", seen=(boards(0.1),), shape={"priority": 10})
    nine = Spec("nine", seen=(boards(0.1),), shape={"priority": 9}, node="node-2")
    nodes = (node(gpus=1), node("node-2", gpus=1))

    assert leaving(cluster(ten, nine, waiting(), nodes=nodes)) == ["nine-0"]


def test_as_few_boards_as_needed_and_as_few_pods() -> None:
    small = [burst(f"s{n}") for n in range(4)]

    assert leaving(full(burst("big", 4), *small, waiting(gpus=2))) == ["s0-0", "s1-0"]
    assert leaving(full(burst("big", 4), *small, waiting(gpus=4))) == ["big-0"]
    assert leaving(full(burst("big", 4), small[0], waiting(gpus=2))) == ["big-0"]


def test_a_seat_is_on_one_node() -> None:
    nodes = (node(gpus=1), node("node-2", gpus=1))
    found = planned(cluster(burst("a"), burst("b", node="node-2"), waiting(gpus=2), nodes=nodes))

    assert found.actions == ()
    assert row(found).reason == "NoPlacement"
    assert row(found).detail.endswith("2 nodes let it in, and none would have room whoever yields there")


def test_every_component_has_to_fit() -> None:
    hungry = waiting(cpu_milli=255_000)
    found = leaving(full(burst("a", cpu_milli=2_000), burst("b", cpu_milli=1_500), hungry, spare=1))

    assert found == ["a-0", "b-0"]


def test_a_free_seat_needs_nobody_to_leave_and_is_spoken_for_by_the_most_urgent() -> None:
    specs = [burst("a"), waiting("first", shape={"priority": 2_000_000}), waiting("second")]
    found = planned(full(*specs, spare=1))

    assert [action.seat.pod.name for action in found.actions if action.seat] == ["second-0"]
    assert "pod first-0 fits node-1 now" in [check.detail for check in row(found, "first").checks]
    assert "pod second-0 gets node-1 once team/a-0 left" in [
        check.detail for check in row(found, "second").checks
    ]


def test_who_is_leaving_already_is_enough() -> None:
    found = planned(full(burst("a", pod={"deleting": True}), burst("b"), waiting()))

    assert found.actions == ()
    assert "pod urgent-0 fits node-1 once pods have left that are leaving" in [
        check.detail for check in row(found).checks
    ]


def test_the_highest_priority_is_served_first_then_who_waits_longest() -> None:
    late = waiting("a-late", pod={"created_ms": NOW_MS})
    early = waiting("b-early", pod={"created_ms": NOW_MS - HOUR_MS})
    higher = waiting("c-higher", shape={"priority": 2_000_000}, pod={"created_ms": NOW_MS})
    found = planned(full(burst("x"), burst("y"), late, early, higher))

    assert [action.seat.pod.name for action in found.actions if action.seat] == ["c-higher-0", "b-early-0"]
    assert row(found, "a-late").reason == "NoPlacement"


def test_several_victims_of_a_seat_are_told_in_order_and_are_one_act_in_flight() -> None:
    found = planned(full(*[burst(f"b{n}") for n in range(3)], waiting(gpus=3)), budgets={"inFlight": 1})

    assert [action.pod.name for action in found.actions if action.pod] == ["b0-0", "b1-0", "b2-0"]
    assert [action.seat.more for action in found.actions if action.seat] == [2, 1, 0]
    assert [action.ready_within_ms // MINUTE_MS for action in found.actions] == [30, 20, 10]


def test_a_seat_that_was_begun_is_gone_on_with_on_its_node() -> None:
    begun = waiting(gpus=2, pod={"nominated_node": "node-2"})
    specs = [
        burst("a", gpus=2),
        burst("gone", pod={"deleting": True}, node="node-2"),
        burst("b", node="node-2"),
    ]
    nodes = (node(gpus=2), node("node-2", gpus=2))

    assert leaving(cluster(*specs, begun, nodes=nodes)) == ["b-0"]
    assert leaving(cluster(*specs, waiting(gpus=2), nodes=nodes)) == ["b-0"]


def test_a_seat_that_was_begun_waits_for_a_budget_rather_than_begin_elsewhere() -> None:
    begun = waiting(gpus=2, pod={"nominated_node": "node-2"})
    specs = [burst("a", gpus=2), burst("b", gpus=2, node="node-2")]
    nodes = (node(gpus=2), node("node-2", gpus=2))
    none = Budget("team", "pdb", LabelSelector({"app": "b"}), minimum="1", allowed=0)
    found = planned(cluster(*specs, begun, nodes=nodes, budgets=(none,)))

    assert found.actions == ()
    assert row(found).reason == "DisruptionBudget"


def test_a_seat_that_was_begun_where_nobody_may_leave_any_more_is_looked_for_elsewhere() -> None:
    begun = waiting(gpus=2, pod={"nominated_node": "node-2"})
    specs = [burst("a", gpus=2), Spec("busy", gpus=2, seen=(boards(0.9, 0.9),), node="node-2")]
    nodes = (node(gpus=2), node("node-2", gpus=2))

    assert leaving(cluster(*specs, begun, nodes=nodes)) == ["a-0"]


def test_a_seat_that_is_kept_for_one_is_not_given_to_its_equal() -> None:
    keeper = waiting("a", gpus=2, pod={"nominated_node": "node-1"})
    busy = Spec("busy", seen=(boards(0.9),))
    found = planned(full(busy, keeper, waiting("b"), spare=1))

    assert "fits" not in row(found, "b").detail
    assert row(found, "b").reason == "NoPlacement"


def test_where_its_seat_is_kept_comes_first() -> None:
    nodes = (node(gpus=1), node("node-2", gpus=1))
    found = planned(cluster(waiting(pod={"nominated_node": "node-2"}), nodes=nodes))

    assert "pod urgent-0 fits node-2 now" in [check.detail for check in row(found).checks]


def test_a_workload_gives_up_one_unit_at_a_time() -> None:
    twins = burst().but(seen=(boards(0.9),) * 2)
    found = planned(full(twins, waiting(gpus=2)))

    assert found.actions == ()
    assert row(found).reason == "NoPlacement"
    assert "a workload gives up one unit at a time" in row(found).detail
    assert leaving(full(twins, waiting(gpus=1), waiting("next", gpus=1))) == ["burst-0"]


def test_a_workload_that_gives_up_a_unit_is_not_changed_otherwise() -> None:
    idle = burst(gpus=2, use=0.0, annotations={"gpu-autoscaler.io/min-replicas": "0"})
    (action,) = planned(full(idle, waiting())).actions

    assert action.method == "make-room"


def test_pods_that_are_refused_alike_are_told_together() -> None:
    trio = waiting().but(kind="Deployment", group="apps", seen=(None,) * 3)
    found = planned(full(Spec("busy", seen=(boards(0.9),)), trio))

    assert [refusal.reason for refusal in row(found).refusals][:2] == ["NoPlacement", "NotReady"]
    assert row(found).refusals[0].method == "make-room"
    assert row(found).detail == (
        "pod urgent-0 and 2 more waits: node-1: 1 boards short, "
        "stays: team/busy-0 (yield: it is busy, of priority 0)"
    )


def test_the_refusal_names_the_nearest_nodes_and_counts_the_rest() -> None:
    specs = [Spec(f"w{n}", seen=(boards(0.9),), node=f"node-{n}") for n in range(5)]
    crowd = [Spec(f"c{n}", seen=(boards(0.9),), node="node-0") for n in range(4)]
    nodes = (node("node-0", gpus=5), *(node(f"node-{n}", gpus=1) for n in range(1, 5)))
    found = planned(cluster(*specs, *crowd, waiting(), nodes=nodes))
    alone = planned(cluster(specs[0], *crowd, waiting(), nodes=nodes[:1]))

    assert row(found).detail.endswith("; and 2 more nodes")
    assert row(found).detail.count("stays") == 3
    assert row(alone).detail.endswith(", 2 more")


@pytest.mark.parametrize(
    ("modes", "held_by", "count"),
    [
        ({"default": "apply"}, (), 1),
        ({"default": "recommend"}, ("ModeRecommend",), 1),
        ({"default": "observe"}, (), 0),
        ({"default": "apply", "makeRoom": "observe"}, (), 0),
        ({"default": "observe", "makeRoom": "apply"}, (), 1),
    ],
)
def test_make_room_has_its_own_switch(modes: dict[str, str], held_by: tuple[str, ...], count: int) -> None:
    found = planned(full(burst(), waiting()), modes=modes)

    assert [held_by] * count == [action.held_by for action in found.actions]
    assert count == 1 or (row(found).reason, row(found).remedy) == (
        "ModeRecommend",
        "set the mode of make-room to recommend",
    )


def test_switched_off_it_says_nothing() -> None:
    found = planned(full(burst(), waiting()), methods={"makeRoom": False})

    assert found.actions == ()
    assert "make-room" not in {refusal.method for refusal in found.refusals}


def test_one_interactive_victim_holds_back_the_whole_seat_and_is_asked_last() -> None:
    notebook = burst("a-notebook", container={"image": "jupyter/base-notebook"})
    both = planned(full(notebook, burst("b"), waiting(gpus=2)))

    assert leaving(full(notebook, burst("b"), waiting())) == ["b-0"]
    assert [action.held_by for action in both.actions] == [("ModeRecommend",)] * 2


@pytest.mark.parametrize(
    ("budgets", "count", "reason"),
    [
        ({"inFlight": 0}, 0, "BudgetSpent"),
        ({"inFlight": 1}, 1, "BudgetSpent"),
        ({"fleetPerHour": 0.5}, 1, "BudgetSpent"),
        ({"fleetPerHour": 0.1}, 0, "BudgetSpent"),
        ({"namespaceShare": 0.5}, 1, "BudgetSpent"),
        ({}, 2, None),
    ],
)
def test_budgets_count_the_boards_that_are_given(
    budgets: dict[str, Any], count: int, reason: str | None
) -> None:
    specs = [burst("a", 2), burst("b", 2, namespace="lab"), waiting(gpus=2), waiting("zlast", gpus=2)]
    found = planned(full(*specs), budgets=budgets)

    assert count == len(found.actions)
    assert reason is None or row(found, "zlast").reason == reason


def test_a_namespace_that_was_given_much_waits() -> None:
    other = WorkloadRef("apps", "Deployment", "lab", "other")
    act = PastAct(other, NOW_MS - 1, boards_milli=2000, method="make-room", given_to="team")
    nodes = (node(gpus=1), node("far", gpus=3, unschedulable=True))
    snapshot = cluster(burst(namespace="x"), waiting(), nodes=nodes, acts=(act,))
    found = planned(snapshot, budgets={"namespaceShare": 0.5})

    assert found.actions == ()
    assert row(found).reason == "BudgetSpent"
    assert "namespace team, this hour: 2 boards changed + 1 > 2" in row(found).detail


def test_disruption_budgets_are_summed_over_a_seat_and_another_set_is_taken() -> None:
    one = Budget("team", "pdb", LabelSelector({"team": "x"}), unavailable="1", allowed=1, expected_pods=9)
    marked = [burst(f"m{n}", labels={"team": "x"}) for n in range(2)]

    assert leaving(full(*marked, burst("z"), waiting(gpus=2), budgets=(one,))) == ["m0-0", "z-0"]
    assert leaving(full(*marked, waiting(gpus=2), budgets=(one,))) == []


def test_a_pod_of_two_budgets_is_never_asked() -> None:
    pdbs = tuple(Budget("team", name, LabelSelector(), unavailable="1", allowed=5) for name in ("a", "b"))
    found = planned(full(burst(), waiting(), budgets=pdbs))

    assert found.actions == ()
    assert "takes no pod with several budgets: a, b" in row(found).detail


@pytest.mark.parametrize(
    ("asking", "reason"),
    [
        (waiting(shape={"unmodelled": ("podAffinity",)}), "NoPlacement"),
        (waiting(shape={"faults": ("limits: x",)}), "NoPlacement"),
        (waiting(shape={"volume_claims": True}), "VolumeBound"),
        (waiting(shape={"resource_claims": True}), "VolumeBound"),
        (waiting(shape={"scheduler": "volcano"}), "ForeignScheduler"),
        (waiting(shape={"node_selector": {"gpu-type": "h100"}}), "NoPlacement"),
        (waiting(kind="PyTorchJob", group="kubeflow.org"), "GangMember"),
        (waiting(kind="Job", group="batch", workload={"replicas": 4}), "GangMember"),
    ],
)
def test_for_some_no_seat_can_be_made(asking: Spec, reason: str) -> None:
    found = planned(full(burst(), asking))

    assert found.actions == ()
    assert row(found).reason == reason


@pytest.mark.parametrize(
    ("past", "count"),
    [
        ({"at_ms": NOW_MS - 1}, 0),
        ({"at_ms": NOW_MS - HOUR_MS + 1}, 0),
        ({"at_ms": NOW_MS - HOUR_MS}, 1),
        ({"at_ms": NOW_MS - 5 * HOUR_MS, "not_before_ms": NOW_MS + 1}, 0),
        ({"at_ms": NOW_MS - 1, "method": "right-size"}, 1),
    ],
)
def test_who_was_asked_to_leave_does_not_make_others_leave(past: dict[str, Any], count: int) -> None:
    act = PastAct(**{"ref": WorkloadRef("", "Pod", "team", "urgent"), "method": "make-room", **past})
    found = planned(full(burst(), waiting(), acts=(act,)))

    assert count == len(found.actions)
    assert count or row(found).reason == "EvictionMemory"


def test_vendor_boards_are_made_room_for_like_others() -> None:
    vendor = "gpuconfig.com/gpu"
    host = node(allocatable={"cpu": 64_000, vendor: 2, "pods": 10})
    specs = (burst(gpus=2, resource=vendor), waiting(gpus=2, resource=vendor))

    assert leaving(cluster(*specs, nodes=(host,))) == ["burst-0"]


def test_the_id_is_of_this_victim_and_this_seat() -> None:
    first, same = (
        only(full(burst(), waiting())),
        only(full(burst(), waiting(), Spec("x", seen=(boards(0.9),)))),
    )
    other = only(full(burst(), waiting("another")))

    assert first.id == same.id
    assert first.id != other.id


def test_room_that_waiting_pods_will_take_is_no_room_for_a_surge() -> None:
    half = Spec("half", gpus=2, seen=(boards(0.5, 0.0),))
    lower = waiting("later", shape={"priority_class": "", "priority": 0})

    assert [action.method for action in planned(full(half, spare=1)).actions] == ["right-size"]
    assert planned(full(half, lower, spare=1)).actions == ()


def test_out_of_scope_nobody_is_asked_and_nothing_is_said() -> None:
    asking, victim = waiting(namespace="team"), burst(namespace="lab")

    assert leaving(full(victim, asking), resources={"namespaces": ["team"]}) == []
    assert leaving(full(victim, asking), resources={"namespaces": ["lab"]}) == []
    assert leaving(full(victim, asking, nodes=(node(allocatable={GPU: 1, "cpu": 9_000, "pods": 9}),))) == [
        "burst-0"
    ]
