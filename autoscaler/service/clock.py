"""The process' clocks, as one value that tests replace. Decisions never see it: they get the API server's time."""

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Wall time for what people read, monotonic time for what is measured, and waiting."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""

    def monotonic_s(self) -> float:
        """Seconds that only ever grow."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


class SystemClock:
    """The machine's."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        """Seconds that only ever grow."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)
