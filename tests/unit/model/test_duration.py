import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.model.duration import Duration, DurationError, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("0", 0),
        ("0s", 0),
        ("500ms", 500),
        ("90s", 90_000),
        ("1.5h", 5_400_000),
        ("0.1s", 100),
        ("1h30m", 5_400_000),
        ("2d", 172_800_000),
        (" 10m ", 600_000),
        ("1m1ms", 60_001),
    ],
)
def test_a_duration_has_units(text: str, milliseconds: int) -> None:
    assert milliseconds == parse_duration(text)


@pytest.mark.parametrize(
    "text", ["", "5", "-5m", "5 m", "m", "5x", "1h-5m", "٣s", "1e3s", "nan", "true", ".5s"]
)
def test_what_is_no_duration_is_refused_naming_it(text: str) -> None:
    with pytest.raises(DurationError, match="not a duration"):
        parse_duration(text)


def test_a_duration_out_of_range_is_refused() -> None:
    with pytest.raises(DurationError, match="out of range"):
        parse_duration("999999999999d")


@given(st.integers(0, 2**53))
def test_the_printed_form_reads_back(milliseconds: int) -> None:
    assert milliseconds == parse_duration(format_duration(milliseconds))


@given(st.integers(-(2**70), 2**70))
def test_every_number_can_be_printed(milliseconds: int) -> None:
    assert (milliseconds < 0) == format_duration(milliseconds).startswith("-")


@given(st.text(alphabet="0123456789.smhd -", max_size=30))
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    with contextlib.suppress(DurationError):
        assert parse_duration(text) >= 0


def test_a_duration_prints_with_units() -> None:
    assert "1h30m" == str(Duration(5_400_000)) == f"{Duration(5_400_000)}"
    assert format_duration(-3_600_000) == "-1h"
