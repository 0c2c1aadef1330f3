"""Small integers by the hash of what they stand for: 12 bytes an entry where a dict takes a hundred.

Hashes are Python's own, of 64 bits and different in every process: among a million entries two fall together once in ten
million processes.
"""

from collections.abc import Hashable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[Any]

MISSING: Final = -1


class HashIndex:
    """Numbers from 0 by hash, in sorted columns. Whole blocks are looked up and added at once."""

    def __init__(self) -> None:
        self._hashes = np.empty(0, dtype=np.int64)
        self._numbers = np.empty(0, dtype=np.int32)

    def __len__(self) -> int:
        return len(self._hashes)

    def find(self, hashes: Numbers) -> Numbers:
        """The number of each hash, `MISSING` where it is not known."""
        if not len(self._hashes):
            return np.full(len(hashes), MISSING, dtype=np.int64)
        at = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        return np.where(self._hashes[at] == hashes, self._numbers[at], MISSING).astype(np.int64)

    def unknown(self, hashes: Numbers) -> Numbers:
        """The places in `hashes` where each one that is not known comes first."""
        missing = np.flatnonzero(self.find(hashes) == MISSING)
        return missing[np.sort(np.unique(hashes[missing], return_index=True)[1])]

    def number(self, hashes: Numbers) -> Numbers:
        """The number of each hash; new ones get the next numbers, in the order in which they come first."""
        fresh = hashes[self.unknown(hashes)]
        order = np.argsort(fresh)
        at = np.searchsorted(self._hashes, fresh[order])
        numbers = (len(self) + order).astype(np.int32)
        self._hashes = np.insert(self._hashes, at, fresh[order])
        self._numbers = np.insert(self._numbers, at, numbers)
        return self.find(hashes)


def hashed(values: Sequence[Hashable]) -> Numbers:
    """The hashes of values."""
    return np.array([hash(value) for value in values], dtype=np.int64)
