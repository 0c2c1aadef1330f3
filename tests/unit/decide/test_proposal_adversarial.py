from build import GPU, Spec, boards, cluster, judge, resize
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.decide.proposal import successor_demand


@given(st.integers(1, 2**63 - 1), st.integers(0, 2**63 - 1))
def test_the_successor_differs_by_exactly_the_change(before: int, after: int) -> None:
    _, judged = judge(cluster(Spec(gpus=2, seen=(boards(0.5, 0.0),), shape={"demand": {GPU: before}})))

    assert {GPU: after} == successor_demand(judged, resize(before, after))
