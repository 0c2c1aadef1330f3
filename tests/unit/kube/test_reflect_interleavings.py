"""Any interleaving of an API server's answers and faults leaves the store in the server's state.

The model server keeps its whole history, so at every step what readers see must be its state at exactly one version.
"""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from autoscaler.kube import wire
from autoscaler.kube.errors import (
    Forbidden,
    Gone,
    KubeError,
    ServerError,
    TooManyRequests,
    UnexpectedBody,
    Unreachable,
)
from autoscaler.kube.kinds import Page, WatchEvent
from autoscaler.kube.reflect import (
    Apply,
    Delete,
    ListPage,
    ReflectConfig,
    Reflection,
    ResetBegin,
    ResetCommit,
    ResetPage,
    StartWatch,
    Wait,
)

pytestmark = pytest.mark.unit

KEYS = ("a", "b", "c", "d")
Row = tuple[int, str, str]


class ModelServer:
    """A history of versions, of which the old part may be compacted away."""

    def __init__(self) -> None:
        self.version = 100
        self.compacted = 0
        self.history: list[Row] = []

    def change(self, key: str, *, delete: bool, skip: int) -> None:
        exists = key in self.state_at(self.version)
        if delete and not exists:
            return
        self.version += 1 + skip  # other kinds use versions up, too
        event_type = "DELETED" if delete else "MODIFIED" if exists else "ADDED"
        self.history.append((self.version, event_type, key))

    def state_at(self, version: int) -> dict[str, str]:
        state: dict[str, str] = {}
        for at, event_type, key in self.history:
            if at > version:
                break
            if event_type == "DELETED":
                del state[key]
            else:
                state[key] = str(at)
        return state

    def after(self, version: int) -> list[Row]:
        return [row for row in self.history if row[0] > version]

    def page(self, *, limit: int, token: str) -> Page[wire.Pod]:
        version, offset = (int(part) for part in token.split(":")) if token else (self.version, 0)
        if token and version < self.compacted:
            raise Gone(410, "Expired", "The provided continue parameter is too old")
        rows = sorted(self.state_at(version).items())
        end = offset + limit
        return Page(
            kind="PodList",
            metadata=wire.ListMeta(
                resource_version=str(version), continue_=f"{version}:{end}" if end < len(rows) else ""
            ),
            items=[pod(key, at) for key, at in rows[offset:end]] or None,
        )


class SwapStore:
    """What readers see, and a side buffer while a relist runs."""

    def __init__(self) -> None:
        self.visible: dict[str, str] = {}
        self.buffer: dict[str, str] | None = None

    def take(self, delta: object) -> None:
        match delta:
            case ResetBegin():
                self.buffer = {}
            case ResetPage(items=items):
                assert self.buffer is not None
                self.buffer.update({item.metadata.name: item.metadata.resource_version for item in items})
            case ResetCommit():
                assert self.buffer is not None
                self.visible, self.buffer = self.buffer, None
            case Apply(object=obj):
                assert self.buffer is None, "a change in the middle of a relist"
                self.visible[obj.metadata.name] = obj.metadata.resource_version
            case Delete(object=obj):
                assert self.buffer is None, "a change in the middle of a relist"
                self.visible.pop(obj.metadata.name, None)
            case _:
                raise AssertionError(delta)


def pod(key: str, version: str) -> wire.Pod:
    return wire.Pod(metadata=wire.ObjectMeta(name=key, namespace="n", resource_version=version))


def event(row: Row) -> WatchEvent[wire.Pod]:
    version, event_type, key = row
    return WatchEvent(type=event_type, object=pod(key, str(version)))  # type: ignore[arg-type]


FAULTS: tuple[KubeError, ...] = (
    Gone(410, "Expired", "too old resource version"),
    ServerError(500, "InternalError", "etcdserver: leader changed"),
    ServerError(504, "Timeout", "Too large resource version"),
    ServerError(502, "", "bad gateway"),
    TooManyRequests(429, "TooManyRequests", "try later", retry_after_s=7.0),
    Forbidden(403, "Forbidden", "pods is forbidden"),
    UnexpectedBody(200, "", "unreadable"),
    Unreachable("cut", "reset by peer"),
    Unreachable("timeout", "silent"),
)


class Interleavings(RuleBasedStateMachine):
    """The driver's part is played by the rules: they do what the machine asks for, or fail at it."""

    @initialize(draws=st.lists(st.floats(0.0, 1.0, exclude_max=True), min_size=1, max_size=5))
    def begin(self, draws: list[float]) -> None:
        self.now_s = 1000.0
        self.server = ModelServer()
        for key in KEYS:
            self.server.change(key, delete=False, skip=0)
        self.store = SwapStore()
        self.sent = 0
        self.draws = draws
        self.machine: Reflection[wire.Pod] = Reflection(
            rng=self.draw, config=ReflectConfig(page_size=1, versions_kept=2)
        )

    def draw(self) -> float:
        self.draws.append(self.draws.pop(0))
        return self.draws[-1]

    def command(self) -> ListPage | StartWatch | Wait:
        return self.machine.poll(self.now_s)

    def watching(self) -> bool:
        return self.machine.watching

    def feed(self, *rows: Row) -> None:
        for delta in self.machine.receive_events([event(row) for row in rows]):
            self.store.take(delta)

    @rule(key=st.sampled_from(KEYS), delete=st.booleans(), skip=st.integers(0, 2))
    def cluster_changes(self, key: str, delete: bool, skip: int) -> None:
        self.server.change(key, delete=delete, skip=skip)

    @rule(back=st.integers(0, 4))
    def server_compacts(self, back: int) -> None:
        self.server.compacted = max(self.server.compacted, self.server.version - back)

    @rule(seconds=st.sampled_from((0.3, 2.0, 30.0, 200.0)))
    def time_passes(self, seconds: float) -> None:
        self.now_s += seconds

    @precondition(lambda self: not self.watching())
    @rule()
    def request_is_answered(self) -> None:
        match self.command():
            case Wait(delay_s=delay_s):
                self.now_s += delay_s
            case ListPage(limit=limit, continue_token=token):
                try:
                    page = self.server.page(limit=limit, token=token)
                except Gone as error:
                    self.machine.fail(error, now_s=self.now_s)
                    return
                for delta in self.machine.receive_page(page, now_s=self.now_s):
                    self.store.take(delta)
            case StartWatch(resource_version=version):
                if int(version) < self.server.compacted:
                    self.machine.fail(Gone(410, "Gone", "gone"), now_s=self.now_s)
                    return
                self.machine.watch_opened(now_s=self.now_s)
                self.sent = int(version)

    @precondition(lambda self: not self.watching())
    @rule()
    def watch_opens_and_says_gone(self) -> None:
        command = self.command()
        if isinstance(command, StartWatch) and int(command.resource_version) < self.server.compacted:
            self.machine.watch_opened(now_s=self.now_s)
            self.machine.fail(Gone(410, "Expired", "too old resource version"), now_s=self.now_s)

    @precondition(lambda self: not self.watching())
    @rule(error=st.sampled_from(FAULTS))
    def request_fails(self, error: KubeError) -> None:
        if not isinstance(self.command(), Wait):
            self.machine.fail(error, now_s=self.now_s)

    @precondition(lambda self: self.watching())
    @rule(count=st.integers(1, 4))
    def events_arrive(self, count: int) -> None:
        rows = self.server.after(self.sent)[:count]
        self.feed(*rows)
        self.sent = max([self.sent, *(row[0] for row in rows)])

    @precondition(lambda self: self.watching())
    @rule(data=st.data())
    def something_old_arrives_again(self, data: st.DataObject) -> None:
        old = [row for row in self.server.history if row[0] <= self.sent]
        if old:
            self.feed(*data.draw(st.lists(st.sampled_from(old), max_size=3)))

    @precondition(lambda self: self.watching())
    @rule(with_version=st.booleans())
    def bookmark_arrives(self, with_version: bool) -> None:
        if self.server.after(self.sent):
            return
        self.sent = self.server.version if with_version else self.sent
        version = str(self.sent) if with_version else ""
        bookmark: WatchEvent[wire.Pod] = WatchEvent(type="BOOKMARK", object=pod("", version))
        assert self.machine.receive_events([bookmark]) == []

    @precondition(lambda self: self.watching())
    @rule(clean=st.booleans())
    def stream_ends(self, clean: bool) -> None:
        self.machine.end_stream(clean=clean, now_s=self.now_s)

    @precondition(lambda self: self.watching())
    @rule(error=st.sampled_from(FAULTS))
    def stream_fails(self, error: KubeError) -> None:
        self.machine.fail(error, now_s=self.now_s)

    @invariant()
    def readers_see_the_cluster_as_it_was_at_one_version(self) -> None:
        if not self.machine.synced:
            assert self.store.visible == {}
            return
        assert self.store.visible == self.server.state_at(int(self.machine.resource_version))

    @invariant()
    def what_is_remembered_stays_small(self) -> None:
        assert len(self.machine._versions) <= 2 * 2 + 1

    def teardown(self) -> None:
        """When the faults stop, so does the difference."""
        for _ in range(100):
            if self.watching():
                self.events_arrive(100)
                break
            self.request_is_answered()

        assert self.watching()
        assert self.store.visible == self.server.state_at(self.server.version)


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
