"""The clairvoyant oracle: the least that could have been held by somebody who knew the load, as an exact dynamic programme.

Rules: an allocation is kept for at least half an hour; duty stays within nine tenths of it; memory fits; nothing is held
only where duty is zero. The whole board is always lawful. All pods are computed side by side, step by step, so nothing but
the programme's frontier is held in memory.
"""

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.model.backtest import COMPUTE, MEMORY, RELEASED, WHOLE

SEGMENT_S: Final = 1800.0
HEADROOM: Final = 0.9
_TOLERANCE: Final = 1e-9
_UNLAWFUL: Final = 1e12

_COMPUTE: Final = np.array(COMPUTE)


class Oracle:
    """The least sum of allocations over each slot's life so far."""

    def __init__(self, *, slots: int, step_s: float, board_gib: float, segment_s: float = SEGMENT_S) -> None:
        self._length = max(1, math.ceil(segment_s / step_s))
        self._memory_gib = np.array(MEMORY) * board_gib
        # cost[slot, allocation, age]: the cheapest past that holds this allocation for age + 1 steps; the last age is "long enough"
        self._cost = np.zeros((slots, len(COMPUTE), self._length))
        self._next = np.empty_like(self._cost)
        self._steps = np.zeros(slots, dtype=np.int64)
        self.steps = 0
        self.held = 0.0

    def start(self, slot: int) -> None:
        """A pod begins: any allocation may be its first."""
        self._cost[slot] = _UNLAWFUL
        self._cost[slot, :, self._length - 1] = _UNLAWFUL
        self._steps[slot] = 0

    def end(self, slot: int) -> None:
        """A pod ends: its best past counts. One that lived shorter than a segment held its whole board."""
        steps = int(self._steps[slot])
        best = float(self._cost[slot, :, self._length - 1].min())
        self.steps += steps
        self.held += min(best, float(steps))

    def add(
        self, mask: NDArray[np.bool_], demand: NDArray[np.float64], memory_gib: NDArray[np.float64]
    ) -> None:
        """One step of the slots in the mask."""
        lawful = (demand[:, None] <= HEADROOM * _COMPUTE + _TOLERANCE) & (
            memory_gib[:, None] <= self._memory_gib + _TOLERANCE
        )
        lawful[:, RELEASED] = demand == 0
        lawful[:, WHOLE] = True
        price = np.where(lawful, _COMPUTE, _UNLAWFUL)
        cost, following = self._cost, self._next
        following[:, :, 1:] = cost[:, :, :-1]
        np.minimum(following[:, :, -1], cost[:, :, -1], out=following[:, :, -1])
        following[:, :, 0] = np.where(self._steps == 0, 0.0, cost[:, :, -1].min(axis=1))[:, None]
        following += price[:, :, None]
        np.minimum(following, _UNLAWFUL, out=following)
        following[~mask] = cost[~mask]
        self._cost, self._next = following, cost
        self._steps += mask

    @property
    def freed_pct(self) -> float:
        """Mean of (1 - allocation) over all pods that have ended."""
        return 100 * (1 - self.held / self.steps) if self.steps else 0.0
