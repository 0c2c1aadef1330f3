"""Keeps the C library's allocator from sitting on memory that a cycle has given back.

Answers of the metrics store are tens of megabytes and live for a second. glibc learns from the first ones that it frees to
take such blocks from its heaps instead of asking the kernel, and gives every thread that decodes heaps of its own; what lives
longer then pins what is free between (measured with 64,000 boards: 100 of 577 MiB resident were free).
"""

import ctypes
from collections.abc import Callable
from typing import Final

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8
"""The parameters' numbers in glibc's malloc.h."""
_BLOCK_BYTES: Final = 128 * 1024
"""Where glibc begins; a threshold that was set is never moved by it."""


def _switch(name: str) -> Callable[..., int] | None:
    """A function of the C library; None where it has none of that name."""
    return getattr(ctypes.CDLL(None), name, None)


def tune_allocator() -> bool:
    """One heap, and large blocks straight from the kernel and back; False where the C library has no such switches.

    For the whole process, to be called before threads allocate.
    """
    mallopt = _switch("mallopt")
    if mallopt is None:
        return False
    wanted = {_ARENA_MAX: 1, _MMAP_THRESHOLD: _BLOCK_BYTES, _TRIM_THRESHOLD: _BLOCK_BYTES}
    return all(mallopt(parameter, value) == 1 for parameter, value in wanted.items())


def give_back() -> bool:
    """Returns what is free in the heap to the kernel, a millisecond's work; False where there was nothing to return."""
    malloc_trim = _switch("malloc_trim")
    return malloc_trim is not None and malloc_trim(0) == 1
