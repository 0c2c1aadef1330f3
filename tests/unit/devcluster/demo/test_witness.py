import pytest

from devcluster.demo.wire import Condition
from tests.unit.devcluster.demo.stories import GPU, budget, pod, quota, training, witness

pytestmark = pytest.mark.unit


def test_a_pod_that_the_scheduler_preempted_is_a_breach_even_when_it_is_gone_at_once() -> None:
    seen = witness()
    seen.pod_seen(pod(conditions=(Condition("DisruptionTarget", "True", "PreemptionByScheduler"),)), 1)
    seen.pod_gone("uid-helper-1")

    assert list(seen.breaches) == ["the scheduler preempted batch/helper-1"]


def test_an_eviction_is_no_breach() -> None:
    seen = witness()
    seen.pod_seen(pod(conditions=(Condition("DisruptionTarget", "True", "EvictionByEvictionAPI"),)), 1)

    assert seen.breaches == {}


def test_a_quota_that_is_full_holds_and_its_peak_is_kept() -> None:
    seen = witness()
    for used in (6, 8, 4):
        seen.quota_seen(quota(used, 8))

    assert seen.quota_peaks == {f"ml/gpu-quota requests.{GPU}": (8, 8)}
    assert seen.breaches == {}


def test_a_quota_that_is_exceeded_is_a_breach() -> None:
    seen = witness()
    seen.quota_seen(quota(9, 8))

    assert list(seen.breaches) == [f"quota ml/gpu-quota requests.{GPU}: 9 of 8 used"]


def test_other_keys_of_a_quota_are_left_alone() -> None:
    seen = witness()
    seen.quota_seen(quota(9, 8, key="pods"))

    assert (seen.quota_peaks, seen.breaches) == ({}, {})


@pytest.mark.parametrize(("boards", "breaches"), [(4, 0), (5, 1)])
def test_a_container_over_the_limit_range_is_a_breach(boards: int, breaches: int) -> None:
    seen = witness()
    seen.pod_seen(pod(namespace="ml", boards=boards), 1)

    assert len(seen.breaches) == breaches


@pytest.mark.parametrize(
    ("healthy", "breaches"),
    [
        ((0, 1, 2, 3), []),  # it is only starting
        ((2, 3, 2), []),
        ((2, 1), ["disruption budget batch/helper: 1 healthy of 2 at least"]),
    ],
)
def test_a_disruption_budget_counts_from_when_it_is_first_met(
    healthy: tuple[int, ...], breaches: list[str]
) -> None:
    seen = witness()
    for number in healthy:
        seen.budget_seen(budget(number, 2))

    assert list(seen.breaches) == breaches


def test_boards_are_free_where_no_live_pod_is_bound() -> None:
    seen = witness()
    seen.pods_listed([pod("a", boards=3), pod("b", node=""), pod("c", phase="Succeeded"), pod("d")], 1)
    seen.pod_gone("uid-d")

    assert seen.free_boards() == {"node-0": 5}


def test_a_pod_that_a_new_list_lacks_is_gone() -> None:
    seen = witness()
    seen.pods_listed([pod("a"), pod("b")], 1)
    seen.pods_listed([pod("b")], 2)

    assert [one.gone for one in seen.pods.values()] == [True, False]


def test_the_wait_for_a_seat_is_from_the_schedulers_no_to_its_yes() -> None:
    seen = witness()
    seen.pod_seen(training(), 10)
    seen.pod_seen(training(nominated="node-0"), 12)
    seen.pod_seen(training(node="node-0"), 13.5)
    seen.pod_seen(training(node="node-0", phase="Running"), 20)
    (story,) = seen.labelled("ml", "batch.kubernetes.io/job-name", "training-1")

    assert (story.waited_s, story.nominated, story.node) == (3.5, "node-0", "node-0")


def test_a_pod_that_found_room_at_once_did_not_wait() -> None:
    seen = witness()
    seen.pod_seen(training(node="node-0"), 10)

    assert seen.pods["uid-training-1-x"].waited_s is None
