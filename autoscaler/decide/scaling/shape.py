"""The load's daily and weekly shape: what came at this time of day on every day of late may come today.

It may raise a need ahead of a known peak and never lowers one. A peak is known when every day that is remembered had it, and
the shape is followed only while at least half of the peaks it foretold did come; what it foretells is judged even while it
is not followed, so that trust can come back.
"""

from collections import deque
from typing import Final

import msgspec

from autoscaler.model.duration import Duration
from autoscaler.model.policy_sections import DAY_MS, MINUTE_MS

BUCKET: Final = Duration(10 * MINUTE_MS)
_A_DAY: Final = int(DAY_MS) // int(BUCKET)
_A_WEEK: Final = 7 * _A_DAY
_KEPT: Final = 3 * _A_WEEK
_DAYS: Final = 7
_FEWEST_DAYS: Final = 3
_WEEKS: Final = 3
_MARGIN: Final = 1.0
"""Replicas that a peak stands out by: less is what rounding up already holds."""


class Peak(msgspec.Struct, frozen=True):
    """A load that is known to come at a time, and how its forerunners did."""

    load: float
    foretold: int
    came: int


class Shape:
    """The highest load of every ten minutes for three weeks."""

    def __init__(self) -> None:
        self._highest: dict[int, float] = {}
        self._open: deque[tuple[int, float]] = deque()
        self._foretold = 0
        self._came = 0

    def observe(self, now_ms: int, load: float) -> None:
        """One sample; times do not go back."""
        bucket = now_ms // int(BUCKET)
        if bucket not in self._highest:
            self._judge(bucket)
            self._highest.pop(bucket - _KEPT, None)
            self._highest[bucket] = load
        self._highest[bucket] = max(self._highest[bucket], load)

    def floor(self, at_ms: int) -> float:
        """The least that came at this time of day, or of the week; 0 where too few days are known or trust is lost."""
        return self._known(at_ms // int(BUCKET)) if self._trusted else 0.0

    def peak(self, at_ms: int, need: float) -> Peak | None:
        """The known peak at a time to come, where it stands out over the need and the shape has earned trust."""
        bucket = at_ms // int(BUCKET)
        load = self._known(bucket)
        if load <= need + _MARGIN:
            return None
        if not self._open or self._open[-1][0] < bucket:
            self._open.append((bucket, load))
        return Peak(load, self._foretold, self._came) if self._trusted else None

    @property
    def _trusted(self) -> bool:
        return 2 * (self._came + 1) >= self._foretold + 1

    def _known(self, bucket: int) -> float:
        daily = self._least(bucket, _A_DAY, _DAYS, _FEWEST_DAYS)
        return max(daily, self._least(bucket, _A_WEEK, _WEEKS, _WEEKS))

    def _least(self, bucket: int, period: int, periods: int, fewest: int) -> float:
        """The least of what came at this time in earlier periods; 0 where too few are known."""
        seen = [
            self._highest[bucket - period * back]
            for back in range(1, periods + 1)
            if bucket - period * back in self._highest
        ]
        return min(seen) if len(seen) >= fewest else 0.0

    def _judge(self, bucket: int) -> None:
        """Whether the peaks foretold for times that are over came; one for a time without samples is neither."""
        while self._open and self._open[0][0] < bucket:
            when, load = self._open.popleft()
            if when in self._highest:
                self._foretold += 1
                self._came += self._highest[when] > load - _MARGIN
