"""A plain client of the API server for the devcluster's own needs.

It is deliberately not the product's transport: what tests judge must not also be what prepares the tests.
A session lives for one call, so that no event loop is ever tied to a cluster.
"""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from devcluster.errors import ApiError

_LIMITS = aiohttp.ClientTimeout(total=30, sock_connect=5)


@dataclass(frozen=True)
class ApiClient:
    """Requests as one identity."""

    server_url: str
    ca_path: Path
    token: str

    async def get(self, path: str) -> Any:
        """The decoded answer of a GET."""
        return await self._request("GET", path)

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        """The decoded answer of a POST."""
        return await self._request("POST", path, body)

    async def delete(self, path: str) -> Any:
        """The decoded answer of a DELETE."""
        return await self._request("DELETE", path)

    async def is_ready(self) -> bool:
        """Whether the API server says that it is ready; not reachable counts as no."""
        try:
            async with self.session() as session, session.get("/readyz") as answer:
                return answer.status == 200
        except (aiohttp.ClientError, TimeoutError, OSError):
            return False

    @asynccontextmanager
    async def session(self, limits: aiohttp.ClientTimeout = _LIMITS) -> AsyncIterator[aiohttp.ClientSession]:
        """A session with the identity's token, for calls that belong together."""
        context = ssl.create_default_context(cafile=str(self.ca_path))
        async with aiohttp.ClientSession(
            self.server_url,
            connector=aiohttp.TCPConnector(ssl=context, limit=16),
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=limits,
        ) as session:
            yield session

    async def _request(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        async with self.session() as session, session.request(method, path, json=body) as answer:
            content = await answer.json()
            if answer.status >= 400:
                raise ApiError(answer.status, content.get("message", "no message"))
            return content
