from build import GPU, Spec, boards, cluster, judge, node, resize

from autoscaler.decide.guards.successor import guard_placement, guard_scheduler, guard_volumes, surge_places
from autoscaler.decide.proposal import Judged
from autoscaler.decide.statements import Statements
from autoscaler.decide.tally import Tally
from autoscaler.decide.world import Case

HALF = Spec(gpus=2, seen=(boards(0.5, 0.0),))


def test_a_workload_without_any_shape_places_nothing() -> None:
    world, judged = judge(cluster(HALF))
    bare = Judged(
        Case(judged.case.workload, None, (), GPU, (GPU,), 2, None, 0, Statements()),
        judged.assessment,
        judged.fleet,
    )
    tally = Tally.of(world)

    assert surge_places(world, bare, resize(2, 1), tally) == ()
    for guard in (guard_placement, guard_scheduler, guard_volumes):
        assert guard(world, bare, resize(2, 1), tally).reason is None


def test_a_cluster_without_nodes_has_no_seat() -> None:
    world, judged = judge(cluster(HALF, nodes=()))

    assert guard_placement(world, judged, resize(2, 1), Tally.of(world)).reason == "NoPlacement"


def test_a_node_that_lost_a_board_keeps_what_still_fits() -> None:
    # 4 boards are held on a node that has 3 left: one successor at a time comes back with one board
    spec = HALF.but(seen=(boards(0.5, 0.0),) * 2, rollout={"max_surge": "0", "max_unavailable": "1"})
    world, judged = judge(cluster(spec, nodes=(node(gpus=3),)))

    assert guard_placement(world, judged, resize(2, 1, replicas=2), Tally.of(world)).reason is None


def test_a_node_without_pod_seats_lets_the_successor_take_its_predecessor_s() -> None:
    full = node(gpus=8, taken_pods=109)
    world, judged = judge(
        cluster(HALF.but(rollout={"max_surge": "0", "max_unavailable": "1"}), nodes=(full,))
    )

    assert guard_placement(world, judged, resize(2, 1), Tally.of(world)).reason is None


def test_no_replicas_need_no_seat() -> None:
    world, judged = judge(cluster(HALF.but(seen=(), replicas=0)))

    assert surge_places(world, judged, resize(2, 1), Tally.of(world)) == ()
