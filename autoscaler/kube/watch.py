"""Keeps one store equal to the API server's objects of one kind: the asyncio driver of ``reflect``.

It knows sockets, bytes and decoding; it decides nothing (``reflect`` does) and does not know what a store keeps.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, assert_never

import msgspec

from autoscaler.kube.errors import (
    UNREADABLE,
    KubeError,
    Status,
    UnexpectedBody,
    error_from_status,
)
from autoscaler.kube.kinds import EventType, Kind, T, Versioned, WatchEvent
from autoscaler.kube.lines import LineSplitter, slices
from autoscaler.kube.reflect import (
    Apply,
    ListPage,
    ReflectConfig,
    Reflection,
    ResetBegin,
    ResetCommit,
    ResetPage,
    StartWatch,
    Wait,
)
from autoscaler.kube.session import KubeSession

T_contra = TypeVar("T_contra", bound=Versioned, contravariant=True)

_SLICE_BYTES = 256 * 1024
"""Decoded between two looks at the clock: about 2 ms of pods."""
_YIELD_AFTER_S = 0.010
"""The loop gets its turn at least this often, whatever a stream brings."""


class StoreWriter(Protocol[T_contra]):
    """The writing side of a store. Calls come from one task, in order, and must not block.

    A relist fills a side buffer: what readers see changes only at ``commit_relist``. ``begin_relist`` may come again before
    that, the unfinished buffer is then thrown away. ``delete`` may name an object the store never saw.
    """

    def begin_relist(self) -> None:
        """A full list starts."""

    def relist_page(self, items: Sequence[T_contra], /) -> None:
        """Some of its objects."""

    def commit_relist(self, resource_version: str, /) -> None:
        """It is complete: swap it in."""

    def apply(self, obj: T_contra, /) -> None:
        """An object is new or changed."""

    def delete(self, obj: T_contra, /) -> None:
        """An object is gone; its last state is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectorStatus:
    """How a watch is doing, for readiness, metrics and ``doctor``. Times are of the reflector's clock."""

    kind: str
    synced: bool
    """A full list was completed at least once."""
    watching: bool
    """A stream is open now."""
    resource_version: str
    last_event_s: float | None
    """When anything (page, event, bookmark) last arrived."""
    lost_since_s: float | None
    """Since when nothing could be read (no stream, no successful page), None while all is well."""
    events: int
    """Changes handed to the store."""
    stale_events: int
    """Events dropped because something as new was known."""
    relists: int
    """Completed full lists."""
    restarts: Mapping[str, int]
    """Lists and watches begun again, by reason."""
    forbidden: str | None
    """The server's words while it denies us this kind."""
    last_error: str | None


class Reflector(Generic[T]):
    """Lists and watches one kind into one store until cancelled.

    ``run`` returns only by cancellation or by a bug in the store: faults of the server and the network are waited out and
    told in ``status``. An object that cannot be decoded counts as such a fault: the kind is then not read any further and
    says so, since leaving one object out would be a guess about the cluster.
    """

    def __init__(  # noqa: PLR0913 - everything but the first three has a default for use outside tests
        self,
        session: KubeSession,
        kind: Kind[T],
        store: StoreWriter[T],
        *,
        config: ReflectConfig | None = None,
        selectors: Mapping[str, str] | None = None,
        max_line_bytes: int = 32 * 1024 * 1024,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        rng: Callable[[], float] = random.random,
    ) -> None:
        self._session = session
        self._kind = kind
        self._store = store
        self._selectors = dict(selectors or {})
        self._max_line_bytes = max_line_bytes
        self._clock = clock
        self._sleep = sleep
        self._machine: Reflection[T] = Reflection(rng=rng, config=config or ReflectConfig())
        self._synced = asyncio.Event()
        self._events = 0
        self._relists = 0
        self._last_event_s: float | None = None
        self._lost_since_s: float | None = clock()
        self._turn_began_s = clock()

    @property
    def kind(self) -> Kind[T]:
        """The kind it reads."""
        return self._kind

    @property
    def status(self) -> ReflectorStatus:
        """The present state as plain data."""
        machine = self._machine
        return ReflectorStatus(
            kind=self._kind.name,
            synced=machine.synced,
            watching=machine.watching,
            resource_version=machine.resource_version,
            last_event_s=self._last_event_s,
            lost_since_s=self._lost_since_s,
            events=self._events,
            stale_events=machine.stale,
            relists=self._relists,
            restarts=dict(machine.restarts),
            forbidden=machine.forbidden,
            last_error=machine.last_error,
        )

    async def wait_synced(self) -> None:
        """Returns once the first full list is in the store."""
        await self._synced.wait()

    async def run(self) -> None:
        """Do what the machine asks for, for ever."""
        while True:
            command = self._machine.poll(self._clock())
            match command:
                case Wait(delay_s=delay_s):
                    await self._sleep(delay_s)
                case ListPage():
                    await self._list(command)
                case StartWatch():
                    await self._watch(command)
                case _:
                    assert_never(command)

    async def _list(self, command: ListPage) -> None:
        try:
            page = await self._session.list_page(
                self._kind,
                limit=command.limit,
                continue_token=command.continue_token,
                params=self._selectors,
            )
        except KubeError as error:
            self._fail(error)
            return
        # Decoding took the loop for some milliseconds; storing takes some more.
        await self._yield_to_loop()
        for delta in self._machine.receive_page(page, now_s=self._clock()):
            match delta:
                case ResetBegin():
                    self._store.begin_relist()
                case ResetPage(items=items):
                    self._store.relist_page(items)
                case ResetCommit(resource_version=version):
                    self._store.commit_relist(version)
                    self._relists += 1
                    self._synced.set()
                case _:
                    assert_never(delta)
            self._heard()
        await self._yield_to_loop()

    async def _watch(self, command: StartWatch) -> None:
        params = {
            **self._selectors,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": command.resource_version,
            "timeoutSeconds": str(max(1, int(command.timeout_s))),
        }
        lines = LineSplitter(self._max_line_bytes)
        try:
            async with self._session.stream(
                self._kind.path, params, idle_timeout_s=command.idle_timeout_s
            ) as chunks:
                self._machine.watch_opened(now_s=self._clock())
                self._heard()
                self._turn_began_s = self._clock()
                async for chunk in chunks:
                    await self._take(lines.feed(chunk))
        except KubeError as error:
            self._fail(error)
            return
        self._machine.end_stream(clean=lines.pending == 0, now_s=self._clock())
        self._note_loss()

    async def _take(self, complete: bytes) -> None:
        """Decode and store whole lines, letting the loop breathe."""
        for blob in slices(complete, _SLICE_BYTES):
            for events in decode_events(self._kind, blob):
                self._store_changes(events)
            self._heard()
            if self._clock() - self._turn_began_s > _YIELD_AFTER_S:
                await self._yield_to_loop()

    def _store_changes(self, events: Sequence[WatchEvent[T]]) -> None:
        changes = self._machine.receive_events(events)
        store = self._store
        for change in changes:
            if type(change) is Apply:
                store.apply(change.object)
            else:
                store.delete(change.object)
        self._events += len(changes)

    async def _yield_to_loop(self) -> None:
        await asyncio.sleep(0)
        self._turn_began_s = self._clock()

    def _fail(self, error: KubeError) -> None:
        self._machine.fail(error, now_s=self._clock())
        self._note_loss()

    def _note_loss(self) -> None:
        if self._lost_since_s is None:
            self._lost_since_s = self._clock()

    def _heard(self) -> None:
        self._last_event_s = self._clock()
        self._lost_since_s = None


class _RawEvent(msgspec.Struct):
    type: EventType
    object: msgspec.Raw = msgspec.Raw(b"null")


class _Named(msgspec.Struct):
    metadata: dict[str, object] = {}


_raw_event_decoder = msgspec.json.Decoder(_RawEvent)
_status_decoder = msgspec.json.Decoder(Status)
_named_decoder = msgspec.json.Decoder(_Named)


def decode_events(kind: Kind[T], blob: bytes) -> Iterator[Sequence[WatchEvent[T]]]:
    """The events of complete lines, in order. Raises the typed error of an ``ERROR`` event after what came before it.

    All lines are decoded in one call into typed objects. Only when that fails, or an ``ERROR`` is among them, each line is
    looked at in two steps (envelope, then object by type): an error's object is a ``Status``, not one of the kind.
    """
    try:
        events: list[WatchEvent[T]] = kind.event_decoder.decode_lines(blob)
    except UNREADABLE:
        yield from _decode_slowly(kind, blob)
        return
    if any(event.type == "ERROR" for event in events):
        yield from _decode_slowly(kind, blob)
        return
    yield events


def _decode_slowly(kind: Kind[T], blob: bytes) -> Iterator[Sequence[WatchEvent[T]]]:
    for line in blob.split(b"\n"):
        if line.strip():
            yield (_decode_line(kind, line),)


def _decode_line(kind: Kind[T], line: bytes) -> WatchEvent[T]:
    raw: _RawEvent | None = None
    try:
        raw = _raw_event_decoder.decode(line)
        if raw.type != "ERROR":
            return kind.event_decoder.decode(line)
        status = _status_decoder.decode(raw.object)
    except UNREADABLE as error:
        raise UnexpectedBody(200, "", f"unreadable watch event{_whose(raw)}: {error}") from error
    raise error_from_status(status)


def _whose(raw: _RawEvent | None) -> str:
    """Which object could not be read, as far as it can be told."""
    if raw is None:
        return ""
    try:
        metadata = _named_decoder.decode(raw.object).metadata
    except UNREADABLE:
        return ""
    return f" of {metadata.get('namespace', '')}/{metadata.get('name', '')}"
