"""The Authorization header, kept fresh.

Tokens rotate under us (projected ServiceAccount tokens each hour, ``tokenFile`` in a kubeconfig, exec plugins), so a source is asked
before every request and told when the server refused what it gave. Blocking reads run in a thread, never in the loop.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from autoscaler.kube.errors import AccessError

REREAD_AFTER_S = 60.0
"""Half of what client-go takes is plenty: kubelets replace tokens at 80 % of their life, at least 2 minutes before the end."""


class Credentials(Protocol):
    """Where the Authorization header comes from."""

    async def authorization(self) -> str | None:
        """The header's present value, None to send none. Raises AccessError when it cannot be read."""

    def invalidate(self) -> None:
        """The server refused the present value: read it again before the next request."""


class FixedCredentials:
    """A value that cannot be read again: nothing (client certificates), or a literal token."""

    def __init__(self, value: str | None = None) -> None:
        self._value = value

    async def authorization(self) -> str | None:
        """The value given."""
        return self._value

    def invalidate(self) -> None:
        """Nothing to do: there is no other value."""


class CachedCredentials:
    """A value from ``read``, asked again after a minute or a refusal. One caller reads, the others wait for it."""

    def __init__(
        self,
        read: Callable[[], Awaitable[str | None]],
        *,
        initial: str | None = None,
        clock: Callable[[], float] = time.monotonic,
        reread_after_s: float = REREAD_AFTER_S,
    ) -> None:
        self._read = read
        self._value = initial
        self._clock = clock
        self._reread_after_s = reread_after_s
        self._read_at_s = clock() if initial is not None else float("-inf")
        self._lock = asyncio.Lock()

    async def authorization(self) -> str | None:
        """The newest value; an old one lives on while a routine re-read fails, since it may still be good."""
        if self._fresh():
            return self._value
        async with self._lock:
            if self._fresh():  # another caller read it while we waited
                return self._value
            try:
                self._value = await self._read()
            except AccessError:
                if self._value is None:
                    raise
            self._read_at_s = self._clock()
        return self._value

    def _fresh(self) -> bool:
        return self._clock() - self._read_at_s < self._reread_after_s

    def invalidate(self) -> None:
        """Forces a read before the next request."""
        self._read_at_s = float("-inf")


def token_file(path: Path, *, clock: Callable[[], float] = time.monotonic) -> CachedCredentials:
    """A bearer token from a file that somebody else replaces."""

    async def read() -> str:
        return await asyncio.to_thread(read_token, path)

    return CachedCredentials(read, clock=clock)


def read_token(path: Path) -> str:
    """The header for the token in this file. Blocking."""
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise AccessError(f"cannot read the token file {path}: {error}") from error
    if not token:
        raise AccessError(f"the token file {path} is empty")
    return f"Bearer {token}"
