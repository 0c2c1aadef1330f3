import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.decide.scaling.tail import Tail

MISSES = st.lists(st.floats(-5, 50), min_size=1, max_size=60)


def tail_of(*shortfalls: float) -> Tail:
    tail = Tail()
    for shortfall in shortfalls:
        tail.add(shortfall)
    return tail


def test_forecasts_that_held_need_no_room() -> None:
    assert tail_of(-1.0, 0.0, -0.2).room(0.0) == 0.0


def test_no_forecast_needs_no_room() -> None:
    assert Tail().room(0.0) == 0.0


def test_without_any_allowed_loss_the_largest_miss_must_fit() -> None:
    assert tail_of(1.0, 0.2, -3.0).room(0.0) == pytest.approx(1.0, rel=0.05)


def test_the_allowed_loss_is_the_mean_shortfall_over_the_room() -> None:
    # one miss of 1 in ten forecasts: a mean loss of 0.05 is left over a room of 0.5
    assert tail_of(1.0, *[0.0] * 9).room(0.05) == pytest.approx(0.5, abs=0.06)


def test_a_loss_that_is_allowed_in_full_needs_no_room() -> None:
    assert tail_of(1.0, *[0.0] * 9).room(0.2) == 0.0


def test_an_old_miss_weighs_less_than_a_new_one() -> None:
    old, new = tail_of(2.0, *[0.0] * 9), tail_of(*[0.0] * 9)
    old.decay(0.1)
    for value in [0.0] * 9:
        old.add(value)
    new.add(2.0)

    assert old.room(0.05) < new.room(0.05)


def test_what_has_decayed_to_nothing_is_forgotten() -> None:
    tail = tail_of(2.0)
    tail.decay(1e-12)
    tail.add(0.0)

    assert tail.room(0.0) == 0.0


def test_a_miss_beyond_the_last_bucket_counts_as_the_last() -> None:
    assert 3_000 < tail_of(1e9).room(0.0) < 5_000


@given(MISSES, st.floats(0, 3))
def test_what_is_left_over_the_room_is_within_the_allowed_loss(misses: list[float], loss: float) -> None:
    room = tail_of(*misses).room(loss)

    left = sum(max(0.0, miss - room) for miss in misses) / len(misses)
    assert left <= loss + 1e-6


@given(MISSES, st.floats(0, 3), st.floats(0, 3))
def test_a_smaller_loss_never_needs_less_room(misses: list[float], left: float, right: float) -> None:
    tail = tail_of(*misses)

    assert tail.room(max(left, right)) <= tail.room(min(left, right)) + 1e-9
