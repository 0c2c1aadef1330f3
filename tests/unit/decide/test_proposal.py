import pytest
from build import GPU, Spec, boards, cluster, judge, rescale, resize
from msgspec.structs import replace

from autoscaler.decide.proposal import Judged, Ruling, refuse, successor_demand, successor_limits
from autoscaler.decide.statements import Statements
from autoscaler.decide.world import Case
from autoscaler.model.reasons import CATALOGUE, Reason

HALF = Spec(gpus=2, seen=(boards(0.5, 0.0),))


def test_a_refusal_carries_the_guard_its_evidence_and_a_remedy() -> None:
    _, judged = judge(cluster(HALF))
    found = refuse(judged, Ruling("quota", "8 of 8", Reason.QUOTA_SHORT), resize(2, 1))

    assert (
        found.guard,
        found.evidence,
        found.reason,
        found.method,
        found.before,
        found.after,
    ) == ("quota", "8 of 8", "QuotaShort", "right-size", 2, 1)
    assert CATALOGUE[Reason.QUOTA_SHORT].remedy == found.remedy


def test_a_guard_s_own_remedy_goes_before_the_catalogue_s() -> None:
    _, judged = judge(cluster(HALF))

    assert refuse(judged, Ruling("g", "d", Reason.QUOTA_SHORT, "do this")).remedy == "do this"
    assert refuse(judged, Ruling("g", "d", Reason.QUOTA_SHORT)).method is None


def test_a_guard_that_lets_pass_refuses_nothing() -> None:
    _, judged = judge(cluster(HALF))

    with pytest.raises(ValueError, match="guard g refused nothing"):
        refuse(judged, Ruling("g", "d"))


def test_the_successor_asks_for_what_the_template_will_say() -> None:
    _, judged = judge(cluster(HALF))

    assert successor_demand(judged, resize(2, 1)) == {GPU: 1, "cpu": 1000}
    assert successor_demand(judged, rescale(2, 1)) == {GPU: 2, "cpu": 1000}
    assert judged.case.units[0].shape.demand == {GPU: 2, "cpu": 1000}


def test_the_successor_asks_for_at_least_what_admission_gave_to_the_live_pods() -> None:
    snapshot = cluster(HALF)
    given = replace(
        snapshot.shapes[0],
        demand={GPU: 2, "cpu": 4000, "memory": 7},
        containers=(replace(snapshot.shapes[0].containers[0], limits={GPU: 2, "cpu": 5000}),),
    )
    live = tuple(replace(pod, shape=1) for pod in snapshot.pods)
    _, judged = judge(replace(snapshot, shapes=(*snapshot.shapes, given), pods=live))

    assert successor_demand(judged, resize(2, 1)) == {GPU: 1, "cpu": 4000, "memory": 7}
    assert successor_limits(judged) == {GPU: 2, "cpu": 5000}


def test_without_any_shape_nothing_is_known() -> None:
    _, judged = judge(cluster(HALF))
    bare = Judged(
        Case(judged.case.workload, None, (), GPU, (GPU,), 2, None, 0, Statements()),
        judged.assessment,
        judged.fleet,
    )

    assert successor_demand(bare, resize(2, 1)) == {}
    assert successor_limits(bare) == {}
