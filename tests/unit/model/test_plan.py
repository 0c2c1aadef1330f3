import msgspec
from build import NOW_MS, Spec, boards, cluster, policy

from autoscaler.decide import plan
from autoscaler.model.plan import Plan, encode_plan

PLANNED = plan(
    cluster(
        Spec("half", gpus=2, seen=(boards(0.5, 0.0),)),
        Spec("busy", seen=(boards(0.9),)),
        Spec("full", seen=(boards(0.95),)),
        Spec("low", gpus=2, seen=(boards(0.1, 0.1),)),
    ),
    policy(),
    NOW_MS,
)


def test_workloads_left_alone_are_counted_by_the_reason_of_their_row() -> None:
    assert PLANNED.refusals_by_reason() == {"BelowSavingsFloor": 2, "NeedsConsent": 1}
    assert list(PLANNED.refusals_by_reason()) == ["BelowSavingsFloor", "NeedsConsent"]


def test_a_plan_reads_back_equal() -> None:
    assert msgspec.json.decode(encode_plan(PLANNED), type=Plan) == PLANNED
