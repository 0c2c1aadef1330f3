"""Pods that keep others out of their node or zone: the scheduler honours it, so there is no seat for whom they select."""

from typing import Any

import pytest
from build import GPU, NOW_MS, Spec, boards, burst, cluster, judge, node, policy, resize, waiting

from autoscaler.decide import plan
from autoscaler.decide.guards.successor import guard_placement
from autoscaler.decide.room import Room
from autoscaler.decide.tally import Tally
from autoscaler.decide.world import World
from autoscaler.model.cluster import Repeller
from autoscaler.model.selectors import LabelRequirement, LabelSelector
from autoscaler.model.shapes import Repulsion

URGENT = LabelSelector({"app": "urgent"})
NO_WEB = LabelSelector(expressions=(LabelRequirement("app", "NotIn", ("web",)),))
ZONES = (
    node("a-1", labels={"zone": "a"}),
    node("a-2", labels={"zone": "a"}),
    node("b-1", labels={"zone": "b"}),
)


def admitting(*repellers: Repeller, holder: dict[str, Any] | None = None) -> list[str]:
    """Nodes that let a waiting pod with label app=urgent in."""
    specs = [waiting()]
    if holder:
        specs.append(Spec("db", **holder))
    world = World(cluster(*specs, nodes=ZONES, repellers=repellers), policy(), NOW_MS)
    (unit,) = [unit for units in world.units_of.values() for unit in units if unit.pod.name == "urgent-0"]
    return list(Room(world).admitting(unit))


def by(term: Repulsion, *nodes: str, namespace: str = "team") -> Repeller:
    return Repeller(namespace, nodes, (term,))


@pytest.mark.parametrize(
    ("repeller", "open_nodes"),
    [
        (by(Repulsion("zone", URGENT), "a-1"), ["b-1"]),
        (by(Repulsion("zone", URGENT), "a-1", "b-1"), []),
        (by(Repulsion("zone", URGENT), "gone"), ["a-1", "a-2", "b-1"]),
        (by(Repulsion("rack", URGENT), "a-1"), ["a-1", "a-2", "b-1"]),
        (by(Repulsion("zone", LabelSelector({"app": "web"})), "a-1"), ["a-1", "a-2", "b-1"]),
        (by(Repulsion("zone", None), "a-1"), ["a-1", "a-2", "b-1"]),
        (by(Repulsion("zone", LabelSelector()), "b-1"), ["a-1", "a-2"]),
        (
            by(Repulsion("zone", NO_WEB), "b-1"),
            ["a-1", "a-2"],
        ),
        (by(Repulsion("zone", URGENT), "a-1", namespace="lab"), ["a-1", "a-2", "b-1"]),
        (by(Repulsion("zone", URGENT, ("team", "ops")), "a-1", namespace="lab"), ["b-1"]),
        (by(Repulsion("zone", URGENT, ("ops",)), "a-1"), ["a-1", "a-2", "b-1"]),
        (by(Repulsion("zone", URGENT, None), "a-1", namespace="lab"), ["b-1"]),
    ],
)
def test_nodes_of_a_domain_that_keeps_the_pod_out_are_no_seats(
    repeller: Repeller, open_nodes: list[str]
) -> None:
    assert admitting(repeller) == open_nodes


@pytest.mark.parametrize(
    ("phase", "open_nodes"), [("Running", ["b-1"]), ("Succeeded", ["a-1", "a-2", "b-1"])]
)
def test_pods_with_boards_keep_out_as_others_do_while_they_live(phase: str, open_nodes: list[str]) -> None:
    terms = (Repulsion("zone", URGENT),)
    holder = {"node": "a-2", "shape": {"repels": terms}, "pod": {"phase": phase}}

    assert admitting(holder=holder) == open_nodes


def test_no_room_is_made_where_the_pod_is_kept_out() -> None:
    tables: dict[str, Any] = {"nodes": (node(gpus=1, labels={"zone": "a"}),)}
    kept_out = cluster(burst(), waiting(), repellers=(by(Repulsion("zone", URGENT), "node-1"),), **tables)
    welcome = cluster(burst(), waiting(), **tables)
    rules = policy(modes={"default": "apply"})

    assert plan(kept_out, rules, NOW_MS).actions == ()
    assert [action.pod.name for action in plan(welcome, rules, NOW_MS).actions if action.pod] == ["burst-0"]


def test_what_one_pod_is_kept_out_of_is_still_open_to_its_equals() -> None:
    """Two waiting pods of one shape: the free node keeps out only the one that comes first."""
    specs = (waiting("urgent", pod={"created_ms": 1}), waiting("second", pod={"created_ms": 2}))
    nodes = (node(gpus=1, labels={"zone": "a"}),)
    found = plan(
        cluster(*specs, nodes=nodes, repellers=(by(Repulsion("zone", URGENT), "node-1"),)), policy(), NOW_MS
    )
    rulings = {row.workload.name: [check.detail for check in row.checks] for row in found.rows}

    assert any("fits node-1 now" in detail for detail in rulings["second"])
    assert not any("fits node-1" in detail for detail in rulings["urgent"])


def test_neither_a_surge_nor_a_successor_counts_on_a_node_that_keeps_it_out() -> None:
    spec = Spec(gpus=2, seen=(boards(0.5, 0.0),))
    web = LabelSelector({"app": "web"})
    nodes = (node("node-1", gpus=2), node("node-2", gpus=2, labels={"zone": "b"}))
    for terms, reason in (((), None), ((by(Repulsion("zone", web), "node-2"),), "NoSurge")):
        world, judged = judge(cluster(spec, nodes=nodes, repellers=terms))

        assert guard_placement(world, judged, resize(2, 1), Tally.of(world)).reason == reason

    at_home = (node("node-1", gpus=2, labels={"zone": "a"}),)
    in_place = spec.but(rollout={"max_surge": "0", "max_unavailable": "1"})
    world, judged = judge(cluster(in_place, nodes=at_home, repellers=(by(Repulsion("zone", web), "node-1"),)))

    assert guard_placement(world, judged, resize(2, 1), Tally.of(world)).reason == "NoPlacement"
    assert world.free["node-1"][GPU] == 0
