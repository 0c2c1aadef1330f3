"""Waiting for something that a real control plane does in its own time."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

Seen = TypeVar("Seen")
_INTERVAL_S = 0.2


async def eventually(
    look: Callable[[], Awaitable[Seen]],
    holds: Callable[[Seen], bool],
    *,
    what: str,
    timeout_s: float = 60,
) -> Seen:
    """Looks until it holds and returns what was seen then; fails with what was seen last."""
    deadline_s = time.monotonic() + timeout_s
    while not holds(seen := await look()):
        assert time.monotonic() < deadline_s, f"waited {timeout_s:.0f} s for {what}; seen last:\n{seen}"
        await asyncio.sleep(_INTERVAL_S)
    return seen


def at_once(read: Callable[[], Seen]) -> Callable[[], Awaitable[Seen]]:
    """A look at something that needs no waiting."""

    async def look() -> Seen:
        return read()

    return look
