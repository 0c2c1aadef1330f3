from dataclasses import replace

import msgspec
import pytest
from build import GPU, Spec, boards, cluster, judge, node, policy, rescale, resize
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.decide.guards.successor import (
    displaced,
    guard_placement,
    guard_scheduler,
    guard_volumes,
    surge_places,
)
from autoscaler.decide.proposal import Proposal, Ruling
from autoscaler.decide.tally import Tally
from autoscaler.model.cluster import NodeRow
from autoscaler.model.shapes import Taint

HALF = Spec(gpus=2, seen=(boards(0.5, 0.0),))
SERVER = HALF.but(container={"ports": (8080,)})
IN_PLACE = {"max_surge": "0", "max_unavailable": "1"}


def ask(spec: Spec, *nodes: NodeRow, change: Proposal | None = None) -> Ruling:
    world, judged = judge(cluster(spec, nodes=nodes))
    return guard_placement(world, judged, change or resize(2, 1), Tally.of(world))


@pytest.mark.parametrize(
    ("spec", "gpus", "reason", "detail"),
    [
        (HALF, 3, None, "1 pods fit node-1"),
        (HALF, 2, "NoSurge", "no node has room for 1 surge pods"),
        (HALF.but(rollout={"max_unavailable": "1"}), 2, None, "no room for the surge, an old pod may go first"),
        (HALF.but(rollout=IN_PLACE), 2, None, "the successor takes the seat it frees"),
        (HALF.but(rollout={"recreate": True}), 2, None, "the successor takes the seat it frees"),
        (HALF.but(kind="StatefulSet"), 2, None, "the successor takes the seat it frees"),
        (SERVER, 3, None, "1 pods fit node-1"),
        (SERVER.but(rollout={"max_unavailable": "1"}), 2, "NoSurge", "the only replica of a server would be away"),
        (SERVER.but(rollout=IN_PLACE), 8, "NoSurge", "the only replica of a server would be away"),
        (SERVER.but(kind="StatefulSet"), 8, "NoSurge", "the only replica of a server would be away"),
        (SERVER.but(seen=(boards(0.5, 0.0),) * 2, rollout=IN_PLACE), 4, None, "the successor takes the seat it frees"),
        (HALF.but(shape={"unmodelled": ("pod affinity", "spread")}), 8, "NoPlacement", "not modelled here: pod affinity, spread"),
    ],
)  # fmt: skip
def test_a_surge_pod_has_a_seat_or_an_old_pod_may_go_first(
    spec: Spec, gpus: int, reason: str | None, detail: str
) -> None:
    found = ask(spec, node(gpus=gpus))

    assert reason == found.reason
    assert detail in found.detail


@pytest.mark.parametrize(
    "changes",
    [
        {"unschedulable": True},
        {"ready": False},
        {"deleting": True},
        {"taints": (Taint("maintenance", "", "NoSchedule"),)},
        {"allocatable": {"cpu": 256_000, "memory": 2**42, GPU: 0, "pods": 110}},
    ],
)
@pytest.mark.parametrize("rollout", [{}, IN_PLACE, {"recreate": True}, {"max_unavailable": "100%"}])
def test_a_successor_that_could_not_come_back_to_its_node_needs_another(
    rollout: dict[str, object], changes: dict[str, object]
) -> None:
    spec, home = HALF.but(rollout=rollout, seen=(boards(0.5, 0.0),) * 2), node(gpus=8, **changes)

    assert ask(spec, home, change=resize(2, 1, replicas=2)).reason == "NoPlacement"
    assert ask(spec, home, node("node-2", gpus=1), change=resize(2, 1, replicas=2)).reason == "NoPlacement"
    assert (
        ask(spec, home, node("node-2", gpus=2), change=resize(2, 1, replicas=2)).detail == "2 pods fit node-2"
    )


def test_a_pod_whose_node_is_not_known_needs_a_seat() -> None:
    assert ask(HALF.but(node="gone", rollout=IN_PLACE)).reason == "NoPlacement"


def test_seats_that_the_plan_has_given_away_are_gone() -> None:
    world, judged = judge(cluster(HALF, nodes=(node(gpus=3),)))
    tally = Tally.of(world)
    taken = {**tally.free, "node-1": {**tally.free["node-1"], GPU: 0}}

    assert surge_places(world, judged, resize(2, 1), tally) == ("node-1",)
    assert surge_places(world, judged, resize(2, 1), Tally(taken, {}, {}, 0, 0, {}, 0)) is None


def test_a_scale_in_places_no_pod() -> None:
    world, judged = judge(cluster(HALF.but(shape={"unmodelled": ("x",), "scheduler": "volcano"})))
    tally = Tally.of(world)

    assert surge_places(world, judged, rescale(2, 1), tally) == ()
    assert guard_placement(world, judged, rescale(2, 1), tally).reason is None
    assert guard_scheduler(world, judged, rescale(2, 1), tally).reason is None


@pytest.mark.parametrize(
    ("scheduler", "reason"), [("default-scheduler", None), ("volcano", "ForeignScheduler"), ("mine", None)]
)
def test_a_scheduler_whose_rules_are_not_known_is_left_alone(scheduler: str, reason: str | None) -> None:
    rules = policy(guards={"schedulers": ["default-scheduler", "mine"]})
    world, judged = judge(cluster(HALF.but(shape={"scheduler": scheduler})), rules)

    assert reason == guard_scheduler(world, judged, resize(2, 1), Tally.of(world)).reason


@pytest.mark.parametrize(
    ("shape", "rollout", "reason"),
    [
        ({}, {}, None),
        ({"volume_claims": True}, {}, "VolumeBound"),
        ({"resource_claims": True}, {}, "VolumeBound"),
        ({"volume_claims": True}, {"recreate": True}, None),
        ({"volume_claims": True}, IN_PLACE, None),
    ],
)
def test_a_surge_pod_does_not_share_a_claim(
    shape: dict[str, object], rollout: dict[str, object], reason: str | None
) -> None:
    world, judged = judge(cluster(HALF.but(shape=shape, rollout=rollout)))

    assert reason == guard_volumes(world, judged, resize(2, 1), Tally.of(world)).reason


@given(st.integers(0, 12), st.integers(0, 12), st.integers(1, 3))
def test_more_room_never_refuses_more(home: int, other: int, replicas: int) -> None:
    spec, change = HALF.but(seen=(boards(0.5, 0.0),) * replicas), resize(2, 1, replicas=replicas)

    def passes(more: int) -> bool:
        return (
            ask(spec, node(gpus=home + more), node("node-2", gpus=other + more), change=change).reason is None
        )

    assert passes(1) or not passes(0)


@given(st.integers(0, 20), st.integers(1, 4))
def test_a_node_with_room_for_its_own_pods_displaces_none(spare: int, replicas: int) -> None:
    spec = HALF.but(seen=(boards(0.5, 0.0),) * replicas)
    world, judged = judge(cluster(spec, nodes=(node(gpus=2 * replicas + spare),)))

    assert displaced(world, judged, resize(2, 1)) == 0


def test_a_runtime_class_is_modelled_by_what_admission_wrote_into_live_pods() -> None:
    found = ask(HALF.but(shape={"unmodelled": ("runtimeClassName",)}), node())

    assert found.reason is None
    assert found.detail == "1 pods fit node-1"


def test_the_selector_that_admission_wrote_into_live_pods_binds_their_successor() -> None:
    spec = HALF.but(node="gone")
    world, judged = judge(cluster(spec, nodes=(node(labels={"class": "b"}),)))
    (unit,) = judged.case.units
    shape = msgspec.structs.replace(unit.shape, node_selector={"class": "a"})
    bound = replace(judged, case=replace(judged.case, units=(replace(unit, shape=shape),)))

    assert guard_placement(world, bound, resize(2, 1), Tally.of(world)).reason == "NoPlacement"
