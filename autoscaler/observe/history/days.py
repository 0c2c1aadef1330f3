"""What a workload used at most, by day: extremes that leave the history whole days at a time."""

from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[Any]

DAY_MS: Final = 86_400_000
_DTYPES: Final[dict[str, type[np.generic]]] = {
    "busiest_milli": np.uint16,
    "peak_milli": np.uint16,
    "total_milli": np.uint32,
    "total_peak_milli": np.uint32,
    "active_boards": np.uint16,
    "boards": np.uint16,
    "memory_peak_mib": np.uint32,
    "sampled_ms": np.uint32,
    "first_ms": np.int64,
}
NEVER: Final = int(np.iinfo(np.int64).max)
MOST_BOARDS: Final = int(np.iinfo(np.uint16).max)
_LEAST: Final = {"first_ms": NEVER, "boards": MOST_BOARDS}
"""Of these the smallest counts; the value is that of an empty slot."""


class Extremes(msgspec.Struct, frozen=True):
    """By row: the largest of each, but `sampled_ms` adds up, and of `boards` and `first_ms` the smallest counts."""

    busiest_milli: Numbers
    peak_milli: Numbers
    total_milli: Numbers
    total_peak_milli: Numbers
    active_boards: Numbers
    boards: Numbers
    memory_peak_mib: Numbers
    sampled_ms: Numbers
    first_ms: Numbers


class DailyExtremes:
    """One slot a day for each row, in a circle; a day that is older than the circle is left out."""

    def __init__(self, *, history_ms: int) -> None:
        slots = -(-history_ms // DAY_MS) + 1  # the history begins and ends inside a day
        self._days = np.full(slots, -1, dtype=np.int64)
        self._tables = {name: np.zeros((slots, 0), dtype=dtype) for name, dtype in _DTYPES.items()}

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return sum(table.nbytes for table in self._tables.values())

    def resize(self, rows: int) -> None:
        """So many rows; new ones are empty."""
        for name, table in self._tables.items():
            grown = np.full((len(table), rows), _empty(name), dtype=table.dtype)
            had = min(rows, table.shape[1])
            grown[:, :had] = table[:, :had]
            self._tables[name] = grown

    def clear(self, rows: Numbers) -> None:
        """These rows are empty."""
        for name, table in self._tables.items():
            table[:, rows] = _empty(name)

    def add(self, day: int, rows: Numbers, values: Extremes) -> None:
        """What was seen on a day (days since the epoch), each row once."""
        slot = day % len(self._days)
        if day < self._days[slot]:
            return
        if day > self._days[slot]:
            self._days[slot] = day
            for name, table in self._tables.items():
                table[slot] = _empty(name)
        for name, table in self._tables.items():
            had, new = table[slot, rows].astype(np.int64), getattr(values, name)
            merged = had + new if name == "sampled_ms" else _better(name)(had, new)
            if table.dtype != np.int64:
                merged = np.minimum(merged, np.iinfo(table.dtype).max)
            table[slot, rows] = merged

    def over(self, first_day: int) -> Extremes:
        """All days from that one on."""
        slots = self._days >= first_day
        found = {}
        for name, table in self._tables.items():
            part = table[slots].astype(np.int64)
            reduce = np.add if name == "sampled_ms" else _better(name)
            found[name] = reduce.reduce(part, axis=0, initial=_empty(name))
        return Extremes(**found)


def _better(name: str) -> np.ufunc:
    return np.minimum if name in _LEAST else np.maximum


def _empty(name: str) -> int:
    return _LEAST.get(name, 0)
