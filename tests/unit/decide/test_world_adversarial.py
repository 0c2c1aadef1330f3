from build import GPU, NOW_MS, Spec, cluster, node, policy
from hypothesis import given
from worlds import worlds

from autoscaler.decide.world import World
from autoscaler.model.snapshot import Snapshot


def test_an_empty_snapshot_is_an_empty_world() -> None:
    world = World(Snapshot(taken_ms=0), policy(), NOW_MS)

    assert ({}, {}, {}, 0, frozenset()) == (
        world.units_of,
        world.holder_rows,
        world.free,
        world.fleet_boards,
        world.crowded,
    )


def test_a_node_that_lost_its_boards_has_less_than_nothing_free() -> None:
    world = World(cluster(Spec(gpus=2), nodes=(node(allocatable={}),)), policy(), NOW_MS)

    assert (world.free["node-1"][GPU], world.free["node-1"]["pods"]) == (-2, -1)


def test_a_pod_on_a_node_that_is_gone_takes_nothing_from_others() -> None:
    world = World(cluster(Spec(node="gone"), nodes=(node(gpus=4),)), policy(), NOW_MS)

    assert world.free["node-1"][GPU] == 4


def test_a_workload_without_pods_and_template_has_no_resource() -> None:
    case = World(cluster(Spec(seen=(), workload={"template": -1})), policy(), NOW_MS).case(0)

    assert (case.resource, case.held, case.total_held, case.shapes) == ("", 0, 0, ())


@given(worlds())
def test_every_case_can_be_built(snapshot: Snapshot) -> None:
    world = World(snapshot, policy(), NOW_MS)
    for index in range(len(snapshot.workloads)):
        case = world.case(index)
        assert case.held * len(case.units) >= case.total_held
        assert (case.container is None) or case.containers == 1
