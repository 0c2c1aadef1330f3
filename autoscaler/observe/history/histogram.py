"""Decaying histograms of load, one row for each workload and container, all rows in one array.

As in kubernetes/autoscaler `pkg/recommender/util/decaying_histogram.go`: a value's weight doubles with every half-life that
it is younger than a reference time, so nothing is ever aged; when the weights grow large the reference moves and all rows
are divided at once.
"""

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[Any]

HOUR_MS: Final = 3_600_000
HALF_LIFE_MS: Final = 24 * HOUR_MS
FIRST_BUCKET_MILLI: Final = 20
"""2 % of a board: less is rounding."""
RATIO: Final = 1.05
MAX_MILLI: Final = 65_535
"""Over 65 boards, more than one pod can hold on any node; larger loads count as this."""
_MAX_HALVINGS: Final = 16.0
"""Beyond 2**16 a single-precision sum of a week's weights would lose the small ones."""

_ROWS_AT_ONCE: Final = 1024
"""Sums are twice as large as the weights: 1 MB of them at a time."""


def _ends() -> Numbers:
    """0, then ends that lie ever farther apart: the n-th width is the first x ratio^n, as VPA's buckets have it."""
    ends, width = [0.0], float(FIRST_BUCKET_MILLI)
    while ends[-1] < MAX_MILLI:
        ends.append(min(ends[-1] + width, MAX_MILLI))
        width *= RATIO
    rounded: Numbers = np.ceil(np.array(ends)).astype(np.int64)
    return rounded


BUCKET_ENDS: Final = _ends()
"""Milli-boards. A bucket holds what is over the end before it, up to and with its own; the first holds 0 alone."""


class DecayingHistograms:
    """Weights by row and bucket. Row numbers are the caller's; rows come and go with `resize` and `clear`."""

    def __init__(self, *, half_life_ms: int = HALF_LIFE_MS) -> None:
        self._half_life_ms = half_life_ms
        self._reference_ms = -1
        self._weights = np.zeros((0, len(BUCKET_ENDS)), dtype=np.float32)

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return self._weights.nbytes

    def resize(self, rows: int) -> None:
        """So many rows; new ones are empty."""
        grown = np.zeros((rows, len(BUCKET_ENDS)), dtype=np.float32)
        had = min(rows, len(self._weights))
        grown[:had] = self._weights[:had]
        self._weights = grown

    def clear(self, rows: Numbers) -> None:
        """These rows are empty."""
        self._weights[rows] = 0.0

    def add(self, rows: Numbers, milli: Numbers, *, weights: Numbers, at_ms: Numbers) -> None:
        """Loads of rows at their times, in any order and any number for each row; weights are shares of one step."""
        if not len(rows):
            return
        self._move_reference(int(at_ms.max()))
        buckets = np.searchsorted(BUCKET_ENDS, np.clip(milli, 0, MAX_MILLI))
        aged = weights * np.exp2((at_ms - self._reference_ms) / self._half_life_ms)
        np.add.at(self._weights.reshape(-1), rows * len(BUCKET_ENDS) + buckets, aged.astype(np.float32))

    def percentile(self, share: float) -> Numbers:
        """By row, the end of the bucket under which that share of the weight lies: a load of at most this; 0 if empty.

        Never less than the true percentile, and more by at most the width of one bucket.
        """
        ends = np.zeros(len(self._weights), dtype=np.int64)
        for start in range(0, len(ends), _ROWS_AT_ONCE):
            sums = np.cumsum(self._weights[start : start + _ROWS_AT_ONCE], axis=1, dtype=np.float64)
            # A rounding error must not push the share past the last bucket that has weight.
            wanted = share * sums[:, -1:] * (1 - 1e-9)
            ends[start : start + _ROWS_AT_ONCE] = BUCKET_ENDS[np.argmax(sums >= wanted, axis=1)]
        return ends

    def _move_reference(self, newest_ms: int) -> None:
        """Weights of the newest values stay under 2**16."""
        if self._reference_ms < 0:
            self._reference_ms = newest_ms // self._half_life_ms * self._half_life_ms
        halvings = (newest_ms - self._reference_ms) / self._half_life_ms
        if halvings > _MAX_HALVINGS:
            self._weights *= np.float32(2.0 ** -int(halvings))
            self._reference_ms += int(halvings) * self._half_life_ms
