import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.decide.scaling.formula import hpa_replicas

USES = st.lists(st.none() | st.floats(0, 2), max_size=12)


@pytest.mark.parametrize(
    ("uses", "expected"),
    [
        ([0.7, 0.7], 2),
        ([0.76, 0.76], 2),  # 8.6 % over the target: within the tolerance
        ([0.8, 0.8], 3),
        ([0.3, 0.3], 1),
        ([1.0, 1.0, 1.0, 1.0], 6),
    ],
)
def test_the_mean_use_is_brought_to_its_target(uses: list[float], expected: int) -> None:
    assert expected == hpa_replicas(uses, replicas=len(uses), target=0.7)


def test_a_silent_pod_counts_as_full_when_shrinking() -> None:
    # 0.2 alone would halve; with the silent one as full the mean is 0.6 of a target of 0.7
    assert hpa_replicas([0.2, None], replicas=2, target=0.7) == 2
    assert hpa_replicas([0.1, 0.1, 0.1, None], replicas=4, target=0.7) == 2


def test_a_silent_pod_counts_as_empty_when_growing() -> None:
    # 1.0 alone would need 3; with the silent one as empty 0.5 is under the target, and that turn is refused
    assert hpa_replicas([1.0, None], replicas=2, target=0.7) == 2
    assert hpa_replicas([1.0, 1.0, None], replicas=3, target=0.5) == 4


def test_filled_in_figures_never_shrink_a_fleet_that_is_over_its_target() -> None:
    # two of ten say 1.5: over the target alone, yet of those heard too few pods are needed to fill the ten requested
    assert hpa_replicas([1.5, 1.5, None], replicas=10, target=0.7) == 10


def test_nothing_known_changes_nothing() -> None:
    assert hpa_replicas([None, None], replicas=2, target=0.7) == 2
    assert hpa_replicas([], replicas=3, target=0.7) == 3


@given(USES, st.integers(1, 12))
def test_one_more_silent_pod_never_makes_a_decision_bolder(uses: list[float | None], replicas: int) -> None:
    fleet = max(replicas, len(uses))
    heard = hpa_replicas([use for use in uses if use is not None], replicas=fleet, target=0.7)
    filled = hpa_replicas(uses, replicas=fleet, target=0.7)

    assert filled >= min(heard, fleet)
    assert (filled > fleet) <= (heard > fleet or len(uses) > sum(use is not None for use in uses))
