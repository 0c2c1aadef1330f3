import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.decide.scaling.forecast import Forecasts, Outlook, _ways
from autoscaler.decide.scaling.rules import ScalingRules
from autoscaler.model.duration import Duration

MINUTE = 60_000
RULES = ScalingRules()
TWO_MINUTES = Duration(2 * MINUTE)


def ragged(step: int) -> float:
    """A level of 10 with a noise that no slope foretells; its period shares no factor with the windows."""
    return 10 + (step * 7 % 13 - 6) / 3


def fed(*loads: float, rules: ScalingRules = RULES, startup: Duration = TWO_MINUTES) -> Forecasts:
    forecasts = Forecasts(rules, startup=startup)
    for load in loads:
        forecasts.observe(load)
    return forecasts


def outlook_of(forecasts: Forecasts) -> Outlook:
    outlook = forecasts.outlook()
    assert outlook is not None
    return outlook


def test_before_anything_is_learnt_the_use_aimed_at_stands() -> None:
    outlook = outlook_of(fed(4.0))

    assert (outlook.need, outlook.trust, outlook.growth) == (5.0, 0.0, 0.0)


def test_no_sample_has_no_outlook() -> None:
    assert fed().outlook() is None


def test_a_smooth_load_is_foretold_by_its_slope() -> None:
    loads = [10 + 5 * math.sin(step / 200) for step in range(2000)]
    outlook = outlook_of(fed(*loads))

    assert outlook.way == "the slope of the last interval"
    assert outlook.room < 1.0


def test_a_ragged_load_is_foretold_by_its_mean() -> None:
    outlook = outlook_of(fed(*map(ragged, range(2000))))

    assert outlook.way.startswith("the mean of the last")
    assert outlook.expected == pytest.approx(10, abs=0.5)
    assert 12 <= outlook.need <= 13


@pytest.mark.parametrize("span", ["2m", "5m"])
def test_the_trend_of_means_follows_a_line_through_noise_and_never_a_fall(span: str) -> None:
    trend = dict(_ways(RULES))[f"the trend of the means of {span}"]
    line = [3 + step / 2 for step in range(30)]
    ragged_line = [value + (-1) ** step for step, value in enumerate(line)]

    assert trend(line) == pytest.approx((17.5, 0.5))
    assert trend(ragged_line) == pytest.approx((17.5, 0.5), abs=0.1)
    assert trend([5.0, 4.0, 3.0]) == (3.0, 0.0)
    assert trend(line[::-1])[1] == 0.0


def test_trust_grows_with_the_past_and_half_of_it_comes_with_the_stated_time() -> None:
    lead, warm_up, trust = 4, 20, 240
    half = outlook_of(fed(*map(ragged, range(lead + warm_up + trust))))
    full = outlook_of(fed(*map(ragged, range(20 * trust))))

    assert half.trust == pytest.approx(0.5, abs=0.01)
    assert full.trust > 0.9


def test_a_jump_that_came_once_keeps_room_for_the_next() -> None:
    calm = outlook_of(fed(*[5.0] * 600))
    jumped = outlook_of(fed(*[5.0] * 300, *[8.0] * 60, *[5.0] * 240))

    assert jumped.room > calm.room + 1


def test_an_old_jump_is_forgotten() -> None:
    rules = ScalingRules(half_life=Duration(10 * MINUTE))
    recent = outlook_of(fed(*[5.0] * 300, *[8.0] * 60, *[5.0] * 40, rules=rules))
    old = outlook_of(fed(*[5.0] * 300, *[8.0] * 60, *[5.0] * 6000, rules=rules))

    assert old.room < recent.room


def test_a_stricter_promise_never_needs_less() -> None:
    loads = [ragged(step) + 3 * (step % 97 == 0) for step in range(3000)]
    strict = outlook_of(fed(*loads, rules=ScalingRules(unserved=0.00001)))
    loose = outlook_of(fed(*loads, rules=ScalingRules(unserved=0.05)))

    assert strict.need > loose.need


def test_the_need_never_lies_under_the_load_there_is() -> None:
    outlook = outlook_of(fed(*[1.0] * 1000, 50.0, rules=ScalingRules(unserved=0.9)))

    assert outlook.need >= 50.0


def test_growth_is_told_only_by_a_way_that_knows_slopes() -> None:
    rise = 12 * math.pi
    smooth = outlook_of(fed(*[10 + 5 * math.sin(step / 100) for step in range(int(100 * rise) + 1)]))
    rough = outlook_of(fed(*map(ragged, range(2000))))

    # at the middle of a rise the slope is 5 / 100 an interval
    assert smooth.growth == pytest.approx(0.05, rel=0.15)
    assert rough.growth == 0.0


def test_after_a_gap_there_is_no_outlook_and_no_trend_reaches_across() -> None:
    forecasts = fed(*[10 + step / 100 for step in range(2000)])
    forecasts.gap()
    assert forecasts.outlook() is None

    forecasts.observe(2.0)
    assert outlook_of(forecasts).growth == 0.0
    assert outlook_of(forecasts).expected == 2.0


def test_samples_that_were_guessed_teach_nothing() -> None:
    taught, guessed = fed(*[5.0] * 400), fed(*[5.0] * 400)
    for load in [9.0] * 10:
        taught.observe(load)
        guessed.observe(load, teaches=False)
    for load in [5.0] * 60:
        taught.observe(load)
        guessed.observe(load)

    assert outlook_of(guessed).room < outlook_of(taught).room


def test_a_jump_that_others_foretold_is_no_miss() -> None:
    surprised, warned = fed(*[5.0] * 300), fed(*[5.0] * 300)
    for load in [9.0] * 20:
        surprised.observe(load)
        warned.observe(load, foretold=9.0)
    for load in [5.0] * 100:
        surprised.observe(load)
        warned.observe(load)

    assert outlook_of(warned).room < outlook_of(surprised).room - 2


def test_a_jump_over_what_was_foretold_is_a_miss_in_full() -> None:
    forecasts = fed(*[5.0] * 300)
    for load in [9.0] * 20:
        forecasts.observe(load, foretold=8.0)
    for load in [5.0] * 100:
        forecasts.observe(load)

    assert outlook_of(forecasts).room > 3


def test_a_start_that_takes_no_time_looks_one_interval_ahead() -> None:
    assert outlook_of(fed(*[5.0] * 600, startup=Duration(0))).need == pytest.approx(5.0, abs=1.0)


def test_a_load_that_was_always_zero_needs_nothing() -> None:
    assert outlook_of(fed(*[0.0] * 600)).need == 0.0


@settings(max_examples=30)
@given(st.lists(st.floats(0, 30), min_size=1, max_size=200))
def test_every_outlook_is_finite_and_covers_the_load(loads: list[float]) -> None:
    outlook = outlook_of(fed(*loads))

    assert math.isfinite(outlook.need)
    assert outlook.need >= loads[-1]
    assert 0.0 <= outlook.trust < 1.0
