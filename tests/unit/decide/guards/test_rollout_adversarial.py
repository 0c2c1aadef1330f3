import pytest
from build import Spec, boards, cluster, judge, rescale, resize
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.decide.guards.rollout import (
    guard_peers_ready,
    guard_rollout,
    readable,
    rounded,
    surge_and_unavailable,
)
from autoscaler.decide.tally import Tally
from autoscaler.model.cluster import Rollout

JUNK = [
    "",
    "junk",
    "-1",
    "-25%",
    "1.5",
    "%",
    "25 %",
    " 1",
    "1 ",
    "٣",
    "٣%",
    "9999999999",
    "0x1",
    "25%%",
    "1\n",
]


@pytest.mark.parametrize("value", JUNK)
def test_junk_is_not_readable_and_counts_as_nothing(value: str) -> None:
    assert not readable(value)
    assert rounded(value, 10, up=True) == 0


@pytest.mark.parametrize("value", JUNK)
@pytest.mark.parametrize("field", ["max_surge", "max_unavailable"])
def test_a_deployment_whose_strategy_cannot_be_read_is_not_rolled(field: str, value: str) -> None:
    world, judged = judge(cluster(Spec(gpus=2, seen=(boards(0.5, 0.0),), rollout={field: value})))

    assert guard_rollout(world, judged, resize(2, 1), Tally.of(world)).reason == "NoLever"
    assert guard_rollout(world, judged, rescale(2, 1), Tally.of(world)).reason is None


@pytest.mark.parametrize("value", JUNK)
def test_a_stateful_set_whose_strategy_cannot_be_read_is_not_rolled(value: str) -> None:
    spec = Spec(gpus=2, seen=(boards(0.5, 0.0),), kind="StatefulSet", rollout={"max_unavailable": value})
    world, judged = judge(cluster(spec))

    assert guard_rollout(world, judged, resize(2, 1), Tally.of(world)).reason == "NoLever"


def test_a_stateful_set_has_no_surge_to_read() -> None:
    spec = Spec(gpus=2, seen=(boards(0.5, 0.0),), kind="StatefulSet", rollout={"max_surge": "junk"})
    world, judged = judge(cluster(spec))

    assert guard_rollout(world, judged, resize(2, 1), Tally.of(world)).reason is None


@given(st.text(max_size=12), st.integers(-(2**63), 2**63), st.booleans())
def test_no_text_makes_it_raise(value: str, replicas: int, up: bool) -> None:
    assert isinstance(rounded(value, replicas, up=up), int)


@pytest.mark.parametrize("replicas", [-5, 0])
def test_no_replicas_need_no_surge(replicas: int) -> None:
    assert surge_and_unavailable(Rollout(), replicas)[0] <= 0


def test_a_workload_without_pods_is_not_ready_unless_it_wants_none() -> None:
    for replicas, reason in ((1, "NotReady"), (0, None)):
        world, judged = judge(cluster(Spec(seen=(), replicas=replicas)))
        assert reason == guard_peers_ready(world, judged, rescale(2, 1), Tally.of(world)).reason
