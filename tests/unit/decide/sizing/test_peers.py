import random

import pytest
from sizing_build import HOUR, RULES, STEP_S, at, fleet, watched

from autoscaler.decide.sizing.peers import peers_of
from autoscaler.decide.sizing.watch import Watch, holding

SAMPLES = 2 * HOUR


def waking(load: float, every: int) -> Watch:
    """Works for a minute after so many idle ones, for two hours."""
    return watched([load if minute % (every + 1) == 0 else 0.0 for minute in range(SAMPLES)])


def test_units_of_like_load_share_one_rate() -> None:
    often, seldom = waking(0.20, 5), waking(0.25, 50)
    peers = fleet(often, seldom, now_s=at(SAMPLES))

    assert peers.rates_of(often) == peers.rates_of(seldom)
    assert peers.rates_of(seldom)[0].wakes == pytest.approx(often.short.wakes + seldom.short.wakes)


def test_a_unit_of_thrice_the_load_is_no_peer() -> None:
    light, heavy = waking(0.2, 5), waking(0.6, 50)
    peers = fleet(light, heavy, now_s=at(SAMPLES))

    assert peers.rates_of(heavy)[0].wakes == pytest.approx(heavy.short.wakes)


def test_a_unit_that_never_worked_has_those_that_never_worked_for_peers() -> None:
    sleeping, other, working = watched([0.0] * SAMPLES), watched([0.0] * HOUR), waking(0.2, 5)
    peers = fleet(sleeping, other, working, now_s=at(SAMPLES))

    assert peers.rates_of(sleeping)[0].wakes == 0.0
    assert peers.rates_of(sleeping)[0].idle_hours > sleeping.short.idle_hours


def test_a_unit_without_peers_is_asked_without_an_answer() -> None:
    peers = peers_of((), RULES, 0.0)

    assert peers.rates_of(waking(0.2, 5))[0].idle_hours == 0.0
    assert peers.growth_of(waking(0.2, 5)) is None


def test_the_largest_growth_of_memory_among_peers_counts() -> None:
    def grown(to_gib: float) -> Watch:
        watch = watched([0.2] * 4 * HOUR, memory_gib=10.0)
        return holding(watch, at(4 * HOUR) + 1, to_gib)

    little, much = grown(11.0), grown(18.0)
    peers = fleet(little, much, now_s=at(4 * HOUR) + STEP_S)

    assert peers.growth_of(little) == pytest.approx(1.8)


def test_the_order_of_the_fleet_does_not_matter() -> None:
    units = [waking(0.01 * load, every) for load in range(1, 20) for every in (3, 7, 11)]
    shuffled = units[:]
    random.Random(1).shuffle(shuffled)

    assert fleet(*units, now_s=at(SAMPLES)) == fleet(*shuffled, now_s=at(SAMPLES))
