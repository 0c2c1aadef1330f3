import pytest
from build import GPU, NOW_MS, Spec, burst, cluster, node, policy, waiting

from autoscaler.decide import plan
from autoscaler.decide.room import Room
from autoscaler.decide.world import World


@pytest.mark.parametrize("gpus", [0, -1, 2**62])
def test_a_node_of_any_size_has_room_or_not(gpus: int) -> None:
    world = World(
        cluster(waiting(), nodes=(node(allocatable={GPU: gpus, "cpu": 9_000, "pods": 9}),)), policy(), 0
    )
    (unit,) = world.units_of[0]

    assert (Room(world).place(unit) is not None) == (gpus > 0)


def test_a_node_without_pod_seats_seats_nobody() -> None:
    full = node(gpus=9, taken_pods=110)

    assert plan(cluster(burst(), waiting(), nodes=(full,)), policy(), NOW_MS).actions == ()


def test_what_is_taken_twice_is_owed() -> None:
    world = World(cluster(Spec(), waiting(), nodes=(node(gpus=2),)), policy(), 0)
    (unit,) = world.units_of[1]
    room = Room(world)
    for _ in range(2):
        room.take(unit, "node-1")

    assert room.now["node-1"][GPU] == -1
    assert room.place(unit) is None
    assert room.place(unit) is None


def test_what_evictions_give_is_not_there_yet() -> None:
    world = World(cluster(Spec(gpus=2), waiting(), nodes=(node(gpus=2),)), policy(), 0)
    (unit,) = world.units_of[1]
    room = Room(world)
    room.take(unit, "node-1", {GPU: 2, "cpu": 1_000, "pods": 1})

    assert (room.now["node-1"][GPU], room.soon["node-1"][GPU]) == (0, 1)
    assert room.place(unit) == ("node-1", False)
