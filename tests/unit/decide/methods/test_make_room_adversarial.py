from typing import Any

import pytest
from build import NOW_MS, Spec, boards, burst, cluster, node, policy, waiting
from law import broken_laws
from msgspec.structs import replace

from autoscaler.decide import plan
from autoscaler.decide.methods.make_room import MOST_NODES
from autoscaler.model.plan import Plan
from autoscaler.model.snapshot import Snapshot

APPLY = {"default": "apply"}


def planned(snapshot: Snapshot, **sections: Any) -> Plan:
    rules = policy(**{"modes": APPLY, **sections})
    found = plan(snapshot, rules, NOW_MS)
    assert broken_laws(snapshot, found, rules, NOW_MS) == []
    return found


@pytest.mark.parametrize(
    "pod", [{"nominated_node": "gone"}, {"phase": ""}, {"phase": "Running"}, {"node": "node-9"}]
)
def test_a_pod_in_an_odd_state_causes_at_most_what_is_lawful(pod: dict[str, Any]) -> None:
    asking = waiting(pod=pod, node=pod.get("node", ""))

    assert len(planned(cluster(burst(), asking, nodes=(node(gpus=1),))).actions) <= 1


def test_a_node_that_is_over_full_needs_all_of_it_back() -> None:
    over = [burst(f"b{n}") for n in range(3)]
    nodes = (node(gpus=1), node("far", gpus=9, unschedulable=True))
    found = planned(cluster(*over, waiting(), nodes=nodes))

    assert [action.pod.name for action in found.actions if action.pod] == ["b0-0", "b1-0", "b2-0"]


def test_a_demand_beyond_any_node_is_refused_without_a_search() -> None:
    found = planned(cluster(burst(), waiting(gpus=2**40), nodes=(node(gpus=1),)))

    assert found.actions == ()


def test_thirty_candidates_on_a_node_are_not_tried_in_every_combination() -> None:
    crowd = [burst(f"b{n:02}", 1 + n % 2) for n in range(30)]
    found = planned(cluster(*crowd, waiting(gpus=7), nodes=(node(gpus=45),)))

    assert sum(action.before for action in found.actions) in {7, 8}


def test_two_units_of_a_workload_do_not_count_twice_where_many_are_tried() -> None:
    crowd = burst("twins").but(seen=(boards(0.9),) * 20)
    found = planned(cluster(crowd, waiting(gpus=2), nodes=(node(gpus=20),)))

    assert found.actions == ()


def test_equal_names_in_two_namespaces_are_two_units() -> None:
    twins = [burst("same", namespace=space) for space in ("team", "lab")]
    found = planned(cluster(*twins, waiting(gpus=2), nodes=(node(gpus=2),)))

    assert [str(action.pod) for action in found.actions] == ["lab/same-0", "team/same-0"]


def test_most_nodes_are_searched_for_one_pod_and_no_more() -> None:
    names = [f"node-{n:04}" for n in range(MOST_NODES + 5)]
    mark = {"annotations": {"gpu-autoscaler.io/do-not-disrupt": "true"}}
    kept = [burst(f"b{name}", node=name, pod=mark) for name in names]
    found = planned(cluster(*kept, waiting(), nodes=[node(name, gpus=1) for name in names]))
    (row,) = [row for row in found.rows if row.workload.name == "urgent"]

    assert row.reason == "Protected"
    assert row.detail.endswith(f"and {MOST_NODES + 2} more nodes")


def test_the_best_of_many_equal_nodes_is_the_first_by_name() -> None:
    names = [f"node-{n}" for n in range(9)]
    victims = [burst(f"b{name}", node=name) for name in reversed(names)]
    found = planned(cluster(*victims, waiting(), nodes=[node(name, gpus=1) for name in reversed(names)]))

    assert [action.seat.node for action in found.actions if action.seat] == ["node-0"]


def test_the_cheaper_of_two_nodes_is_taken_whatever_its_name() -> None:
    nodes = (node(gpus=4), node("node-2", gpus=2), node("node-3", gpus=3))
    specs = [burst("a", 4), burst("b", 2, node="node-2"), burst("c", 3, node="node-3")]
    found = planned(cluster(*specs, waiting(gpus=2), nodes=nodes))

    assert [str(action.pod) for action in found.actions] == ["team/b-0"]


def test_a_set_that_is_dearer_than_the_best_so_far_is_not_paid_for() -> None:
    nodes = (node(gpus=2), node("node-2", gpus=3))
    specs = [burst("a"), burst("b"), burst("c", 3, node="node-2")]
    found = planned(cluster(*specs, waiting(gpus=2), nodes=nodes))

    assert [str(action.pod) for action in found.actions] == ["team/a-0", "team/b-0"]


def test_a_peer_that_is_pending_or_unmeasured_says_nothing_about_a_unit_that_runs() -> None:
    three = burst().but(seen=(boards(0.9), None, None))
    snapshot = cluster(three, waiting(), nodes=(node(gpus=2),))
    first, second, third, asking = snapshot.pods
    waits = replace(third, node="", phase="Pending", ready=False, unschedulable="no room")
    found = planned(replace(snapshot, pods=(first, second, waits, asking)), evidence={"fleetCoverage": 0.0})

    assert [str(action.pod) for action in found.actions] == ["team/burst-0"]


def test_a_job_of_waiting_pods_and_an_empty_cluster() -> None:
    found = planned(cluster(waiting(), nodes=()))
    (row,) = found.rows

    assert row.reason == "NoPlacement"
    assert "no node's state, labels and taints let it in" in row.detail


def test_a_victim_without_a_use_ratio_is_told_in_words_all_the_same() -> None:
    low = Spec("low", seen=(boards(0.1),), shape={"priority": 5})
    (action,) = planned(cluster(low, waiting(), nodes=(node(gpus=1),))).actions

    assert action.because.endswith("it is of priority 5 and uses 10% of its boards")


def test_a_server_in_flight_of_priority_over_int32_is_no_trouble() -> None:
    found = planned(cluster(burst(), waiting(shape={"priority": 2**62}), nodes=(node(gpus=1),)))

    assert len(found.actions) == 1
