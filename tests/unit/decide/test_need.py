import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.decide.need import (
    UNBOUNDED_MILLI,
    activity_of,
    boards_for,
    confident,
    estimate_need,
    largest_need,
    usual_activity,
)
from autoscaler.model.evidence import BoardUse, Measured
from autoscaler.model.plan import Need
from autoscaler.model.policy import DAY_MS, Policy, policy_from_dict


def board(p95: int, **changes: object) -> BoardUse:
    use = {
        "device": "d",
        "mean": p95,
        "peak": p95,
        "history_p95": p95,
        "history_peak": p95,
        "history_busiest": p95,
    }
    return BoardUse(**{**use, "memory_peak_mib": 0, "memory_total_mib": 1000, **changes})


def unit(*boards: BoardUse, history_ms: int = 30 * DAY_MS) -> Measured:
    return Measured(boards, coverage=1.0, age_ms=0, history_ms=history_ms, signal="engine")


USES = st.builds(
    lambda p95, more, busiest, mib: board(
        p95, history_peak=min(10_000, p95 + more), history_busiest=busiest, memory_peak_mib=mib
    ),
    st.integers(0, 10_000),
    st.integers(0, 10_000),
    st.integers(0, 10_000),
    st.none() | st.integers(0, 2000),
)
UNITS = st.builds(
    lambda boards, days: unit(*boards, history_ms=days * DAY_MS // 4),
    st.lists(USES, min_size=1, max_size=8),
    st.integers(0, 400),
)


def test_the_seed_s_own_case_two_boards_of_which_one_is_used_need_one() -> None:
    need = estimate_need(unit(board(5500), board(0)), Policy())

    # 0.55 / 0.70 = 0.786 boards, with 15 % margin 0.904, with 30 days of history at most 0.934
    assert (need.activity, need.target, need.upper, need.active_peak) == (786, 904, 934, 1)
    assert boards_for(need.upper) == 1


@pytest.mark.parametrize(
    ("days", "lower", "upper"),
    [(30, 786, 934), (1, 785, 1808), (0.25, 780, 4518), (0, 0, UNBOUNDED_MILLI)],
)
def test_thin_history_widens_the_bounds(days: float, lower: int, upper: int) -> None:
    need = estimate_need(unit(board(5500), history_ms=round(days * DAY_MS)), Policy())

    assert (lower, upper) == (need.lower, need.upper)


def test_a_load_that_has_just_come_counts_although_the_history_is_quiet() -> None:
    assert usual_activity(board(0, mean=3000, peak=3000)) == 3000
    assert estimate_need(unit(board(0, mean=7000, peak=7000)), Policy()).activity == 1000


def test_a_busy_hour_a_day_counts_although_the_percentile_forgives_it() -> None:
    # 58 minutes of a day are 4 % of it: no percentile of 95 shows them, and no two boards need them at once
    hourly = board(0, history_peak=10_000, history_busiest=10_000)
    need = estimate_need(unit(*[hourly] * 8), Policy())

    assert need.activity == 11_429
    assert boards_for(need.upper) > 8


def test_short_spikes_are_forgiven() -> None:
    spiky = board(200, history_peak=10_000, history_busiest=400)

    assert boards_for(estimate_need(unit(*[spiky] * 8), Policy()).upper) == 1


def test_activity_is_the_larger_of_the_usual_and_of_what_lasted_never_their_mixture() -> None:
    early, late = board(9000, history_busiest=1000), board(0, history_busiest=8000)

    assert activity_of((early, late)) == 9000
    assert activity_of((early, board(0, mean=8000, history_busiest=8000))) == 17_000
    assert activity_of(()) == 0


def test_memory_carries_its_own_margin_and_is_a_floor() -> None:
    need = estimate_need(unit(board(0, memory_peak_mib=900), board(0, memory_peak_mib=450)), Policy())

    assert (need.memory, need.target) == (1500, 1500)


@pytest.mark.parametrize(
    "changes", [{"memory_peak_mib": None}, {"memory_total_mib": None}, {"memory_total_mib": 0}]
)
def test_a_board_whose_memory_is_not_known_counts_as_full(changes: dict[str, object]) -> None:
    assert estimate_need(unit(board(0, **changes)), Policy()).memory == 1000


def test_the_largest_replica_and_the_least_confidence_count() -> None:
    big, small = Need(1, 2, 3, 4, 5, 6, 7.0), Need(0, 9, 0, 9, 0, 9, 0.5)

    assert Need(1, 9, 3, 9, 5, 9, 0.5) == largest_need([big, small])
    assert largest_need([]) is None


@pytest.mark.parametrize(("milli", "boards"), [(0, 1), (1, 1), (1000, 1), (1001, 2), (8000, 8)])
def test_boards_round_up_and_are_never_none(milli: int, boards: int) -> None:
    assert boards == boards_for(milli)


def test_a_load_without_confidence_has_no_upper_bound() -> None:
    assert confident(1, 0) == UNBOUNDED_MILLI
    assert confident(1000, 1) == 2000


@given(UNITS)
def test_lower_is_under_target_is_under_upper(measured: Measured) -> None:
    need = estimate_need(measured, Policy())

    assert 0 <= need.lower <= need.target <= need.upper
    assert max(need.activity, need.memory) <= need.target
    assert need.active_peak <= len(measured.boards)


@given(UNITS, st.integers(1, 100))
def test_more_history_never_raises_the_upper_bound(measured: Measured, days: int) -> None:
    longer = msgspec.structs.replace(measured, history_ms=measured.history_ms + days * DAY_MS)
    thin, sure = estimate_need(measured, Policy()), estimate_need(longer, Policy())

    assert sure.upper <= thin.upper
    assert thin.lower <= sure.lower


@given(UNITS, st.integers(0, 7), st.integers(0, 10_000))
def test_more_use_never_needs_less(measured: Measured, at: int, more: int) -> None:
    boards = list(measured.boards)
    old = boards[at % len(boards)]
    boards[at % len(boards)] = msgspec.structs.replace(
        old,
        history_p95=min(10_000, old.history_p95 + more),
        history_busiest=min(10_000, old.history_busiest + more),
        history_peak=10_000,
    )
    before, after = (
        estimate_need(measured, Policy()),
        estimate_need(unit(*boards, history_ms=measured.history_ms), Policy()),
    )

    for name in ("target", "upper", "activity", "active_peak"):
        assert getattr(before, name) <= getattr(after, name)


@given(UNITS, st.sampled_from([0.3, 0.5, 0.69]), st.sampled_from([0.15, 1.0, 10.0]))
def test_a_more_careful_policy_never_needs_less(measured: Measured, target: float, margin: float) -> None:
    careful = policy_from_dict({"need": {"targetUtilization": target, "margin": margin}})

    assert estimate_need(measured, Policy()).upper <= estimate_need(measured, careful).upper


@given(UNITS)
def test_order_of_boards_does_not_matter(measured: Measured) -> None:
    turned = msgspec.structs.replace(measured, boards=measured.boards[::-1])

    for name in ("lower", "target", "upper"):
        assert getattr(estimate_need(measured, Policy()), name) == pytest.approx(
            getattr(estimate_need(turned, Policy()), name), abs=1
        )
