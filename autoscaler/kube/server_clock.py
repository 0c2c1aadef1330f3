"""The API server's clock, as far as its answers tell: ages of objects are judged against it, never against our own."""

from collections.abc import Callable
from datetime import UTC
from email.utils import parsedate_to_datetime


class ServerClock:
    """The last ``Date`` header plus the time passed since by our monotonic clock.

    A header has whole seconds, rounded down; the middle of that second is taken, so the estimate is within about half a
    second plus the time the answer travelled.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._date_ms: int | None = None
        self._heard_s = 0.0

    def heard(self, date_header: str | None) -> None:
        """An answer arrived now with this header; none or an unreadable one changes nothing."""
        if date_header is None:
            return
        try:
            moment = parsedate_to_datetime(date_header)
        except (ValueError, TypeError):
            return
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)  # "-0000" reads as naive; HTTP dates are always GMT
        self._date_ms = int(moment.timestamp()) * 1000 + 500
        self._heard_s = self._clock()

    def now_ms(self) -> int | None:
        """The server's present time in epoch milliseconds, None before the first answer."""
        if self._date_ms is None:
            return None
        return self._date_ms + int((self._clock() - self._heard_s) * 1000)
