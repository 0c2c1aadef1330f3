"""List and watch, plain and small: the exporter's eyes on the API server.

Any trouble (a cut, an expired version, a server that is away) ends in a new list after a short pause.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import aiohttp
import msgspec

from devcluster.api_client import ApiClient

_PAUSE_S = 0.2
_WATCH_S = 300
_MAX_LINE_BYTES = 8 * 2**20

T = TypeVar("T")


@dataclass(frozen=True)
class Listed(Generic[T]):
    """The complete state of a kind."""

    objects: list[T]


@dataclass(frozen=True)
class Seen(Generic[T]):
    """An object that is new or changed."""

    object: T


@dataclass(frozen=True)
class Gone(Generic[T]):
    """An object that was deleted."""

    object: T


Event = Listed[T] | Seen[T] | Gone[T]


class _ListMetadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _RawList(msgspec.Struct):
    metadata: _ListMetadata
    items: list[msgspec.Raw]


class _RawEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Versioned(msgspec.Struct):
    metadata: _ListMetadata = msgspec.field(default_factory=_ListMetadata)


async def follow(api: ApiClient, path: str, decode: Callable[[bytes], T]) -> AsyncIterator[Event[T]]:
    """The state of a kind and all its changes, for ever."""
    limits = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=_WATCH_S + 5)
    while True:
        with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError, msgspec.DecodeError):
            async with api.session(limits) as session:
                listed, version = await _list(session, path, decode)
                yield listed
                async for event in _watch(session, path, version, decode):
                    yield event
        await asyncio.sleep(_PAUSE_S)


async def _list(
    session: aiohttp.ClientSession, path: str, decode: Callable[[bytes], T]
) -> tuple[Listed[T], str]:
    async with session.get(path) as answer:
        answer.raise_for_status()
        page = msgspec.json.decode(await answer.read(), type=_RawList)
    return Listed([decode(bytes(item)) for item in page.items]), page.metadata.resource_version


async def _watch(
    session: aiohttp.ClientSession, path: str, version: str, decode: Callable[[bytes], T]
) -> AsyncIterator[Seen[T] | Gone[T]]:
    while True:
        query = {
            "watch": "1",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_WATCH_S),
        }
        async with session.get(path, params=query) as answer:
            answer.raise_for_status()
            async for line in _lines(answer.content):
                event = msgspec.json.decode(line, type=_RawEvent)
                if event.type == "ERROR":
                    return
                version = msgspec.json.decode(event.object, type=_Versioned).metadata.resource_version
                if event.type in {"ADDED", "MODIFIED"}:
                    yield Seen(decode(bytes(event.object)))
                elif event.type == "DELETED":
                    yield Gone(decode(bytes(event.object)))


async def _lines(stream: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    pending = b""
    async for chunk in stream.iter_any():
        *whole, pending = (pending + chunk).split(b"\n")
        for line in whole:
            yield line
        if len(pending) > _MAX_LINE_BYTES:
            raise TimeoutError("a watch line without an end")
