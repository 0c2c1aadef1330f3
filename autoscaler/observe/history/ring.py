"""Activity of every device by interval, for as long as the evidence window and a little more.

An interval that nobody asked for, or that the store did not answer, is an empty column: so after an outage a full fresh
window is required without any further rule.
"""

from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from autoscaler.model.evidence import MISSING_ACTIVITY

Ints: TypeAlias = npt.NDArray[Any]

_SPARE_COLUMNS: Final = 2
"""The interval that is still open, and the oldest, of which the window holds only a part."""
_FIRST_ROWS: Final = 1024
_MAX_SAMPLES: Final = 65_535


class RingWindow(msgspec.Struct, frozen=True):
    """The ring over one window, by position.

    `maximum` and `mean` are in 1/10,000, `MISSING_ACTIVITY` where no value could be used; `mean` weighs each interval by
    its samples. `samples` counts those of usable intervals, `bad` marks positions with samples that could not be used.
    `newest_ms` is the end of the newest interval with samples, -1 without any. `span_ms` is the time that the intervals
    looked at cover up to now: it may exceed the window by part of an interval, and what is expected of samples with it.
    """

    maximum: Ints
    mean: Ints
    samples: Ints
    bad: npt.NDArray[np.bool_]
    newest_ms: Ints
    span_ms: int


class Ring:
    """Mean, maximum and number of samples by position and interval; 6 bytes for each.

    Intervals lie on the grid of `interval_ms` and are named by their end. Positions are small integers that the caller
    gives; rows are added as they come and grow by doubling.
    """

    def __init__(self, *, window_ms: int, interval_ms: int) -> None:
        if interval_ms <= 0 or window_ms < interval_ms:
            raise ValueError(f"a window of {window_ms} ms cannot have intervals of {interval_ms} ms")
        self.interval_ms = interval_ms
        columns = -(-window_ms // interval_ms) + _SPARE_COLUMNS
        self._ends = np.full(columns, -1, dtype=np.int64)
        self._rows = 0
        self._mean = np.full((columns, _FIRST_ROWS), MISSING_ACTIVITY, dtype=np.uint16)
        self._peak = np.full((columns, _FIRST_ROWS), MISSING_ACTIVITY, dtype=np.uint16)
        self._samples = np.zeros((columns, _FIRST_ROWS), dtype=np.uint16)

    def __len__(self) -> int:
        return self._rows

    @property
    def nbytes(self) -> int:
        """Bytes of all columns, spare rows included."""
        return self._mean.nbytes + self._peak.nbytes + self._samples.nbytes + self._ends.nbytes

    @property
    def newest_end_ms(self) -> int:
        """End of the newest interval that was written, -1 before the first."""
        return int(self._ends.max())

    def write(self, end_ms: int, positions: Ints, *, mean: Ints, peak: Ints, samples: Ints) -> None:
        """The interval that ends at `end_ms` as it is known now; what was known of it before is replaced.

        Each position comes once. Values that could not be used are `MISSING_ACTIVITY` with their number of samples. An
        interval too old for the ring is left out; raises `ValueError` for one off the grid.
        """
        if end_ms % self.interval_ms:
            raise ValueError(f"{end_ms} ms is no end of an interval of {self.interval_ms} ms")
        column = (end_ms // self.interval_ms) % len(self._ends)
        if end_ms < self._ends[column]:
            return
        self._grow(int(positions.max(initial=-1)) + 1)
        self._ends[column] = end_ms
        self._mean[column] = MISSING_ACTIVITY
        self._peak[column] = MISSING_ACTIVITY
        self._samples[column] = 0
        self._mean[column, positions] = mean
        self._peak[column, positions] = peak
        self._samples[column, positions] = np.minimum(samples, _MAX_SAMPLES)

    def reduce(self, now_ms: int, window_ms: int) -> RingWindow:
        """The window that ends now: every interval of which at least a part lies in it, the open one too."""
        rows, open_end_ms = self._rows, now_ms + self.interval_ms
        maximum = np.full(rows, -1, dtype=np.int64)
        total, samples = np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64)
        bad = np.zeros(rows, dtype=np.bool_)
        newest_ms = np.full(rows, -1, dtype=np.int64)
        for column in np.argsort(self._ends).tolist():
            end_ms = int(self._ends[column])
            if end_ms <= max(now_ms - window_ms, 0) or end_ms >= open_end_ms:
                continue
            count = self._samples[column, :rows].astype(np.int64)
            mean, peak = self._mean[column, :rows], self._peak[column, :rows]
            good = (count > 0) & (mean != MISSING_ACTIVITY) & (peak != MISSING_ACTIVITY)
            bad |= (count > 0) & ~good
            newest_ms[count > 0] = end_ms
            total += np.where(good, mean * count, 0)
            samples += np.where(good, count, 0)
            maximum = np.where(good, np.maximum(maximum, peak), maximum)
        seen = samples > 0
        return RingWindow(
            maximum=np.where(seen, maximum, MISSING_ACTIVITY),
            mean=np.where(seen, np.rint(total / np.maximum(samples, 1)), MISSING_ACTIVITY).astype(np.int64),
            samples=samples,
            bad=bad,
            newest_ms=newest_ms,
            span_ms=now_ms - self._oldest_start_ms(now_ms, window_ms),
        )

    def keep(self, positions: Ints) -> None:
        """Only these positions stay, and are 0, 1, 2, ... from now on, in the order given."""
        self._resize(_FIRST_ROWS, positions)
        self._rows = len(positions)

    def _oldest_start_ms(self, now_ms: int, window_ms: int) -> int:
        """Start of the interval that the window begins in."""
        return (now_ms - window_ms) // self.interval_ms * self.interval_ms

    def _grow(self, rows: int) -> None:
        self._rows = max(self._rows, rows)
        if rows > self._mean.shape[1]:
            self._resize(max(rows, 2 * self._mean.shape[1]), slice(None))

    def _resize(self, rows: int, positions: Ints | slice) -> None:
        self._mean = _resized(self._mean[:, positions], rows, MISSING_ACTIVITY)
        self._peak = _resized(self._peak[:, positions], rows, MISSING_ACTIVITY)
        self._samples = _resized(self._samples[:, positions], rows, 0)


def _resized(table: Ints, rows: int, empty: int) -> Ints:
    """A copy with at least so many rows; those beyond the table's are empty."""
    columns, had = table.shape
    grown = np.full((columns, max(rows, had)), empty, dtype=table.dtype)
    grown[:, :had] = table
    return grown
