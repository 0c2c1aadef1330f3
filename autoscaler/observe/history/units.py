"""From devices to workloads, step by step: the boards of a pod's container add up, the unit that used most counts."""

from collections import Counter
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from autoscaler.model.cluster import WorkloadRef
from autoscaler.observe.history.days import MOST_BOARDS
from autoscaler.observe.history.past import PastOwners
from autoscaler.observe.history.steps import EMPTY, Grid, SourceSteps
from autoscaler.observe.history.workloads import Key, WorkloadSteps
from autoscaler.observe.series import Identity

Numbers: TypeAlias = npt.NDArray[Any]
UnitName: TypeAlias = tuple[str, str, str]
"""Namespace, pod and container."""

_MILLI: Final = 1000
_EPSILON: Final = 1e-6
_HIGHEST: Final = ("load_milli", "busiest_milli", "peak_milli", "active_boards", "memory_peak_mib")
_COLUMNS: Final = (*_HIGHEST, "boards", "sampled_ms", "covered_ms")
_NEARLY_ALL: Final = 0.9
"""A unit that has so much of a step's samples was there for all of it: scrapes are late and lost."""


class UnitSteps(msgspec.Struct, frozen=True):
    """Use by unit and step, as `WorkloadSteps` has it by workload; `devices` are how many the unit has in all.

    `sampled_ms` is what the samples of its best board stand for, `covered_ms` what those of its worst do.
    """

    names: tuple[UnitName, ...]
    devices: Numbers
    load_milli: Numbers
    busiest_milli: Numbers
    peak_milli: Numbers
    active_boards: Numbers
    boards: Numbers
    memory_peak_mib: Numbers
    sampled_ms: Numbers
    covered_ms: Numbers


class Gathering:
    """One stretch of steps: sources are added in the order in which they are preferred.

    A unit's step is taken from the first source that saw all its boards; a later one fills only what is missing.
    `held` are the boards that units were seen with before: a step with fewer is not covered. `left_out` counts series
    that no workload's history has, by why.
    """

    def __init__(
        self, grid: Grid, owners: PastOwners, *, active_floor: float, held: dict[UnitName, int]
    ) -> None:
        self.grid = grid
        self._owners = owners
        self._active_floor = active_floor
        self._held = held
        self._refs: dict[UnitName, WorkloadRef] = {}
        self._sources: list[UnitSteps] = []
        self.left_out: Counter[str] = Counter()

    def add(self, source: SourceSteps) -> None:
        """A further source."""
        units = self._units(source)
        self._held.update(zip(units.names, units.devices.tolist(), strict=True))
        self._sources.append(units)

    def steps(self) -> WorkloadSteps:
        """What was gathered, by workload and container."""
        units = sorted(self._refs)
        merged = self._merged(units)
        keys: list[Key] = sorted({(self._refs[name], name[2]) for name in units})
        where = {key: i for i, key in enumerate(keys)}
        index = np.array([where[self._refs[name], name[2]] for name in units], dtype=np.int64)
        found = {}
        for column in _HIGHEST:
            table = np.zeros((len(keys), self.grid.steps), dtype=np.int64)
            np.maximum.at(table, index, merged[column])
            found[column] = table
        # Of several units each is as much of the history as the others: a young one makes the step no thinner than it is.
        seen, covered = np.zeros((2, len(keys), self.grid.steps), dtype=np.int64)
        np.add.at(seen, index, merged["seen"])
        np.add.at(covered, index, merged["covered_ms"])
        boards = np.full(covered.shape, MOST_BOARDS, dtype=np.int64)
        np.minimum.at(boards, index, np.where(merged["covered_ms"] > 0, merged["boards"], MOST_BOARDS))
        part = merged["sampled_ms"] / self.grid.step_ms
        part = np.where(part >= _NEARLY_ALL, 1.0, part)
        total, total_peak = np.zeros((2, len(keys), self.grid.steps))
        np.add.at(total, index, part * merged["load_milli"])
        np.add.at(total_peak, index, part * merged["peak_milli"])
        return WorkloadSteps(
            keys=tuple(keys),
            ends_ms=self.grid.ends_ms,
            total_milli=np.ceil(total - _EPSILON).astype(np.int64),
            total_peak_milli=np.ceil(total_peak - _EPSILON).astype(np.int64),
            boards=boards,
            covered_ms=covered // np.maximum(seen, 1),
            **found,
        )

    def _merged(self, units: list[UnitName]) -> dict[str, Numbers]:
        """By unit and step, the first source that covers the step; what no source covers still shows what it saw."""
        where = {name: i for i, name in enumerate(units)}
        merged = {
            name: np.zeros((len(units), self.grid.steps), dtype=np.int64) for name in (*_COLUMNS, "seen")
        }
        for source in self._sources:
            index = np.array([where[name] for name in source.names], dtype=np.int64)
            if not len(index):
                continue
            new = source.covered_ms
            take = (merged["covered_ms"][index] == 0) & (new > 0)
            seen = (new > 0) | (source.load_milli > 0) | (source.peak_milli > 0)
            fill = take | ((merged["seen"][index] == 0) & seen)
            for column in _COLUMNS:
                table = merged[column]
                table[index] = np.where(fill, getattr(source, column), table[index])
            merged["seen"][index] |= seen
        return merged

    def _units(self, source: SourceSteps) -> UnitSteps:
        """The source's devices added up by unit."""
        devices = _by_device(source, *self._owned(source))
        units = tuple(sorted({name for name, _ in devices.names}))
        where = {name: i for i, name in enumerate(units)}
        index = np.array([where[name] for name, _ in devices.names], dtype=np.int64)
        good = (devices.mean >= 0) & (devices.peak >= 0) & (devices.count > 0)
        shape = (len(units), self.grid.steps)

        def added(values: Numbers) -> Numbers:
            table = np.zeros(shape)
            np.add.at(table, index, np.where(good, values, 0.0))
            return table

        present = added(np.ones_like(devices.mean)).astype(np.int64)
        before = [self._held.get(name, 0) for name in units]
        held = np.maximum(present.max(axis=1, initial=0), np.array(before, dtype=np.int64))
        samples_ms = np.where(good, np.minimum(devices.count * source.interval_ms, self.grid.step_ms), 0)
        samples_ms = samples_ms.astype(np.int64)
        sampled_ms = np.zeros(shape, dtype=np.int64)
        np.maximum.at(sampled_ms, index, samples_ms)
        covered_ms = np.full(shape, self.grid.step_ms)
        np.minimum.at(covered_ms, index, np.where(good, samples_ms, self.grid.step_ms))
        memory = np.zeros(shape)
        np.maximum.at(memory, index, devices.used_mib)
        complete = (present >= held[:, None]) & (present > 0)
        return UnitSteps(
            names=units,
            devices=held,
            load_milli=_milli(added(devices.mean)),
            busiest_milli=_milli(added(np.maximum(devices.busiest, 0.0))),
            peak_milli=_milli(added(devices.peak)),
            active_boards=added(devices.peak >= self._active_floor).astype(np.int64),
            boards=added(devices.whole[:, None] * np.ones_like(devices.mean)).astype(np.int64),
            memory_peak_mib=np.ceil(memory - _EPSILON).astype(np.int64),
            sampled_ms=sampled_ms,
            covered_ms=np.where(complete, covered_ms, 0),
        )

    def _owned(self, source: SourceSteps) -> tuple[Numbers, list[UnitName]]:
        """The positions that count for a workload, and the unit of each."""
        rows, names = [], []
        seen = (source.count > 0).any(axis=1)
        for row in np.flatnonzero(seen).tolist():
            identity = source.identities[row]
            if _is_void(source, identity):
                continue
            ref = self._owners.of_series(identity, targets=source.targets)
            if not isinstance(ref, WorkloadRef):
                self.left_out[ref] += 1
                continue
            name = (ref.namespace, identity.pod, identity.container)
            self._refs[name] = ref
            rows.append(row)
            names.append(name)
        return np.array(rows, dtype=np.int64), names


class _Devices(msgspec.Struct, frozen=True):
    """A source by unit and device; `EMPTY` where there is no value. `whole` marks boards among slices and shares."""

    names: tuple[tuple[UnitName, str], ...]
    whole: npt.NDArray[np.bool_]
    mean: Numbers
    peak: Numbers
    count: Numbers
    busiest: Numbers
    used_mib: Numbers


def _by_device(source: SourceSteps, rows: Numbers, units: list[UnitName]) -> _Devices:
    """Series of one device and unit, which differ in a label, are one: the highest values count."""
    names = [(unit, source.identities[row].device) for unit, row in zip(units, rows.tolist(), strict=True)]
    devices = tuple(sorted(set(names)))
    where = {name: i for i, name in enumerate(devices)}
    index = np.array([where[name] for name in names], dtype=np.int64)

    def highest(values: Numbers) -> Numbers:
        table = np.full((len(devices), values.shape[1]), EMPTY)
        np.maximum.at(table, index, values[rows])
        return table

    whole = np.ones(len(devices), dtype=np.bool_)
    parts = [source.identities[row].sliced or source.identities[row].share for row in rows.tolist()]
    whole[index[np.array(parts, dtype=np.bool_)]] = False
    return _Devices(
        names=devices,
        whole=whole,
        mean=highest(source.mean),
        peak=highest(source.peak),
        count=highest(source.count),
        busiest=highest(source.busiest),
        used_mib=highest(source.used_mib),
    )


def _is_void(source: SourceSteps, identity: Identity) -> bool:
    """Whether the value is another device's: of the whole board on a slice, or marked so by its labels."""
    by_slice = identity.sliced and source.signal.kind == "util"
    return by_slice or any(mark in source.signal.void for mark in identity.marks)


def _milli(boards: Numbers) -> Numbers:
    """Boards in milli-boards, rounded up: a trace of use is not none."""
    return np.ceil(boards * _MILLI - _EPSILON).astype(np.int64)
