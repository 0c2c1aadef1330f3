"""The Vertical Pod Autoscaler's arithmetic with a board's compute and memory in the place of CPU and host memory.

Compute: decaying histogram (half-life 24 h, buckets growing by 5 %), target p90, bounds p50 and p95, margin 15 %. Memory: the
peak of each 24 h, of the last eight. Confidence c in days widens the bounds: upper x (1 + 1/c), lower x (1 + 0.001/c)^-2.
It acts when the allocation is outside the bounds, or after 12 h when it is off by a tenth.
"""

import math
from bisect import bisect_left
from collections import deque
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from autoscaler.model.backtest import COMPUTE, MEMORY, RELEASED, WHOLE

DAY_S: Final = 86_400.0
MARGIN: Final = 1.15
FIRST_BUCKET: Final = 0.01
GROWTH: Final = 1.05
BUCKETS: Final = 96
PEAKS: Final = 8
LONG_LIVED_S: Final = 12 * 3600.0
LEAST_CHANGE: Final = 0.1
SAMPLES_A_DAY: Final = 1440
_STARTS: Final = tuple(FIRST_BUCKET * (GROWTH**bucket - 1) / (GROWTH - 1) for bucket in range(BUCKETS + 1))


@dataclass(slots=True)
class _Pod:
    began_s: float
    first_s: float
    step: int = WHOLE
    samples: int = 0
    weights: list[float] = field(default_factory=lambda: [0.0] * BUCKETS)
    day: int = 0
    peaks: deque[float] = field(default_factory=lambda: deque([0.0], maxlen=PEAKS))


class VpaLike:
    """Recommender and updater in one; it never releases."""

    def __init__(self, *, board_gib: float) -> None:
        self._memory_gib = [share * board_gib for share in MEMORY]
        self._pods: dict[str, _Pod] = {}

    def reset(self) -> None:
        """Forgets all pods."""
        self._pods.clear()

    def pod_started(self, pod: str, now_s: float) -> None:
        """No history yet."""
        self._pods[pod] = _Pod(began_s=now_s, first_s=now_s)

    def pod_ended(self, pod: str, now_s: float) -> None:
        """Forgets it."""
        del self._pods[pod]

    def observe(self, pod: str, now_s: float, duty: float | None, memory_gib: float | None) -> None:
        """Into the histogram, and into the day's peak."""
        state = self._pods[pod]
        age = now_s - state.first_s
        if memory_gib is not None:
            if int(age // DAY_S) != state.day:
                state.day = int(age // DAY_S)
                state.peaks.append(0.0)
            state.peaks[-1] = max(state.peaks[-1], memory_gib)
        if duty is not None:
            state.samples += 1
            state.weights[_bucket(duty)] += 2.0 ** (age / DAY_S)

    def allocated(self, pod: str, now_s: float, step: int) -> None:
        """A changed pod is a new one."""
        state = self._pods[pod]
        state.step, state.began_s = step, now_s

    def ask(self, pod: str, now_s: float) -> int:
        """The recommendation where the updater would act, else what is held."""
        state = self._pods[pod]
        confidence = min((now_s - state.first_s) / DAY_S, state.samples / SAMPLES_A_DAY)
        if confidence <= 0:
            return state.step
        wide, narrow = 1 + 1 / confidence, (1 + 0.001 / confidence) ** -2
        peak = _peak(state.peaks, 0.9) * MARGIN
        target = (_percentile(state.weights, 0.9) * MARGIN, peak)
        lower = (_percentile(state.weights, 0.5) * MARGIN * narrow, _peak(state.peaks, 0.5) * MARGIN * narrow)
        upper = (_percentile(state.weights, 0.95) * MARGIN * wide, _peak(state.peaks, 0.95) * MARGIN * wide)
        held = (COMPUTE[state.step], self._memory_gib[state.step])
        outside = any(not low <= have <= high for low, have, high in zip(lower, held, upper, strict=True))
        off = sum(abs(have - want) / have for have, want in zip(held, target, strict=True) if have)
        if outside or (now_s - state.began_s >= LONG_LIVED_S and off >= LEAST_CHANGE):
            return self._fitting(*target)
        return state.step

    def _fitting(self, compute: float, memory_gib: float) -> int:
        for step in range(RELEASED + 1, WHOLE):
            if COMPUTE[step] >= compute and self._memory_gib[step] >= memory_gib:
                return step
        return WHOLE


def _bucket(value: float) -> int:
    """The bucket that holds the value: starts are a geometric series' sums."""
    bucket = int(math.log(value / FIRST_BUCKET * (GROWTH - 1) + 1, GROWTH))
    return min(bucket, BUCKETS - 1)


def _percentile(weights: list[float], share: float) -> float:
    """The end of the bucket in which the share of all weight is reached."""
    reached = list(accumulate(weights))
    return _STARTS[bisect_left(reached, share * reached[-1]) + 1]


def _peak(peaks: deque[float], share: float) -> float:
    ordered = sorted(peaks)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
