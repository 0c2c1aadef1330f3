from hypothesis import given
from hypothesis import strategies as st

from autoscaler.observe.history.seeding import RETRY_MS, STEP_MS, Progress, SeedPlan, step_for
from autoscaler.observe.history.steps import Grid

DAY = 86_400_000
WEEK = 7 * DAY
NOW = 1_800_000_000_000
SETTLED = (NOW - 120_000) // STEP_MS * STEP_MS


def plan(**more: int) -> SeedPlan:
    return SeedPlan(history_ms=more.pop("history_ms", WEEK), step_ms=STEP_MS, **more)


def piece(found: SeedPlan, *, now_ms: int = NOW, series: int = 1) -> Grid:
    grid = found.next_piece(now_ms=now_ms, series=series)
    assert grid is not None
    return grid


def test_the_newest_history_comes_first() -> None:
    seeding = plan(max_points=1_000)
    first = piece(seeding, series=10)
    seeding.counted(first)

    assert (first.last_ms, first.steps) == (SETTLED, 100)
    assert first.first_ms - STEP_MS == piece(seeding, series=10).last_ms


def test_a_week_is_one_piece_of_few_series_and_stays_within_a_stores_limit() -> None:
    assert 2_015 <= piece(plan()).steps <= 2_016
    assert piece(plan(history_ms=90 * DAY)).steps == 10_000


def test_an_answer_holds_no_more_points_than_it_may() -> None:
    assert piece(plan(), series=64_000).steps == 3
    assert piece(plan(), series=5_000_000).steps == 1


def test_a_step_is_asked_for_only_when_late_samples_have_come() -> None:
    seeding = plan()
    seeding.counted(piece(seeding))

    assert seeding.next_piece(now_ms=SETTLED + STEP_MS + 119_999, series=1) is None
    assert Grid(SETTLED + STEP_MS, STEP_MS, 1) == piece(seeding, now_ms=SETTLED + STEP_MS + 120_000)


def test_every_step_of_the_history_is_handed_out_once() -> None:
    seeding, seen = plan(max_points=977), []
    while (grid := seeding.next_piece(now_ms=NOW, series=3)) is not None:
        seen += grid.ends_ms.tolist()
        seeding.counted(grid)

    assert len(seen) == len(set(seen)) == seeding.progress(NOW).total
    assert seeding.progress(NOW).done == seeding.progress(NOW).total
    assert max(seen) == SETTLED
    assert min(seen) - STEP_MS >= NOW - WEEK


def test_what_was_missed_while_the_store_was_away_is_asked_for_again() -> None:
    seeding = plan()
    seeding.counted(piece(seeding))

    assert Grid(SETTLED + STEP_MS, STEP_MS, 12) == piece(seeding, now_ms=NOW + 12 * STEP_MS)


def test_a_piece_that_is_too_large_is_halved_until_it_fits() -> None:
    seeding, steps = plan(), []
    for _ in range(4):
        grid = piece(seeding)
        steps.append(grid.steps)
        seeding.too_large(grid, now_ms=NOW, why="422")

    assert steps[1:] == [steps[0] // 2, steps[0] // 4, steps[0] // 8]
    assert piece(seeding).last_ms == SETTLED


def test_one_step_that_is_too_large_lets_older_ones_come_first() -> None:
    seeding = plan(max_points=1)
    only = piece(seeding)
    seeding.too_large(only, now_ms=NOW, why="422 too many samples")

    assert seeding.next_piece(now_ms=NOW, series=1) is None
    assert only.last_ms - STEP_MS == piece(seeding, now_ms=NOW + 5_000).last_ms
    assert seeding.progress(NOW).fault == "422 too many samples"


def test_a_failed_piece_is_retried_later_and_never_counted() -> None:
    seeding = plan(max_points=100)
    failed = piece(seeding)
    seeding.failed(failed, now_ms=NOW, why="unreachable")
    assert seeding.progress(NOW).done == 0

    after = NOW + RETRY_MS
    assert piece(seeding, now_ms=after).last_ms > failed.last_ms  # what closed meanwhile is newer still
    seeding.counted(piece(seeding, now_ms=after))
    seen = []
    while (grid := seeding.next_piece(now_ms=after, series=1)) is not None:
        seen += grid.ends_ms.tolist()
        seeding.counted(grid)

    assert set(failed.ends_ms.tolist()) <= {*seen, *range(failed.first_ms, after, STEP_MS)}
    assert seeding.progress(after).done == seeding.progress(after).total


def test_pauses_grow_while_nothing_is_answered_and_end_with_the_first_answer() -> None:
    seeding, pauses, now = plan(max_points=10), [], NOW
    for _ in range(9):
        seeding.failed(piece(seeding, now_ms=now), now_ms=now, why="unreachable")
        before = now
        while seeding.next_piece(now_ms=now, series=1) is None:
            now += 1_000
        pauses.append((now - before) // 1_000)

    assert pauses == [5, 10, 20, 40, 80, 160, 300, 300, 300]
    seeding.counted(piece(seeding, now_ms=now))
    assert seeding.next_piece(now_ms=now, series=1) is not None
    assert seeding.progress(now).fault == ""


def test_progress_says_how_far_and_why_not() -> None:
    assert str(Progress(done=3, total=9)) == "3 of 9 steps of history"
    assert str(Progress(done=3, total=9, fault="no answer")) == "3 of 9 steps of history, last: no answer"


def test_what_left_the_history_is_not_remembered_as_counted() -> None:
    seeding = plan()
    seeding.counted(piece(seeding))
    later = NOW + 30 * DAY
    piece(seeding, now_ms=later)

    assert seeding.progress(later).done == 0
    assert not seeding._counted


def test_large_fleets_have_coarser_steps() -> None:
    assert step_for(10_000, window_ms=1_800_000) == STEP_MS
    assert step_for(10_001, window_ms=1_800_000) == 1_800_000
    assert step_for(1, window_ms=60_000) == 60_000


@given(
    st.lists(
        st.tuples(st.sampled_from(["ok", "large", "failed"]), st.integers(1, 4_000), st.integers(0, 900)),
        max_size=40,
    )
)
def test_whatever_happens_a_piece_has_only_steps_that_are_not_counted(
    outcomes: list[tuple[str, int, int]],
) -> None:
    seeding, now, counted = plan(history_ms=DAY, max_points=2_000), NOW, set[int]()
    for outcome, series, wait_s in outcomes:
        grid = seeding.next_piece(now_ms=now, series=series)
        if grid is not None:
            ends = set(grid.ends_ms.tolist())
            assert not ends & counted
            assert all(now - DAY < end <= now - 120_000 and end % STEP_MS == 0 for end in ends)
            match outcome:
                case "ok":
                    seeding.counted(grid)
                    counted |= ends
                case "large":
                    seeding.too_large(grid, now_ms=now, why="large")
                case _:
                    seeding.failed(grid, now_ms=now, why="failed")
        now += wait_s * 1_000
