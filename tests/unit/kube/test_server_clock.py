"""The server's time is its last word plus what has passed since."""

import pytest

from autoscaler.kube.server_clock import ServerClock

pytestmark = pytest.mark.unit

DATE, DATE_MS = "Mon, 30 Nov 2026 21:54:00 GMT", 1_796_075_640_000


def test_nothing_is_known_before_the_first_answer() -> None:
    clock = ServerClock(lambda: 0.0)
    clock.heard(None)

    assert clock.now_ms() is None


@pytest.mark.parametrize("date", [DATE, "Mon, 30 Nov 2026 21:54:00 -0000", "Mon, 30 Nov 2026 23:54:00 +0200"])
def test_time_goes_on_between_answers(date: str) -> None:
    moments = iter((10.0, 12.5))
    clock = ServerClock(lambda: next(moments))
    clock.heard(date)

    assert clock.now_ms() == DATE_MS + 500 + 2500


def test_an_unreadable_date_leaves_the_last_good_one() -> None:
    clock = ServerClock(lambda: 0.0)
    clock.heard(DATE)
    clock.heard("not a date")

    assert clock.now_ms() == DATE_MS + 500
