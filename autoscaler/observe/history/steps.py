"""Answers of range queries as tables: one row for each device, one column for each step."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from autoscaler.model.evidence import ACTIVITY_SCALE
from autoscaler.observe.matrix import Block, MatrixAnswer
from autoscaler.observe.profiles import Memory, Signal

Numbers: TypeAlias = npt.NDArray[Any]
Place: TypeAlias = Callable[[Sequence[bytes]], Numbers]
"""Gives labels, as the store wrote them, their rows; below zero where a series has none."""

EMPTY: Final = -1
"""A step without a usable value."""
_TOLERANCE: Final = 1e-6
_MAX_MIB: Final = 16 * 1024 * 1024
_MAX_COUNT: Final = 1e9
_FIRST_ROWS: Final = 256


class Grid(msgspec.Struct, frozen=True):
    """Steps of `step_ms`, each named by its end; the first ends at `first_ms`, a multiple of the step."""

    first_ms: int
    step_ms: int
    steps: int

    @property
    def last_ms(self) -> int:
        """End of the last step."""
        return self.first_ms + (self.steps - 1) * self.step_ms

    @property
    def ends_ms(self) -> Numbers:
        """All ends, ascending."""
        return self.first_ms + np.arange(self.steps, dtype=np.int64) * self.step_ms


class Measure(msgspec.Struct, frozen=True):
    """What the values of an answer are: those over `limit` are none, or with `clamp` the limit itself.

    As integers they are multiplied by `factor` and rounded, with `up` to the next higher one.
    """

    limit: float
    factor: float = 1.0
    clamp: bool = False
    up: bool = False


COUNT: Final = Measure(_MAX_COUNT)


def activity_of(signal: Signal) -> Measure:
    """A signal's values, in 1/10,000."""
    return Measure(float(signal.full), ACTIVITY_SCALE / signal.full, clamp=signal.over == "clamp")


def memory_of(memory: Memory) -> Measure:
    """A profile's memory, in MiB."""
    return Measure(float(_MAX_MIB * memory.per_mib), 1 / memory.per_mib, up=True)


class Table:
    """Integers by row and step, `EMPTY` where there is no value; of several values of a cell the highest counts."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._values = np.full((_FIRST_ROWS, grid.steps), EMPTY, dtype=np.int32)
        self.dropped = 0

    def read(self, answer: MatrixAnswer, place: Place, measure: Measure) -> None:
        """Adds an answer; raises `AnswerError`.

        What is not a number, infinite, negative or over the limit is counted in `dropped`. A store may move the grid by
        less than a step: each point counts for the step whose end is nearest.
        """
        for block in answer.blocks():
            self._add(block, place(block.labels).astype(np.int64), measure)

    def rows(self, count: int) -> Numbers:
        """The first rows; those that nothing was read of are empty."""
        self._grow(count)
        return self._values[:count]

    def _add(self, block: Block, rows: Numbers, measure: Measure) -> None:
        grid = self._grid
        row = np.repeat(rows, np.diff(block.offsets))
        column = (block.times_ms - grid.first_ms + grid.step_ms // 2) // grid.step_ms
        value = np.where(np.isfinite(block.values), block.values, EMPTY)
        if measure.clamp:
            value = np.minimum(value, measure.limit)
        inside = (row >= 0) & (column >= 0) & (column < grid.steps)
        usable = (value >= 0) & (value <= measure.limit * (1 + _TOLERANCE))
        self.dropped += int((inside & ~usable).sum())
        take = inside & usable
        scaled = value[take] * measure.factor
        numbers = np.ceil(scaled - _TOLERANCE) if measure.up else np.rint(scaled)
        self._grow(int(rows.max(initial=-1)) + 1)
        at = row[take] * grid.steps + column[take]
        np.maximum.at(self._values.reshape(-1), at, numbers.astype(np.int32))

    def _grow(self, rows: int) -> None:
        had = len(self._values)
        if rows > had:
            grown = np.full((max(rows, 2 * had), self._grid.steps), EMPTY, dtype=np.int32)
            grown[:had] = self._values
            self._values = grown


class SourceSteps(msgspec.Struct, frozen=True):
    """One signal of a profile over a grid: activity in 1/10,000, samples, memory in MiB.

    `busiest` is the mean over the evidence window that ends with a step. `interval_ms` is the time that one sample stands
    for, 0 where not known.
    """

    interval_ms: int
    mean: Table
    peak: Table
    count: Table
    busiest: Table
    used: Table
