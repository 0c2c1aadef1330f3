import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.decide.scaling import Bounds, Choice, Load, Scaler, ScalingRules
from autoscaler.decide.scaling.zero import Wake
from autoscaler.model.duration import Duration
from autoscaler.model.reasons import Reason

STEP = 30_000
MINUTE = 60_000
DAY = 24 * 60 * MINUTE
OPEN = Bounds(floor=1, ceiling=100)


def load(upper: float, *, lower: float | None = None, grows: bool = True) -> Load:
    signal = "tokens" if grows else "activity"
    return Load(lower=upper if lower is None else lower, upper=upper, signal=signal, grows=grows)


def scaler_after(*loads: float, rules: ScalingRules | None = None) -> tuple[Scaler, int]:
    """A scaler that heard these loads, and the time of the last."""
    scaler = Scaler(rules or ScalingRules())
    for index, value in enumerate(loads):
        scaler.observe(index * STEP, load(value))
    return scaler, (len(loads) - 1) * STEP


def follow(scaler: Scaler, loads: list[float], replicas: int, bounds: Bounds = OPEN) -> list[int]:
    held = []
    for index, value in enumerate(loads):
        scaler.observe(index * STEP, load(value))
        replicas = scaler.ask(index * STEP, replicas, bounds).replicas
        held.append(replicas)
    return held


def test_a_load_over_what_there_is_scales_out_at_once_and_says_why() -> None:
    scaler, now = scaler_after(4.0)
    choice = scaler.ask(now, 3, OPEN)

    assert choice == Choice(
        replicas=5,
        wanted=5,
        reason=Reason.SCALED_OUT,
        sentence="4.00 replicas' worth of tokens, 4.00 expected within 2m by the last sample, 1.00 for its misses "
        "(0% from its own past): 3 -> 5",
    )


def test_a_load_under_what_there_is_scales_in_once_enough_has_stood_idle() -> None:
    scaler = Scaler(ScalingRules())
    held = follow(scaler, [1.0] * 40, 8)

    assert held[0] == 8
    assert held[-1] == 2
    assert scaler.ask(40 * STEP, 3, OPEN).reason is Reason.NOT_WORTH_RESTART


def test_the_scale_in_says_from_what_to_what() -> None:
    scaler, now = scaler_after(*[1.0] * 10, rules=ScalingRules(act_cost=0.0))
    choice = scaler.ask(now, 4, OPEN)

    assert (choice.replicas, choice.reason) == (2, Reason.SCALED_IN)
    assert choice.sentence.endswith(": 4 -> 2")


def test_as_many_as_needed_is_left_alone() -> None:
    scaler, now = scaler_after(4.0)

    assert scaler.ask(now, 5, OPEN).reason is None


def test_nothing_heard_changes_nothing() -> None:
    scaler = Scaler(ScalingRules())
    scaler.observe(0, None)

    assert scaler.ask(0, 7, OPEN) == Choice(
        replicas=7, wanted=7, reason=Reason.EVIDENCE_ABSENT, sentence="no sample of its load yet"
    )


def test_a_load_that_went_silent_changes_nothing() -> None:
    scaler, now = scaler_after(*[1.0] * 100)
    choice = scaler.ask(now + 5 * MINUTE, 9, OPEN)

    assert (choice.replicas, choice.reason) == (9, Reason.EVIDENCE_STALE)
    assert choice.sentence == "its load was last heard 5m ago"


def test_after_a_gap_nothing_shrinks_before_a_full_window() -> None:
    scaler, now = scaler_after(*[1.0] * 100, rules=ScalingRules(act_cost=0.0))
    back = now + 10 * MINUTE
    scaler.observe(back, load(1.0))

    assert scaler.ask(back, 9, OPEN).reason is Reason.EVIDENCE_PARTIAL


def test_a_gap_counts_neither_as_idle_nor_as_load() -> None:
    scaler, now = scaler_after(*[0.0] * 100)
    back = now + 10 * MINUTE
    scaler.observe(back, load(0.0))
    wake = Wake(requests=0, heard_ms=back, cold_starts_ms=(MINUTE,))

    assert scaler.ask(back, 1, Bounds(floor=0), wake).replicas == 1


def test_an_unheard_replica_neither_grows_nor_shrinks() -> None:
    scaler = Scaler(ScalingRules(act_cost=0.0))
    for index in range(20):
        scaler.observe(index * STEP, load(5.0, lower=3.0))

    # full it would need 7 replicas, empty 4 or 5: five are neither too few nor too many for certain
    assert scaler.ask(19 * STEP, 5, OPEN).replicas == 5
    assert scaler.ask(19 * STEP, 4, OPEN).replicas == 5
    assert scaler.ask(19 * STEP, 9, OPEN).replicas == 7
    assert "3.00 to 5.00 replicas' worth" in scaler.ask(19 * STEP, 5, OPEN).sentence


def test_activity_alone_never_scales_out() -> None:
    scaler = Scaler(ScalingRules())
    scaler.observe(0, load(4.0, grows=False))
    choice = scaler.ask(0, 2, OPEN)

    assert (choice.replicas, choice.reason, choice.wanted) == (2, Reason.NEEDS_CONSENT, 5)
    assert "activity alone is no demand" in choice.sentence


def test_without_a_stated_maximum_nothing_grows() -> None:
    scaler, now = scaler_after(4.0)
    choice = scaler.ask(now, 2, Bounds())

    assert (choice.replicas, choice.reason) == (2, Reason.NEEDS_CONSENT)


@pytest.mark.parametrize(
    ("bounds", "replicas", "reason"),
    [
        (Bounds(ceiling=4), 4, Reason.SCALED_OUT),
        (Bounds(ceiling=3), 3, Reason.LADDER_END),
        (Bounds(ceiling=100, seats=1), 4, Reason.SCALED_OUT),
        (Bounds(ceiling=100, seats=0), 3, Reason.NO_PLACEMENT),
    ],
)
def test_growth_ends_at_the_maximum_and_at_the_free_seats(
    bounds: Bounds, replicas: int, reason: Reason
) -> None:
    scaler, now = scaler_after(6.0)
    choice = scaler.ask(now, 3, bounds)

    assert (choice.replicas, choice.reason, choice.wanted) == (replicas, reason, 8)


def test_the_minimum_holds_and_is_restored() -> None:
    scaler, now = scaler_after(*[1.0] * 100, rules=ScalingRules(act_cost=0.0))

    assert scaler.ask(now, 5, Bounds(floor=5)).reason is Reason.LADDER_END
    assert scaler.ask(now, 8, Bounds(floor=5)).replicas == 5
    assert scaler.ask(now, 3, Bounds(floor=5)) == Choice(
        replicas=5, wanted=5, reason=Reason.SCALED_OUT, sentence="the minimum is 5"
    )


PEAKY_DAY = [2.0] * 1080 + [12.0] * 120 + [2.0] * 1680
FORGIVING = ScalingRules(act_cost=0.0, unserved=0.01)
"""A promise that the first jumps do not break, so that no room is kept all day for the next one."""


def test_a_peak_known_from_every_day_is_met_ahead_of_it() -> None:
    held = follow(Scaler(FORGIVING), PEAKY_DAY * 4, 3)

    peak, day = 1080, 2880
    assert [held[peak - 1], held[2 * day + peak - 1]] == [3, 3]
    assert held[3 * day + peak - 4] >= 12


def test_a_foretold_peak_says_how_the_earlier_ones_did() -> None:
    scaler = Scaler(FORGIVING)
    follow(scaler, PEAKY_DAY * 4 + PEAKY_DAY[:1077], 3)
    sentence = scaler.ask((4 * 2880 + 1076) * STEP, 3, OPEN).sentence

    assert "12.00 came at this time on every day remembered (of 1 earlier ones 1 came): 3 -> 7" in sentence


def test_the_first_foretold_peak_says_that_it_is_the_first() -> None:
    scaler = Scaler(FORGIVING)
    follow(scaler, PEAKY_DAY * 3 + PEAKY_DAY[:1077], 3)

    assert "(the first one foretold)" in scaler.ask((3 * 2880 + 1076) * STEP, 3, OPEN).sentence


def test_to_zero_only_with_a_floor_of_zero_and_a_wake_signal() -> None:
    scaler, now = scaler_after(*[0.0] * 62)
    wake = Wake(requests=0, heard_ms=now, cold_starts_ms=(90_000,))

    assert scaler.ask(now, 1, OPEN, wake).replicas == 1
    assert scaler.ask(now, 1, Bounds(floor=0)).replicas == 1
    assert scaler.ask(now, 1, Bounds(floor=0), wake) == Choice(
        replicas=0,
        wanted=0,
        reason=Reason.RELEASED,
        sentence="without demand for 30m30s; its wake signal is heard and a wake-up takes up to 1m30s",
    )


def test_demand_resets_the_time_without_demand() -> None:
    scaler, now = scaler_after(*[0.0] * 62, 0.1, 0.0)
    wake = Wake(requests=0, heard_ms=now, cold_starts_ms=(90_000,))

    assert scaler.ask(now, 1, Bounds(floor=0), wake).replicas == 1


def test_more_than_one_replica_never_goes_to_zero_at_once() -> None:
    scaler, now = scaler_after(*[0.0] * 100, rules=ScalingRules(act_cost=0.0))
    wake = Wake(requests=0, heard_ms=now, cold_starts_ms=(90_000,))

    assert scaler.ask(now, 2, Bounds(floor=0), wake).replicas == 1


def test_a_request_wakes_and_without_one_it_sleeps_on() -> None:
    scaler = Scaler(ScalingRules())
    asleep = Wake(requests=0, heard_ms=0, cold_starts_ms=(90_000,))
    wanted = Wake(requests=2, heard_ms=0, cold_starts_ms=(90_000,))

    assert scaler.ask(0, 0, Bounds(floor=0), asleep).replicas == 0
    assert scaler.ask(0, 0, Bounds(floor=0), wanted) == Choice(
        replicas=1,
        wanted=1,
        reason=Reason.WOKEN,
        sentence="2 requests wait, ready within 1m30s as measured: 0 -> 1",
    )


def test_a_wake_signal_that_goes_silent_wakes() -> None:
    assert Scaler(ScalingRules()).ask(0, 0, Bounds(floor=0)).reason is Reason.WOKEN


def test_what_its_owner_put_to_zero_stays_there() -> None:
    wake = Wake(requests=5, heard_ms=0)

    assert Scaler(ScalingRules()).ask(0, 0, OPEN, wake).reason is Reason.NEEDS_CONSENT


@pytest.mark.parametrize("level", [0.3, 0.8, 1.0, 2.5, 3.99, 7.2, 19.0])
@pytest.mark.parametrize("start", [1, 4, 30])
def test_a_constant_load_settles_from_any_start_and_stays(level: float, start: int) -> None:
    held = follow(Scaler(ScalingRules()), [level] * 2880, start)

    assert held[600] == held[-1] or level / held[600] >= 0.75
    assert set(held[-1440:]) == {held[-1]}
    assert level <= held[-1] <= math.ceil(level / 0.8)


def test_the_measured_start_up_is_the_horizon() -> None:
    waves = [20 + 10 * math.sin(step / 150) for step in range(150 * 25)]
    quick, slow = (
        Scaler(ScalingRules(), startup=Duration(MINUTE)),
        Scaler(ScalingRules(), startup=Duration(20 * MINUTE)),
    )
    for index, value in enumerate(waves):
        quick.observe(index * STEP, load(value))
        slow.observe(index * STEP, load(value))

    now = (len(waves) - 1) * STEP
    assert slow.ask(now, 1, OPEN).wanted > quick.ask(now, 1, OPEN).wanted


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(0, 20), min_size=30, max_size=120), st.integers(0, 10**6))
def test_what_is_still_to_come_changes_no_choice_made_before_it(loads: list[float], seed: int) -> None:
    cut = len(loads) // 2
    shuffled = loads[cut:]
    random.Random(seed).shuffle(shuffled)

    told = follow(Scaler(ScalingRules()), loads, 4)
    retold = follow(Scaler(ScalingRules()), loads[:cut] + shuffled, 4)

    assert told[:cut] == retold[:cut]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.none() | st.tuples(st.floats(0, 40), st.floats(0, 5)), min_size=1, max_size=80),
    st.integers(0, 5),
    st.integers(5, 30),
)
def test_no_history_leaves_the_bounds_or_shrinks_on_silence(
    heard: list[tuple[float, float] | None], floor: int, ceiling: int
) -> None:
    scaler, replicas, bounds = Scaler(ScalingRules()), max(1, floor), Bounds(floor=floor, ceiling=ceiling)
    for index, sample in enumerate(heard):
        upper = None if sample is None else sample[0] + sample[1]
        scaler.observe(
            index * STEP, None if sample is None or upper is None else load(upper, lower=sample[0])
        )
        after = scaler.ask(index * STEP, replicas, bounds).replicas
        assert max(1, floor) <= after <= ceiling
        if sample is None and index and heard[index - 1] is None and heard[max(0, index - 2)] is None:
            assert after == replicas
        replicas = after
