from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.model.duration import parse_duration
from autoscaler.model.freeze import check_window, in_words, open_until_ms
from autoscaler.model.policy import PolicyError, policy_from_dict
from autoscaler.model.policy_sections import FreezeWindow

BERLIN = "Europe/Berlin"
MINUTE_MS = 60_000


def window(schedule: str, duration: str, zone: str = BERLIN, **more: str) -> FreezeWindow:
    return FreezeWindow(schedule=schedule, duration=parse_duration(duration), time_zone=zone, **more)


def at(text: str, *, fold: int = 0, zone: str = BERLIN) -> int:
    """Milliseconds of a local time; `fold` 1 is the second time round where the clock goes back."""
    return round(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp() * 1000)


WEEKEND = window("0 18 * * FRI", "62h")


@pytest.mark.parametrize(
    ("now", "until"),
    [
        (at("2026-11-27T17:59:59"), None),
        (at("2026-11-27T18:00"), at("2026-11-30T08:00")),
        (at("2026-11-29T12:00"), at("2026-11-30T08:00")),
        (at("2026-11-30T07:59:59"), at("2026-11-30T08:00")),
        (at("2026-11-30T08:00"), None),
    ],
)
def test_a_window_is_open_from_its_schedule_for_its_duration(now: int, until: int | None) -> None:
    assert open_until_ms(WEEKEND, now) == until


def test_a_window_lasts_its_duration_in_real_time_over_a_change_of_the_clock() -> None:
    # On 2026-03-29 the clock goes from 02:00 to 03:00: ten hours from 22:00 end at 09:00.
    night = window("0 22 * * *", "10h")

    assert open_until_ms(night, at("2026-03-29T08:59")) == at("2026-03-29T09:00")
    assert open_until_ms(night, at("2026-03-29T09:00")) is None


def test_an_opening_in_an_hour_that_is_skipped_is_at_its_end() -> None:
    skipped = window("30 2 * * *", "1h")

    assert open_until_ms(skipped, at("2026-03-29T01:59")) is None
    assert open_until_ms(skipped, at("2026-03-29T03:30")) == at("2026-03-29T04:00")


def test_an_opening_in_an_hour_that_comes_twice_is_the_first() -> None:
    # On 2026-10-25 the hour from 02:00 comes twice.
    twice = window("30 2 * * *", "1h")

    assert open_until_ms(twice, at("2026-10-25T02:29")) is None
    assert open_until_ms(twice, at("2026-10-25T02:30")) == at("2026-10-25T02:30", fold=1)
    assert open_until_ms(twice, at("2026-10-25T02:10", fold=1)) == at("2026-10-25T02:30", fold=1)
    assert open_until_ms(twice, at("2026-10-25T02:30", fold=1)) is None


def test_windows_that_follow_each_other_are_one() -> None:
    assert open_until_ms(window("* * * * *", "31d", "UTC"), 0) == 31 * 24 * 60 * MINUTE_MS
    assert open_until_ms(window("0 0 1 1 *", "366d", "UTC"), at("2026-06-01T00:00", zone="UTC")) is not None


def test_a_leap_day_freezes_in_leap_years() -> None:
    leap = window("0 0 29 2 *", "1d")

    assert open_until_ms(leap, at("2026-03-01T00:30")) is None
    assert open_until_ms(leap, at("2028-02-29T23:59")) == at("2028-03-01T00:00")


@given(
    now=st.integers(at("2026-03-27T00:00"), at("2026-03-31T00:00"))
    | st.integers(at("2026-10-23T00:00"), at("2026-10-27T00:00")),
    hour=st.integers(0, 23),
    minutes=st.integers(1, 50 * 60),
)
def test_a_daily_window_is_open_exactly_as_long_as_real_time_says(now: int, hour: int, minutes: int) -> None:
    if hour == 2:
        return  # the hour that is skipped or doubled has tests of its own
    days = [at(f"2026-{month:02}-{day:02}T{hour:02}:00") for month in (3, 10) for day in range(18, 32)]
    newest = max((day for day in days if day <= now), default=None)
    assert newest is not None
    until = newest + minutes * MINUTE_MS

    assert open_until_ms(window(f"0 {hour} * * *", f"{minutes}m"), now) == (until if now < until else None)


def test_until_when_is_told_by_the_windows_own_clock() -> None:
    until = at("2026-11-30T08:00")

    assert in_words(WEEKEND, until) == "frozen until 2026-11-30 08:00 Europe/Berlin"
    named = window("0 18 * * FRI", "62h", reason="weekend")
    assert in_words(named, until) == "frozen until 2026-11-30 08:00 Europe/Berlin: weekend"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"schedule": "0 18 * *"}, "is no cron expression"),
        ({"schedule": "0 0 18 * * 5"}, "is no cron expression"),
        ({"schedule": "0 25 * * *"}, "Bad hour"),
        ({"schedule": "0 0 30 2 *"}, "Bad day-of-month"),
        ({"timeZone": "Mars/Base"}, "time zone 'Mars/Base' is not known"),
        ({"timeZone": "../etc/passwd"}, "is not known"),
        ({"timeZone": ""}, "is not known"),
        ({"duration": "0s"}, "duration must be over 0s"),
        ({"methods": ["delete"]}, "Invalid enum value 'delete'"),
    ],
)
def test_a_window_that_cannot_be_told_is_refused_at_the_door(changes: dict[str, object], named: str) -> None:
    good = {"schedule": "0 18 * * 5", "duration": "62h", "timeZone": BERLIN}
    policy_from_dict({"freeze": {"windows": [good]}})

    with pytest.raises(PolicyError, match=named):
        policy_from_dict({"freeze": {"windows": [good | changes]}})


def test_a_good_window_passes() -> None:
    check_window(WEEKEND)
