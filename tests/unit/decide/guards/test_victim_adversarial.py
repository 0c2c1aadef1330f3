import pytest
from build import NOW_MS, Spec, boards, burst, cluster, judge
from msgspec.structs import replace

from autoscaler.decide.guards.victim import judge_victim
from autoscaler.decide.proposal import Proposal
from autoscaler.decide.tally import Tally
from autoscaler.decide.yielding import alone, best_rank, rank_of
from autoscaler.model.reasons import Reason

PROPOSAL = Proposal("make-room", Reason.MADE_ROOM, "evict", 1, 0, 1, "a test says so")


@pytest.mark.parametrize("kind", ["", "pod", "DAEMONSET", "Job"])
def test_a_kind_in_another_spelling_or_group_is_not_known(kind: str) -> None:
    world, judged = judge(cluster(burst(kind=kind, group="apps")), name="burst")

    assert judge_victim(world, alone(world, judged, 0), PROPOSAL, Tally.of(world))[-1].reason == "NoLever"


@pytest.mark.parametrize("limit", [-1, 0, 2**31])
def test_any_backoff_limit_can_be_read(limit: int) -> None:
    spec = burst(kind="Job", group="batch", workload={"backoff_limit": limit})
    world, judged = judge(cluster(spec), name="burst")
    reason = judge_victim(world, alone(world, judged, 0), PROPOSAL, Tally.of(world))[-1].reason

    assert (reason is None) == (limit > 0)


def test_a_unit_that_is_not_measured_has_no_rank_but_by_its_class() -> None:
    snapshot = cluster(burst().but(seen=(None,)), Spec("low", seen=(None,)))
    world, yielding = judge(snapshot, name="burst")
    _, low = judge(snapshot, name="low")

    assert rank_of(world, alone(world, yielding, 0), NOW_MS) is not None
    assert rank_of(world, alone(world, low, 0), NOW_MS) is None
    assert best_rank(world, low.case.units[0], 1) is not None
    assert best_rank(world, low.case.units[0], 0) is None


def test_a_unit_that_holds_no_board_gives_none() -> None:
    snapshot = cluster(burst().but(seen=(boards(0.9),) * 2))
    bare = replace(snapshot.shapes[0], demand={"cpu": 1})
    first, second = snapshot.pods
    mixed = replace(snapshot, shapes=(*snapshot.shapes, bare), pods=(first, replace(second, shape=1)))
    world, judged = judge(mixed, name="burst")

    assert judge_victim(world, alone(world, judged, 1), PROPOSAL, Tally.of(world))[-1].reason == "NoLever"
