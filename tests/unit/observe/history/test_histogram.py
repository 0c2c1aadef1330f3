import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.observe.history.histogram import BUCKET_ENDS, HALF_LIFE_MS, DecayingHistograms

NOW = 1_800_000_000_000


def filled(*loads: tuple[int, int], rows: int = 1) -> DecayingHistograms:
    """Row 0 with these (milli-boards, age in half-lives)."""
    found = DecayingHistograms()
    found.resize(rows)
    for milli, age in loads:
        add(found, 0, milli, NOW - age * HALF_LIFE_MS)
    return found


def add(into: DecayingHistograms, row: int, milli: int, at_ms: int, weight: float = 1.0) -> None:
    into.add(np.array([row]), np.array([milli]), weights=np.array([weight]), at_ms=np.array([at_ms]))


def width_at(milli: int) -> int:
    above = int(np.searchsorted(BUCKET_ENDS, milli))
    return int(BUCKET_ENDS[above] - BUCKET_ENDS[max(above - 1, 0)])


def test_no_load_at_all_is_zero_and_not_the_first_bucket() -> None:
    assert filled((0, 0), (0, 1)).percentile(0.95)[0] == 0


def test_buckets_are_about_a_twentieth_wide_beyond_half_a_board() -> None:
    beyond = BUCKET_ENDS[BUCKET_ENDS > 500]

    assert (np.diff(beyond) / beyond[:-1]).max() < 0.1
    assert (np.diff(beyond) / beyond[:-1])[-10:].max() < 0.06


@given(st.lists(st.integers(0, 65_000), min_size=1, max_size=60), st.floats(0.01, 1.0))
def test_the_percentile_is_never_under_the_true_one_and_over_it_by_less_than_a_bucket(
    loads: list[int], share: float
) -> None:
    found = int(filled(*[(load, 0) for load in loads]).percentile(share)[0])
    true = sorted(loads)[max(0, int(np.ceil(share * len(loads) - 1e-6)) - 1)]

    assert true <= found < true + max(width_at(true), 1)


def test_what_is_one_half_life_old_weighs_half() -> None:
    # Two of four loads are 2,000, older by one half-life: a third of the weight.
    old_is_a_third = filled((2_000, 1), (2_000, 1), (500, 0), (500, 0))

    assert 500 <= old_is_a_third.percentile(0.66)[0] < 550
    assert 2_000 <= old_is_a_third.percentile(0.68)[0] < 2_150


def test_the_order_of_arrival_does_not_matter() -> None:
    loads = [(100 * i, i % 7) for i in range(1, 60)]

    assert filled(*loads).percentile(0.95) == filled(*reversed(loads)).percentile(0.95)


def test_the_reference_may_move_for_years() -> None:
    found = filled((60_000, 0))
    for day in range(1, 1_000):
        add(found, 0, 1_000, NOW + day * HALF_LIFE_MS)

    assert 1_000 <= found.percentile(0.95)[0] < 1_100
    assert np.isfinite(found._weights).all()


def test_partly_covered_steps_weigh_less() -> None:
    found = filled((1_000, 0))
    add(found, 0, 5_000, NOW, weight=0.04)

    assert found.percentile(0.95)[0] < 1_100


def test_loads_beyond_the_last_bucket_count_in_it() -> None:
    assert filled((10**9, 0)).percentile(0.5)[0] == 65_535


def test_rows_do_not_mix_and_a_cleared_row_is_empty() -> None:
    found = filled((4_000, 0), rows=2)
    add(found, 1, 1_000, NOW)
    found.clear(np.array([0]))

    assert found.percentile(0.95)[0] == 0
    assert 1_000 <= found.percentile(0.95)[1] < 1_100


def test_growing_keeps_every_row() -> None:
    found = filled((4_000, 0))
    before = found.percentile(0.95)[0]
    found.resize(1_000)

    assert before == found.percentile(0.95)[0]
    assert found.percentile(0.95)[999] == 0


def test_nothing_to_add_changes_nothing() -> None:
    found = filled()
    none = np.empty(0, dtype=np.int64)
    found.add(none, none, weights=none, at_ms=none)

    assert found.percentile(0.95)[0] == 0


@pytest.mark.parametrize("share", [0.5, 0.95, 1.0])
def test_one_load_is_every_percentile(share: float) -> None:
    assert 1_000 <= filled((1_000, 3)).percentile(share)[0] < 1_100
