"""What the service's tests hand in instead of the machine: a clock that moves when told, and recorded logs."""

import asyncio
import time
from typing import Any

from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.plan import Action
from autoscaler.model.reasons import Reason

RIGHT_SIZE = Action(
    id="1",
    method="right-size",
    reason=Reason.RIGHT_SIZED,
    lever="template",
    target=WorkloadRef("apps", "Deployment", "team", "web"),
    uid="uid-web",
    resource_version="1",
    resource="nvidia.com/gpu",
    container="main",
    before=2,
    after=1,
    saved_milli_boards=1000,
    because="needs at most 0.9 boards, holds 2",
)


class ManualClock:
    """Time stands still until `advance`; sleepers wake in the order of their time."""

    def __init__(self, start_ms: int = 1_800_000_000_000) -> None:
        self._start_ms = start_ms
        self._now_s = 0.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now_ms(self) -> int:
        return self._start_ms + round(self._now_s * 1000)

    def monotonic_s(self) -> float:
        return self._now_s

    async def sleep(self, seconds: float) -> None:
        waker: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._now_s + seconds, waker))
        await waker

    @property
    def sleeping(self) -> bool:
        """Whether somebody waits for time to pass."""
        return any(not waker.done() for _, waker in self._sleepers)

    async def advance(self, seconds: float) -> None:
        """Moves on, waking everyone whose time comes, and lets the loop settle after each."""
        end_s = self._now_s + seconds
        await settle()
        while due := [item for item in self._sleepers if item[0] <= end_s + 1e-9]:
            first = min(due, key=lambda item: item[0])
            self._sleepers.remove(first)
            self._now_s = max(self._now_s, first[0])
            if not first[1].done():
                first[1].set_result(None)
            await settle()
        self._now_s = end_s


class RecordingLog:
    """Keeps what was logged as (level, event, fields)."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, dict[str, Any]]] = []

    def __getattr__(self, level: str) -> Any:
        return lambda event, **fields: self.lines.append((level, event, fields))

    def events(self) -> list[str]:
        return [event for _, event, _ in self.lines]


async def settle() -> None:
    """Lets everything run that can run without time passing."""
    for _ in range(20):
        await asyncio.sleep(0)


class HastyClock:
    """The machine's clock, at which a second of waiting takes milliseconds."""

    def __init__(self, speed: float = 50.0) -> None:
        self._speed = speed

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        return time.monotonic() * self._speed

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / self._speed)
