"""Durations as people write them ("90s", "1h30m"), held as integer milliseconds."""

import re
from fractions import Fraction
from typing import Annotated, Final

from msgspec import Meta

_UNIT_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_PART: Final = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)(ms|s|m|h|d)", re.ASCII)
_MAX_MS: Final = 2**53
"""Over 285,000 years; JSON readers hold it exactly."""


LATEST_MS: Final = 253_402_300_799_999
"""The end of the year 9999: later moments have no date."""
Instant = Annotated[int, Meta(ge=-1, le=LATEST_MS)]
"""A moment in ms since the epoch; -1 where it has not happened."""
Span = Annotated[int, Meta(ge=-LATEST_MS, le=LATEST_MS)]
"""A measured time in ms; below zero where a clock is ahead."""


class DurationError(ValueError):
    """The text is not a duration."""


class Duration(int):
    """Milliseconds; a type of its own so that policies are written and printed with units."""

    __slots__ = ()

    def __str__(self) -> str:
        return format_duration(int(self))


def parse_duration(text: str) -> Duration:
    """Milliseconds of "90s", "1h30m", "2d", "500ms" or "0"; raises `DurationError` naming the text."""
    compact = text.strip()
    if compact == "0":
        return Duration(0)
    position, total = 0, Fraction(0)
    while match := _PART.match(compact, position):
        total += Fraction(match.group(1)) * _UNIT_MS[match.group(2)]
        position = match.end()
    if not compact or position != len(compact):
        raise DurationError(f"not a duration (use e.g. 30s, 10m, 1h30m, 2d): {text[:64]!r}")
    if total > _MAX_MS:
        raise DurationError(f"duration out of range: {text[:64]!r}")
    return Duration(round(total))


def format_duration(duration_ms: int) -> str:
    """The shortest exact spelling, e.g. "1h30m"; negative durations carry a sign."""
    if duration_ms == 0:
        return "0s"
    rest, parts = abs(duration_ms), []
    for unit in ("d", "h", "m", "s", "ms"):
        count, rest = divmod(rest, _UNIT_MS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return ("-" if duration_ms < 0 else "") + "".join(parts)
