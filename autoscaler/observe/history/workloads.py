"""Histories of workloads: kept by group, kind, namespace, name and container, whatever their pods are called today."""

from collections.abc import Collection
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.history import WorkloadHistory
from autoscaler.observe.history.days import DAY_MS, MOST_BOARDS, NEVER, DailyExtremes, Extremes
from autoscaler.observe.history.histogram import HALF_LIFE_MS, DecayingHistograms

Numbers: TypeAlias = npt.NDArray[Any]
Key: TypeAlias = tuple[WorkloadRef, str]
"""A workload and the name of its container."""

FORGET_AFTER_MS: Final = 3_600_000
"""A workload that was deleted and is made anew within the hour is the same one: GitOps tools replace objects."""
_FIRST_ROWS: Final = 64


class WorkloadSteps(msgspec.Struct, frozen=True):
    """Use by workload and step: arrays of one row for each of `keys`, one column for each step.

    A step is named by its end in `ends_ms`. `load_milli` is the mean load of the unit that used most,
    `busiest_milli` its highest mean over an evidence window that ends with the step. `total_milli` and `total_peak_milli` are of
    all units together. `boards` is how many the unit with the fewest has.
    `covered_ms` is the time that samples stand for, 0 where nothing was seen; the other values of such a step do not count.
    """

    keys: tuple[Key, ...]
    ends_ms: Numbers
    load_milli: Numbers
    busiest_milli: Numbers
    peak_milli: Numbers
    total_milli: Numbers
    total_peak_milli: Numbers
    active_boards: Numbers
    boards: Numbers
    memory_peak_mib: Numbers
    covered_ms: Numbers


class WorkloadHistories:
    """The only state of the long history. One writer; readers get what `reduced` returns, which never changes.

    Steps may come in any order, but each step of a workload only once: nothing here can tell a step from its repetition.
    """

    def __init__(self, *, history_ms: int, step_ms: int, half_life_ms: int = HALF_LIFE_MS) -> None:
        self._history_ms = history_ms
        self._step_ms = step_ms
        self._rows: dict[Key, int] = {}
        self._free: list[int] = []
        self._capacity = 0
        self._gone_ms: dict[WorkloadRef, int] = {}
        self._histograms = DecayingHistograms(half_life_ms=half_life_ms)
        self._days = DailyExtremes(history_ms=history_ms)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def nbytes(self) -> int:
        """Bytes of all columns, spare rows included."""
        return self._histograms.nbytes + self._days.nbytes

    def add(self, steps: WorkloadSteps) -> None:
        """Counts every step that was seen."""
        if not steps.keys:
            return
        rows = np.array([self._row(key) for key in steps.keys], dtype=np.int64)
        seen = steps.covered_ms > 0
        row, step = np.nonzero(seen)
        self._histograms.add(
            rows[row],
            steps.load_milli[seen],
            weights=np.minimum(steps.covered_ms[seen] / self._step_ms, 1.0),
            at_ms=steps.ends_ms[step],
        )
        days = (steps.ends_ms - 1) // DAY_MS
        for day in np.unique(days).tolist():
            of_day = days == day
            self._days.add(day, rows, _extremes(steps, of_day, self._step_ms))

    def drop_missing(self, live: Collection[WorkloadRef], *, now_ms: int) -> int:
        """Forgets workloads that have not been among the live ones for an hour; returns how many rows came free."""
        here = {ref for ref, _ in self._rows}
        gone = {ref: self._gone_ms.get(ref, now_ms) for ref in here.difference(live)}
        forgotten = {ref for ref, since_ms in gone.items() if now_ms - since_ms >= FORGET_AFTER_MS}
        self._gone_ms = {ref: since_ms for ref, since_ms in gone.items() if ref not in forgotten}
        keys = [key for key in self._rows if key[0] in forgotten]
        freed = [self._rows.pop(key) for key in keys]
        if freed:
            self._histograms.clear(np.array(freed))
            self._days.clear(np.array(freed))
            self._free.extend(freed)
        return len(freed)

    def reduced(self, percentile: float, *, now_ms: int) -> tuple[WorkloadHistory, ...]:
        """Every workload with history, sorted; days that lie before the history window do not count."""
        load = self._histograms.percentile(percentile)
        found = self._days.over((now_ms - self._history_ms) // DAY_MS)
        rows = []
        for (ref, container), row in sorted(self._rows.items()):
            sampled_ms = int(found.sampled_ms[row])
            if not sampled_ms:
                continue
            rows.append(
                WorkloadHistory(
                    ref=ref,
                    container=container,
                    load_milli=int(load[row]),
                    busiest_milli=int(found.busiest_milli[row]),
                    peak_milli=int(found.peak_milli[row]),
                    total_milli=int(found.total_milli[row]),
                    total_peak_milli=int(found.total_peak_milli[row]),
                    active_boards=int(found.active_boards[row]),
                    boards=int(found.boards[row]),
                    memory_peak_mib=int(found.memory_peak_mib[row]),
                    history_ms=min(sampled_ms, self._history_ms),
                    first_ms=int(found.first_ms[row]),
                )
            )
        return tuple(rows)

    def _row(self, key: Key) -> int:
        row = self._rows.get(key)
        if row is None:
            if not self._free:
                self._grow()
            row = self._rows[key] = self._free.pop()
        return row

    def _grow(self) -> None:
        before, self._capacity = self._capacity, max(_FIRST_ROWS, self._capacity * 3 // 2)
        self._histograms.resize(self._capacity)
        self._days.resize(self._capacity)
        self._free.extend(range(self._capacity - 1, before - 1, -1))


def _extremes(steps: WorkloadSteps, of_day: Numbers, step_ms: int) -> Extremes:
    """One day's values of every row of a steps."""
    covered_ms = np.minimum(steps.covered_ms[:, of_day], step_ms)
    seen, starts_ms = covered_ms > 0, steps.ends_ms[of_day] - step_ms

    def most(values: Numbers) -> Numbers:
        found: Numbers = np.where(seen, values[:, of_day], 0).max(axis=1, initial=0)
        return found

    def fewest(values: Numbers, none: int) -> Numbers:
        found: Numbers = np.where(seen, values, none).min(axis=1, initial=none)
        return found

    return Extremes(
        busiest_milli=most(steps.busiest_milli),
        peak_milli=most(steps.peak_milli),
        total_milli=most(steps.total_milli),
        total_peak_milli=most(steps.total_peak_milli),
        active_boards=most(steps.active_boards),
        boards=fewest(steps.boards[:, of_day], MOST_BOARDS),
        memory_peak_mib=most(steps.memory_peak_mib),
        sampled_ms=covered_ms.sum(axis=1),
        first_ms=fewest(starts_ms[None, :], NEVER),
    )
