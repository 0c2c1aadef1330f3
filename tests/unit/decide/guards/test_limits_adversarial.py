import pytest
from build import GPU, Spec, boards, cluster, judge, resize

from autoscaler.decide.guards.limit_range import guard_limit_range
from autoscaler.decide.guards.limits import guard_quota
from autoscaler.decide.proposal import Ruling
from autoscaler.decide.statements import Statements
from autoscaler.decide.tally import Tally
from autoscaler.model.cluster import Limit, LimitRangeRow, Quota
from autoscaler.model.shapes import Requirement

KEY = f"requests.{GPU}"
HUGE = 2**63 - 1
HALF = Spec(gpus=2, seen=(boards(0.5, 0.0),))


def ask(quota: Quota, spec: Spec = HALF) -> Ruling:
    world, judged = judge(cluster(spec, quotas=(quota,)))
    return guard_quota(world, judged, resize(2, 1), Tally.of(world))


def test_a_quota_that_cannot_be_read_admits_nothing() -> None:
    found = ask(Quota("team", "q", unreadable=("requests.cpu",)))

    assert (found.reason, found.remedy) == ("QuotaShort", "correct the quota")


def test_a_use_that_was_not_counted_yet_is_not_zero() -> None:
    assert f"the use of {KEY} is not known yet" in ask(Quota("team", "q", hard={KEY: 8})).detail


@pytest.mark.parametrize("spec", [HALF.but(rollout={"recreate": True}), HALF.but(kind="StatefulSet")])
def test_a_quota_that_is_over_already_would_not_let_the_successor_back_in(spec: Spec) -> None:
    assert ask(Quota("team", "q", {KEY: 4}, {KEY: 8}), spec).reason == "QuotaShort"


def test_huge_amounts_add_up() -> None:
    assert ask(Quota("team", "q", {KEY: HUGE}, {KEY: HUGE})).reason == "QuotaShort"
    assert ask(Quota("team", "q", {KEY: HUGE}, {KEY: -HUGE})).reason is None


def test_a_scope_that_is_not_known_is_taken_to_apply() -> None:
    quota = Quota("team", "q", {KEY: 8}, {KEY: 8}, scopes=(Requirement("Newest", "Exists"),))

    assert ask(quota).reason == "QuotaShort"


def test_a_pod_seat_in_the_demand_is_not_charged_twice() -> None:
    odd = HALF.but(shape={"demand": {GPU: 2, "pods": 1}})

    assert ask(Quota("team", "q", {"pods": 1}, {"pods": 0}), odd).reason is None
    assert ask(Quota("team", "q", {"requests.pods": 0}, {}), odd).reason is None


@pytest.mark.parametrize(
    "row",
    [
        LimitRangeRow("team", "r", unreadable=("max",)),
        LimitRangeRow("team", "r", (Limit("Container", {GPU: 0}),)),
        LimitRangeRow("team", "r", (Limit("Container", {GPU: -1}),)),
        LimitRangeRow("team", "r", (Limit("Pod", minimum={GPU: HUGE}),)),
        LimitRangeRow("team", "r", (Limit("Container", {GPU: 8}, {GPU: 9}),)),
    ],
)
def test_a_limit_range_that_nothing_can_meet_or_read_refuses(row: LimitRangeRow) -> None:
    world, judged = judge(cluster(HALF, limit_ranges=(row,)))

    assert guard_limit_range(world, judged, resize(2, 1), Tally.of(world)).reason == "LimitRange"


def test_a_workload_without_any_shape_has_no_amount_to_hold_against_a_limit() -> None:
    row = LimitRangeRow("team", "r", unreadable=("max",))
    world, judged = judge(cluster(HALF, limit_ranges=(row,)))
    bare = type(judged)(
        type(judged.case)(judged.case.workload, None, (), GPU, (GPU,), 2, None, 0, Statements()),
        judged.assessment,
        judged.fleet,
    )

    assert guard_limit_range(world, bare, resize(2, 1), Tally.of(world)).reason is None
    assert guard_quota(world, bare, resize(2, 1), Tally.of(world)).reason is None
