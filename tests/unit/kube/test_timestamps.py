"""Timestamps as the API server writes them, and nothing else."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.kube.wire import parse_rfc3339_ms

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2026-11-30T21:54:00Z", 1_796_075_640_000),
        ("2026-11-30T21:54:00.123456Z", 1_796_075_640_123),
        ("2026-11-30T21:54:00.9999999Z", 1_796_075_640_999),
        ("2026-11-30T23:54:00+02:00", 1_796_075_640_000),
        ("1969-12-31T23:59:59.999Z", -1),
    ],
)
def test_a_time_is_milliseconds_since_the_epoch_rounded_down(text: str, expected: int) -> None:
    assert parse_rfc3339_ms(text) == expected


@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2200, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
def test_every_second_survives(moment: datetime) -> None:
    whole = moment.replace(microsecond=0)

    assert parse_rfc3339_ms(whole.isoformat().replace("+00:00", "Z")) == int(whole.timestamp()) * 1000


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-11-30",
        "2026-11-30T21:54:00",
        "2026-11-30T21:54:00.5",
        "2026-11-30 21:54:00+00:00",
        "2026-W48-1T21:54:00+00:00",
        "1796075640",
    ],
)
def test_what_is_no_rfc3339_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_rfc3339_ms(text)
