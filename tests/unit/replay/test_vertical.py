"""The rules of the replay, each with a load of one pod and a policy that does what the test says.

At 57 s steps a policy is asked at the steps 0, 6, 11, 16, 22: the first of each five minutes.
"""

import pytest

from autoscaler.model.backtest import RELEASED, WHOLE, VerticalReport, VerticalRow
from autoscaler.replay.report import run_vertical
from tests.unit.replay.recorded import STEP_S, Recorded, Values
from tests.unit.replay.scripted import Scripted

SEVENTH, HALF = 1, 4
USABLE = (2 * STEP_S - 60) / STEP_S
"""Of the second step after a change: the minute of unavailability reaches three seconds into it."""


def replayed(
    load: Values, wanted: dict[int, int], *, memory_gib: Values | float = 1.0, board_gib: float = 48.0
) -> tuple[VerticalReport, Scripted]:
    policy = Scripted(wanted)
    source = Recorded({"a": load}, {"a": memory_gib})
    return run_vertical(source, {"scripted": lambda _: policy}, board_gib=board_gib, keep=True), policy


def row_of(report: VerticalReport) -> VerticalRow:
    (row,) = report.rows
    return row


def test_a_policy_is_asked_every_five_minutes_from_the_first_sample() -> None:
    _, policy = replayed([0.5] * 30, {})

    assert policy.asked == [0, 6, 11, 16, 22, 27]


def test_a_whole_board_serves_everything_and_frees_nothing() -> None:
    report, policy = replayed([0.5, 1.0, None, 0.2], {})

    assert (row_of(report).freed_pct, row_of(report).lost_pct) == (0.0, 0.0)
    assert policy.seen == [(0, 0.5, 1.0), (1, 1.0, 1.0), (2, None, 1.0), (3, 0.2, 1.0)]
    assert policy.ended == ["a"]


def test_a_slice_holds_from_the_next_step_and_caps_what_is_served_and_seen() -> None:
    report, policy = replayed([0.5] * 10, {0: SEVENTH})
    served = 0.5 + (1 / 7) * (USABLE + 7)

    assert row_of(report).freed_pct == pytest.approx(100 * (6 / 7) * 9 / 10, abs=0.01)
    assert row_of(report).lost_pct == pytest.approx(100 * (5.0 - served) / 5.0, abs=0.001)
    assert policy.seen == [(0, 0.5, 1.0), *((index, 1 / 7, 1.0) for index in range(2, 10))]
    assert policy.told == [(1, SEVENTH)]


def test_a_resize_makes_the_pod_unavailable_for_a_minute_up_as_well_as_down() -> None:
    report, _ = replayed([0.1] * 20, {0: HALF, 6: WHOLE})

    assert row_of(report).lost_pct == pytest.approx(100 * 2 * (2 - USABLE) / 20, abs=0.001)
    assert row_of(report).restarts_per_pod_day == pytest.approx(2 * 24 * 3600 / (20 * STEP_S), abs=0.01)


def test_a_released_pod_shows_nothing_and_comes_back_whole_with_demand_after_a_minute() -> None:
    load = [0.0] * 10 + [0.4] * 5
    report, policy = replayed(load, {0: RELEASED})
    row = row_of(report)

    assert row.freed_pct == pytest.approx(100 * 9 / 15, abs=0.01)
    assert row.lost_pct == pytest.approx(100 * (2 - USABLE) / 5, abs=0.001)
    assert row.cold_starts_per_pod_day == pytest.approx(24 * 3600 / (15 * STEP_S), abs=0.01)
    assert row.restarts_per_pod_day == 0.0
    assert [index for index, *_ in policy.seen] == [0, 11, 12, 13, 14]
    assert policy.told == [(1, RELEASED), (10, WHOLE)]
    assert report.outcomes[0].changes == ((1, RELEASED), (10, WHOLE))


def test_a_policy_may_wake_a_pod_ahead_of_demand() -> None:
    report, _ = replayed([0.0] * 15 + [0.4] * 5, {0: RELEASED, 6: WHOLE})

    assert row_of(report).lost_pct == 0.0
    assert row_of(report).cold_starts_per_pod_day == pytest.approx(24 * 3600 / (20 * STEP_S), abs=0.01)
    assert row_of(report).freed_pct == pytest.approx(100 * 6 / 20, abs=0.01)


def test_memory_above_the_slice_is_one_out_of_memory_a_run_and_serves_nothing() -> None:
    memory = [1.0] * 4 + [7.0] * 3 + [5.0] * 2 + [6.5] * 3
    report, policy = replayed([0.1] * 12, {0: SEVENTH}, memory_gib=memory)

    assert row_of(report).oom == 2
    assert row_of(report).lost_pct == pytest.approx(100 * (6 + 2 - USABLE) / 12, abs=0.001)
    assert policy.seen[-1] == (11, 0.0, 6.0)


def test_memory_that_fits_exactly_is_no_fault() -> None:
    report, _ = replayed([0.1] * 12, {0: SEVENTH}, memory_gib=10.0, board_gib=80.0)

    assert row_of(report).oom == 0


@pytest.mark.parametrize(("after", "wrong"), [(1, 1), (63, 1), (64, 0)])
def test_a_release_is_wrong_when_demand_comes_within_the_hour(after: int, wrong: int) -> None:
    load = [0.0] * 200
    load[after] = 0.1
    report, _ = replayed(load, {0: RELEASED})

    assert report.outcomes[0].wrong == wrong


def test_a_shrink_is_wrong_only_for_demand_above_it() -> None:
    inside, _ = replayed([0.1] + [1 / 7] * 70, {0: SEVENTH})
    above, _ = replayed([0.1] + [0.15] * 70, {0: SEVENTH})

    assert (inside.outcomes[0].wrong, above.outcomes[0].wrong) == (0, 1)


def test_a_pod_that_ended_within_the_hour_was_not_wrongly_released() -> None:
    report, _ = replayed([0.0] * 20, {0: RELEASED})

    assert report.outcomes[0].wrong == 0


def test_growing_is_never_wrong() -> None:
    report, _ = replayed([0.1] * 10 + [1.0] * 60, {0: HALF, 6: WHOLE})

    assert report.outcomes[0].wrong == 1


@pytest.mark.parametrize(("missing", "blind"), [(3, 0), (4, 1)])
def test_an_act_is_blind_when_the_last_sample_is_more_than_three_steps_old(missing: int, blind: int) -> None:
    load: list[float | None] = [0.1] * (7 - missing) + [None] * missing + [0.1] * 5
    report, _ = replayed(load, {6: HALF})

    assert row_of(report).blind == blind


def test_memory_alone_is_no_sample_of_use() -> None:
    report, policy = replayed([0.1, None, None, None, None, None, None, 0.1], {6: RELEASED})

    assert (5, None, 1.0) in policy.seen
    assert row_of(report).blind == 1


def test_a_missing_sample_leaves_the_load_as_it_was() -> None:
    report, _ = replayed([0.5, None, None, 0.5, 0.5, 0.5, 0.5], {0: RELEASED})

    assert report.outcomes[0].changes[:2] == ((1, RELEASED), (1, WHOLE))


def test_an_allocation_off_the_ladder_is_refused() -> None:
    with pytest.raises(ValueError, match="allocation 6 of pod a is not on the ladder"):
        replayed([0.5] * 3, {0: WHOLE + 1})


def test_pods_come_and_go_and_a_place_is_used_again() -> None:
    early, late = Scripted({0: RELEASED}), Scripted()
    source = Recorded({"a": [0.0] * 10, "b": [0.6] * 10}, begins={"b": 10})
    report = run_vertical(
        source, {"early": lambda _: early, "late": lambda _: late}, board_gib=48.0, keep=True
    )
    by_pod = {outcome.pod: outcome for outcome in report.outcomes if outcome.policy == "early"}

    assert early.ended == ["a", "b"]
    assert (by_pod["a"].freed_pct, by_pod["b"].freed_pct) == (90.0, 0.0)
    assert by_pod["b"].lost_pct == 0.0
    assert (report.pods, report.pod_hours) == (2, round(20 * STEP_S / 3600, 2))


def test_drawings_are_kept_only_where_they_are_asked_for() -> None:
    source = Recorded({"a": [0.2, 0.4, 0.1]})
    report = run_vertical(source, {"scripted": lambda _: Scripted({})}, board_gib=48.0)
    drawn, _ = replayed([0.2, 0.4, 0.1], {})

    assert (report.outcomes, report.loads) == ((), ())
    assert drawn.loads[0].duty == (0.2, 0.4, 0.1)


def test_progress_tells_every_step() -> None:
    told: list[tuple[int, int]] = []
    run_vertical(
        Recorded({"a": [0.1] * 3}),
        {},
        board_gib=48.0,
        progress=lambda done, total: told.append((done, total)),
    )

    assert told == [(1, 3), (2, 3), (3, 3)]
