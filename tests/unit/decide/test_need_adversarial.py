import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.decide.need import UNBOUNDED_MILLI, confident, estimate_need, with_confidence
from autoscaler.model.evidence import BoardUse, Measured
from autoscaler.model.policy import Policy, policy_from_dict

HUGE = 2**63 - 1


def unit(*boards: BoardUse, history_ms: int) -> Measured:
    return Measured(boards, coverage=1.0, age_ms=0, history_ms=history_ms, signal="")


@pytest.mark.parametrize("history_ms", [0, -1, -HUGE, 1, HUGE])
@pytest.mark.parametrize("unit_text", ["1ms", "1d", "99999d"])
def test_no_history_however_odd_gives_a_bound_under_the_target(history_ms: int, unit_text: str) -> None:
    rules = policy_from_dict({"need": {"confidenceUnit": unit_text}})
    need = estimate_need(unit(BoardUse("d", 5000, 5000, 5000, 5000, 5000), history_ms=history_ms), rules)

    assert need.target <= need.upper <= UNBOUNDED_MILLI
    assert 0 <= need.lower <= need.target


@pytest.mark.parametrize("history_ms", [0, -1])
def test_without_history_the_upper_bound_is_infinite_and_the_lower_one_zero(history_ms: int) -> None:
    need = estimate_need(unit(BoardUse("d", 0, 0, 0, 0, 0, 0, 1), history_ms=history_ms), Policy())

    assert (need.lower, need.upper) == (0, UNBOUNDED_MILLI)


def test_memory_larger_than_the_board_is_believed_and_huge_memory_does_not_overflow() -> None:
    odd = BoardUse("d", 0, 0, 0, 0, 0, memory_peak_mib=2**32 - 2, memory_total_mib=1)
    need = estimate_need(
        unit(*[odd] * 1000, history_ms=1), policy_from_dict({"need": {"memoryTarget": 0.01}})
    )

    assert need.memory >= 1000 * (2**32 - 2) * 1000
    assert need.upper == UNBOUNDED_MILLI


@pytest.mark.parametrize("confidence", [0.0, -1.0, 1e-300, float("-inf")])
def test_a_load_without_confidence_is_unbounded(confidence: float) -> None:
    assert confident(1, confidence) == UNBOUNDED_MILLI


def test_nothing_at_all_is_zero_only_with_confidence() -> None:
    grow = with_confidence(lambda _: 0.0, unit_ms=1, multiplier=1.0, exponent=1.0)

    assert grow(unit(history_ms=1)) == 0.0
    assert grow(unit(history_ms=0)) == float("inf")


@given(
    st.lists(st.builds(BoardUse, st.text(max_size=2), *[st.integers(0, 65_535)] * 5), max_size=4),
    st.integers(-HUGE, HUGE),
    st.sampled_from([0.01, 0.7, 1.0]),
    st.sampled_from([0.0, 10.0]),
)
def test_no_numbers_make_it_raise(
    boards: list[BoardUse], history_ms: int, target: float, margin: float
) -> None:
    rules = policy_from_dict(
        {"need": {"targetUtilization": target, "margin": margin, "confidenceUnit": "1ms"}}
    )
    need = estimate_need(unit(*boards, history_ms=history_ms), rules)

    assert need.lower <= need.target <= need.upper
