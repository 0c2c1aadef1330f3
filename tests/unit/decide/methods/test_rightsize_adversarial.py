import pytest
from build import GPU, Board, Spec, boards, cluster, judge, policy

from autoscaler.decide.marks import ALLOWED_GPUS
from autoscaler.decide.methods.rightsize import propose_right_size
from autoscaler.decide.proposal import Proposal, Ruling
from autoscaler.model.shapes import ContainerShape


def propose(spec: Spec, **sections: object) -> Proposal | Ruling:
    return propose_right_size(*judge(cluster(spec), policy(**sections)))  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "0", "-1", "1,,2", "one", "1.5", "2-4", "1;2", "٢"])
def test_consent_that_cannot_be_read_is_none(text: str) -> None:
    found = propose(Spec(gpus=2, seen=(boards(0.1, 0.1),), annotations={ALLOWED_GPUS: text}))

    assert found.reason == "NeedsConsent"


@pytest.mark.parametrize("steps", [[10**9], [3], [8, 16]])
def test_a_ladder_without_a_smaller_step_ends_where_it_is(steps: list[int]) -> None:
    found = propose(Spec(gpus=2, seen=(boards(0.1, 0.0),)), resources={"steps": steps})

    assert found.reason == "LadderEnd"


@pytest.mark.parametrize("replicas", [0, -1])
def test_no_replicas_save_nothing(replicas: int) -> None:
    found = propose(Spec(gpus=2, seen=(boards(0.1, 0.0),), replicas=replicas))

    assert isinstance(found, Proposal)
    assert found.saved_boards <= 0


def test_a_request_and_a_limit_that_differ_are_not_sized_by_either() -> None:
    odd = ContainerShape("main", requests={GPU: 1}, limits={GPU: 2})
    found = propose(Spec(gpus=2, seen=(boards(0.1, 0.0),), shape={"containers": (odd,), "demand": {GPU: 1}}))

    assert isinstance(found, Ruling)
    assert found.detail == "the template states 2, live pods hold 1"


def test_a_board_that_reports_more_than_it_can_do_keeps_its_boards() -> None:
    found = propose(Spec(gpus=2, seen=((Board(3.4), Board(0.0)),)))

    assert isinstance(found, Ruling)


def test_a_target_at_the_edge_keeps_everything() -> None:
    found = propose(Spec(gpus=8, seen=(boards(0.1, *[0.0] * 7),)), need={"targetUtilization": 0.01})

    assert found.reason == "BelowSavingsFloor"
