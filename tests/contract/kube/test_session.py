"""Every call ends in a value or a typed error, whatever the other side does."""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import stamina

from autoscaler.kube.connection import keepalive_socket
from autoscaler.kube.credentials import FixedCredentials, token_file
from autoscaler.kube.errors import (
    AccessError,
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    KubeError,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
    UnexpectedBody,
    Unreachable,
)
from autoscaler.kube.kinds import POD
from autoscaler.kube.session import KubeSession, RequestRecord

pytestmark = pytest.mark.contract

PODS = "/api/v1/pods"
ANYTHING: "msgspec.json.Decoder[Any]" = msgspec.json.Decoder()


async def read_stream(session: KubeSession, seen: list[bytes]) -> None:
    async with session.stream(PODS, idle_timeout_s=0.05) as chunks:
        async for chunk in chunks:
            seen.append(chunk)  # noqa: PERF401 - what came before a fault counts


ASK: dict[str, Callable[[KubeSession], Awaitable[Any]]] = {
    "get": lambda session: session.get_json(PODS, None, ANYTHING),
    "list": lambda session: session.list_page(POD, limit=1),
    "post": lambda session: session.post(PODS, {}, ANYTHING),
    "stream": lambda session: read_stream(session, []),
}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (401, Unauthorized),
        (403, Forbidden),
        (404, NotFound),
        (409, Conflict),
        (410, Gone),
        (422, Invalid),
        (429, TooManyRequests),
        (500, ServerError),
        (502, ServerError),
        (503, ServerError),
        (504, ServerError),
    ],
)
@pytest.mark.parametrize("how", ASK.keys())
async def test_an_http_error_is_typed_in_every_way_of_asking(
    api: Any, answers: Any, connect: Any, code: int, expected: type[ApiError], how: str
) -> None:
    api.on(PODS, answers.failure(code, "Why", message="words"))
    async with connect() as session:
        with pytest.raises(ApiError) as caught:
            await ASK[how](session)

    assert type(caught.value) is expected
    assert (caught.value.status, caught.value.reason, caught.value.message) == (code, "Why", "words")


async def test_a_200_that_carries_a_failure_is_that_failure(api: Any, answers: Any, connect: Any) -> None:
    api.on(PODS, answers.failure(403, "Forbidden", as_status=200))
    async with connect() as session:
        with pytest.raises(Forbidden):
            await session.list_page(POD, limit=1)
        with pytest.raises(Forbidden):
            await session.get_json(PODS, None, ANYTHING)


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "Status", "status": "Success"},
        {"kind": "Status", "message": "x" * 100_000},
        {"kind": "NodeList", "metadata": {"resourceVersion": "1"}, "items": []},
        {"metadata": {"resourceVersion": "1"}, "items": []},
        {"kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": [{}]},
        [],
        None,
    ],
    ids=["success", "large status", "other kind", "no kind", "pod without metadata", "array", "null"],
)
async def test_a_200_that_is_not_the_list_asked_for_is_never_an_empty_cluster(
    api: Any, answers: Any, connect: Any, body: object
) -> None:
    api.on(PODS, answers.json(body))
    async with connect() as session:
        with pytest.raises(UnexpectedBody):
            await session.list_page(POD, limit=1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<html>login</html>",
        '{"kind":"PodList","items":[',
        "\x00",
        '{"kind":"PodList","x":' + "[" * 200_000,
        '{"kind":"PodList","items":[{"metadata":{"x":' + "[" * 200_000 + "]" * 200_000 + "}}]}",
        '{"kind":"PodList","items":[{"metadata":{"generation":1e400}}]}',
    ],
    ids=["empty", "html", "half", "nul", "deep", "deep object", "no number"],
)
async def test_a_200_that_is_no_json_is_an_unexpected_body(
    api: Any, answers: Any, connect: Any, text: str
) -> None:
    api.on(PODS, answers.text(text))
    async with connect() as session:
        with pytest.raises(UnexpectedBody, match="unreadable answer"):
            await session.list_page(POD, limit=1)


async def test_an_object_with_a_number_that_no_api_server_has_is_named(
    api: Any, answers: Any, connect: Any
) -> None:
    good = {"metadata": {"name": "a", "namespace": "n"}}
    ports = [{"containerPort": 2**70}]
    bad = {"metadata": {"name": "b", "namespace": "n"}, "spec": {"containers": [{"ports": ports}]}}
    api.on(PODS, answers.json({"kind": "PodList", "metadata": {}, "items": [good, bad]}))
    async with connect() as session:
        with pytest.raises(UnexpectedBody, match=r"containerPort., which is n/b"):
            await session.list_page(POD, limit=1)


async def test_a_list_is_retried_only_if_asked_for(api: Any, answers: Any, connect: Any) -> None:
    api.on(PODS, answers.failure(503), answers.pods(version=5))
    stamina.set_testing(True, attempts=3)
    try:
        async with connect() as session:
            with pytest.raises(ServerError):
                await session.list_page(POD, limit=1)
            api.on(PODS, answers.failure(429), answers.failure(500), answers.pods(version=5))
            page = await session.list_page(POD, limit=1, retry=True)
    finally:
        stamina.set_testing(False)

    assert page.metadata.resource_version == "5"


async def test_a_list_whose_items_are_null_is_empty(api: Any, answers: Any, connect: Any) -> None:
    api.on(PODS, answers.pods(version=5))
    async with connect() as session:
        page = await session.list_page(POD, limit=1)

    assert page.items is None
    assert page.metadata.resource_version == "5"


async def test_a_page_is_asked_for_with_its_limit_and_token(api: Any, answers: Any, connect: Any) -> None:
    api.on(PODS, answers.pods())
    async with connect() as session:
        await session.list_page(
            POD, limit=7, continue_token="a+b/c=", params={"fieldSelector": "spec.nodeName!="}
        )

    assert dict(api.requests[0].query) == {
        "limit": "7",
        "continue": "a+b/c=",
        "fieldSelector": "spec.nodeName!=",
    }


async def test_an_eviction_refused_by_a_budget_is_not_overload(api: Any, answers: Any, connect: Any) -> None:
    path = "/api/v1/namespaces/n/pods/p/eviction"
    details = {"causes": [{"reason": "DisruptionBudget", "message": "needs 2"}]}
    api.on(path, answers.failure(429, "TooManyRequests", details=details))
    async with connect() as session:
        with pytest.raises(TooManyRequests) as caught:
            await session.post(path, {}, ANYTHING)

    assert caught.value.from_disruption_budget
    assert len(api.requests) == 1


async def test_overload_says_when_to_come_back(api: Any, answers: Any, connect: Any) -> None:
    api.on(PODS, answers.text("Too many requests", status=429, headers={"Retry-After": "3"}))
    async with connect() as session:
        with pytest.raises(TooManyRequests) as caught:
            await session.list_page(POD, limit=1)

    assert not caught.value.from_disruption_budget
    assert caught.value.retry_after_s == 3.0


async def test_a_silent_server_times_out(api: Any, answers: Any, connect: Any) -> None:
    api.on(PODS, answers.silence())
    async with connect(limits={"read_timeout_s": 0.05}) as session:
        with pytest.raises(Unreachable) as caught:
            await session.list_page(POD, limit=1)

    assert caught.value.reason == "timeout"


async def test_an_answer_that_drips_for_ever_times_out_as_a_whole(
    api: Any, answers: Any, connect: Any
) -> None:
    api.on(PODS, answers.stream(b'{"kind":'))
    async with connect(limits={"total_timeout_s": 0.05}) as session:
        with pytest.raises(Unreachable) as caught:
            await session.list_page(POD, limit=1)

    assert caught.value.reason == "timeout"


async def test_a_stream_silent_beyond_its_limit_times_out(api: Any, answers: Any, connect: Any) -> None:
    api.on(PODS, answers.stream(b"first\n"))
    seen: list[bytes] = []
    async with connect() as session:
        with pytest.raises(Unreachable) as caught:
            await read_stream(session, seen)

    assert caught.value.reason == "timeout"
    assert seen == [b"first\n"]


async def test_a_body_cut_in_the_middle_is_a_cut(api: Any, answers: Any, connect: Any) -> None:
    api.on(PODS, answers.stream(b'{"kind":"PodList"', end="cut"))
    async with connect() as session:
        with pytest.raises(Unreachable) as caught:
            await session.list_page(POD, limit=1)

    assert caught.value.reason == "cut"


async def test_nobody_listening_is_refused(connect: Any) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    async with connect(server=f"http://127.0.0.1:{port}") as session:
        with pytest.raises(Unreachable) as caught:
            await session.list_page(POD, limit=1)

    assert caught.value.reason == "refused"


async def test_a_server_without_tls_behind_https_is_a_tls_fault_and_not_retried(
    api: Any, connect: Any
) -> None:
    records: list[RequestRecord] = []
    async with connect(server=api.url.replace("http:", "https:"), on_request=records.append) as session:
        with pytest.raises(Unreachable) as caught:
            await session.get_json(PODS, None, ANYTHING)

    assert caught.value.reason == "tls"
    assert [record.outcome for record in records] == ["tls"]


async def test_redirects_are_not_followed_since_the_token_is_for_one_host(
    api: Any, answers: Any, connect: Any
) -> None:
    api.on(PODS, answers.text("", status=302, headers={"Location": f"{api.url}/elsewhere"}))
    async with connect(credentials=FixedCredentials("Bearer t")) as session:
        with pytest.raises(UnexpectedBody, match="redirected to"):
            await session.list_page(POD, limit=1)

    assert len(api.requests) == 1


async def test_an_answer_larger_than_the_cap_is_not_held(api: Any, answers: Any, connect: Any) -> None:
    api.on(PODS, answers.stream(*[b"x" * 1000] * 100))
    async with connect(limits={"max_body_bytes": 10_000}) as session:
        with pytest.raises(UnexpectedBody, match="larger than 10000 bytes"):
            await session.list_page(POD, limit=1)


async def test_a_proxy_in_the_environment_is_ignored(
    api: Any, answers: Any, connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    api.on(PODS, answers.pods())
    async with connect() as session:
        await session.list_page(POD, limit=1)


async def test_requests_say_who_we_are_and_what_we_take(api: Any, answers: Any, connect: Any) -> None:
    api.on(PODS, answers.pods())
    async with connect(credentials=FixedCredentials("Bearer secret")) as session:
        await session.list_page(POD, limit=1)
    headers = api.requests[0].headers

    assert headers["User-Agent"].startswith("gpu-autoscaler/")
    assert headers["Authorization"] == "Bearer secret"
    assert headers["Accept-Encoding"] == "identity"


async def test_a_passing_fault_of_a_get_is_retried(api: Any, answers: Any, connect: Any) -> None:
    api.on(
        PODS,
        answers.failure(503),
        answers.stream(b"{", end="cut"),
        answers.failure(429),
        answers.json({"a": 1}),
    )
    async with connect() as session:
        value = await session.get_json(PODS, None, ANYTHING)

    assert value == {"a": 1}
    assert session.request_count == 4


async def test_a_get_is_given_up_after_four_attempts(api: Any, answers: Any, connect: Any) -> None:
    api.on(PODS, answers.failure(503))
    async with connect() as session:
        with pytest.raises(ServerError):
            await session.get_json(PODS, None, ANYTHING)

    assert len(api.requests) == 4


@pytest.mark.parametrize("code", [401, 403, 404, 409, 410, 422])
async def test_an_answer_is_not_asked_for_again(api: Any, answers: Any, connect: Any, code: int) -> None:
    api.on(PODS, answers.failure(code))
    async with connect() as session:
        with pytest.raises(ApiError):
            await session.get_json(PODS, None, ANYTHING)

    assert len(api.requests) == (2 if code == 401 else 1)


async def test_a_post_is_sent_once(api: Any, answers: Any, connect: Any) -> None:
    api.on(PODS, answers.failure(503))
    async with connect() as session:
        with pytest.raises(ServerError):
            await session.post(PODS, {"a": 1}, ANYTHING)

    assert api.bodies == [{"a": 1}]


@pytest.mark.parametrize(
    ("error", "wait"),
    [
        (TooManyRequests(429, retry_after_s=2.0), 2.0),
        (ServerError(503, retry_after_s=600.0), False),
        (ServerError(503), True),
        (Unreachable("cut", ""), True),
        (NotFound(404), False),
    ],
    ids=["named", "too long to wait here", "unnamed", "network", "answer"],
)
async def test_the_wait_before_a_retry_is_the_servers_where_it_names_one(
    connect: Any, error: KubeError, wait: float
) -> None:
    async with connect() as session:
        assert session._retry_wait(error) == wait


async def test_a_rotated_token_file_is_read_again_after_a_401(
    api: Any, answers: Any, connect: Any, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("old\n")
    api.on(PODS, answers.failure(401, "Unauthorized"), answers.pods())
    credentials = token_file(token)
    assert await credentials.authorization() == "Bearer old"
    token.write_text("new\n")
    async with connect(credentials=credentials) as session:
        await session.list_page(POD, limit=1)

    assert [request.headers["Authorization"] for request in api.requests] == ["Bearer old", "Bearer new"]


async def test_a_token_file_is_read_again_each_minute_without_being_refused_first(
    clock: Any, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    credentials = token_file(token, clock=clock)
    await credentials.authorization()
    token.write_text("new")

    assert await credentials.authorization() == "Bearer old"

    clock.now_s += 61.0

    assert await credentials.authorization() == "Bearer new"


async def test_a_token_file_that_vanishes_for_a_moment_costs_nothing(clock: Any, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("good")
    credentials = token_file(token, clock=clock)
    await credentials.authorization()
    token.unlink()
    clock.now_s += 61.0

    assert await credentials.authorization() == "Bearer good"


@pytest.mark.parametrize("content", [None, "", " \n"])
async def test_a_token_file_that_never_had_a_token_is_an_access_error(
    tmp_path: Path, content: str | None
) -> None:
    token = tmp_path / "token"
    if content is not None:
        token.write_text(content)

    with pytest.raises(AccessError):
        await token_file(token).authorization()


async def test_reads_wait_for_their_turn_and_writes_do_not_wait_for_reads(
    api: Any, answers: Any, connect: Any
) -> None:
    api.on(PODS, answers.pods())
    async with connect(limits={"reads_burst": 1, "reads_per_s": 0.001}) as session:
        await session.list_page(POD, limit=1)
        await session.post(PODS, {}, ANYTHING)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(session.list_page(POD, limit=1), 0.05)

    assert [request.method for request in api.requests] == ["GET", "POST"]


async def test_the_servers_clock_is_known_from_its_answers(
    api: Any, answers: Any, connect: Any, clock: Any
) -> None:
    api.on(PODS, answers.json({}, headers={"Date": "Mon, 30 Nov 2026 21:54:00 GMT"}))
    async with connect(clock=clock) as session:
        assert session.server_time_ms() is None

        await session.get_json(PODS, None, ANYTHING)
        clock.now_s += 90.0

        assert session.server_time_ms() == 1_796_075_640_500 + 90_000


async def test_the_date_of_an_error_counts_too_and_a_bad_one_changes_nothing(
    api: Any, answers: Any, connect: Any, clock: Any
) -> None:
    api.on(
        PODS,
        answers.json({}, status=403, headers={"Date": "Mon, 30 Nov 2026 21:54:00 GMT"}),
        answers.json({}, headers={"Date": "yesterday"}),
    )
    async with connect(clock=clock) as session:
        with pytest.raises(Forbidden):
            await session.get_json(PODS, None, ANYTHING)
        await session.get_json(PODS, None, ANYTHING)

        assert session.server_time_ms() == 1_796_075_640_500


async def test_every_exchange_is_told_to_the_hook(api: Any, answers: Any, connect: Any) -> None:
    records: list[RequestRecord] = []
    api.on(PODS, answers.failure(503), answers.json({}))
    async with connect(on_request=records.append) as session:
        await session.get_json(PODS, None, ANYTHING)

    assert [(record.verb, record.path, record.outcome) for record in records] == [
        ("GET", PODS, "503"),
        ("GET", PODS, "200"),
    ]


async def test_an_error_of_the_reader_is_not_taken_for_one_of_the_network(
    api: Any, answers: Any, connect: Any
) -> None:
    api.on(PODS, answers.stream(b"x"))
    async with connect() as session:
        with pytest.raises(FileNotFoundError):
            async with session.stream(PODS, idle_timeout_s=5.0):
                raise FileNotFoundError


async def test_a_session_that_was_not_opened_says_so(connect: Any) -> None:
    async with connect() as session:
        pass
    with pytest.raises(RuntimeError, match="async with"):
        await session.list_page(POD, limit=1)


def test_sockets_notice_a_peer_that_vanished() -> None:
    address = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", 1))
    with keepalive_socket(address) as made:
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert made.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 30_000


async def test_an_error_text_never_carries_the_token(connect: Any) -> None:
    async with connect(credentials=FixedCredentials("Bearer hush"), server="http://127.0.0.1:1") as session:
        with pytest.raises(Unreachable) as caught:
            await session.list_page(POD, limit=1)

    assert "hush" not in json.dumps([str(caught.value), repr(caught.value.__cause__)])
