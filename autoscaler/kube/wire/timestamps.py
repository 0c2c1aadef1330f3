"""Kubernetes timestamps as integer milliseconds. Structs keep the text; whoever compares times parses once."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_SHORTEST = len("2026-11-30T21:54:00Z")


def parse_rfc3339_ms(text: str) -> int:
    """Milliseconds since the epoch of an RFC 3339 time with any offset and precision, rounded down.

    Raises ValueError for anything else, including a time without an offset: a guessed zone would be a guessed age.
    """
    # fromisoformat also reads week dates, bare dates and spaces; these checks leave RFC 3339 only.
    if len(text) < _SHORTEST or text[7] != "-" or text[10] not in "Tt":
        raise ValueError(f"not an RFC 3339 time: {text!r}")
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"a time without an offset: {text!r}")
    return (moment - _EPOCH) // _MILLISECOND
