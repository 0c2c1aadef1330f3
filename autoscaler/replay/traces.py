"""Recorded load as a stream of steps, in the layout of the public per-pod GPU trace.

A directory holds ``pod_gpu_duty_cycle`` (percent) and ``pod_gpu_memory_used_bytes``, each ``.csv`` or ``.csv.gz`` with the
columns timestamp_s, pod, value. The files are read twice and never held: once for the span of each pod, once step by step.
"""

import csv
import gzip
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import IO, Final, Protocol

DUTY_FILE: Final = "pod_gpu_duty_cycle"
MEMORY_FILE: Final = "pod_gpu_memory_used_bytes"
_COLUMNS: Final = ("timestamp_s", "pod", "value")
_GIB: Final = float(2**30)
_INTERVALS_READ: Final = 2_000
"""Distinct times that are looked at to learn the sample interval."""

Row = tuple[float, str, float]


class TraceError(Exception):
    """A trace cannot be read; the message names the file and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Span:
    """A pod's first and last step with a duty sample, both included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Step:
    """One moment: the samples that were recorded then. A pod without a sample is absent."""

    index: int
    now_s: float
    duty: Mapping[str, float]
    """Share of the board that was busy, 0..1."""
    memory_gib: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Extent:
    """What a trace holds, known before its steps are read."""

    start_s: float
    step_s: float
    spans: Mapping[str, Span]

    @property
    def steps(self) -> int:
        """How many steps the whole trace has."""
        return 1 + max((span.last for span in self.spans.values()), default=-1)


class TraceSource(Protocol):
    """Recorded load from anywhere; both calls may be repeated and give the same."""

    def extent(self) -> Extent:
        """When pods begin and end."""
        ...

    def steps(self) -> Iterator[Step]:
        """Every step in order of time, those without samples too."""
        ...


class DirectoryTraces:
    """The trace in a directory. Raises `TraceError` where it is not readable."""

    def __init__(self, directory: Path) -> None:
        self._duty = _file(directory, DUTY_FILE)
        self._memory = _file(directory, MEMORY_FILE)
        self._extent: Extent | None = None
        self._in_order: dict[Path, bool] = {}

    def extent(self) -> Extent:
        """The spans of all pods with a duty sample; read once."""
        if self._extent is None:
            self._extent = _measured(self._duty)
        return self._extent

    def steps(self) -> Iterator[Step]:
        """The files' rows by step; of two samples in one step the later row counts."""
        extent = self.extent()
        duty = _by_step(self._ordered(self._duty), extent, scale=1 / 100)
        memory = _by_step(self._ordered(self._memory), extent, scale=1 / _GIB)
        duty_at, memory_at = next(duty, None), next(memory, None)
        for index in range(extent.steps):
            seen_duty: dict[str, float] = {}
            seen_memory: dict[str, float] = {}
            if duty_at is not None and duty_at[0] == index:
                seen_duty, duty_at = duty_at[1], next(duty, None)
            if memory_at is not None and memory_at[0] == index:
                seen_memory, memory_at = memory_at[1], next(memory, None)
            yield Step(index, extent.start_s + index * extent.step_s, seen_duty, seen_memory)

    def _ordered(self, path: Path) -> Iterator[Row]:
        """The rows by time. A file that is not in order is sorted in memory: order is what makes streaming possible."""
        if path not in self._in_order:
            self._in_order[path] = all(early[0] <= late[0] for early, late in pairwise(_rows(path)))
        return _rows(path) if self._in_order[path] else iter(sorted(_rows(path), key=itemgetter(0)))


def _file(directory: Path, name: str) -> Path:
    for candidate in (directory / f"{name}.csv.gz", directory / f"{name}.csv"):
        if candidate.is_file():
            return candidate
    raise TraceError(f"{directory}: neither {name}.csv.gz nor {name}.csv is there")


def _measured(path: Path) -> Extent:
    """The first pass: start, sample interval and the span of each pod."""
    first: dict[str, float] = {}
    last: dict[str, float] = {}
    times: set[float] = set()
    for time_s, pod, _ in _rows(path):
        if len(times) < _INTERVALS_READ:
            times.add(time_s)
        first[pod] = min(first.get(pod, time_s), time_s)
        last[pod] = max(last.get(pod, time_s), time_s)
    if not first:
        raise TraceError(f"{path}: no sample has a pod, a time and a value")
    start = min(first.values())
    step = _interval(times)
    spans = {
        pod: Span(round((first[pod] - start) / step), round((last[pod] - start) / step))
        for pod in sorted(first)
    }
    return Extent(start, step, spans)


def _interval(times: Iterable[float]) -> float:
    """The commonest distance between neighbouring times: gaps are longer, but rarer."""
    ordered = sorted(times)
    distances = Counter(later - earlier for earlier, later in pairwise(ordered))
    return min(distances, key=lambda distance: (-distances[distance], distance)) if distances else 60.0


def _by_step(rows: Iterator[Row], extent: Extent, *, scale: float) -> Iterator[tuple[int, dict[str, float]]]:
    """The samples of each step that has any, for pods with a span and within it."""

    def index_of(row: Row) -> int:
        return round((row[0] - extent.start_s) / extent.step_s)

    for index, group in groupby(rows, key=index_of):
        samples: dict[str, float] = {}
        for _, pod, value in group:
            span = extent.spans.get(pod)
            if span is not None and span.first <= index <= span.last:
                samples[pod] = value * scale
        if samples:
            yield index, samples


def _rows(path: Path) -> Iterator[Row]:
    """Every usable row; a row without a pod, a time or a finite value says nothing and is passed over."""
    with _opened(path) as stream:
        try:
            reader = csv.reader(stream)
            header = tuple(next(reader, ()))
            if header != _COLUMNS:
                raise TraceError(
                    f"{path}: the columns are {','.join(header) or 'missing'}, expected {','.join(_COLUMNS)}"
                )
            for number, cells in enumerate(reader, start=2):
                if len(cells) != len(_COLUMNS):
                    raise TraceError(f"{path}:{number}: {len(cells)} cells, expected {len(_COLUMNS)}")
                if not all(cells):
                    continue
                try:
                    time_s, value = float(cells[0]), float(cells[2])
                except ValueError:
                    raise TraceError(f"{path}:{number}: time or value is not a number") from None
                if math.isfinite(time_s) and math.isfinite(value):
                    yield time_s, cells[1], value
        except (OSError, EOFError, UnicodeDecodeError) as error:
            raise TraceError(f"{path}: cannot be read: {error}") from None


def _opened(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8", newline="")
    return path.open("rt", encoding="utf-8", newline="")
