"""A pause stops all acting, is kept until somebody lifts it, and a pause that cannot be read is a pause."""

import pytest
from act_worlds import CONFIG_MAPS, NAMESPACE, NOW_MS, FakeServer, fail_once

from autoscaler.act.control import NAME, pause, read_control, resume
from autoscaler.kube.errors import Conflict, Forbidden

PATH = f"{CONFIG_MAPS}/{NAME}"


async def paused(server: FakeServer) -> str:
    return await read_control(server, NAMESPACE)


async def put_to_sleep(server: FakeServer, *, by: str = "alice", because: str = "a migration") -> str:
    return await pause(server, NAMESPACE, by=by, because=because, now_ms=NOW_MS)


def stored(server: FakeServer, text: str | None) -> None:
    data = {} if text is None else {"paused": text}
    server.put(PATH, {"metadata": {"name": NAME, "uid": "uid-control"}, "data": data})


async def test_nothing_there_is_no_pause() -> None:
    server = FakeServer()
    assert await paused(server) == ""
    stored(server, None)
    assert await paused(server) == ""
    stored(server, "")
    assert await paused(server) == ""


async def test_a_pause_says_who_and_when_and_why() -> None:
    server = FakeServer()
    words = "paused by alice at 2027-01-15T08:00:00+00:00: a migration"
    assert await put_to_sleep(server) == words
    assert await paused(server) == words


async def test_a_pause_without_words_is_a_pause() -> None:
    assert "paused by somebody at 2027" in await put_to_sleep(FakeServer(), by="", because="")


async def test_the_first_pause_stands() -> None:
    server = FakeServer()
    await put_to_sleep(server)
    assert "alice" in await put_to_sleep(server, by="bob")


async def test_resume_lets_it_go_on_and_says_whether_it_was_paused() -> None:
    server = FakeServer()
    assert not await resume(server, NAMESPACE)
    assert server.sent == []
    await put_to_sleep(server)
    assert await resume(server, NAMESPACE)
    assert await paused(server) == ""
    assert not await resume(server, NAMESPACE)


@pytest.mark.parametrize("text", ["yes", "{}", "[" * 50_000, '{"by":1,"at":"x"}', '"quoted"', "null"])
async def test_a_pause_that_cannot_be_read_is_a_pause_and_can_be_lifted(text: str) -> None:
    server = FakeServer()
    stored(server, text)
    words = await paused(server)
    assert "paused, in words that cannot be read" in words
    assert len(words) < 150
    assert await put_to_sleep(server) == words, "it is not written over"
    assert await resume(server, NAMESPACE)
    assert await paused(server) == ""


async def test_words_are_bounded() -> None:
    assert len(await put_to_sleep(FakeServer(), because="x" * 10_000)) == 300


async def test_a_server_that_does_not_say_is_a_pause() -> None:
    server = FakeServer()

    async def denied(*_args: object, **_more: object) -> None:
        raise Forbidden(403, "Forbidden", "configmaps is forbidden")

    server.get_json = denied  # type: ignore[method-assign]
    assert "whether it is paused cannot be read: 403" in await paused(server)


async def test_whatever_else_is_on_the_object_is_kept() -> None:
    server = FakeServer()
    item = {"metadata": {"name": NAME, "uid": "u", "annotations": {"owner": "helm"}}, "data": {"other": "1"}}
    server.put(PATH, item)
    await put_to_sleep(server)
    await resume(server, NAMESPACE)
    assert server.objects[PATH]["metadata"]["annotations"] == {"owner": "helm"}
    assert server.objects[PATH]["data"] == {"other": "1"}


async def test_a_pause_that_somebody_else_wrote_meanwhile_is_not_written_over() -> None:
    server = FakeServer()
    stored(server, None)

    def bob_is_faster(_verb: str, _path: str) -> None:
        server.before = lambda _verb, _path: None
        stored(server, '{"by":"bob","at":"now"}')

    server.before = bob_is_faster
    assert await put_to_sleep(server) == "paused by bob at now"


async def test_two_that_pause_at_once_make_one_object() -> None:
    server = FakeServer()

    def bob_is_faster(_verb: str, _path: str) -> None:
        server.before = lambda _verb, _path: None
        stored(server, '{"by":"bob","at":"now"}')

    server.before = bob_is_faster
    assert await put_to_sleep(server) == "paused by bob at now"


async def test_what_cannot_be_written_is_said() -> None:
    server = FakeServer()
    fail_once(Forbidden(403, "Forbidden", "may not"), on=CONFIG_MAPS)(server)
    with pytest.raises(Forbidden):
        await put_to_sleep(server)


async def test_a_conflict_again_and_again_is_said() -> None:
    server = FakeServer()
    stored(server, None)

    def always(_verb: str, _path: str) -> None:
        raise Conflict(409, "Conflict", "modified")

    server.before = always
    with pytest.raises(Conflict):
        await put_to_sleep(server)
