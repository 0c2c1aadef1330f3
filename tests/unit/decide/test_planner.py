"""The plan as its readers see it: one row, one reason, for each workload."""

import pytest
from build import NOW_MS, Spec, boards, cluster, policy

from autoscaler.decide import plan
from autoscaler.model.plan import ExplainRow, encode_plan
from autoscaler.model.snapshot import Snapshot, decode_snapshot, encode_snapshot


def row(snapshot: Snapshot, **sections: object) -> ExplainRow:
    (only,) = plan(snapshot, policy(**sections), NOW_MS).rows
    return only


def test_two_boards_of_which_one_was_ever_used_become_one() -> None:
    found = row(cluster(Spec(gpus=2, seen=(boards(0.55, 0.0),))))

    assert found.action is not None
    assert (found.action.before, found.action.after) == (2, 1)
    assert found.reason == "RightSized"
    assert found.action.saved_milli_boards == 1000


def test_evenly_low_boards_need_consent() -> None:
    found = row(cluster(Spec(gpus=2, seen=(boards(0.1, 0.1),))))

    assert found.action is None
    assert found.reason == "NeedsConsent"
    assert 'gpu-autoscaler.io/allowed-gpus: "1,2"' in found.remedy


def test_consent_lets_evenly_low_boards_shrink_to_an_allowed_count() -> None:
    spec = Spec(
        gpus=4, seen=(boards(0.1, 0.1, 0.1, 0.1),), annotations={"gpu-autoscaler.io/allowed-gpus": "2,4"}
    )
    found = row(cluster(spec))

    assert found.action is not None
    assert (found.action.before, found.action.after) == (4, 2)


def test_idle_workload_is_released_to_its_stated_floor() -> None:
    spec = Spec(gpus=2, seen=(boards(0.0, 0.0),), annotations={"gpu-autoscaler.io/min-replicas": "0"})
    found = row(cluster(spec))

    assert found.action is not None
    assert (found.reason, found.action.before, found.action.after) == ("Released", 1, 0)


def test_three_quiet_replicas_become_two() -> None:
    found = row(cluster(Spec(seen=(boards(0.05),) * 3)))

    assert found.action is not None
    assert (found.reason, found.action.lever, found.action.before, found.action.after) == (
        "ScaledIn",
        "scale",
        3,
        2,
    )


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (Spec(seen=(boards(0.95),)), "BelowSavingsFloor"),
        (Spec(seen=(None,)), "EvidenceAbsent"),
        (Spec(kind="Pod", group="", seen=(boards(0.0),)), "NoLever"),
        (Spec(seen=(boards(0.1),)), "LadderEnd"),
        (Spec(gpus=2, seen=(boards(0.1, 0.0, coverage=0.5),)), "EvidencePartial"),
        (Spec(gpus=2, seen=(boards(0.1),)), "EvidencePartial"),
        (Spec(gpus=2, seen=(boards(0.1, 0.0, age_ms=120_000),)), "EvidenceStale"),
        (Spec(gpus=2, seen=(boards(0.3, 0.0, history_ms=3_600_000),)), "ThinHistory"),
        (Spec(gpus=2, seen=(boards(0.1, 0.0, memory_mib=70_000),)), "MemoryGate"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_left_alone_with_its_own_reason(spec: Spec, reason: str) -> None:
    fleet = [Spec(name=f"peer-{n}", seen=(boards(0.9),)) for n in range(9)]
    (found,) = [r for r in plan(cluster(spec, *fleet), policy(), NOW_MS).rows if r.workload.name == "web"]

    assert found.action is None
    assert found.reason == reason, found.refusals


def test_recommend_mode_holds_every_action() -> None:
    found = row(cluster(Spec(gpus=2, seen=(boards(0.5, 0.0),))))

    assert found.action is not None
    assert found.action.held_by == ("ModeRecommend",)


def test_same_snapshot_gives_the_same_plan_byte_for_byte() -> None:
    snapshot = cluster(Spec(gpus=2, seen=(boards(0.5, 0.0),)), Spec(name="other", seen=(boards(0.0),) * 4))
    again = decode_snapshot(encode_snapshot(snapshot))

    assert encode_plan(plan(snapshot, policy(), NOW_MS)) == encode_plan(plan(again, policy(), NOW_MS))
