"""Which steps of the history are still to be asked for, in pieces that a store answers.

Each step is counted once: this plan is the only thing that knows which are. So a step that closes, one that was missed
while the store was away, and the whole past after a start are all the same: steps not yet counted, the newest first.
"""

from typing import Final

import msgspec

from autoscaler.observe.history.steps import Grid

STEP_MS: Final = 300_000
"""Load is averaged over as much: short enough to see bursts, and 2,016 points a series for a week."""
FINE_SERIES: Final = 10_000
"""With more series the step is the evidence window: a week of 5 min steps for 64,000 boards is half a billion points."""
MAX_POINTS_PER_SERIES: Final = 10_000
"""Prometheus refuses a range query of more than 11,000."""
MAX_POINTS: Final = 250_000
"""Of one answer: for the largest fleet 20 MB of text, most of it labels."""
SETTLE_MS: Final = 120_000
"""A step is asked for when it has been over for so long: samples come late."""
RETRY_MS: Final = 120_000
"""A piece that was not answered is asked for again after this; meanwhile others are."""
_FIRST_PAUSE_MS: Final = 5_000
_LONGEST_PAUSE_MS: Final = 300_000


class Progress(msgspec.Struct, frozen=True):
    """How much of the history is counted, in steps of `step_ms`; `fault` is why the last piece failed."""

    done: int = 0
    total: int = 0
    step_ms: int = 0
    fault: str = ""

    def __str__(self) -> str:
        share = f"{self.done} of {self.total} steps of history"
        return f"{share}, last: {self.fault}" if self.fault else share


def step_for(series: int, *, window_ms: int) -> int:
    """The length of a step for a fleet of so many series."""
    return STEP_MS if series <= FINE_SERIES and window_ms > STEP_MS else window_ms


class SeedPlan:
    """Hands out pieces of the history; the caller says what became of each. Knows no clock: `now_ms` is the store's."""

    def __init__(
        self, *, history_ms: int, step_ms: int, max_points: int = MAX_POINTS, settle_ms: int = SETTLE_MS
    ) -> None:
        self.step_ms = step_ms
        self._history_ms = history_ms
        self._max_points = max_points
        self._settle_ms = settle_ms
        self._longest = MAX_POINTS_PER_SERIES
        self._counted: set[int] = set()
        self._later: dict[int, int] = {}
        self._pause_ms = 0
        self._resume_ms = 0
        self._fault = ""

    def next_piece(self, *, now_ms: int, series: int) -> Grid | None:
        """The newest steps that are not counted, as many as fit into one answer; None if there is nothing to ask now."""
        if now_ms < self._resume_ms:
            return None
        first, last = self._span(now_ms)
        self._forget_before(first)
        end = last
        while end >= first and not self._is_due(end, now_ms):
            end -= self.step_ms
        if end < first:
            return None
        most = min(self._longest, max(1, self._max_points // max(series, 1)))
        begin = end
        while (
            begin - self.step_ms >= first
            and (end - begin) // self.step_ms + 1 < most
            and self._is_due(begin - self.step_ms, now_ms)
        ):
            begin -= self.step_ms
        return Grid(first_ms=begin, step_ms=self.step_ms, steps=(end - begin) // self.step_ms + 1)

    def counted(self, piece: Grid) -> None:
        """The piece was answered and counted."""
        ends = piece.ends_ms.tolist()
        self._counted.update(ends)
        for end in ends:
            self._later.pop(end, None)
        self._pause_ms, self._resume_ms, self._fault = 0, 0, ""

    def too_large(self, piece: Grid, *, now_ms: int, why: str) -> None:
        """The store refused the piece for its size, or took too long: pieces are half as long from now on."""
        self._longest = max(1, piece.steps // 2)
        if piece.steps == 1:
            self.failed(piece, now_ms=now_ms, why=why)
        self._fault = why

    def failed(self, piece: Grid, *, now_ms: int, why: str, pause_ms: int = 0) -> None:
        """The piece was not answered: it comes again later, and after a growing pause others come first.

        `pause_ms` is how long the store asked to be left alone.
        """
        for end in piece.ends_ms.tolist():
            self._later[end] = now_ms + RETRY_MS
        self._pause_ms = min(max(_FIRST_PAUSE_MS, 2 * self._pause_ms), _LONGEST_PAUSE_MS)
        self._resume_ms = now_ms + max(self._pause_ms, pause_ms)
        self._fault = why

    def progress(self, now_ms: int) -> Progress:
        """How far the history is counted up to now."""
        first, last = self._span(now_ms)
        total = max(0, (last - first) // self.step_ms + 1)
        done = sum(first <= end <= last for end in self._counted)
        return Progress(done=done, total=total, step_ms=self.step_ms, fault=self._fault)

    def _span(self, now_ms: int) -> tuple[int, int]:
        """Ends of the oldest and the newest step that belong to the history now."""
        last = (now_ms - self._settle_ms) // self.step_ms * self.step_ms
        first = -(-(now_ms - self._history_ms) // self.step_ms) * self.step_ms + self.step_ms
        return first, last

    def _is_due(self, end: int, now_ms: int) -> bool:
        return end not in self._counted and self._later.get(end, 0) <= now_ms

    def _forget_before(self, first: int) -> None:
        self._counted = {end for end in self._counted if end >= first}
        self._later = {end: at for end, at in self._later.items() if end >= first}
