import pytest

from autoscaler.model.backtest import RELEASED, WHOLE
from autoscaler.replay.baselines import VERTICAL
from autoscaler.replay.report import run_vertical
from tests.unit.replay.recorded import STEP_S, Recorded, Values

SEVENTH, TWO_SEVENTHS, HALF = 1, 2, 4
STEPS_A_DAY = 1516


def changes(
    name: str, load: Values, *, memory_gib: Values | float = 1.0, board_gib: float = 48.0
) -> tuple[tuple[int, int], ...]:
    source = Recorded({"a": load}, {"a": memory_gib})
    report = run_vertical(source, {name: VERTICAL[name]}, board_gib=board_gib, keep=True)
    return report.outcomes[0].changes


def test_the_names_are_fixed() -> None:
    assert list(VERTICAL) == [
        "do-nothing", "seed-script", "gpu-pruner", "kruize-cost", "kruize-performance", "vpa-like",
        "idle-45min", "idle-60min", "idle-90min",
    ]  # fmt: skip


def test_doing_nothing_changes_nothing() -> None:
    assert changes("do-nothing", [0.0] * 300) == ()


@pytest.mark.parametrize(
    ("name", "minutes"), [("gpu-pruner", 35), ("idle-45min", 45), ("idle-60min", 60), ("idle-90min", 90)]
)
def test_a_window_releases_at_the_first_question_after_it(name: str, minutes: int) -> None:
    ((index, step),) = changes(name, [0.0] * 200)

    assert step == RELEASED
    assert minutes * 60 < (index - 1) * STEP_S <= minutes * 60 + 300


def test_a_window_starts_anew_with_any_work_and_after_a_wake() -> None:
    load = [0.0] * 40 + [0.01] + [0.0] * 60 + [0.5] + [0.0] * 60
    (first, _), (woken, _), (second, _) = changes("idle-45min", load)

    assert (first - 41) * STEP_S > 2700
    assert woken == 101
    assert (second - 102) * STEP_S > 2700


def test_one_sample_of_zero_in_the_window_is_enough_for_a_window() -> None:
    ((index, step),) = changes("gpu-pruner", [0.5] + [None] * 20 + [0.0] + [None] * 40 + [0.0] * 3)

    assert step == RELEASED
    assert index < 60


def test_a_window_without_any_sample_releases_nothing() -> None:
    source = Recorded({"a": [0.0] + [None] * 98 + [0.0]}, {"a": [None] * 100})
    report = run_vertical(source, {"x": VERTICAL["idle-45min"]}, board_gib=48.0, keep=True)

    assert report.outcomes[0].changes == ()


def test_the_seed_script_goes_to_one_unit_under_thirty_percent_and_never_back() -> None:
    assert changes("seed-script", [0.31] * 12 + [0.29] * 12 + [1.0] * 40) == ((17, SEVENTH),)


def test_the_seed_script_takes_silence_for_zero() -> None:
    assert changes("seed-script", [0.9] * 3 + [None] * 10 + [0.9] * 3) == ((12, SEVENTH),)


def test_kruize_takes_the_first_profile_with_enough_of_both() -> None:
    busy = [0.25] * 60

    assert changes("kruize-cost", busy, memory_gib=11.0)[0][1] == TWO_SEVENTHS
    assert changes("kruize-cost", busy, memory_gib=23.0)[0][1] == 3
    assert changes("kruize-cost", busy, memory_gib=25.0) == ()


def test_kruize_waits_for_half_an_hour_of_data() -> None:
    ((index, _),) = changes("kruize-cost", [0.1] * 60)

    assert 1800 <= (index - 1) * STEP_S <= 2100


def test_kruize_has_no_advice_for_a_pod_that_never_worked() -> None:
    assert changes("kruize-cost", [0.0] * 200) == ()


def test_kruize_cost_does_not_see_what_is_rare_and_performance_does() -> None:
    load, memory = [0.1] * 400, [5.0] * 400
    memory[10] = 40.0

    assert changes("kruize-cost", load, memory_gib=memory)[-1][1] == SEVENTH
    assert changes("kruize-performance", load, memory_gib=memory) == ()


def test_kruize_forgets_after_a_day() -> None:
    load = [0.5] * 100 + [0.1] * (STEPS_A_DAY + 200)

    assert changes("kruize-performance", load)[0][1] == HALF
    assert changes("kruize-performance", load)[-1][1] == SEVENTH


def test_the_vpa_waits_half_a_day_where_its_wide_bounds_hold_the_board() -> None:
    ((index, step),) = changes("vpa-like", [0.3] * 800, memory_gib=20.0)

    assert step == 3
    assert 12 * 3600 <= (index - 1) * STEP_S <= 12 * 3600 + 300


def test_the_vpa_keeps_a_margin_on_the_peak_of_memory() -> None:
    memory = [2.0] * 800
    memory[5] = 21.5

    assert changes("vpa-like", [0.01] * 800, memory_gib=memory) == ()
    assert changes("vpa-like", [0.01] * 800, memory_gib=[2.0] * 800)[0][1] == SEVENTH


def test_the_vpa_grows_what_has_become_too_small() -> None:
    grown = changes("vpa-like", [0.02] * 800 + [0.5] * 700)

    assert grown[0][1] == SEVENTH
    assert grown[-1][1] > SEVENTH


def test_the_vpa_counts_a_day_at_a_time() -> None:
    memory = [40.0] * 50 + [2.0] * (9 * STEPS_A_DAY)

    assert changes("vpa-like", [0.02] * len(memory), memory_gib=memory)[-1][1] == SEVENTH


def test_without_a_sample_the_vpa_says_nothing() -> None:
    policy = VERTICAL["vpa-like"](48.0)
    policy.pod_started("a", 0.0)
    policy.observe("a", 0.0, None, 3.0)

    assert policy.ask("a", 600.0) == WHOLE
