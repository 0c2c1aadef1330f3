"""From devices to workloads, step by step: the boards of a pod's container add up, the unit that used most counts."""

from collections.abc import MutableMapping
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from autoscaler.model.evidence import ACTIVITY_SCALE
from autoscaler.observe.history.days import MOST_BOARDS
from autoscaler.observe.history.registry import Registry
from autoscaler.observe.history.steps import Grid, SourceSteps, Table
from autoscaler.observe.history.workloads import WorkloadSteps

Numbers: TypeAlias = npt.NDArray[Any]

_PER_MILLI: Final = ACTIVITY_SCALE // 1000
_EPSILON: Final = 1e-6
_HIGHEST: Final = ("load_milli", "busiest_milli", "peak_milli", "active_boards", "memory_peak_mib")
_COLUMNS: Final = (*_HIGHEST, "boards", "sampled_ms", "covered_ms")
_NEARLY_ALL: Final = 0.9
"""A unit that has so much of a step's samples was there for all of it: scrapes are late and lost."""


class Gathering:
    """One stretch of steps: sources are added in the order in which they are preferred.

    A unit's step is taken from the first source that saw all its boards; a later one fills only what is missing.
    `held` remembers between stretches how many boards units were seen with, by the hash of their names and only where
    there is more than one: a step with fewer is not covered.
    """

    def __init__(
        self, grid: Grid, registry: Registry, *, active_floor: float, held: MutableMapping[int, int]
    ) -> None:
        self.grid = grid
        self._registry = registry
        self._active_floor = active_floor * ACTIVITY_SCALE
        self._held = held
        self._merged = {name: np.zeros((0, grid.steps), dtype=np.int32) for name in (*_COLUMNS, "seen")}

    def add(self, source: SourceSteps) -> None:
        """A further source."""
        unit_of = self._registry.unit_of
        units = len(self._registry.key_of)
        for name, table in self._merged.items():
            self._merged[name] = np.pad(table, ((0, units - len(table)), (0, 0)))
        tables = {
            name: getattr(source, name).rows(len(unit_of))
            for name in ("mean", "peak", "count", "busiest", "used")
        }
        good = (tables["mean"] >= 0) & (tables["peak"] >= 0) & (tables["count"] > 0)
        held = self._boards_held(good, unit_of, units)
        for step in range(self.grid.steps):
            columns = {name: table[:, step] for name, table in tables.items()}
            found = self._unit_step(columns, good[:, step], (unit_of, units), source.interval_ms)
            complete = (found["present"] >= held) & (found["present"] > 0)
            found["covered_ms"] = np.where(complete, found["covered_ms"], 0)
            self._merge(step, found)

    def lacks(self, count: Table) -> bool:
        """Whether a signal with these samples has any that no source before it covers."""
        unit_of, covered = self._registry.unit_of, self._merged["covered_ms"]
        device, step = np.nonzero(count.rows(len(unit_of)) > 0)
        unit = unit_of[device]
        known = unit < len(covered)
        return not known.all() or bool((covered[unit, step] == 0).any())

    def steps(self) -> WorkloadSteps:
        """What was gathered, by workload and container; those of which nothing was seen are left out."""
        merged, registry = self._merged, self._registry
        index, keys = registry.key_of[: len(merged["seen"])], registry.keys
        shape = (len(keys), self.grid.steps)
        found = {}
        for column in _HIGHEST:
            found[column] = np.zeros(shape, dtype=np.int64)
            np.maximum.at(found[column], index, merged[column])
        # Of several units each is as much of the history as the others: a young one makes the step no thinner than it is.
        seen, covered = np.zeros((2, *shape), dtype=np.int64)
        np.add.at(seen, index, merged["seen"])
        np.add.at(covered, index, merged["covered_ms"])
        found["covered_ms"] = covered // np.maximum(seen, 1)
        found["boards"] = np.full(shape, MOST_BOARDS, dtype=np.int64)
        boards = np.where(merged["covered_ms"] > 0, merged["boards"], MOST_BOARDS)
        np.minimum.at(found["boards"], index, boards)
        part = merged["sampled_ms"] / self.grid.step_ms
        part = np.where(part >= _NEARLY_ALL, 1.0, part)
        for name, column in (("total_milli", "load_milli"), ("total_peak_milli", "peak_milli")):
            total = np.zeros(shape)
            np.add.at(total, index, part * merged[column])
            found[name] = np.ceil(total - _EPSILON).astype(np.int64)
        rows = np.flatnonzero((seen > 0).any(axis=1))
        return WorkloadSteps(
            keys=tuple(keys[row] for row in rows.tolist()),
            ends_ms=self.grid.ends_ms,
            **{name: table[rows] for name, table in found.items()},
        )

    def _boards_held(self, good: Numbers, unit_of: Numbers, units: int) -> Numbers:
        """The most boards that each unit was ever seen with at once."""
        names = self._registry.names.tolist()
        held = np.array([self._held.get(name, 0) for name in names], dtype=np.int64)
        for step in range(self.grid.steps):
            held = np.maximum(held, np.bincount(unit_of[good[:, step]], minlength=units))
        self._held.update({names[unit]: int(held[unit]) for unit in np.flatnonzero(held > 1).tolist()})
        return held

    def _unit_step(
        self, columns: dict[str, Numbers], good: Numbers, units: tuple[Numbers, int], interval_ms: int
    ) -> dict[str, Numbers]:
        """One step of a source, its devices added up by unit."""
        unit_of, count = units
        index, step_ms = unit_of[good], self.grid.step_ms

        def milli(values: Numbers) -> Numbers:
            """Milli-boards, rounded up: a trace of use is not none."""
            total = np.bincount(index, weights=np.maximum(values[good], 0), minlength=count)
            return np.ceil(total / _PER_MILLI - _EPSILON)

        def counted(marks: Numbers) -> Numbers:
            return np.bincount(unit_of[good & marks], minlength=count)

        samples_ms = np.minimum(columns["count"][good].astype(np.int64) * interval_ms, step_ms)
        sampled, covered = np.zeros(count, dtype=np.int64), np.full(count, step_ms)
        np.maximum.at(sampled, index, samples_ms)
        np.minimum.at(covered, index, samples_ms)
        memory = np.zeros(count, dtype=np.int64)
        np.maximum.at(memory, unit_of, np.maximum(columns["used"], 0))
        return {
            "present": np.bincount(index, minlength=count),
            "load_milli": milli(columns["mean"]),
            "busiest_milli": milli(columns["busiest"]),
            "peak_milli": milli(columns["peak"]),
            "active_boards": counted(columns["peak"] >= self._active_floor),
            "boards": counted(self._registry.whole),
            "memory_peak_mib": memory,
            "sampled_ms": sampled,
            "covered_ms": covered,
        }

    def _merge(self, step: int, found: dict[str, Numbers]) -> None:
        """Where a source is the first that covers a unit's step, or shows anything of one that none covers."""
        covered, seen = self._merged["covered_ms"][:, step], self._merged["seen"][:, step]
        shows = found["present"] > 0
        fill = ((covered == 0) & (found["covered_ms"] > 0)) | ((seen == 0) & shows)
        for name in _COLUMNS:
            column = self._merged[name][:, step]
            column[fill] = found[name][fill]
        seen[shows] = 1
