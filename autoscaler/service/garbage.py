"""Keeps Python's cycle collector from stopping the event loop.

A full collection walks every live object and keeps all threads waiting: measured 110-150 ms, several times per cycle, with
6,000 pods. Almost nothing here forms reference cycles, so the collector rests while a cycle thinks, what survived is then
taken out of its sight, and only now and then everything is looked at once.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from autoscaler.service.allocator import give_back

FULL_EVERY: Final = 60
"""Cycles between two full collections: an hour by default, far below what one percent of pauses would need."""


class GarbagePolicy:
    """The process' policy; one instance, since the collector is the process'."""

    def __init__(self, *, full_every: int = FULL_EVERY) -> None:
        self._full_every = full_every
        self._cycles = 0

    @contextmanager
    def around_cycle(self) -> Iterator[None]:
        """No collection inside; afterwards the survivors are frozen, or all is collected when it is time.

        What the cycle has freed goes back to the kernel.
        """
        gc.disable()
        try:
            yield
        finally:
            self._cycles += 1
            if self._cycles % self._full_every == 0:
                gc.unfreeze()
                gc.collect()
            gc.freeze()
            gc.enable()
            give_back()

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """Takes what the imports left out of the collector's sight; gives it back as it was."""
        gc.collect()
        gc.freeze()
        try:
            yield
        finally:
            gc.unfreeze()
            gc.enable()
