# ruff: noqa: PLR0917  # fixtures are asked for by name
"""The driver on real sockets: after every fault the store holds what the server holds."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from autoscaler.kube.credentials import token_file
from autoscaler.kube.kinds import POD
from autoscaler.kube.reflect import ReflectConfig
from autoscaler.kube.session import KubeSession
from autoscaler.kube.watch import Reflector

pytestmark = pytest.mark.contract

PODS = "/api/v1/pods"


@pytest.fixture
def reflect(connect: Any, store: Any, clock: Any) -> Callable[..., Any]:
    @asynccontextmanager
    async def run(
        *, config: dict[str, Any] | None = None, credentials: Any = None, **options: Any
    ) -> AsyncIterator[Reflector[Any]]:
        async with connect(credentials=credentials) as session:
            reflector = Reflector(
                session,
                POD,
                store,
                config=ReflectConfig(**(config or {})),
                clock=clock,
                sleep=clock.sleep,
                rng=lambda: 0.5,
                **options,
            )
            task = asyncio.create_task(reflector.run())
            try:
                yield reflector
                assert not task.done()
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    return run


async def test_a_list_in_pages_and_a_watch_fill_the_store(
    api: Any, answers: Any, reflect: Any, store: Any, story: Any, until: Any
) -> None:
    api.on(PODS, answers.pods("a", token="t"), answers.pods("b"))
    events = (
        story.line("ADDED", story.pod("c", 101)),
        story.line("MODIFIED", story.pod("a", 102)),
        story.line("DELETED", story.pod("b", 103)),
    )
    api.on(PODS, answers.stream(*events), watch=True)
    async with reflect() as reflector:
        await until(lambda: reflector.status.events == 3)

        assert store.visible == {"a": "102", "c": "101"}
        assert reflector.status.synced
        assert reflector.status.watching
        assert reflector.status.resource_version == "103"
        assert reflector.status.lost_since_s is None
    first, second = api.of(watch=False)
    assert dict(first.query) == {"limit": "500"}
    assert dict(second.query) == {"limit": "500", "continue": "t"}


async def test_a_watch_asks_for_bookmarks_and_an_end(
    api: Any, answers: Any, reflect: Any, until: Any
) -> None:
    api.on(PODS, answers.pods(version=100))
    api.on(PODS, answers.stream(), watch=True)
    async with reflect(selectors={"fieldSelector": "spec.nodeName!="}):
        await until(lambda: api.of(watch=True))

    assert dict(api.of(watch=True)[0].query) == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "100",
        "timeoutSeconds": "275",
        "fieldSelector": "spec.nodeName!=",
    }


async def test_readers_see_nothing_of_a_list_that_is_not_complete(
    api: Any, answers: Any, reflect: Any, store: Any, until: Any
) -> None:
    api.on(PODS, answers.pods("a", token="t"), answers.silence())
    async with reflect() as reflector:
        await until(lambda: len(api.requests) == 2)

        assert store.visible == {}
        assert store.buffer == {"a": "100"}
        assert not reflector.status.synced


async def test_an_expired_token_on_page_two_restarts_the_list(
    api: Any, answers: Any, reflect: Any, store: Any
) -> None:
    expired = answers.failure(410, "Expired", message="The provided continue parameter is too old")
    api.on(PODS, answers.pods("old", token="t"), expired, answers.pods("new", version=200))
    api.on(PODS, answers.stream(), watch=True)
    async with reflect() as reflector:
        await reflector.wait_synced()

        assert store.visible == {"new": "200"}
        assert store.begun == 2
        assert store.commits == ["200"]
        assert reflector.status.restarts == {"expired": 1}


@pytest.mark.parametrize("as_status", [True, False], ids=["as status", "as event"])
async def test_an_expired_version_relists(
    api: Any, answers: Any, reflect: Any, store: Any, story: Any, until: Any, as_status: bool
) -> None:
    gone = {"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old"}
    api.on(PODS, answers.pods("a", "b", version=100), answers.pods("b", version=200))
    first = answers.failure(410, "Expired") if as_status else answers.stream(story.line("ERROR", gone))
    api.on(PODS, first, answers.stream(), watch=True)
    async with reflect() as reflector:
        await until(lambda: len(api.of(watch=True)) == 2)

        assert store.visible == {"b": "200"}
        assert store.commits == ["100", "200"]
        assert reflector.status.restarts == {"expired": 1}
        assert reflector.status.relists == 2
    assert api.of(watch=True)[1].query["resourceVersion"] == "200"


async def test_an_error_event_without_410_resumes_without_a_relist(
    api: Any, answers: Any, reflect: Any, store: Any, story: Any, until: Any, clock: Any
) -> None:
    error = {"kind": "Status", "status": "Failure", "code": 500, "reason": "InternalError", "message": "etcd"}
    api.on(PODS, answers.pods(version=100))
    broken = answers.stream(story.line("ADDED", story.pod("a", 101)), story.line("ERROR", error))
    api.on(PODS, broken, answers.stream(), watch=True)
    async with reflect() as reflector:
        await until(lambda: len(api.of(watch=True)) == 2)

        assert reflector.status.restarts == {"server_error": 1}
        assert store.commits == ["100"]
        assert clock.slept == [pytest.approx(0.4)]
    assert api.of(watch=True)[1].query["resourceVersion"] == "101"


async def test_a_bookmark_moves_the_place_to_resume_from_and_one_without_version_does_not(
    api: Any, answers: Any, reflect: Any, story: Any, until: Any
) -> None:
    bookmark = {
        "kind": "Pod",
        "metadata": {"resourceVersion": "777", "creationTimestamp": None},
        "spec": {"containers": None},
    }
    nameless = {"kind": "Pod", "metadata": {"creationTimestamp": None}}
    lines = story.line("BOOKMARK", bookmark), story.line("BOOKMARK", nameless)
    api.on(PODS, answers.pods(version=100))
    api.on(PODS, answers.stream(*lines, end="clean"), answers.stream(), watch=True)
    async with reflect() as reflector:
        await until(lambda: len(api.of(watch=True)) == 2)

        assert reflector.status.events == 0
    assert api.of(watch=True)[1].query["resourceVersion"] == "777"


@pytest.mark.parametrize("end", ["cut", "clean"])
async def test_a_stream_that_stops_in_the_middle_of_a_line_loses_only_that_line(
    api: Any, answers: Any, reflect: Any, store: Any, story: Any, until: Any, end: str
) -> None:
    whole, half = story.line("ADDED", story.pod("a", 101)), story.line("ADDED", story.pod("b", 102))
    api.on(PODS, answers.pods(version=100))
    api.on(PODS, answers.stream(whole, half[:30], end=end), answers.stream(half), watch=True)
    async with reflect() as reflector:
        await until(lambda: reflector.status.events == 2)

        assert store.visible == {"a": "101", "b": "102"}
        assert reflector.status.restarts == {"cut": 1}
    assert api.of(watch=True)[1].query["resourceVersion"] == "101"
    assert len(api.of(watch=False)) == 1


async def test_a_server_that_ends_every_watch_at_once_is_not_asked_in_a_hot_loop(
    api: Any, answers: Any, reflect: Any, until: Any, clock: Any
) -> None:
    api.on(PODS, answers.pods())
    api.on(PODS, answers.stream(end="clean"), watch=True)
    async with reflect():
        await until(lambda: clock.now_s >= 1000.0 + 300.0)

    # Delays are drawn, and the watch goes on while this is looked at: it is the rate that is bounded.
    assert len(api.of(watch=True)) < 0.3 * (clock.now_s - 1000.0)


async def test_a_server_that_refuses_every_list_is_not_asked_in_a_hot_loop(
    api: Any, answers: Any, reflect: Any, until: Any, clock: Any
) -> None:
    api.on(PODS, answers.failure(500, "InternalError"))
    async with reflect():
        await until(lambda: clock.now_s >= 1000.0 + 300.0)

    assert len(api.requests) < 0.3 * (clock.now_s - 1000.0)


async def test_a_line_of_more_than_four_mebibytes_is_read(
    api: Any, answers: Any, reflect: Any, store: Any, story: Any, until: Any
) -> None:
    long = story.line("ADDED", story.pod("big", 101, containers=[{"args": ["x" * (5 * 1024 * 1024)]}]))
    api.on(PODS, answers.pods())
    api.on(PODS, answers.stream(long, story.line("ADDED", story.pod("small", 102))), watch=True)
    async with reflect():
        await until(lambda: store.visible == {"big": "101", "small": "102"})


async def test_a_line_past_the_cap_is_a_fault_that_is_told(
    api: Any, answers: Any, reflect: Any, until: Any
) -> None:
    api.on(PODS, answers.pods())
    api.on(PODS, answers.stream(b"x" * 5000), watch=True)
    async with reflect(max_line_bytes=1000) as reflector:
        await until(lambda: reflector.status.restarts.get("unexpected_body", 0) > 0)

        assert "longer than 1000 bytes" in (reflector.status.last_error or "")


async def test_a_silent_watch_is_taken_for_dead_and_resumed(
    api: Any, answers: Any, reflect: Any, until: Any
) -> None:
    api.on(PODS, answers.pods(version=100))
    api.on(PODS, answers.stream(), watch=True)
    async with reflect(config={"watch_timeout_s": 0.02, "idle_grace_s": 0.03}) as reflector:
        await until(lambda: reflector.status.restarts.get("timeout", 0) > 0)
        await until(lambda: len(api.of(watch=True)) >= 2)

    assert len(api.of(watch=False)) == 1


async def test_a_token_rotated_while_a_watch_runs_is_picked_up_without_a_relist(
    api: Any, answers: Any, reflect: Any, story: Any, until: Any, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("old")

    async def cut_after_rotation(request: Any) -> Any:
        await asyncio.to_thread(token.write_text, "new")
        return await answers.stream(story.line("ADDED", story.pod("a", 101)), end="cut")(request)

    async def only_new_tokens(request: Any) -> Any:
        good = request.headers["Authorization"] == "Bearer new"
        return await (answers.stream() if good else answers.failure(401, "Unauthorized"))(request)

    api.on(PODS, answers.pods())
    api.on(PODS, cut_after_rotation, only_new_tokens, watch=True)
    async with reflect(credentials=token_file(token)) as reflector:
        await until(lambda: len(api.of(watch=True)) == 3 and reflector.status.watching)

        assert reflector.status.restarts == {"cut": 1}
    sent = [request.headers["Authorization"] for request in api.of(watch=True)]
    assert sent == ["Bearer old", "Bearer old", "Bearer new"]
    assert api.of(watch=True)[2].query["resourceVersion"] == "101"
    assert len(api.of(watch=False)) == 1


async def test_a_kind_we_may_not_read_is_told_and_read_as_soon_as_we_may(
    api: Any, answers: Any, reflect: Any, store: Any, until: Any
) -> None:
    words = 'pods is forbidden: User "sa" cannot list resource "pods"'
    denied = answers.failure(403, "Forbidden", message=words)
    granted = asyncio.Event()

    async def answer(request: Any) -> Any:
        return await (answers.pods("a") if granted.is_set() else denied)(request)

    api.on(PODS, answer)
    api.on(PODS, answers.stream(), watch=True)
    async with reflect() as reflector:
        await until(lambda: reflector.status.forbidden)

        assert reflector.status.forbidden == words
        assert not reflector.status.synced

        granted.set()
        await reflector.wait_synced()

        assert reflector.status.forbidden is None
        assert store.visible == {"a": "100"}


async def test_a_status_with_a_200_during_a_relist_does_not_empty_the_store(
    api: Any, answers: Any, reflect: Any, store: Any, until: Any
) -> None:
    not_a_list = answers.failure(500, "InternalError", as_status=200)
    api.on(PODS, answers.pods("a"), not_a_list)
    api.on(PODS, answers.failure(410, "Expired"), watch=True)
    async with reflect() as reflector:
        await until(lambda: reflector.status.restarts.get("server_error", 0) >= 2)

        assert store.visible == {"a": "100"}
        assert reflector.status.lost_since_s is not None


async def test_an_object_that_cannot_be_read_stops_the_kind_and_is_named(
    api: Any, answers: Any, reflect: Any, store: Any, story: Any, until: Any
) -> None:
    broken = story.line("MODIFIED", story.pod("bad", 102, containers="many"))
    api.on(PODS, answers.pods(version=100))
    api.on(
        PODS, answers.stream(story.line("ADDED", story.pod("a", 101)), broken), answers.silence(), watch=True
    )
    async with reflect() as reflector:
        await until(lambda: len(api.of(watch=True)) == 2)

        assert "n/bad" in (reflector.status.last_error or "")
        assert store.visible == {"a": "101"}
    assert api.of(watch=True)[1].query["resourceVersion"] == "101"


async def test_a_flood_of_events_leaves_the_loop_its_turns(
    api: Any, answers: Any, connect: Any, store: Any, story: Any, until: Any
) -> None:
    flood = b"".join(story.line("MODIFIED", story.pod(f"p{i % 50}", 101 + i)) for i in range(20_000))
    api.on(PODS, answers.pods(version=100))
    api.on(PODS, answers.stream(flood), watch=True)
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += store.visible != {}

    async with connect() as session:
        reflector = Reflector(session, POD, store)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(reflector.run()), group.create_task(count_turns())]
            await until(lambda: reflector.status.events == 20_000)
            for task in tasks:
                task.cancel()

    assert turns > 5


async def test_one_session_serves_many_kinds_at_once(
    api: Any, answers: Any, connect: Any, until: Any
) -> None:
    api.on(PODS, answers.pods("a"))
    api.on(PODS, answers.stream(), watch=True)

    async def watch_until_open(session: KubeSession, store: Any) -> None:
        reflector = Reflector(session, POD, store)
        task = asyncio.create_task(reflector.run())
        await until(lambda: reflector.status.watching)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async with connect() as session, asyncio.TaskGroup() as group:
        for _ in range(13):
            group.create_task(watch_until_open(session, NoStore()))

    assert len(api.of(watch=True)) == 13


class NoStore:
    """Keeps nothing."""

    def begin_relist(self) -> None: ...

    def relist_page(self, items: Any, /) -> None: ...

    def commit_relist(self, resource_version: str, /) -> None: ...

    def apply(self, obj: Any, /) -> None: ...

    def delete(self, obj: Any, /) -> None: ...
