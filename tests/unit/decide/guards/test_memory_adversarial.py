import pytest
from build import NOW_MS, Spec, cluster, judge, resize

from autoscaler.decide.guards.memory import guard_backoff, guard_contested
from autoscaler.decide.tally import Tally
from autoscaler.model.cluster import PastAct, WorkloadRef

REF = WorkloadRef("apps", "Deployment", "team", "web")


@pytest.mark.parametrize("when_ms", [-1, 0, NOW_MS + 10**12])
def test_a_row_from_any_time_keeps_what_it_says(when_ms: int) -> None:
    act = PastAct(REF, when_ms, reversals=2, not_before_ms=NOW_MS + 1)
    world, judged = judge(cluster(Spec(), acts=(act,)))

    assert guard_contested(world, judged, resize(2, 1), Tally.of(world)).reason == "Contested"
    assert guard_backoff(world, judged, resize(2, 1), Tally.of(world)).reason == "Cooldown"


def test_equal_rows_and_rows_that_differ_in_a_flag_are_told_apart_in_any_order() -> None:
    rows = (PastAct(REF, 5, verified=False), PastAct(REF, 5), PastAct(REF, 5))
    one, _ = judge(cluster(Spec(), acts=rows))
    other, _ = judge(cluster(Spec(), acts=rows[::-1]))

    assert one.acts_of(REF) == other.acts_of(REF)
