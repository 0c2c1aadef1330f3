"""A request is sent in time for the lease or not at all, and never outlives it."""

import asyncio
from typing import Any
from urllib.parse import unquote

import msgspec
import pytest

from autoscaler.act import writer as writer_module
from autoscaler.act.contract import AuthorityLostError, Site
from autoscaler.act.requests import Request
from autoscaler.act.writer import Writer
from autoscaler.kube.errors import Forbidden, Unreachable
from autoscaler.model.plan import PodRef

ANYTHING: "msgspec.json.Decoder[Any]" = msgspec.json.Decoder()
PATH = "/api/v1/namespaces/team/pods/a"
PATCH = Request("PATCH", PATH, {"metadata": {"uid": "uid-a"}})


async def test_a_request_gives_up_before_its_lease_ends(scene: Any) -> None:
    scene.api.fall_silent(f"PATCH {PATH}")
    scene.lease.left_s = 0.05
    with pytest.raises(Unreachable) as caught:
        async with asyncio.timeout(2):
            await scene.writer.send(Site.CHANGE, PATCH, ANYTHING)

    assert caught.value.reason == "timeout"


class SlowTurn:
    """A session whose rate limit lets nothing pass for a while."""

    def __init__(self) -> None:
        self.sent = False

    async def write(self, *_: Any, before_send: Any, **__: Any) -> None:
        await asyncio.sleep(0.2)
        before_send()
        self.sent = True


async def test_waiting_for_the_rate_limit_counts_against_the_lease(scene: Any) -> None:
    scene.lease.left_s = 0.05
    slow = SlowTurn()
    with pytest.raises(Unreachable):
        await Writer(slow, scene.lease).send(Site.CHANGE, PATCH, ANYTHING)

    assert not slow.sent


async def test_a_lease_that_ends_while_waiting_stops_the_request(scene: Any) -> None:
    slow = SlowTurn()
    sending = asyncio.create_task(Writer(slow, scene.lease).send(Site.CHANGE, PATCH, ANYTHING))
    await asyncio.sleep(0)
    scene.lease.left_s = 0.0
    with pytest.raises(AuthorityLostError):
        await sending

    assert not slow.sent


async def test_a_probe_sees_answers_of_either_kind_and_no_answer_that_never_came(
    scene: Any, words: Any
) -> None:
    scene.hold(PATH, words.pod("a"))
    await scene.writer.send(Site.CHANGE, PATCH, ANYTHING)
    scene.api.fail(f"PATCH {PATH}", 403, "Forbidden")
    with pytest.raises(Forbidden):
        await scene.writer.send(Site.NOMINATE, PATCH, ANYTHING)
    scene.api.cut(f"PATCH {PATH}")
    with pytest.raises(Unreachable):
        await scene.writer.send(Site.DISOWN, PATCH, ANYTHING)

    assert scene.probed == [
        "before change",
        "after change",
        "before nominate",
        "after nominate",
        "before disown",
    ]


async def test_a_probe_of_the_process_is_used_where_none_is_given(
    scene: Any, words: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(writer_module, "PROBE", lambda site, when: seen.append(f"{when} {site}"))
    scene.hold(PATH, words.pod("a"))
    await Writer(scene.session, scene.lease).send(Site.FENCE, PATCH, ANYTHING)

    assert seen == ["before fence", "after fence"]


async def test_a_pod_of_another_uid_is_not_that_pod(scene: Any, words: Any) -> None:
    scene.hold(PATH, words.pod("a"))

    assert await scene.writer.pod(PodRef("team", "a", "another")) is None
    assert (await scene.writer.pod(PodRef("team", "a", "uid-a"))).node == "node-1"
    assert await scene.writer.pod(PodRef("team", "b", "uid-b")) is None


@pytest.mark.parametrize("name", ["a/b", "a%2Fb", "a?b#c", "~a", "..a", "a b", "ä漢", "a%", "a+b;c=d"])
async def test_whatever_its_name_the_path_reaches_the_server_as_it_was_quoted(scene: Any, name: str) -> None:
    pod = PodRef("team", name, "u")

    assert await scene.writer.pod(pod) is None
    assert [unquote(part) for part in scene.api.raw_paths[0].split("/")] == [*PATH.split("/")[:-1], name]
