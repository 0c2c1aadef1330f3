import pytest
from build import Spec, boards, cluster, judge, policy

from autoscaler.decide.marks import MIN_REPLICAS
from autoscaler.decide.methods.idle import propose_release
from autoscaler.decide.proposal import Proposal, Ruling


def propose(spec: Spec, **sections: object) -> Proposal | Ruling:
    return propose_release(*judge(cluster(spec), policy(**sections)))  # type: ignore[arg-type]


@pytest.mark.parametrize("replicas", [0, -3])
def test_a_workload_at_nothing_is_at_its_floor(replicas: int) -> None:
    found = propose(Spec(seen=(boards(0.0),), replicas=replicas))

    assert found.reason == "LadderEnd"


@pytest.mark.parametrize("text", ["", " ", "-0", "0.0", "zero", "0,0", "\u0660", "00000000"])
def test_a_floor_that_cannot_be_read_is_not_zero(text: str) -> None:
    found = propose(
        Spec(seen=(boards(0.0),), annotations={MIN_REPLICAS: text}), methods={"allowZeroReplicas": True}
    )

    assert found.reason == "NeedsConsent"


@pytest.mark.parametrize("seen", [(None,), (), (boards(0.0), None)])
def test_what_is_not_known_to_be_idle_is_not_released(seen: tuple) -> None:
    assert propose(Spec(seen=seen, annotations={MIN_REPLICAS: "0"})).reason == "ThinHistory"


def test_a_policy_that_calls_everything_idle_still_keeps_the_promise_and_the_floor() -> None:
    rules = {"evidence": {"idleCeiling": 1.0, "activeFloor": 1.0}}
    found = propose(Spec(seen=(boards(0.9),) * 2, annotations={MIN_REPLICAS: "1"}), **rules)

    assert propose(Spec(seen=(boards(0.9),) * 2), **rules).reason == "BelowSavingsFloor"
    assert isinstance(found, Proposal)
    assert found.after == 1
