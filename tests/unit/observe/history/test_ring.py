import numpy as np
import pytest

from autoscaler.model.evidence import MISSING_ACTIVITY
from autoscaler.observe.history.ring import Ring

MINUTE = 60_000
START = 1_800_000_000_000 // MINUTE * MINUTE


def ring(*, window: int = 5) -> Ring:
    return Ring(window_ms=window * MINUTE, interval_ms=MINUTE)


def write(into: Ring, minute: int, values: dict[int, tuple[int, int, int]]) -> None:
    """`values` by position: mean, peak and samples."""
    columns = np.array([values[position] for position in values]).reshape(-1, 3).T
    positions = np.array(list(values), dtype=np.int64)
    into.write(START + minute * MINUTE, positions, mean=columns[0], peak=columns[1], samples=columns[2])


def test_the_mean_of_a_window_weighs_every_interval_by_its_samples() -> None:
    kept = ring()
    write(kept, 1, {0: (1_000, 2_000, 4)})
    write(kept, 2, {0: (4_000, 9_000, 2)})

    found = kept.reduce(START + 2 * MINUTE, 5 * MINUTE)

    assert found.mean.tolist() == [2_000]
    assert found.maximum.tolist() == [9_000]
    assert found.samples.tolist() == [6]
    assert found.newest_ms.tolist() == [START + 2 * MINUTE]


def test_an_interval_that_was_not_answered_has_no_samples() -> None:
    kept = ring()
    for minute in (1, 2, 5):
        write(kept, minute, {0: (0, 0, 4)})

    assert kept.reduce(START + 5 * MINUTE, 5 * MINUTE).samples.tolist() == [12]


def test_a_late_answer_replaces_what_was_known_of_the_interval() -> None:
    kept = ring()
    write(kept, 1, {0: (1_000, 1_000, 2), 1: (5, 5, 1)})
    write(kept, 1, {0: (3_000, 8_000, 4)})

    found = kept.reduce(START + MINUTE, 5 * MINUTE)

    assert found.mean.tolist() == [3_000, MISSING_ACTIVITY]
    assert found.samples.tolist() == [4, 0]


def test_what_left_the_window_does_not_count_though_its_column_was_never_written_again() -> None:
    kept = ring()
    write(kept, 1, {0: (9_000, 9_000, 4)})

    found = kept.reduce(START + 60 * MINUTE, 5 * MINUTE)

    assert found.samples.tolist() == [0]
    assert found.maximum.tolist() == [MISSING_ACTIVITY]
    assert found.newest_ms.tolist() == [-1]


def test_the_circle_never_mixes_an_old_interval_with_a_new_one() -> None:
    kept = ring()
    for minute in range(1, 40):
        write(kept, minute, {0: (minute, minute, 1)})

    found = kept.reduce(START + 39 * MINUTE, 5 * MINUTE)

    assert (found.mean.tolist(), found.maximum.tolist(), found.samples.tolist()) == ([37], [39], [5])


def test_an_interval_older_than_the_ring_is_left_out() -> None:
    kept = ring()
    write(kept, 20, {0: (1, 1, 1)})
    write(kept, 20 - 7, {0: (9, 9, 1)})

    assert kept.reduce(START + 20 * MINUTE, 5 * MINUTE).maximum.tolist() == [1]


def test_the_open_interval_counts_and_the_span_says_how_much_time_was_looked_at() -> None:
    kept = ring()
    for minute in range(1, 8):
        write(kept, minute, {0: (0, 0, 4)})

    found = kept.reduce(START + 6 * MINUTE + 20_000, 5 * MINUTE)

    assert found.samples.tolist() == [6 * 4]  # minutes 2 to 7: the window begins inside the second
    assert found.span_ms == 5 * MINUTE + 20_000


def test_values_that_cannot_be_used_are_marked_and_are_no_samples() -> None:
    kept = ring()
    write(kept, 1, {0: (1_000, 1_000, 4), 1: (MISSING_ACTIVITY, MISSING_ACTIVITY, 4)})
    write(kept, 2, {0: (MISSING_ACTIVITY, 2_000, 4)})

    found = kept.reduce(START + 2 * MINUTE, 5 * MINUTE)

    assert found.bad.tolist() == [True, True]
    assert found.samples.tolist() == [4, 0]
    assert found.maximum.tolist() == [1_000, MISSING_ACTIVITY]


def test_more_samples_than_a_cell_holds_stay_many() -> None:
    kept = ring()
    write(kept, 1, {0: (10, 10, 70_000)})

    assert kept.reduce(START + MINUTE, MINUTE).samples.tolist() == [65_535]


def test_new_positions_keep_the_old_ones_values() -> None:
    kept = ring()
    write(kept, 1, {0: (7, 7, 1)})
    write(kept, 2, {5_000: (9, 9, 1)})

    found = kept.reduce(START + 2 * MINUTE, 5 * MINUTE)

    assert len(kept) == 5_001
    assert (found.mean[0], found.mean[4_999], found.mean[5_000]) == (7, MISSING_ACTIVITY, 9)


def test_positions_that_are_kept_are_numbered_anew() -> None:
    kept = ring()
    write(kept, 1, {0: (1, 1, 1), 1: (2, 2, 1), 2: (3, 3, 1)})
    kept.keep(np.array([2, 0]))
    write(kept, 2, {2: (4, 4, 1)})

    assert kept.reduce(START + 2 * MINUTE, 5 * MINUTE).mean.tolist() == [3, 1, 4]


def test_compacting_gives_memory_back() -> None:
    kept = ring()
    write(kept, 1, {50_000: (1, 1, 1)})
    before = kept.nbytes
    kept.keep(np.array([50_000]))

    assert kept.nbytes < before / 20
    assert kept.reduce(START + MINUTE, 5 * MINUTE).mean.tolist() == [1]


def test_an_empty_ring_has_nothing() -> None:
    kept = ring()

    assert kept.newest_end_ms == -1
    assert len(kept.reduce(START, 5 * MINUTE).samples) == 0


@pytest.mark.parametrize(("window_ms", "interval_ms"), [(0, MINUTE), (MINUTE, 0), (MINUTE, 2 * MINUTE)])
def test_impossible_sizes_are_refused(window_ms: int, interval_ms: int) -> None:
    with pytest.raises(ValueError, match="cannot have intervals"):
        Ring(window_ms=window_ms, interval_ms=interval_ms)


def test_an_end_off_the_grid_is_refused() -> None:
    nothing = np.empty(0, dtype=np.int64)

    with pytest.raises(ValueError, match="no end of an interval"):
        ring().write(START + 1, nothing, mean=nothing, peak=nothing, samples=nothing)
