import pytest
from build import GPU, NOW_MS, Spec, boards, cluster, node, policy
from hypothesis import given
from hypothesis import strategies as st
from worlds import shuffled, worlds

from autoscaler.decide.world import World, accelerators, is_accelerator, is_board
from autoscaler.model.cluster import Autoscaler
from autoscaler.model.policy import Resources
from autoscaler.model.shapes import ContainerShape
from autoscaler.model.snapshot import Snapshot


def world(*specs: Spec, **more: object) -> World:
    return World(cluster(*specs, **more), policy(), NOW_MS)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("resource", "board", "accelerator"),
    [
        ("nvidia.com/gpu", True, True),
        ("gpuconfig.com/gpu", True, True),
        ("nvidia.com/gpu.shared", False, True),
        ("nvidia.com/mig-1g.10gb", False, True),
        ("neureality.ai/ai_hypervisor_queue", False, True),
        ("cpu", False, False),
        ("nvidia.com/gpux", False, False),
    ],
)
def test_resources_are_boards_slices_or_neither(resource: str, board: bool, accelerator: bool) -> None:
    assert (board, accelerator) == (is_board(resource, Resources()), is_accelerator(resource, Resources()))


def test_accelerators_of_a_vector_are_those_asked_for() -> None:
    assert accelerators({"cpu": 5, GPU: 1, "amd.com/gpu": 0}, Resources()) == {GPU: 1}


def test_finished_pods_hold_nothing() -> None:
    found = world(Spec(gpus=3, seen=(boards(0.5, 0, 0),), pod={"phase": "Succeeded"}), nodes=(node(gpus=8),))

    assert found.units_of == {}
    assert (found.free["node-1"][GPU], found.free["node-1"]["pods"]) == (8, 110)


def test_terminating_pods_hold_their_boards_until_they_are_gone() -> None:
    found = world(Spec(gpus=3, seen=(boards(0.5, 0, 0),), pod={"deleting": True}), nodes=(node(gpus=8),))

    assert (found.free["node-1"][GPU], found.free["node-1"]["pods"]) == (5, 109)


def test_free_room_counts_what_pods_without_accelerators_take() -> None:
    taken = node(gpus=8, taken={"cpu": 6_000}, taken_pods=10)
    found = world(Spec(), nodes=(taken,))

    assert tuple(found.free["node-1"][name] for name in ("cpu", GPU, "pods")) == (249_000, 7, 99)


def test_the_fleet_counts_whole_boards_only() -> None:
    room = {GPU: 8, "amd.com/gpu": 2, "nvidia.com/mig-1g.10gb": 7, "cpu": 9}

    assert world(Spec(), nodes=(node(allocatable=room),)).fleet_boards == 10


def test_a_case_knows_what_its_pods_hold_and_which_container_asks() -> None:
    case = world(Spec(gpus=2, seen=(boards(0, 0), boards(0, 0)))).case(0)

    assert (case.resource, case.held, case.total_held, case.containers) == (GPU, 2, 4, 1)
    assert case.container is not None
    assert case.container.name == "main"


def test_two_containers_that_ask_are_none_to_size() -> None:
    both = tuple(ContainerShape(name, limits={GPU: 1}) for name in "ab")
    case = world(Spec(shape={"containers": both})).case(0)

    assert (case.container, case.containers, case.held) == (None, 2, 2)


def test_without_a_template_the_live_pods_tell_the_shape() -> None:
    case = world(Spec(workload={"template": -1})).case(0)

    assert (case.container, case.held) == (None, 1)
    assert case.shape is case.units[0].shape
    assert world(Spec(seen=(), workload={"template": -1})).case(0).shape is None


def test_boards_go_before_slices() -> None:
    mixed = {"demand": {GPU: 1, "amd.com/cpx": 3}}

    assert (
        world(Spec(shape=mixed)).case(0).resource,
        world(Spec(shape=mixed)).case(0).resources,
    ) == (GPU, ("amd.com/cpx", GPU))


def test_hints_of_every_container_live_or_not_count() -> None:
    hidden = (ContainerShape("a", limits={GPU: 1}), ContainerShape("b", parallelism=("WORLD_SIZE", "--tp")))

    assert world(Spec(shape={"containers": hidden})).case(0).parallelism == ("--tp", "WORLD_SIZE")


def test_units_are_in_the_order_of_their_names() -> None:
    found = world(Spec(seen=(boards(0.5),) * 3))

    assert [unit.pod.name for unit in found.units_of[0]] == ["web-0", "web-1", "web-2"]


def test_of_two_autoscalers_the_first_by_name_is_told() -> None:
    pair = tuple(Autoscaler("team", name, "Deployment", "web") for name in ("z", "a"))

    assert world(Spec(), autoscalers=pair).autoscalers["team", "Deployment", "web"].name == "a"


@given(worlds(), st.randoms(use_true_random=False))
def test_look_ups_do_not_depend_on_the_order_of_rows(snapshot: Snapshot, random: object) -> None:
    one, other = World(snapshot, policy(), NOW_MS), World(shuffled(snapshot, random), policy(), NOW_MS)

    for name in (
        "free",
        "quotas",
        "limit_ranges",
        "budgets",
        "autoscalers",
        "unowned",
        "crowded",
        "fleet_boards",
    ):
        assert getattr(one, name) == getattr(other, name), name
