import pytest
from build import Board, Spec, cluster, judge, policy

EXTREMES = [
    {"lowWatermark": 0.0},
    {"lowWatermark": 1.0},
    {"saturation": 0.0},
    {"saturation": 1.0},
    {"idleCeiling": 0.0, "activeFloor": 0.0},
    {"idleCeiling": 1.0, "activeFloor": 1.0},
]


@pytest.mark.parametrize("evidence", EXTREMES, ids=str)
@pytest.mark.parametrize("mean", [0.0, 0.5, 1.0])
def test_extreme_marks_give_a_verdict(evidence: dict[str, float], mean: float) -> None:
    found = judge(cluster(Spec(seen=((Board(mean),),))), policy(evidence=evidence))[1].assessment

    assert found.verdict in {"idle", "busy", "under-used", "saturated"}


def test_a_mean_without_a_peak_is_no_idleness() -> None:
    found = judge(cluster(Spec(seen=((Board(mean=0.9, peak=0.0),),))))[1].assessment

    assert found.verdict == "unknown"


def test_a_workload_without_template_or_pods_is_unknown_and_unstated() -> None:
    found = judge(cluster(Spec(seen=(), workload={"template": -1}), Spec("peer")), name="peer")[1].assessment

    assert found.role == "unstated"


def test_boards_that_pods_do_not_hold_are_not_judged() -> None:
    found = judge(cluster(Spec(gpus=1, seen=((Board(0.0), Board(0.0)),))))[1].assessment

    assert found.verdict == "unknown"


def test_no_container_at_all_tells_no_role() -> None:
    spec = Spec(shape={"containers": (), "demand": {"nvidia.com/gpu": 1}})

    assert judge(cluster(spec))[1].assessment.role == "unstated"
