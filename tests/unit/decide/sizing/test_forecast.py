import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sizing_build import HOUR, RULES, STEP_S, at, fleet, watched

from autoscaler.decide.sizing.forecast import Forecast, steps_ahead
from autoscaler.decide.sizing.rules import ForecastRules
from autoscaler.decide.sizing.vertical import forecast_of
from autoscaler.decide.sizing.watch import Watch

BUSY, IDLE = [0.5], [0.0]


def expected(watch: Watch, *peers: Watch, now_s: float) -> Forecast:
    return forecast_of(watch, fleet(watch, *peers, now_s=now_s), RULES, now_s)


def pulses(every: int, hours: int, *, load: float = 0.5) -> list[float]:
    return [load if minute % every == 0 else 0.0 for minute in range(hours * HOUR)]


def test_a_unit_that_wakes_every_quarter_hour_will_not_sleep_for_an_hour() -> None:
    watch = watched(pulses(15, 6) + IDLE * 10)

    assert expected(watch, now_s=at(6 * HOUR + 10)).chance < 0.1


def test_a_unit_that_was_idle_all_day_will_sleep_for_an_hour() -> None:
    watch = watched(IDLE * 24 * HOUR)

    assert expected(watch, now_s=at(24 * HOUR)).chance > 0.8


def test_the_longer_a_unit_is_idle_the_likelier_it_stays_so() -> None:
    day = pulses(15, 6)
    chances = [
        expected(watched(day + IDLE * minutes), now_s=at(6 * HOUR + minutes)).chance
        for minutes in (30, 60, 120, 240)
    ]

    assert chances == sorted(chances)


def test_busy_peers_make_a_quiet_unit_less_likely_to_stay_idle() -> None:
    quiet = watched(BUSY + IDLE * 3 * HOUR)
    now = at(3 * HOUR + 1)
    busy_peers = [watched(pulses(12, 3)) for _ in range(20)]
    quiet_peers = [watched(BUSY + IDLE * 3 * HOUR) for _ in range(20)]

    among_busy = expected(quiet, *busy_peers, now_s=now).chance
    among_quiet = expected(quiet, *quiet_peers, now_s=now).chance
    assert among_busy < 0.7
    assert among_quiet > 0.9


def test_a_unit_that_wakes_more_than_its_peers_is_held_to_its_own_rate() -> None:
    now = at(6 * HOUR)
    peers = [watched(BUSY + IDLE * (6 * HOUR - 1)) for _ in range(20)]
    restless = watched(pulses(15, 6))

    assert expected(restless, *peers, now_s=now).chance < expected(peers[0], *peers, now_s=now).chance / 2


def test_a_falling_rate_is_carried_on() -> None:
    """The same wakes, and nothing tells the units apart but when they came: early or late in the last three hours."""
    early = watched(pulses(10, 2) + BUSY + IDLE * (HOUR - 1))
    late = watched(BUSY + IDLE * (HOUR - 1) + pulses(10, 2))
    now = at(3 * HOUR)

    assert expected(late, now_s=now).chance < expected(early, now_s=now).chance


def test_the_chance_is_that_of_no_wake_at_the_stated_rate() -> None:
    found = expected(watched(pulses(40, 4)), now_s=at(4 * HOUR))

    assert found.chance == pytest.approx(math.exp(-found.wakes_per_hour))


def test_the_trend_reaches_from_the_short_average_to_the_middle_of_the_next_hour() -> None:
    assert steps_ahead(ForecastRules()) == pytest.approx((1 / math.log(2) + 0.5) * math.log(2))


def test_the_sentence_counts_the_spells_that_got_this_far() -> None:
    samples = BUSY + IDLE * 50 + BUSY + IDLE * 130 + BUSY + IDLE * 110 + BUSY + IDLE * 10 + BUSY + IDLE * 48
    found = expected(watched(samples), now_s=at(len(samples)))

    assert (found.reached, found.lasted) == (3, 2)
    assert (
        "idle for 47 min; of its 3 earlier spells that got this far, 2 lasted another hour; units like it wake"
        in (found.sentence)
    )


def test_the_sentence_says_when_no_spell_got_this_far() -> None:
    found = Forecast(chance=0.62, idle_s=7500.0, wakes_per_hour=0.48, reached=0, lasted=0, horizon_s=3600.0)

    assert found.sentence == (
        "idle for 2 h 05 min; none of its earlier spells got this far; "
        "units like it wake 0.48 times an idle hour now: the chance of another hour is 62%"
    )


def test_the_sentence_of_one_spell_and_another_horizon() -> None:
    found = Forecast(chance=0.5, idle_s=1800.0, wakes_per_hour=0.5, reached=1, lasted=1, horizon_s=5400.0)

    assert "of its 1 earlier spell that got this far, 1 lasted another 90 min" in found.sentence


@given(
    st.lists(st.one_of(st.none(), st.just(0.0), st.floats(0, 1)), min_size=1, max_size=300),
    st.floats(0, 1e7),
)
def test_the_chance_is_a_share_whatever_was_seen(samples: list[float | None], later: float) -> None:
    watch = watched(samples)

    assert 0.0 <= expected(watch, now_s=len(samples) * STEP_S + later).chance <= 1.0
