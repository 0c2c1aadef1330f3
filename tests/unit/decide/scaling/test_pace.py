from autoscaler.decide.scaling.pace import Pace, whole
from autoscaler.decide.scaling.rules import ScalingRules
from autoscaler.model.duration import Duration

STEP = 30_000
MINUTE = 60_000
NO_WAIT = ScalingRules(act_cost=0.0)


def run(pace: Pace, loads: list[float], replicas: int, *, start: int = 0) -> list[int]:
    """The replicas after each step of a load whose need is the load itself."""
    held = []
    for index, load in enumerate(loads):
        now = (start + index) * STEP
        pace.observe(now, load)
        if whole(load) > replicas:
            replicas = pace.up(now, replicas, load, 0.0)
        else:
            replicas = pace.down(now, replicas, load)
        held.append(replicas)
    return held


def test_growth_is_at_once() -> None:
    assert run(Pace(ScalingRules()), [2.0, 3.0], 2) == [2, 3]


def test_growth_is_limited_to_four_or_to_double() -> None:
    assert Pace(ScalingRules()).up(0, 2, 50.0, 0.0) == 6
    assert Pace(ScalingRules()).up(0, 10, 50.0, 0.0) == 20


def test_two_questions_in_one_interval_grow_no_faster_than_one() -> None:
    pace = Pace(ScalingRules())
    first = pace.up(0, 2, 50.0, 0.0)

    assert pace.up(STEP // 2, first, 50.0, 0.0) == 6
    assert pace.up(STEP, first, 50.0, 0.0) == 12


def test_a_growing_load_gets_room_for_the_outlook_in_one_act() -> None:
    # 0.2 an interval for ten intervals
    assert Pace(ScalingRules()).up(0, 4, 4.5, 0.2) == 7


def test_nothing_goes_before_the_window_is_covered() -> None:
    assert run(Pace(NO_WAIT), [1.0] * 10, 2) == [2] * 9 + [1]


def test_after_a_gap_a_full_window_comes_first() -> None:
    pace = Pace(NO_WAIT)
    run(pace, [2.0] * 20, 2)
    pace.gap()

    assert run(pace, [1.0] * 10, 2, start=20) == [2] * 9 + [1]


def test_the_highest_load_of_the_window_must_still_fit() -> None:
    held = run(Pace(NO_WAIT), [3.0] * 10 + [1.0] * 12, 3)

    assert held[:19] == [3] * 19
    assert held[19] == 2


def test_a_small_surplus_goes_after_the_replica_minutes_that_an_act_is_worth() -> None:
    held = run(Pace(ScalingRules()), [1.0] * 40, 2)

    # ten samples cover the window, then 20 half minutes of one idle replica
    assert held.index(1) == 9 + 19


def test_a_large_surplus_goes_sooner() -> None:
    held = run(Pace(ScalingRules()), [5.0] * 40, 10)

    assert held.index(5) == 9 + 3


def test_what_is_needed_again_in_between_starts_the_count_anew() -> None:
    held = run(Pace(ScalingRules()), [1.0] * 25 + [2.0] + [1.0] * 28, 2)

    assert held == [2] * 54


def test_at_most_half_goes_within_a_window() -> None:
    held = run(Pace(NO_WAIT), [0.1] * 40, 16)

    assert [held[9], held[18], held[19], held[29], held[39]] == [8, 8, 4, 2, 1]


def test_one_replica_may_always_go() -> None:
    rules = ScalingRules(act_cost=0.0, down_share=0.0)

    assert run(Pace(rules), [1.0] * 10, 3)[-1] == 2


def test_a_long_silence_between_two_questions_does_not_count_as_idle() -> None:
    pace = Pace(ScalingRules())
    run(pace, [1.0] * 10, 2)
    pace.observe(10 * STEP, 1.0)
    pace.down(10 * STEP, 2, 1.0)
    idle = pace.idle

    pace.observe(10 * STEP + 4 * MINUTE, 1.0)
    pace.down(10 * STEP + 4 * MINUTE, 2, 1.0)

    assert pace.idle == idle + 1.0


def test_a_window_of_no_length_never_shrinks_without_a_sample() -> None:
    pace = Pace(ScalingRules(window=Duration(0), act_cost=0.0))

    assert pace.down(0, 3, 1.0) == 3


def test_whole_replicas_forgive_rounding() -> None:
    assert [whole(2.0 + 1e-12), whole(2.1), whole(0.0)] == [2, 3, 0]
