"""The list+watch state machine of one kind, without any I/O.

Two house rules, as h11 has them: every change of state lives in this file, and this file does not know who is calling.
The driver asks ``poll`` what to do next, does it, and feeds back what came of it; store deltas come out as values. There is
no clock and no randomness inside: ``now_s`` and ``rng`` are given.

The first list is a consistent one (no ``resourceVersion``), in pages. ``resourceVersion=0`` would be answered from a cache
that may lag behind what we saw before a restart, so we could judge pods that are gone; servers also ignore ``limit``
with it and send a whole cluster in one body. Servers since 1.31 answer consistent lists from their cache, so it is not dear.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeAlias

import msgspec

from autoscaler.kube.backoff import Backoff
from autoscaler.kube.errors import (
    ApiError,
    Forbidden,
    KubeError,
    TooManyRequests,
    Unauthorized,
    UnexpectedBody,
)
from autoscaler.kube.kinds import Page, T, WatchEvent
from autoscaler.kube.versions import Versions, version_number


class OutOfTurnError(RuntimeError):
    """The driver fed something that the machine had not asked for: a bug in the driver."""


@dataclass(frozen=True, kw_only=True)
class ReflectConfig:
    """Numbers of the machine, with the reason for each default."""

    page_size: int = 500
    """What client-go and kube-rs use; about 1.5 MB of pods, decoded in some 5 ms."""
    watch_timeout_s: float = 290.0
    """Below the 300 s at which many proxies cut idle streams; shortened by up to a tenth, so kinds do not align."""
    idle_grace_s: float = 5.0
    """A stream silent for longer than its server-side timeout plus this is a dead socket (kube-rs)."""
    backoff_first_s: float = 0.8
    backoff_cap_s: float = 30.0
    backoff_reset_s: float = 120.0
    """The shape of client-go's and kube-rs' reflectors: doubling from 0.8 s to 30 s, forgotten after two quiet minutes."""
    brief_stream_s: float = 5.0
    """A stream that ends sooner than this counts as a failure, else a server that ends at once is asked in a hot loop."""
    relist_after_failures: int = 5
    """So many failed watches in a row without any progress: our version may be from another history (a restored etcd)."""
    versions_kept: int = 10_000
    """Size of a generation of remembered versions: about 4 MB per kind at most, and far beyond any reordering."""


@dataclass(frozen=True, slots=True)
class ListPage:
    """Do: ask for one page of a consistent list."""

    limit: int
    continue_token: str


@dataclass(frozen=True, slots=True)
class StartWatch:
    """Do: open a watch with bookmarks; treat it as dead when silent for ``idle_timeout_s``."""

    resource_version: str
    timeout_s: float
    idle_timeout_s: float


@dataclass(frozen=True, slots=True)
class Wait:
    """Do: nothing for a while."""

    delay_s: float
    reason: str


Command: TypeAlias = ListPage | StartWatch | Wait


@dataclass(frozen=True, slots=True)
class ResetBegin:
    """Start filling a side buffer; an unfinished one is thrown away."""


@dataclass(frozen=True, slots=True)
class ResetPage(Generic[T]):
    """Put these into the side buffer."""

    items: Sequence[T]


@dataclass(frozen=True, slots=True)
class ResetCommit:
    """The side buffer is complete: readers see it from now on, and nothing of what was before."""

    resource_version: str


class Apply(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """The object is new or changed."""

    object: T


class Delete(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """The object is gone; its last state is given."""

    object: T


Reset: TypeAlias = ResetBegin | ResetPage[T] | ResetCommit
Change: TypeAlias = Apply[T] | Delete[T]


@dataclass(frozen=True, slots=True)
class _Listing:
    """Next is a page; an empty token means the first one."""

    continue_token: str = ""


@dataclass(frozen=True, slots=True)
class _Resuming:
    """Next is a watch from the position."""


@dataclass(frozen=True, slots=True)
class _Watching:
    """A stream is open."""

    opened_s: float
    opened_at: int


_State: TypeAlias = _Listing | _Resuming | _Watching


@dataclass
class Reflection(Generic[T]):
    """List, then watch, for ever.

    Callers may rely on: deltas bring a store to the server's state after any mix of faults; between ``ResetBegin`` and
    ``ResetCommit`` come only pages; an older version of an object never follows a newer one; ``poll`` never asks twice
    without a wait in between when nothing was gained.
    """

    rng: Callable[[], float]
    config: ReflectConfig = field(default_factory=ReflectConfig)
    restarts: Counter[str] = field(default_factory=Counter)
    """Why a list or watch had to be begun again, counted by reason."""
    forbidden: str | None = None
    """The server's words while it denies us the kind, else None."""
    last_error: str | None = None
    """The newest error, until a page or a newer version was read."""
    synced: bool = False
    """Whether a list was ever completed."""
    stale: int = 0
    """Events dropped because something as new was known already."""

    def __post_init__(self) -> None:
        self._state: _State = _Listing()
        self._backoff = Backoff(
            first_s=self.config.backoff_first_s,
            cap_s=self.config.backoff_cap_s,
            reset_s=self.config.backoff_reset_s,
            rng=self.rng,
        )
        self._not_before_s = float("-inf")
        self._wait_reason = ""
        self._list_version = ""
        self._position = -1
        self._position_text = ""
        self._versions = Versions(floor=-1, capacity=self.config.versions_kept)
        self._failed_watches = 0

    @property
    def resource_version(self) -> str:
        """The version up to which everything is known; empty before the first list."""
        return self._position_text

    @property
    def watching(self) -> bool:
        """Whether a stream is open."""
        return isinstance(self._state, _Watching)

    def poll(self, now_s: float) -> Command:
        """What to do now. Not to be asked while a stream is open."""
        if now_s < self._not_before_s:
            return Wait(self._not_before_s - now_s, self._wait_reason)
        match self._state:
            case _Listing(token):
                return ListPage(self.config.page_size, token)
            case _Resuming():
                timeout_s = self.config.watch_timeout_s * (1.0 - 0.1 * self.rng())
                return StartWatch(self._position_text, timeout_s, timeout_s + self.config.idle_grace_s)
            case _Watching():
                raise OutOfTurnError(
                    "a stream is open: feed what it brings before asking for the next command"
                )

    def receive_page(self, page: Page[T], *, now_s: float) -> list[Reset[T]]:
        """A page arrived. The last one commits the relist and makes the machine ready to watch."""
        if not isinstance(self._state, _Listing):
            raise OutOfTurnError("a page arrived that was not asked for")
        meta = page.metadata
        deltas: list[Reset[T]] = []
        if not self._state.continue_token:
            if not meta.resource_version:
                self.fail(UnexpectedBody(200, "", "a list without a resourceVersion"), now_s=now_s)
                return deltas
            # The oldest version of the list is the safe one to resume from, should pages ever disagree.
            self._list_version = meta.resource_version
            deltas.append(ResetBegin())
        deltas.append(ResetPage(page.items or ()))
        self.forbidden = self.last_error = None
        if meta.continue_:
            self._state = _Listing(meta.continue_)
            return deltas
        self._commit()
        deltas.append(ResetCommit(self._list_version))
        return deltas

    def _commit(self) -> None:
        self._position_text = self._list_version
        self._position = version_number(self._list_version)
        self._versions = Versions(floor=self._position, capacity=self.config.versions_kept)
        self._failed_watches = 0
        self._state = _Resuming()
        self.synced = True

    def watch_opened(self, *, now_s: float) -> None:
        """The server accepted the watch."""
        if not isinstance(self._state, _Resuming):
            raise OutOfTurnError("a watch was opened that was not asked for")
        self._state = _Watching(opened_s=now_s, opened_at=self._position)
        self.forbidden = None  # the error stays told until something was really read

    def receive_events(self, events: Iterable[WatchEvent[T]]) -> list[Change[T]]:
        """Lines of the open stream, none of them of type ``ERROR`` (those go to ``fail``)."""
        if not isinstance(self._state, _Watching):
            raise OutOfTurnError("events arrived while no stream is open")
        deltas: list[Change[T]] = []
        versions = self._versions
        for event in events:
            meta = event.object.metadata
            version = version_number(meta.resource_version)
            event_type = event.type
            if event_type != "BOOKMARK":
                key = f"{meta.namespace}/{meta.name}"
                newest = versions.newest(key)
                deleted = event_type == "DELETED"
                # An equal version is a duplicate, except that old servers delete at the version last written.
                if version >= 0 and (version < newest or (version == newest and not deleted)):
                    self.stale += 1
                    continue
                versions.record(key, version)
                deltas.append(Delete(event.object) if deleted else Apply(event.object))
            if version > self._position:
                self._position = version
                self._position_text = meta.resource_version
                self.last_error = None
            elif version < 0 and meta.resource_version:
                self._position_text = meta.resource_version  # not a number: trust the order of arrival
        return deltas

    def end_stream(self, *, clean: bool, now_s: float) -> None:
        """The stream is over: ended by the server at a line's end (clean), or cut."""
        if not isinstance(self._state, _Watching):
            raise OutOfTurnError("no stream is open")
        lived_s = now_s - self._state.opened_s
        self._note_progress(self._state)
        self._state = _Resuming()
        if clean and lived_s >= self.config.brief_stream_s:
            self.restarts["ended"] += 1
            return
        self._back_off("ended_early" if clean else "cut", now_s=now_s)

    def fail(self, error: KubeError, *, now_s: float) -> None:
        """What was asked for did not work, or the open stream brought an ``ERROR`` event or died."""
        self.last_error = str(error)
        self.forbidden = error.message if isinstance(error, Forbidden) else None
        reason = error.label
        if isinstance(error, ApiError) and error.expired:
            reason = "expired"
            self._state = _Listing()
        elif not isinstance(self._state, _Listing):
            self._note_progress(self._state)
            self._failed_watches += _doubts_version(error)
            stuck = self._failed_watches >= self.config.relist_after_failures
            self._state = _Listing() if stuck else _Resuming()
        self._back_off(reason, now_s=now_s, at_least_s=error.retry_after_s or 0.0)

    def _note_progress(self, state: _State) -> None:
        """A stream that moved us forward proves that the server is well: the next failure is a first one."""
        if isinstance(state, _Watching) and self._position > state.opened_at:
            self._failed_watches = 0
            self._backoff.forget()

    def _back_off(self, reason: str, *, now_s: float, at_least_s: float = 0.0) -> None:
        self.restarts[reason] += 1
        self._wait_reason = reason
        self._not_before_s = now_s + max(at_least_s, self._backoff.next_delay_s(now_s))


def _doubts_version(error: KubeError) -> bool:
    """Whether watching on from our version may be what fails: then a relist is the way out.

    So it is when the API server itself refuses in words of its own, or when what it sends from there cannot be read. Outages,
    proxies, overload and RBAC say nothing about the version.
    """
    if not isinstance(error, ApiError) or isinstance(error, Unauthorized | Forbidden | TooManyRequests):
        return False
    return error.reason != "" or isinstance(error, UnexpectedBody)
