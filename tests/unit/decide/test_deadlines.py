from typing import Any

import pytest
from build import DAY_MS, HOUR_MS, MINUTE_MS, NOW_MS, Spec, boards, cluster, judge, rescale, resize

from autoscaler.decide.deadlines import ready_within_ms
from autoscaler.model.cluster import Run

ONE_BY_ONE = {"max_surge": "0", "max_unavailable": "1"}


def minutes(spec: Spec, *, scale: bool = False) -> int:
    world, judged = judge(cluster(spec))
    return ready_within_ms(world, judged, rescale(2, 1) if scale else resize(2, 1)) // MINUTE_MS


@pytest.mark.parametrize(
    ("ready_after_ms", "replicas", "rollout", "expected"),
    [
        (20_000, 1, {}, 30),
        (20 * MINUTE_MS, 1, {}, 40),
        (20 * MINUTE_MS, 1, {"progress_deadline_s": 3600}, 40),
        (50 * MINUTE_MS, 1, {"progress_deadline_s": 3600}, 100),
        (50 * MINUTE_MS, 1, {"progress_deadline_s": 60}, 60),
        (9 * DAY_MS, 1, {"progress_deadline_s": 3600}, 120),
        (20 * MINUTE_MS, 4, ONE_BY_ONE, 160),
        (20 * MINUTE_MS, 4, {"max_surge": "2", "max_unavailable": "2"}, 40),
        (20 * MINUTE_MS, 4, {"recreate": True}, 40),
    ],
)
def test_twice_the_longest_start_for_each_batch(
    ready_after_ms: int, replicas: int, rollout: dict[str, Any], expected: int
) -> None:
    spec = Spec(gpus=2, seen=(boards(0.5, 0.0),) * replicas, ready_after_ms=ready_after_ms, rollout=rollout)

    assert expected == minutes(spec)


@pytest.mark.parametrize("pod", [{"ready_ms": -1}, {"started_ms": -1}])
def test_a_start_that_is_not_known_has_the_policy_s_deadline(pod: dict[str, int]) -> None:
    assert minutes(Spec(gpus=2, seen=(boards(0.5, 0.0),), pod=pod)) == 30


def test_fewer_replicas_start_nothing() -> None:
    assert minutes(Spec(seen=(boards(0.0),) * 2, ready_after_ms=HOUR_MS), scale=True) == 30


@pytest.mark.parametrize(
    ("gaps_ms", "days"), [((), 4), ((HOUR_MS,), 4), ((DAY_MS, 3 * DAY_MS), 6), ((7 * DAY_MS,), 14)]
)
def test_a_cron_job_has_twice_the_longest_gap_between_its_runs(gaps_ms: tuple[int, ...], days: int) -> None:
    began = [NOW_MS - sum(gaps_ms[:n]) for n in range(len(gaps_ms) + 1)]
    runs = tuple(Run(at, "succeeded", 1) for at in began)
    spec = Spec(kind="CronJob", group="batch", workload={"runs": runs, "completed_runs": 3})

    assert days * 24 * 60 == minutes(spec)
