"""What is remembered about versions is bounded, and forgetting never lets an old one pass."""

import pytest

from autoscaler.kube.backoff import Backoff
from autoscaler.kube.versions import Versions, version_number

pytestmark = pytest.mark.unit


def test_an_unknown_object_is_as_new_as_the_list() -> None:
    assert Versions(floor=10, capacity=2).newest("a") == 10


def test_memory_is_bounded_under_endless_churn() -> None:
    versions = Versions(floor=0, capacity=100)
    for number in range(1, 10_000):
        versions.record(f"pod-{number}", number)

    assert len(versions) <= 201


def test_a_forgotten_object_is_as_new_as_what_was_forgotten() -> None:
    versions = Versions(floor=0, capacity=2)
    for number in range(1, 20):
        versions.record(f"pod-{number}", number)

    assert versions.newest("pod-1") >= 1
    assert versions.newest("pod-19") == 19


@pytest.mark.parametrize(("text", "number"), [("12", 12), ("", -1), ("x1", -1), ("1.5", -1)])
def test_a_version_that_is_no_number_has_no_order(text: str, number: int) -> None:
    assert version_number(text) == number


def test_a_very_long_outage_does_not_overflow_the_backoff() -> None:
    backoff = Backoff(first_s=0.8, cap_s=30.0, reset_s=120.0, rng=lambda: 0.999)

    assert all(backoff.next_delay_s(0.0) < 30.0 for _ in range(5_000))
