"""Answers of range queries as tables: one row for each position, one column for each step."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from autoscaler.observe.answers import Answer
from autoscaler.observe.matrix import MatrixAnswer
from autoscaler.observe.profiles import Profile, Signal
from autoscaler.observe.series import Identity, Positions

Numbers: TypeAlias = npt.NDArray[Any]

Place: TypeAlias = Callable[[Sequence[bytes]], Numbers]
"""Gives labels, as the store wrote them, their positions."""

EMPTY: Final = -1.0
"""A step without a usable value."""
_TOLERANCE: Final = 1e-6


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


class Points(msgspec.Struct, frozen=True):
    """One answer: values by position and column, and how many values could not be used."""

    positions: Numbers
    columns: Numbers
    values: Numbers
    dropped: int

    def table(self, rows: int, grid: Grid) -> Numbers:
        """Dense, `EMPTY` where there is no value; of several values of a cell the highest counts."""
        found = np.full((rows, grid.steps), EMPTY)
        np.maximum.at(found.reshape(-1), self.positions * grid.steps + self.columns, self.values)
        return found


NO_POINTS: Final = Points(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0), 0)


def points_of(answer: MatrixAnswer, place: Place, grid: Grid, *, full: float, clamp: bool = False) -> Points:
    """The usable values of an answer; raises `AnswerError`.

    What is not a number, infinite, negative or over `full` is not used; with `clamp` what is over `full` is full.
    A store may move the grid by less than a step: each point counts for the step whose end is nearest.
    """
    rows, columns, values = [], [], []
    dropped = 0
    for block in answer.blocks():
        row = np.repeat(place(block.labels).astype(np.int64), np.diff(block.offsets))
        column = (block.times_ms - grid.first_ms + grid.step_ms // 2) // grid.step_ms
        value = np.where(np.isfinite(block.values), block.values, EMPTY)
        if clamp:
            value = np.minimum(value, full)
        inside = (column >= 0) & (column < grid.steps)
        usable = (value >= 0) & (value <= full * (1 + _TOLERANCE))
        dropped += int((inside & ~usable).sum())
        take = inside & usable
        rows.append(row[take])
        columns.append(column[take])
        values.append(value[take])
    if not rows:
        return NO_POINTS
    return Points(np.concatenate(rows), np.concatenate(columns), np.concatenate(values), dropped)


def placed(positions: Positions, labels: Sequence[bytes]) -> Numbers:
    """The positions of series by their labels, new ones added; raises `AnswerError`."""
    rows = b",".join(b'{"metric":%b,"value":[0,"0"]}' % text for text in labels)
    return positions.collect(Answer(kind="vector", result=b"[%b]" % rows)).positions


class SourceSteps(msgspec.Struct, frozen=True):
    """One signal of a profile over a grid; the tables have a row for each of `identities`.

    Activity in shares of 1, memory in MiB; `interval_ms` is the time that one sample stands for, 0 where not known.
    """

    profile: Profile
    signal: Signal
    interval_ms: int
    identities: tuple[Identity, ...]
    targets: frozenset[str]
    mean: Numbers
    peak: Numbers
    count: Numbers
    busiest: Numbers
    used_mib: Numbers
