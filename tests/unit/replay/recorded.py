"""Recorded load made to measure: in memory for rules, as files for what reads files."""

import gzip
import io
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from autoscaler.replay.traces import Extent, Span, Step

STEP_S = 57.0
START_S = 1_700_000_000.0
HEADER = "timestamp_s,pod,value"
GIB = 2**30
STORED = Path(__file__).parents[2] / "data" / "backtest"

Values = Sequence[float | None]


class Recorded:
    """A trace in memory: each pod's duty (0..1) and memory from its first step on; None is a missing sample."""

    def __init__(
        self,
        duty: Mapping[str, Values],
        memory_gib: Mapping[str, Values | float] | float = 20.0,
        *,
        begins: Mapping[str, int] | None = None,
    ) -> None:
        self.duty = duty
        self.memory_gib = memory_gib
        self.begins = begins or {}

    def extent(self) -> Extent:
        spans = {
            pod: Span(self.begins.get(pod, 0), self.begins.get(pod, 0) + len(values) - 1)
            for pod, values in sorted(self.duty.items())
        }
        return Extent(START_S, STEP_S, spans)

    def steps(self) -> Iterator[Step]:
        for index in range(self.extent().steps):
            duty: dict[str, float] = {}
            memory: dict[str, float] = {}
            for pod, values in self.duty.items():
                at = index - self.begins.get(pod, 0)
                if not 0 <= at < len(values):
                    continue
                if (seen := values[at]) is not None:
                    duty[pod] = seen
                if (used := self._memory(pod, at)) is not None:
                    memory[pod] = used
            yield Step(index, START_S + index * STEP_S, duty, memory)

    def _memory(self, pod: str, at: int) -> float | None:
        held = self.memory_gib if isinstance(self.memory_gib, int | float) else self.memory_gib[pod]
        return held if isinstance(held, int | float) else held[at]


def write_csv(path: Path, rows: Sequence[str], *, header: str = HEADER) -> Path:
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def stored_rows() -> tuple[list[str], list[str]]:
    """The rows of the trace in tests/data: seven hours of eight pods of every kind that policies treat differently."""
    dice = random.Random(57)
    duty: list[str] = []
    memory: list[str] = []
    for index in range(442):
        now = START_S + index * STEP_S
        for pod, share, gib in _pods(index, dice):
            if share is not None:
                duty.append(f"{now},{pod},{round(100 * share, 1)}")
            memory.append(f"{now},{pod},{float(round(gib * GIB))}")
    return duty, memory


def write_stored(directory: Path) -> None:
    for name, rows in zip(("pod_gpu_duty_cycle", "pod_gpu_memory_used_bytes"), stored_rows(), strict=True):
        text = "\n".join([HEADER, *rows]) + "\n"
        plain = io.BytesIO()
        with gzip.GzipFile(fileobj=plain, mode="wb", mtime=0, filename="") as packed:
            packed.write(text.encode())
        (directory / f"{name}.csv.gz").write_bytes(plain.getvalue())


def _pods(index: int, dice: random.Random) -> Iterator[tuple[str, float | None, float]]:
    hour = index * STEP_S / 3600
    busy = dice.choice((0.3, 0.5, 0.8, 0.97))
    yield "steady", busy, 38.0
    yield "never-worked", 0.0, 16.7
    yield "fell-asleep", (busy / 2 if hour < 2 else 0.0), 30.0
    yield "bursts", (busy if dice.random() < 0.25 else 0.0), 22.0 + 4.0 * dice.random()
    yield "rare", (0.2 if index % 70 == 35 else 0.0), 10.0
    yield "grows", 0.1 * dice.random(), min(40.0, 4.0 + 5.0 * hour)
    yield "gappy", (None if dice.random() < 0.4 else round(0.3 * (1 + math.sin(hour)), 2)), 28.0
    if 150 <= index < 260:
        yield "short-lived", (0.15 if dice.random() < 0.1 else 0.0), 5.0


if __name__ == "__main__":
    STORED.mkdir(parents=True, exist_ok=True)
    write_stored(STORED)
