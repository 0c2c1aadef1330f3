"""The sample interval, measured from what the store holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.observe.queries import pace_range_ms
from autoscaler.observe.reader import measured_interval_ms

pytestmark = pytest.mark.unit

WINDOW_MS = 1_800_000
PACE_MS = pace_range_ms(WINDOW_MS)


def measure(window_count: int, pace_count: int, remembered_ms: int = 0) -> int:
    return measured_interval_ms(
        window_ms=WINDOW_MS,
        window_count=window_count,
        pace_ms=PACE_MS,
        pace_count=pace_count,
        remembered_ms=remembered_ms,
    )


def test_a_full_window_gives_the_interval() -> None:
    assert measure(120, 30) == 15_000


def test_a_gap_in_the_whole_source_does_not_stretch_the_interval() -> None:
    assert measure(60, 30) == 15_000
    assert measure(20, 20) <= 22_500


def test_the_interval_measured_before_a_gap_stands_while_nothing_disproves_it() -> None:
    assert measure(117, 30, remembered_ms=15_000) == 15_000
    assert measure(90, 0, remembered_ms=15_000) == 15_000


def test_a_slower_scrape_replaces_a_remembered_interval() -> None:
    assert measure(60, 15, remembered_ms=15_000) == 30_000


def test_without_samples_there_is_no_interval() -> None:
    assert measure(0, 0, remembered_ms=15_000) == 0


@given(st.integers(1000, 60_000), st.integers(0, 4))
def test_a_source_with_gaps_never_looks_complete(interval_ms: int, silent_quarters: int) -> None:
    """Quarters without a sample leave coverage under what is needed, whatever the interval."""
    per_quarter = PACE_MS // interval_ms
    count = per_quarter * (4 - silent_quarters)
    measured = measure(count, per_quarter if silent_quarters < 4 else 0)
    expected = WINDOW_MS / measured if measured else 0.0

    if silent_quarters and count:
        assert count / expected < 0.95
