"""Nodes that are leaving give no seats, and for nodes that are on their way nobody leaves."""

from typing import Any

import pytest
from build import GPU, MINUTE_MS, NOW_MS, Spec, boards, burst, cluster, node, policy, resize, waiting
from build import judge as judged_of
from law import broken_laws

from autoscaler.decide import plan
from autoscaler.decide.coming import Coming
from autoscaler.decide.guards.successor import guard_placement, guard_volumes
from autoscaler.decide.node_marks import why_leaving
from autoscaler.decide.placement import admits
from autoscaler.decide.tally import Tally
from autoscaler.decide.world import World
from autoscaler.model.cluster import NodeClaimRow, NodeRow
from autoscaler.model.plan import Plan
from autoscaler.model.shapes import PodShape, Requirement, Taint, Toleration
from autoscaler.model.snapshot import Snapshot

EVERYTHING = (Toleration(operator="Exists"),)
KARPENTER = {"karpenter.sh/nodepool": "gpu"}
NO_BOARDS = {"cpu": 8000, "memory": 2**34, "pods": 110}


def taint(key: str, effect: str = "NoSchedule") -> dict[str, Any]:
    return {"taints": (Taint(key, "", effect),)}


@pytest.mark.parametrize(
    ("changes", "mark"),
    [
        ({}, ""),
        (taint("nvidia.com/gpu"), ""),
        ({"unschedulable": True}, "cordoned"),
        ({"deleting": True}, "being deleted"),
        (taint("ToBeDeletedByClusterAutoscaler"), "ToBeDeletedByClusterAutoscaler"),
        (
            taint("DeletionCandidateOfClusterAutoscaler", "PreferNoSchedule"),
            "DeletionCandidateOfClusterAutoscaler",
        ),
        (taint("karpenter.sh/disrupted"), "karpenter.sh/disrupted"),
        (taint("karpenter.sh/disruption"), "karpenter.sh/disruption"),
        (taint("aws-node-termination-handler/spot-itn"), "aws-node-termination-handler/spot-itn"),
        (
            taint("cloud.google.com/impending-node-termination"),
            "cloud.google.com/impending-node-termination",
        ),
        ({"conditions": ("PreemptScheduled",)}, "PreemptScheduled"),
        ({"conditions": ("MemoryPressure",)}, ""),
    ],
)
def test_a_node_on_its_way_out_has_no_seats_even_for_who_tolerates_everything(
    changes: dict[str, Any], mark: str
) -> None:
    row = node(**changes)

    assert why_leaving(row) == mark
    assert admits(row, PodShape((), tolerations=EVERYTHING)) == (mark == "")


def young(name: str = "new", gpus: int = 0, *, age_ms: int = MINUTE_MS, **changes: Any) -> NodeRow:
    """A node that has just come; without boards as long as its device plugin has not started."""
    room = NO_BOARDS | ({GPU: gpus} if gpus else {})
    hint = {"nvidia.com/gpu.present": "true"}
    return node(name, **{"allocatable": room, "created_ms": NOW_MS - age_ms, "labels": hint, **changes})


def claim(name: str = "order", *, age_ms: int = MINUTE_MS, gpus: int = 1, **changes: Any) -> NodeClaimRow:
    return NodeClaimRow(
        **{"name": name, "room": NO_BOARDS | {GPU: gpus}, "created_ms": NOW_MS - age_ms, **changes}
    )


def full(*specs: Spec, more: tuple[NodeRow, ...] = (), **tables: Any) -> Snapshot:
    """One node without a spare board, and these beside it."""
    held = sum(spec.gpus * len(spec.seen) for spec in specs if spec.node == "node-1")
    return cluster(*specs, nodes=(node(gpus=held), *more), **tables)


def planned(snapshot: Snapshot, **sections: Any) -> Plan:
    rules = policy(modes={"default": "apply"}, **sections)
    found = plan(snapshot, rules, NOW_MS)
    assert broken_laws(snapshot, found, rules, NOW_MS) == []
    return found


def told(found: Plan, name: str = "urgent") -> list[tuple[str, str]]:
    """What is said of a waiting pod."""
    (row,) = [row for row in found.rows if row.workload.name == name]
    return [
        (refusal.reason.value, refusal.evidence.removeprefix(f"pod {name}-0 waits: "))
        for refusal in row.refusals
        if refusal.guard == "seat"
    ]


def waits(*, more: tuple[NodeRow, ...] = (), ask: Spec | None = None, **tables: Any) -> bool:
    """Whether room is not made since a node is on its way."""
    found = planned(full(burst(), ask or waiting(), more=more, **tables), guards={"nodeAutoscaler": "absent"})
    assert bool(found.actions) == (not told(found))
    return [reason for reason, _ in told(found)] == ["NodeOnItsWay"]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (young(), True),
        (young(ready=False), True),
        (young(gpus=1, ready=False), True),
        (young(gpus=1, **taint("node.cilium.io/agent-not-ready")), True),
        (young(gpus=1, ready=False, **taint("node.kubernetes.io/not-ready", "NoExecute")), True),
        (young(age_ms=5 * MINUTE_MS - 1), True),
        (young(age_ms=-MINUTE_MS), True),
        (young(age_ms=5 * MINUTE_MS), False),
        (young(labels={}), False),
        (young(labels={}, ready=False), False),
        (young(unschedulable=True), False),
        (young(**taint("ToBeDeletedByClusterAutoscaler")), False),
        (young(**taint("team-b-only")), False),
    ],
)
def test_room_is_not_made_while_a_young_node_may_get_ready_for_the_pod(row: NodeRow, expected: bool) -> None:
    assert waits(more=(row,)) == expected


def test_a_young_node_that_is_ready_and_has_boards_is_a_node_like_any_other() -> None:
    assert not waits(more=(young(gpus=1),), ask=waiting(gpus=2))
    assert told(planned(full(burst(), waiting(), more=(young(gpus=1),)))) == []


@pytest.mark.parametrize(
    ("order", "shape", "expected"),
    [
        (claim(), {}, True),
        (claim(age_ms=5 * MINUTE_MS), {}, False),
        (claim(deleting=True), {}, False),
        (claim(gpus=0), {}, False),
        (claim(node="node-1"), {}, False),
        (claim(node="not-here-yet"), {}, True),
        (claim(taints=(Taint("gpu", "", "NoSchedule"),)), {}, False),
        (claim(taints=(Taint("gpu", "", "NoSchedule"),)), {"tolerations": EVERYTHING}, True),
        (claim(taints=(Taint("gpu", "", "PreferNoSchedule"),)), {}, True),
        (claim(labels={"pool": "a"}), {"node_selector": {"pool": "a"}}, True),
        (claim(labels={"pool": "a"}), {"node_selector": {"pool": "b"}}, False),
        (claim(), {"node_selector": {"nvidia.com/gpu.product": "A100"}}, True),
        (
            claim(requirements=(Requirement("zone", "In", ("a", "b")),)),
            {"node_selector": {"zone": "b"}},
            True,
        ),
        (
            claim(requirements=(Requirement("zone", "In", ("a", "b")),)),
            {"node_selector": {"zone": "c"}},
            False,
        ),
        (
            claim(requirements=(Requirement("zone", "Exists"),)),
            {"node_terms": ((Requirement("zone", "In", ("c",)),),)},
            True,
        ),
        (
            claim(labels={"zone": "a"}),
            {"node_terms": ((), (Requirement("zone", "NotIn", ("a",)),))},
            False,
        ),
    ],
)
def test_room_is_not_made_for_whom_a_node_was_ordered(
    order: NodeClaimRow, shape: dict[str, Any], expected: bool
) -> None:
    world = World(full(burst(), waiting(shape=shape), node_claims=(order,)), policy(), NOW_MS)
    (unit,) = [unit for units in world.units_of.values() for unit in units if not unit.pod.node]

    assert bool(Coming(world).take(unit)) == expected


def test_a_claim_says_what_its_young_node_will_offer() -> None:
    """The node's labels hold then, since it is there; what Karpenter ordered stands for what it does not offer yet."""
    row, order = young(labels={}), claim(node="new", gpus=1)

    assert waits(more=(row,), node_claims=(order,))
    assert not waits(more=(row,), ask=waiting(gpus=2), node_claims=(order,))


def test_what_one_pod_may_get_is_spoken_for() -> None:
    two = (waiting("first", pod={"created_ms": 1}), waiting("second", pod={"created_ms": 2}))
    found = planned(full(burst(), *two, node_claims=(claim(gpus=1),)), guards={"nodeAutoscaler": "absent"})

    assert told(found, "first") == [("NodeOnItsWay", "NodeClaim order was ordered 1m ago")]
    assert told(found, "second") == []
    assert [action.seat.pod.name for action in found.actions if action.seat] == ["second-0"]


def test_a_seat_that_was_begun_is_gone_on_with_whatever_comes() -> None:
    assert not waits(more=(young(),), ask=waiting(pod={"nominated_node": "node-1"}))


def test_the_wait_is_the_policys() -> None:
    snapshot = full(burst(), waiting(), more=(young(),))
    rules = {"nodeWait": "30s", "nodeAutoscaler": "absent"}

    assert told(planned(snapshot, guards=rules)) == []
    assert told(planned(snapshot, guards=rules | {"nodeWait": "2m"})) == [
        ("NodeOnItsWay", "node new is 1m old and not ready for it yet")
    ]


@pytest.mark.parametrize(
    ("marks", "stated", "buyer"),
    [
        ({}, "auto", ""),
        ({"labels": KARPENTER}, "auto", "Karpenter"),
        ({"annotations": {"karpenter.sh/nodepool-hash": "1"}}, "auto", "Karpenter"),
        (
            {"annotations": {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}},
            "auto",
            "cluster-autoscaler",
        ),
        (taint("ToBeDeletedByClusterAutoscaler"), "auto", "cluster-autoscaler"),
        ({"labels": KARPENTER}, "absent", ""),
        ({}, "present", "the node autoscaler"),
        ({"labels": KARPENTER}, "present", "Karpenter"),
    ],
)
def test_who_buys_nodes_is_known_by_marks_or_stated(marks: dict[str, Any], stated: str, buyer: str) -> None:
    world = World(cluster(nodes=(node(**marks),)), policy(guards={"nodeAutoscaler": stated}), NOW_MS)

    assert world.node_autoscaler == buyer


def test_orders_are_a_mark_of_karpenter() -> None:
    world = World(cluster(nodes=(), node_claims=(claim(age_ms=2**40),)), policy(), NOW_MS)

    assert world.node_autoscaler == "Karpenter"


def test_nobody_leaves_whose_successor_would_wait_and_buy_a_node() -> None:
    one = burst(gpus=2)
    full_node = node(gpus=2, labels=KARPENTER)
    elsewhere = node("node-2", gpus=2)
    alone = planned(cluster(one, waiting(gpus=2), nodes=(full_node,)))
    cpu_short = planned(
        cluster(
            one,
            waiting(gpus=2, cpu_milli=2000),
            nodes=(full_node, node("node-2", gpus=2, taken={"cpu": 254_500})),
        )
    )
    unmarked = planned(cluster(one, waiting(gpus=2), nodes=(node(gpus=2),)))
    detail = "node-1: the successor of team/burst-0 would wait, and Karpenter buy a node"

    assert told(alone) == [("NoPlacement", detail)]
    assert alone.actions == ()
    assert [action.pod.name for action in cpu_short.actions if action.pod] == ["burst-0"]
    assert [action.pod.name for action in unmarked.actions if action.pod] == ["burst-0"]
    assert planned(cluster(one, waiting(gpus=2), nodes=(full_node, elsewhere))).actions == ()


@pytest.mark.parametrize(
    ("shape", "reason"),
    [({"volume_claims": True}, "VolumeBound"), ({"unmodelled": ("podAffinity",)}, "NoPlacement")],
)
def test_nobody_leaves_of_whose_next_place_nothing_is_known(shape: dict[str, Any], reason: str) -> None:
    victim = burst(gpus=2, shape=shape)
    found = planned(cluster(victim, waiting(gpus=2), nodes=(node(gpus=2, labels=KARPENTER),)))

    assert [why for why, _ in told(found)] == [reason]
    assert "its successor may wait, and Karpenter buy a node" in told(found)[0][1]


def test_the_seat_of_a_successor_is_spoken_for() -> None:
    """Two pods want what two victims hold; one more node has room for one successor alone."""
    victims = (burst("a", gpus=2), burst("b", gpus=2, node="node-2"))
    wants = (waiting("first", gpus=2, cpu_milli=2000), waiting("second", gpus=2, cpu_milli=2000))
    tight = node("node-3", gpus=3, taken={"cpu": 254_500})
    nodes = (node(gpus=2, labels=KARPENTER), node("node-2", gpus=2), tight)
    found = planned(cluster(*victims, *wants, nodes=nodes))

    assert len(found.actions) == 1
    assert len(told(found, "first") + told(found, "second")) == 1


def test_a_surge_that_would_wait_is_not_begun_where_a_node_would_be_bought_for_it() -> None:
    spec = Spec(gpus=2, seen=(boards(0.5, 0.0),), rollout={"max_unavailable": "1"})
    plain, marked = (
        judged_of(cluster(spec, nodes=(node(gpus=2, labels=labels),))) for labels in ({}, KARPENTER)
    )
    free, bought_for = (guard_placement(*one, resize(2, 1), Tally.of(one[0])) for one in (plain, marked))

    assert free.reason is None
    assert (bought_for.reason, bought_for.detail) == (
        "NoSurge",
        "1 surge pods would wait, and Karpenter buy a node for them",
    )


@pytest.mark.parametrize("claims", ["volume_claims", "resource_claims"])
def test_a_pod_with_claims_that_cannot_return_to_its_node_is_bound(claims: str) -> None:
    spec = Spec(gpus=2, seen=(boards(0.5, 0.0),), kind="StatefulSet", shape={claims: True})
    for cordoned, reason in ((False, None), (True, "VolumeBound")):
        nodes = (node(unschedulable=cordoned), node("node-2"))
        world, one = judged_of(cluster(spec, nodes=nodes))

        assert guard_volumes(world, one, resize(2, 1), Tally.of(world)).reason == reason
