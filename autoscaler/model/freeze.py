"""Freeze windows: when nothing is changed, as cron schedules in a time zone of their own."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from autoscaler.model.policy_sections import HOUR_MS, FreezeWindow

_FIELDS: Final = 5
_NEAR_MS: Final = 3 * HOUR_MS
"""Of a window that opens every minute only the newest openings are looked at."""


def check_window(window: FreezeWindow) -> None:
    """Raises `ValueError` where a window could not be told: schedule, time zone or duration."""
    if len(window.schedule.split()) != _FIELDS:
        raise ValueError(
            f"freeze: schedule {window.schedule!r} is no cron expression (minute hour day month weekday)"
        )
    try:
        CronSim(window.schedule, datetime(2000, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        raise ValueError(f"freeze: schedule {window.schedule!r}: {error}") from None
    try:
        ZoneInfo(window.time_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(
            f"freeze: time zone {window.time_zone!r} is not known (e.g. Europe/Berlin)"
        ) from None
    if window.duration <= 0:
        raise ValueError("freeze: duration must be over 0s")


def open_until_ms(window: FreezeWindow, now_ms: int) -> int | None:
    """When a window that is open now ends; None where it is closed.

    A window lasts its duration in real time, from each opening. An opening in an hour that the clock skips is at that hour's end, one in
    an hour that comes twice is at the first.
    """
    lasts_ms = int(window.duration)
    near_ms = min(lasts_ms, _NEAR_MS)
    newest_ms = max(_openings(window, now_ms - near_ms, now_ms), default=None)
    if newest_ms is None:
        newest_ms = max(_openings(window, now_ms - lasts_ms, now_ms - near_ms), default=None)
    return None if newest_ms is None else newest_ms + lasts_ms


def _openings(window: FreezeWindow, after_ms: int, until_ms: int) -> Iterator[int]:
    zone = ZoneInfo(window.time_zone)
    # An hour earlier than asked for: where the clock goes back, later local times come before earlier ones.
    begin = datetime.fromtimestamp(after_ms / 1000, tz=UTC).astimezone(zone) - timedelta(hours=1)
    openings = (round(opening.timestamp() * 1000) for opening in CronSim(window.schedule, begin))
    so_far = takewhile(lambda at_ms: at_ms <= until_ms, openings)
    return filter(lambda at_ms: at_ms > after_ms, so_far)


def in_words(window: FreezeWindow, until_ms: int) -> str:
    """Until when, by the window's own clock, and why."""
    until = datetime.fromtimestamp(until_ms / 1000, tz=UTC).astimezone(ZoneInfo(window.time_zone))
    why = f": {window.reason}" if window.reason else ""
    return f"frozen until {until:%Y-%m-%d %H:%M} {window.time_zone}{why}"
