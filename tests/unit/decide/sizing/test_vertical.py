import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sizing_build import DAY, HOUR, LADDER, RULES, STEP_S, WHOLE, at, fleet, holds, watched

from autoscaler.decide.sizing.rules import Risk, SizingRules
from autoscaler.decide.sizing.vertical import RELEASED, Choice, Holding, decide_allocation
from autoscaler.decide.sizing.watch import Watch, active, holding
from autoscaler.model.reasons import Reason

IDLE_DAY = [0.5] + [0.0] * (DAY - 1)
SAVING = SizingRules(risk=Risk.SAVING)


def choice(
    watch: Watch,
    *,
    held: Holding | None = None,
    now_s: float,
    rules: SizingRules = RULES,
    peers: tuple[Watch, ...] = (),
) -> Choice:
    held = holds() if held is None else held
    return decide_allocation(watch, held, fleet(watch, *peers, now_s=now_s, rules=rules), rules, now_s)


def test_a_unit_that_was_idle_all_day_is_released_with_its_sentence() -> None:
    found = choice(watched(IDLE_DAY), now_s=at(DAY))

    assert (found.step, found.reason) == (RELEASED, Reason.RELEASED)
    assert found.sentence.startswith("idle for 23 h 58 min; none of its earlier spells got this far;")
    assert found.sentence.endswith(", 50% is asked")


def test_what_is_released_stays_released() -> None:
    assert choice(watched(IDLE_DAY), held=holds(RELEASED), now_s=1e9).step == RELEASED


def test_the_promised_floor_holds_however_likely_idleness_is() -> None:
    sure = msgspec.structs.replace(RULES, careful_chance=0.0)
    watch = watched([0.5] * 2 * HOUR + [0.0] * 30)

    assert choice(watch, now_s=at(2 * HOUR + 30), rules=sure).step == WHOLE
    watch = active(watch, at(2 * HOUR + 31), 0.0, RULES)
    assert choice(watch, now_s=at(2 * HOUR + 31), rules=sure).step == RELEASED


def test_idleness_that_will_hardly_last_is_no_reason_to_release() -> None:
    samples = [0.5 if minute % 40 == 0 else 0.0 for minute in range(12 * HOUR)]
    found = choice(watched(samples), now_s=at(12 * HOUR))

    assert (found.step, found.reason) == (WHOLE, Reason.NOT_WORTH_RESTART)
    assert "the chance of another hour is" in found.sentence


def test_saving_releases_what_careful_keeps() -> None:
    samples = [0.5 if minute % 40 == 0 else 0.0 for minute in range(6 * HOUR)] + [0.0] * 20
    watch, now = watched(samples), at(6 * HOUR + 20)

    assert (choice(watch, now_s=now).step, choice(watch, now_s=now, rules=SAVING).step) == (WHOLE, RELEASED)


@pytest.mark.parametrize("late", [4, 60, 10_000])
def test_nothing_is_done_to_a_unit_without_a_fresh_sample(late: int) -> None:
    for step in (3, WHOLE):
        found = choice(watched(IDLE_DAY), held=holds(step), now_s=at(DAY) + late * STEP_S)

        assert (found.step, found.reason) == (step, Reason.EVIDENCE_STALE)


def test_a_unit_never_seen_keeps_what_it_has() -> None:
    assert choice(Watch(interval_s=STEP_S), now_s=1e6).reason is Reason.EVIDENCE_STALE


def test_thin_history_takes_nothing() -> None:
    found = choice(
        watched([0.0] * 45), now_s=at(45), rules=msgspec.structs.replace(RULES, careful_chance=0.0)
    )

    assert (found.step, found.reason) == (WHOLE, Reason.THIN_HISTORY)
    assert found.sentence == "watched for 44 min; nothing is taken before 60"


def test_what_was_changed_within_the_hour_is_left_alone() -> None:
    found = choice(watched(IDLE_DAY), held=holds(changed_s=at(DAY) - 3599), now_s=at(DAY))

    assert (found.step, found.reason) == (WHOLE, Reason.COOLDOWN)


def test_a_hole_of_twenty_minutes_needs_the_whole_floor_anew() -> None:
    samples: list[float | None] = [*IDLE_DAY, *[None] * 20, *[0.0] * 30]
    found = choice(watched(samples), now_s=at(len(samples)))

    assert found.step == WHOLE


STEADY_DAYS = [0.08] * 4 * DAY


def test_a_steady_light_server_gets_the_slice_that_carries_load_and_memory() -> None:
    found = choice(watched(STEADY_DAYS, memory_gib=17.0), now_s=at(4 * DAY))

    assert (found.step, found.reason) == (2, Reason.RIGHT_SIZED)
    assert found.sentence == "its load needs at most 0.21 boards, its memory 18.9 GiB with the growth seen"


def test_a_slice_is_refused_where_memory_may_grow_out_of_it() -> None:
    watch = watched(STEADY_DAYS, memory_gib=17.0)
    grown = holding(watch, at(4 * DAY), 45.0)
    found = choice(watch, now_s=at(4 * DAY), peers=(grown,))

    assert (found.step, found.reason) == (WHOLE, Reason.MEMORY_GATE)
    assert found.sentence.startswith("its memory peak of 17.0 GiB may grow to 50.0 GiB")


def test_a_slice_is_refused_while_nobody_showed_how_memory_grows() -> None:
    found = choice(watched(STEADY_DAYS), now_s=at(4 * DAY))

    assert found.reason is Reason.MEMORY_GATE
    assert "too little work was seen" in found.sentence


def test_a_day_of_history_is_too_thin_for_a_slice_that_a_week_allows() -> None:
    load = [0.2] * DAY
    assert choice(watched(load, memory_gib=5.0), now_s=at(DAY)).reason is Reason.LADDER_END
    assert choice(watched(load * 7, memory_gib=5.0), now_s=at(7 * DAY)).step == 4


def test_a_heavy_load_keeps_the_whole_board() -> None:
    assert choice(watched([0.9] * 4 * DAY, memory_gib=5.0), now_s=at(4 * DAY)).reason is Reason.LADDER_END


def test_a_slice_less_than_a_quarter_board_smaller_is_not_worth_a_restart() -> None:
    found = choice(watched(STEADY_DAYS, memory_gib=17.0), held=holds(3), now_s=at(4 * DAY))

    assert (found.step, found.reason) == (3, Reason.BELOW_SAVINGS_FLOOR)


def test_a_slice_that_is_right_stays() -> None:
    assert choice(watched(STEADY_DAYS, memory_gib=17.0), held=holds(2), now_s=at(4 * DAY)).step == 2


@pytest.mark.parametrize(("load", "memory_gib"), [(3 / 7, 10.0), (0.1, 39.0)])
def test_a_full_slice_gets_the_whole_board_at_once_even_while_cooling_down(
    load: float, memory_gib: float
) -> None:
    watch = watched([load] * 10, memory_gib=memory_gib)
    found = choice(watch, held=holds(3, changed_s=at(9)), now_s=at(10))

    assert (found.step, found.reason) == (WHOLE, Reason.RIGHT_SIZED)


def test_a_slice_grows_to_the_step_that_carries_the_least_that_is_needed() -> None:
    watch = watched([0.18] * 10 * DAY, memory_gib=10.0)
    found = choice(watch, held=holds(1), now_s=at(10 * DAY))
    assert found.step == WHOLE

    found = choice(watched([0.12] * 10 * DAY, memory_gib=8.0), held=holds(1), now_s=at(10 * DAY))
    assert (found.step, found.reason) == (2, Reason.RIGHT_SIZED)


@pytest.mark.parametrize("load", [0.0, 0.02, 0.1, 0.14, 0.2, 0.25, 0.3, 0.38, 0.4, 0.5, 0.6, 0.7, 0.95])
@pytest.mark.parametrize("start", [1, 2, 3, 4, WHOLE])
def test_a_constant_load_is_settled_within_three_changes_and_stays_settled(load: float, start: int) -> None:
    """Closed loop: what is seen is what the slice lets through."""
    step, changes, changed_s = start, [], None
    watch = Watch(interval_s=300.0)
    now = 0.0
    for sample in range(10 * 288):
        now += 300.0
        if step != RELEASED:
            watch = active(watch, now, min(load, LADDER.compute[step]), RULES)
            watch = holding(watch, now, min(8.0, LADDER.memory[step] * 80.0))
        if sample % 6:
            continue
        wanted = choice(watch, held=holds(step, changed_s=changed_s), now_s=now).step
        if wanted != step:
            step, changed_s = wanted, now
            changes.append(now)

    assert len(changes) <= 3
    assert all(moment <= 9 * DAY * 60 for moment in changes)


@given(
    st.lists(st.one_of(st.none(), st.just(0.0), st.floats(0, 1)), max_size=200),
    st.sampled_from(range(WHOLE + 1)),
    st.one_of(st.none(), st.floats(0, 80)),
    st.integers(0, 10),
)
@settings(max_examples=100)
def test_any_past_gives_a_step_of_the_ladder_and_a_sentence(
    samples: list[float | None], step: int, memory_gib: float | None, late: int
) -> None:
    watch = watched(samples, memory_gib=memory_gib)
    found = choice(watch, held=holds(step), now_s=at(len(samples)) + late * STEP_S)

    assert 0 <= found.step <= WHOLE
    assert found.sentence


@given(st.lists(st.floats(0, 1), min_size=120, max_size=240), st.floats(0, 1))
@settings(max_examples=60)
def test_work_in_the_newest_sample_is_never_answered_with_a_release(
    samples: list[float], newest: float
) -> None:
    watch = watched([*samples, max(newest, 0.01)])

    assert choice(watch, now_s=at(len(samples) + 1), rules=SAVING).step != RELEASED
