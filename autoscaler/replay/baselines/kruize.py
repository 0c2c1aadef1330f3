"""Kruize's accelerator advice, applied at once whenever it differs: a percentile of the maxima of 15-minute intervals.

Core and memory use the same percentile (60 for the cost profile, 98 for performance), so a peak of memory above it does not
count. Intervals whose maximum is zero are passed over, each signal for itself; a pod that never worked gets no advice.
The interval that is under way counts with what it has shown so far.
"""

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from autoscaler.model.backtest import COMPUTE, MEMORY, WHOLE

INTERVAL_S: Final = 900.0
TERM_INTERVALS: Final = 96
"""The short term is one day."""
LEAST_S: Final = 1800.0
"""Half an hour of data is what its short term asks for."""


@dataclass(slots=True)
class _Signal:
    """The maxima of closed intervals, by time and by size, and of the one under way."""

    order: deque[float] = field(default_factory=deque)
    ordered: list[float] = field(default_factory=list)
    now: float = 0.0

    def close(self) -> None:
        self.order.append(self.now)
        if self.now > 0:
            insort(self.ordered, self.now)
        if len(self.order) > TERM_INTERVALS and (oldest := self.order.popleft()) > 0:
            self.ordered.remove(oldest)
        self.now = 0.0

    def at(self, percentile: float) -> float | None:
        """The nearest-rank percentile; None where no interval had anything."""
        if self.now > 0:
            place = bisect_left(self.ordered, self.now)
            return _at([*self.ordered[:place], self.now, *self.ordered[place:]], percentile)
        return _at(self.ordered, percentile) if self.ordered else None


@dataclass(slots=True)
class _Pod:
    began_s: float
    interval: int = 0
    core: _Signal = field(default_factory=_Signal)
    memory: _Signal = field(default_factory=_Signal)
    step: int = WHOLE


class Kruize:
    """One of the two profiles, by its percentile."""

    def __init__(self, *, percentile: float, board_gib: float) -> None:
        self._percentile = percentile
        self._memory_gib = [share * board_gib for share in MEMORY]
        self._pods: dict[str, _Pod] = {}

    def reset(self) -> None:
        """Forgets all pods."""
        self._pods.clear()

    def pod_started(self, pod: str, now_s: float) -> None:
        """No history yet."""
        self._pods[pod] = _Pod(began_s=now_s)

    def pod_ended(self, pod: str, now_s: float) -> None:
        """Forgets it."""
        del self._pods[pod]

    def observe(self, pod: str, now_s: float, duty: float | None, memory_gib: float | None) -> None:
        """Raises the present interval's maxima."""
        state = self._pods[pod]
        interval = int((now_s - state.began_s) // INTERVAL_S)
        if interval != state.interval:
            state.core.close()
            state.memory.close()
            state.interval = interval
        state.core.now = max(state.core.now, duty or 0.0)
        state.memory.now = max(state.memory.now, memory_gib or 0.0)

    def allocated(self, pod: str, now_s: float, step: int) -> None:
        """What to stay at while there is no advice."""
        self._pods[pod].step = step

    def ask(self, pod: str, now_s: float) -> int:
        """The first profile, from the smallest, that has the core and the memory."""
        state = self._pods[pod]
        core, memory = state.core.at(self._percentile), state.memory.at(self._percentile)
        if core is None or now_s - state.began_s < LEAST_S:
            return state.step
        for step in range(1, WHOLE):
            if COMPUTE[step] >= core and self._memory_gib[step] >= (memory or 0.0):
                return step
        return WHOLE


def _at(ordered: Sequence[float], percentile: float) -> float:
    return ordered[max(0, math.ceil(percentile / 100 * len(ordered)) - 1)]
