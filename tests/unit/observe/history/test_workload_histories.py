from typing import Any

import numpy as np

from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.history import WorkloadHistory
from autoscaler.observe.history.workloads import WorkloadHistories, WorkloadSteps

STEP = 300_000
HOUR = 3_600_000
DAY = 24 * HOUR
WEEK = 7 * DAY
NOW = 1_800_000_000_000 // DAY * DAY + 12 * HOUR
WEB = WorkloadRef("apps", "Deployment", "ml", "web")
API = WorkloadRef("apps", "Deployment", "ml", "api")


def steps(
    *load: int, ref: WorkloadRef = WEB, last_ms: int = NOW, container: str = "main", **more: Any
) -> WorkloadSteps:
    """One workload's loads up to `last_ms`; the other columns follow the load unless they are stated."""
    ends = last_ms - np.arange(len(load) - 1, -1, -1) * STEP

    def column(name: str, default: list[int]) -> Any:
        return np.array([more.pop(name, default)], dtype=np.int64)

    found = WorkloadSteps(
        keys=((ref, container),),
        ends_ms=ends,
        load_milli=np.array([load]),
        busiest_milli=column("busiest", list(load)),
        peak_milli=column("peak", list(load)),
        total_milli=column("total", [3 * milli for milli in load]),
        total_peak_milli=column("total_peak", [4 * milli for milli in load]),
        active_boards=column("active", [1] * len(load)),
        boards=column("boards", [2] * len(load)),
        memory_peak_mib=column("memory", [0] * len(load)),
        covered_ms=column("covered", [STEP] * len(load)),
    )
    assert not more
    return found


def histories() -> WorkloadHistories:
    return WorkloadHistories(history_ms=WEEK, step_ms=STEP)


def only(found: WorkloadHistories, *, now_ms: int = NOW) -> WorkloadHistory:
    (row,) = found.reduced(0.95, now_ms=now_ms)
    return row


def test_a_workloads_history_has_its_percentile_and_its_extremes() -> None:
    kept = histories()
    kept.add(
        steps(
            *[1_000] * 39,
            4_000,
            busiest=[900] * 39 + [2_000],
            peak=[1_500] * 39 + [7_000],
            active=[2] * 40,
            memory=[70] * 40,
        )
    )

    row = only(kept)

    assert (row.ref, row.container) == (WEB, "main")
    assert 1_000 <= row.load_milli < 1_100  # 39 of 40 are under 1,000
    assert (row.total_milli, row.total_peak_milli) == (12_000, 16_000)
    assert (
        row.busiest_milli,
        row.peak_milli,
        row.active_boards,
        row.memory_peak_mib,
    ) == (2_000, 7_000, 2, 70)
    assert row.history_ms == 40 * STEP
    assert row.first_ms == NOW - 40 * STEP


def test_a_step_that_was_not_covered_is_no_history_and_no_load() -> None:
    kept = histories()
    kept.add(steps(500, 9_000, 500, covered=[STEP, 0, STEP]))

    row = only(kept)

    assert 500 <= row.load_milli < 560
    assert (row.busiest_milli, row.history_ms) == (500, 2 * STEP)


def test_a_partly_covered_step_is_as_much_history_as_its_samples_stand_for() -> None:
    kept = histories()
    kept.add(steps(500, 500, covered=[STEP // 2, STEP]))

    assert only(kept).history_ms == STEP // 2 + STEP


def test_no_more_is_covered_than_there_was_time() -> None:
    kept = histories()
    kept.add(steps(500, covered=[10 * STEP]))

    assert only(kept).history_ms == STEP


def test_the_same_workload_goes_on_whatever_its_pods_are_called() -> None:
    kept = histories()
    kept.add(steps(500, last_ms=NOW - DAY))
    kept.add(steps(500, last_ms=NOW))

    assert only(kept).history_ms == 2 * STEP
    assert only(kept).first_ms == NOW - DAY - STEP


def test_containers_of_one_workload_have_histories_of_their_own() -> None:
    kept = histories()
    kept.add(steps(500, container="main"))
    kept.add(steps(700, container="draft"))

    assert [(row.container, row.busiest_milli) for row in kept.reduced(0.95, now_ms=NOW)] == [
        ("draft", 700),
        ("main", 500),
    ]


def test_the_order_in_which_steps_come_does_not_matter() -> None:
    forward, backward = histories(), histories()
    pieces = [steps(100 * i, 50 * i, last_ms=NOW - i * 5 * HOUR, memory=[i, 2 * i]) for i in range(1, 30)]
    for piece in pieces:
        forward.add(piece)
    for piece in reversed(pieces):
        backward.add(piece)

    assert forward.reduced(0.95, now_ms=NOW) == backward.reduced(0.95, now_ms=NOW)


def test_days_before_the_history_leave_it_one_by_one() -> None:
    kept = histories()
    for age in range(12):
        kept.add(steps(100, last_ms=NOW - age * DAY, peak=[1_000 * (age + 1)]))

    row = only(kept)

    assert row.peak_milli == 8_000  # seven days back, the history begins inside that day
    assert row.history_ms == 8 * STEP
    assert row.first_ms == NOW - 7 * DAY - STEP
    assert only(kept, now_ms=NOW + 2 * DAY).peak_milli == 6_000


def test_a_workload_without_any_history_left_has_no_row() -> None:
    kept = histories()
    kept.add(steps(500))

    assert kept.reduced(0.95, now_ms=NOW + 30 * DAY) == ()


def test_a_step_ends_in_the_day_that_it_lies_in() -> None:
    kept, midnight = histories(), NOW // DAY * DAY
    kept.add(steps(100, last_ms=midnight, peak=[9_000]))

    assert only(kept, now_ms=midnight + WEEK - 1).peak_milli == 9_000
    assert kept.reduced(0.95, now_ms=midnight + WEEK) == ()


def test_history_is_never_longer_than_its_window() -> None:
    kept = histories()
    for day in range(8):
        kept.add(steps(*[100] * 288, last_ms=NOW // DAY * DAY + DAY - day * DAY))

    assert only(kept, now_ms=NOW // DAY * DAY + DAY - 1).history_ms == WEEK


def test_a_workload_made_anew_within_the_hour_keeps_its_history() -> None:
    kept = histories()
    kept.add(steps(500))

    assert kept.drop_missing([API], now_ms=NOW) == 0
    assert kept.drop_missing([API], now_ms=NOW + HOUR - 1) == 0
    assert kept.drop_missing([WEB], now_ms=NOW + HOUR) == 0
    assert kept.drop_missing([API], now_ms=NOW + 2 * HOUR) == 0
    assert len(kept.reduced(0.95, now_ms=NOW)) == 1


def test_a_workload_that_is_gone_for_an_hour_is_forgotten_and_its_row_is_used_again() -> None:
    kept = histories()
    kept.add(steps(9_000, memory=[500]))
    kept.drop_missing([API], now_ms=NOW)

    assert kept.drop_missing([API], now_ms=NOW + HOUR) == 1
    assert len(kept) == 0
    kept.add(steps(100, ref=API))

    assert WorkloadHistory(
        API, "main", only(kept).load_milli, 100, 100, 300, 400, 1, 2, 0, STEP, NOW - STEP
    ) == only(kept)
    assert 100 <= only(kept).load_milli < 120


def test_rows_are_recycled_so_that_a_fleet_that_changes_takes_no_more_memory() -> None:
    kept = histories()
    for i in range(300):
        kept.add(steps(100, ref=WorkloadRef("batch", "Job", "ml", f"run-{i}"), last_ms=NOW + i * HOUR))
        kept.drop_missing([], now_ms=NOW + i * HOUR)

    assert len(kept) <= 3
    assert kept.nbytes < 64 * 700


def test_many_workloads_grow_the_tables_and_keep_what_was_there() -> None:
    kept = histories()
    for i in range(200):
        kept.add(steps(10 * i, ref=WorkloadRef("apps", "Deployment", "ml", f"w-{i:03}")))

    assert [10 * i for i in range(200)] == [row.busiest_milli for row in kept.reduced(0.95, now_ms=NOW)]


def test_no_workload_is_no_row() -> None:
    kept = histories()
    nothing = np.empty((0, 1), dtype=np.int64)
    kept.add(WorkloadSteps((), np.array([NOW]), *[nothing] * 9))

    assert kept.reduced(0.95, now_ms=NOW) == ()


def test_figures_beyond_a_column_stay_at_its_end() -> None:
    kept = histories()
    kept.add(steps(10**9, memory=[2**40]))

    assert (
        only(kept).load_milli,
        only(kept).busiest_milli,
        only(kept).memory_peak_mib,
    ) == (65_535, 65_535, 4_294_967_295)


def test_the_fewest_boards_that_a_unit_had_are_remembered_until_they_leave_the_history() -> None:
    kept = histories()
    kept.add(steps(500, 500, 500, boards=[4, 0, 2], covered=[STEP, 0, STEP], last_ms=NOW - DAY))
    kept.add(steps(500, boards=[4]))

    assert only(kept).boards == 2
    assert only(kept, now_ms=NOW + WEEK).boards == 4
