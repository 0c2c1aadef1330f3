import pytest
from build import Board, Spec, boards, cluster, judge, policy

from autoscaler.decide.marks import MIN_REPLICAS
from autoscaler.decide.methods.replicas import ordinal
from autoscaler.decide.methods.scale_in import propose_scale_in
from autoscaler.decide.proposal import Proposal, Ruling


def propose(spec: Spec, **sections: object) -> Proposal | Ruling:
    return propose_scale_in(*judge(cluster(spec), policy(**sections)))  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "-1", "1.0", "all", "1,2", "٣", "9999999"])
def test_a_floor_that_cannot_be_read_is_not_one(text: str) -> None:
    found = propose(Spec(seen=(boards(0.0),) * 3, annotations={MIN_REPLICAS: text}))

    assert found.reason == "NeedsConsent"


def test_a_floor_over_the_replicas_is_the_end_of_the_ladder() -> None:
    found = propose(Spec(seen=(boards(0.0),) * 3, annotations={MIN_REPLICAS: "999999"}))

    assert found.reason == "LadderEnd"


@pytest.mark.parametrize("replicas", [0, -7])
def test_no_replicas_are_the_end_of_the_ladder(replicas: int) -> None:
    assert propose(Spec(seen=(boards(0.0),), replicas=replicas)).reason == "LadderEnd"


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("web-0", 0),
        ("web-12", 12),
        ("web-2147483647", 2**31 - 1),
        ("web", -1),
        ("web-x1", -1),
        ("", -1),
        ("-5", 5),
        ("a-²", -1),
        ("a-" + "9" * 5000, -1),
    ],
)
def test_a_name_without_an_ordinal_goes_last(name: str, number: int) -> None:
    assert number == ordinal(name)


@pytest.mark.parametrize("target", [0.01, 1.0])
@pytest.mark.parametrize("margin", [0.0, 10.0])
def test_extreme_targets_give_an_answer(target: float, margin: float) -> None:
    found = propose(Spec(seen=((Board(0.2),),) * 3), need={"targetUtilization": target, "margin": margin})

    assert isinstance(found, Proposal) == (target == 1.0 and margin == 0.0)
