import math

import pytest
from sizing_build import DAY, HOUR, LADDER, RULES, STEP_S, WHOLE, at, watched

from autoscaler.decide.sizing.slices import (
    Ladder,
    load_bounds,
    memory_bound,
    saturated,
    smallest_step,
)
from autoscaler.decide.sizing.watch import Watch


@pytest.mark.parametrize(
    ("compute", "memory", "complaint"),
    [
        ((0.0,), (0.0,), "two or more steps"),
        ((0.0, 1.0), (0.0,), "two or more steps"),
        ((0.1, 1.0), (0.0, 1.0), "begins with nothing"),
        ((0.0, 0.9), (0.0, 1.0), "ends with the whole"),
        ((0.0, 0.6, 0.4, 1.0), (0.0, 0.1, 0.2, 1.0), "smaller than the one before"),
        ((0.0, 0.4, 0.6, 1.0), (0.0, 0.2, 0.1, 1.0), "smaller than the one before"),
    ],
)
def test_what_is_no_ladder_is_refused(
    compute: tuple[float, ...], memory: tuple[float, ...], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        Ladder(compute, memory)


@pytest.mark.parametrize(
    ("load", "memory_gib", "step"),
    [
        (0.1, 9.0, 1),
        (0.1, 11.0, 2),
        (0.3, 9.0, 3),
        (0.3, 40.0, 3),
        (0.5, 9.0, 4),
        (0.58, 1.0, WHOLE),
        (0.1, 41.0, WHOLE),
    ],
)
def test_the_smallest_step_carries_load_and_memory(load: float, memory_gib: float, step: int) -> None:
    assert smallest_step(LADDER, load=load, memory_gib=memory_gib, board_gib=80.0) == step


def test_a_day_of_history_doubles_the_upper_bound() -> None:
    watch = watched([0.18] * DAY)
    lower, upper = load_bounds(watch, RULES, 24 * 3600.0)

    assert upper == pytest.approx(0.20 / 0.70 * 1.15 * 2)
    assert lower == pytest.approx(0.20 / 0.70, rel=0.01)


def test_no_history_has_no_upper_bound() -> None:
    assert load_bounds(Watch(interval_s=STEP_S), RULES, 0.0) == (0.0, math.inf)


def test_an_idle_unit_is_assumed_to_need_the_noise_of_a_context() -> None:
    watch = watched([0.0] * HOUR)

    assert load_bounds(watch, RULES, 30 * 24 * 3600.0)[1] == pytest.approx(0.05 / 0.7 * 1.15 * (1 + 1 / 30))


def test_memory_must_fit_with_the_growth_of_peers_and_room() -> None:
    watch = watched([0.2] * 2 * HOUR, memory_gib=18.0)

    assert memory_bound(watch, 1.5, RULES) == pytest.approx(18 * 1.5 / 0.9)
    assert memory_bound(watch, 0.5, RULES) == pytest.approx(18 / 0.9)


def test_memory_that_nobody_showed_the_growth_of_has_no_bound() -> None:
    assert memory_bound(watched([0.2] * 2 * HOUR, memory_gib=18.0), None, RULES) == math.inf


def test_a_unit_without_memory_samples_has_no_bound() -> None:
    assert memory_bound(watched([0.2] * 2 * HOUR), 1.0, RULES) == math.inf


def test_a_unit_that_hardly_worked_has_not_shown_its_peak() -> None:
    watch = watched([0.2] * 30 + [0.0] * 5 * HOUR, memory_gib=18.0)

    assert memory_bound(watch, 1.0, RULES) == math.inf


@pytest.mark.parametrize(
    ("step", "load", "memory_gib", "full"),
    [
        (3, 0.2, 20.0, False),
        (3, 0.42, 20.0, True),
        (3, 0.2, 37.0, True),
        (3, 0.2, None, False),
        (WHOLE, 1.0, 80.0, False),
        (0, 0.0, None, False),
    ],
)
def test_a_slice_is_saturated_near_its_compute_or_memory(
    step: int, load: float, memory_gib: float | None, full: bool
) -> None:
    watch = watched([load] * 5, memory_gib=memory_gib)

    assert saturated(watch, LADDER, step, 80.0, RULES) is full


def test_a_slice_is_judged_by_its_latest_samples_only() -> None:
    assert not saturated(watched([1.0] + [0.1] * 3), LADDER, 3, 80.0, RULES)


def test_a_unit_without_samples_saturates_nothing() -> None:
    assert not saturated(Watch(interval_s=STEP_S), LADDER, 3, 80.0, RULES)


def test_time_of_the_builder_is_that_of_the_last_sample() -> None:
    assert watched([0.1] * 3).last_s == at(3)
