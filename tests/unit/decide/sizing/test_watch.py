import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sizing_build import HOUR, RULES, STEP_S, at, watched

from autoscaler.decide.sizing.watch import (
    SPELLS_KEPT,
    Tally,
    Watch,
    active,
    holding,
    memory_growth,
    released,
    woken,
)

BUSY, IDLE = [0.5], [0.0]


def test_a_unit_never_seen_is_neither_idle_nor_fresh() -> None:
    watch = Watch(interval_s=STEP_S)

    assert (watch.idle_s(100.0), watch.age_s(100.0), watch.fresh(100.0, RULES)) == (0.0, 0.0, False)
    assert watch.work_load is None


def test_idleness_is_proven_from_the_first_idle_sample_on() -> None:
    watch = watched(BUSY * 10 + IDLE * 31)

    assert watch.idle_s(at(41)) == 30 * STEP_S


def test_a_sample_of_work_ends_idleness_and_is_a_wake() -> None:
    watch = watched(BUSY + IDLE * 20 + BUSY)

    assert watch.idle_s(at(22)) == 0.0
    assert watch.spells_s == (20 * STEP_S,)
    assert watch.short.wakes == 1.0
    assert watch.short.idle_hours == pytest.approx(1 / 3, rel=0.2)


def test_a_pause_between_requests_is_no_spell_worth_keeping() -> None:
    assert watched(BUSY + IDLE * 3 + BUSY).spells_s == ()


def test_only_the_latest_spells_are_kept() -> None:
    spells = [sample for length in range(5, 5 + SPELLS_KEPT + 3) for sample in BUSY + IDLE * length]

    kept = watched(spells + BUSY).spells_s

    assert len(kept) == SPELLS_KEPT
    assert kept[-1] == (4 + SPELLS_KEPT + 3) * STEP_S


def test_a_hole_proves_no_idleness_and_counts_neither_hours_nor_wakes() -> None:
    watch = watched(IDLE * 30 + [None] * 20 + IDLE)

    assert watch.idle_s(at(51)) == 0.0
    assert watch.short.idle_hours < 0.5
    assert watched(IDLE * 30 + [None] * 20 + BUSY).short.wakes == 0.0


def test_a_missing_sample_or_two_are_no_hole() -> None:
    assert watched(IDLE * 10 + [None, None] + IDLE).idle_s(at(13)) == 12 * STEP_S


@pytest.mark.parametrize(("samples_late", "fresh"), [(3, True), (4, False)])
def test_three_intervals_without_a_sample_are_the_most_that_is_fresh(samples_late: int, fresh: bool) -> None:
    assert watched(IDLE).fresh(samples_late * STEP_S, RULES) is fresh


def test_a_released_unit_goes_on_being_idle_and_demand_is_its_wake() -> None:
    watch = released(watched(BUSY + IDLE * 60), at(61), RULES)
    hour_later = at(61) + 3600

    assert watch.tallies(hour_later, RULES)[1].idle_hours > watch.long.idle_hours * 1.5
    back = woken(watch, hour_later, RULES)
    assert back.spells_s == (59 * STEP_S + 3600,)
    assert (back.long.wakes, back.idle_s(hour_later), back.released) == (1.0, 0.0, False)


def test_a_sample_of_a_released_unit_says_that_it_is_back() -> None:
    watch = released(watched(BUSY + IDLE * 60), at(61), RULES)

    back = active(watch, at(61) + 3600, 0.0, RULES)

    assert not back.released
    assert back.short.wakes == 1.0
    assert back.idle_s(at(61) + 3600) == 0.0


def test_releasing_what_was_not_idle_counts_no_idle_time() -> None:
    assert released(watched(BUSY * 10), at(20), RULES).short.idle_hours == 0.0


def test_older_wakes_count_half_after_a_half_life() -> None:
    assert Tally(4.0, 2.0).later(3600, 3600, idle=False) == Tally(2.0, 1.0)


def test_idle_hours_approach_the_half_life_over_ln_2() -> None:
    assert Tally().later(1e9, 3600, idle=True).idle_hours == pytest.approx(1 / math.log(2))


def test_the_percentile_is_rounded_up_to_the_end_of_its_bucket() -> None:
    watch = watched([0.12] * 95 + [0.93] * 5)

    assert watch.percentile(0.90) == pytest.approx(0.15)
    assert watch.percentile(1.0) == pytest.approx(0.95)


def test_the_percentile_of_nothing_is_a_whole_board() -> None:
    assert Watch(interval_s=STEP_S).percentile(0.95) == 1.0


def test_load_at_work_is_the_mean_of_working_samples() -> None:
    assert watched([0.2, 0.0, 0.4, 0.0]).work_load == pytest.approx(0.3, rel=0.01)


def test_memory_growth_compares_the_peak_with_that_of_half_the_history() -> None:
    watch = Watch(interval_s=STEP_S)
    for minute in range(4 * HOUR):
        watch = holding(watch, minute * STEP_S, 10.0 if minute < 3 * HOUR else 15.0)

    assert memory_growth(watch, 4 * 3600.0) == pytest.approx(1.5)


def test_memory_growth_is_unknown_while_half_the_history_is_under_an_hour() -> None:
    assert memory_growth(watched(IDLE * 90, memory_gib=10.0), at(90)) is None


def test_memory_growth_is_unknown_where_the_older_half_showed_no_memory() -> None:
    watch = holding(watched(IDLE * 5 * HOUR), at(5 * HOUR), 10.0)

    assert memory_growth(watch, at(5 * HOUR)) is None


def test_a_hole_in_the_memory_does_not_hide_growth() -> None:
    watch = holding(Watch(interval_s=STEP_S), 0.0, 10.0)
    for second in (5 * 3600.0, 5 * 3600.0 + 60):
        watch = holding(watch, second, 30.0)

    assert memory_growth(watch, 5 * 3600.0 + 60) == pytest.approx(3.0)


@pytest.mark.parametrize("nonsense", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_changes_nothing(nonsense: float) -> None:
    watch = watched(IDLE * 10, memory_gib=1.0)

    assert active(watch, at(11), nonsense, RULES) == watch
    assert holding(watch, at(11), nonsense) == watch


@pytest.mark.parametrize("seconds", [0.0, -60.0])
def test_a_sample_that_is_not_newer_changes_nothing(seconds: float) -> None:
    watch = watched(IDLE * 10)

    assert active(watch, at(10) + seconds, 1.0, RULES) == watch


@pytest.mark.parametrize(("activity", "counted"), [(-0.5, 0.0), (7.0, 1.0)])
def test_activity_outside_a_share_is_taken_to_its_edge(activity: float, counted: float) -> None:
    assert watched([activity]).latest == (counted,)


@given(st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=200))
def test_what_is_counted_never_exceeds_the_time_that_passed(samples: list[float | None]) -> None:
    watch = watched(samples)
    hours = len(samples) / HOUR

    assert 0 <= watch.short.idle_hours <= watch.long.idle_hours <= hours
    assert math.fsum(watch.spells_s) + watch.idle_s(at(len(samples))) <= hours * 3600
