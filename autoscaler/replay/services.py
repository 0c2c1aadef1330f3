"""Recorded request rates of serving workloads, in the layouts of two public traces, at one sample every 30 s.

`servegen`: one CSV a client without a header (window start in s, requests per s, ...) in a folder a model, packed as
`servegen*.tar.xz` or unpacked; the clients of a model are summed and their ten-minute means joined by straight lines.
`azure-llm`: `AzureLLMInferenceTrace_NAME.csv`, one request a row; its tokens are counted per 30 s, and the last, unfinished
count is left out.
"""

import csv
import gzip
import lzma
import math
import tarfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import IO, Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.replay.traces import TraceError

STEP_S: Final = 30
_CLIENT: Final = "*-trace.csv"
_AZURE: Final = "AzureLLMInferenceTrace_"
_FRACTION: Final = 6
"""Digits of a second that a datetime holds; the trace writes seven."""

Rates = NDArray[np.float64]


class Service:
    """One service's load: any unit, one value every `STEP_S` seconds from the first request on."""

    __slots__ = ("load", "name")

    def __init__(self, name: str, load: Rates) -> None:
        self.name = name
        self.load = load


def services_in(directory: Path) -> Iterator[Service]:
    """The services of every trace under a directory, by name; one at a time is held. Raises `TraceError` if there is none."""
    found = False
    for archive in sorted(directory.rglob("servegen*.tar.xz")):
        yield from _models(_packed(archive), archive.parent.name, archive)
        found = True
    for folder in sorted({file.parent for file in directory.rglob(_CLIENT)}):
        name = folder.relative_to(directory).as_posix().lstrip(".") or folder.name
        yield Service(name, _joined(_rates(folder.glob(_CLIENT)), folder))
        found = True
    for file in sorted((*directory.rglob(f"{_AZURE}*.csv"), *directory.rglob(f"{_AZURE}*.csv.gz"))):
        yield Service(f"{file.parent.name}/{file.name.removeprefix(_AZURE).split('.')[0]}", _tokens(file))
        found = True
    if not found:
        raise TraceError(f"{directory}: no servegen*.tar.xz, {_CLIENT} or {_AZURE}*.csv under it")


def _models(clients: Iterable[tuple[str, Iterable[str]]], source: str, archive: Path) -> Iterator[Service]:
    """The archive's models: the sums of all of them fit in memory (a number a window), their clients need not."""
    sums: defaultdict[str, defaultdict[float, float]] = defaultdict(lambda: defaultdict(float))
    for member, lines in clients:
        _add(sums[PurePosixPath(member).parent.as_posix()], lines, f"{archive}:{member}")
    for model in sorted(sums):
        yield Service(f"{source}/{model}", _joined(sums.pop(model), archive))


def _packed(archive: Path) -> Iterator[tuple[str, Iterable[str]]]:
    try:
        with tarfile.open(archive, "r|xz") as members:
            for member in members:
                content = members.extractfile(member) if PurePosixPath(member.name).match(_CLIENT) else None
                if content is not None:
                    yield member.name, content.read().decode().splitlines()
    except (OSError, EOFError, UnicodeDecodeError, lzma.LZMAError, tarfile.TarError) as error:
        raise TraceError(f"{archive}: cannot be read: {error}") from None


def _rates(files: Iterable[Path]) -> dict[float, float]:
    sums: defaultdict[float, float] = defaultdict(float)
    for file in sorted(files):
        with file.open("rt", encoding="utf-8", newline="") as lines:
            _add(sums, lines, str(file))
    return sums


def _add(sums: defaultdict[float, float], lines: Iterable[str], source: str) -> None:
    """Adds one client's rates; a window without a rate adds nothing."""
    try:
        for row in csv.reader(lines):
            start, rate = float(row[0]), float(row[1] or 0)
            if not (math.isfinite(start) and math.isfinite(rate) and rate >= 0):
                raise TraceError(f"{source}: {row[:2]} is not a time and a rate")
            sums[start] += rate
    except (ValueError, IndexError, UnicodeDecodeError) as error:
        raise TraceError(f"{source}: not a client's rates: {error}") from None


def _joined(sums: dict[float, float], source: Path) -> Rates:
    if not sums:
        raise TraceError(f"{source}: it holds no rates")
    starts = sorted(sums)
    times = np.arange(starts[0], starts[-1] + 1, STEP_S, dtype=np.float64)
    joined: Rates = np.interp(times, np.array(starts), np.array([sums[start] for start in starts]))
    return joined


def _tokens(file: Path) -> Rates:
    counts: list[float] = []
    first: datetime | None = None
    try:
        with _opened(file) as lines:
            for row in csv.DictReader(lines):
                seconds, _, fraction = row["TIMESTAMP"].partition(".")
                at = datetime.fromisoformat(f"{seconds}.{fraction[:_FRACTION]:0<{_FRACTION}}")
                first = first or at
                step = int((at - first).total_seconds() // STEP_S)
                if step < len(counts) - 1:
                    raise TraceError(f"{file}: {row['TIMESTAMP']} is out of order")
                counts.extend([0.0] * (step + 1 - len(counts)))
                counts[step] += int(row["ContextTokens"]) + int(row["GeneratedTokens"])
    except (OSError, EOFError, KeyError, TypeError, ValueError) as error:
        raise TraceError(f"{file}: not a trace of requests: {error}") from None
    return np.array(counts[:-1], dtype=np.float64)


def _opened(file: Path) -> IO[str]:
    return gzip.open(file, "rt", encoding="utf-8") if file.suffix == ".gz" else file.open(encoding="utf-8")
