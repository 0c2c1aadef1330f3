"""What a metrics store can answer, on real sockets: each fault has its own type, and nothing is read as zero."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from autoscaler.observe.answers import PARTIAL, Answer, vector_rows
from autoscaler.observe.prometheus import (
    BadQuery,
    MethodRefused,
    NotPrometheus,
    PrometheusClient,
    PrometheusError,
    Refused,
    ServerError,
    Throttled,
    TimedOut,
    TooLarge,
    Unreachable,
)

pytestmark = pytest.mark.contract

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(handler: Handler, **options: Any) -> AsyncIterator[PrometheusClient]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    async with TestServer(app) as server, PrometheusClient(str(server.make_url("/")), **options) as client:
        yield client


def answering(status: int, body: object, *, kind: str = "application/json", **headers: str) -> Handler:
    text = body if isinstance(body, str) else json.dumps(body)

    async def handle(_: web.Request) -> web.Response:
        return web.Response(status=status, text=text, content_type=kind, headers=headers)

    return handle


def vector(*rows: tuple[str, str], **more: Any) -> dict[str, Any]:
    result = [{"metric": {"pod": pod}, "value": [1_800_000_000.5, value]} for pod, value in rows]
    return {"status": "success", "data": {"resultType": "vector", "result": result}, **more}


def values(answer: Answer) -> list[str]:
    return [row.value[1] for rows in vector_rows(answer) for row in rows]


async def test_a_query_is_a_form_post_at_the_given_time() -> None:
    asked: list[tuple[str, str, dict[str, Any]]] = []

    async def handle(request: web.Request) -> web.Response:
        asked.append((request.method, request.path, dict(await request.post())))
        return web.json_response(vector())

    async with serving(handle) as client:
        await client.query("up", at_ms=1_800_000_000_125)
        await client.query("up")

    assert asked == [
        ("POST", "/api/v1/query", {"query": "up", "time": "1800000000.125", "timeout": "27"}),
        ("POST", "/api/v1/query", {"query": "up", "timeout": "27"}),
    ]


async def test_a_path_prefix_of_the_store_is_kept() -> None:
    paths = []

    async def handle(request: web.Request) -> web.Response:
        paths.append(request.path)
        return web.json_response(vector())

    async with (
        TestServer(_catch_all(handle)) as server,
        PrometheusClient(str(server.make_url("/tenant/prometheus/"))) as client,
    ):
        await client.query("up")

    assert paths == ["/tenant/prometheus/api/v1/query"]


def _catch_all(handler: Handler) -> web.Application:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    return app


STYLE = "PromQL info: metric might not be a counter (1:6)"


@pytest.mark.parametrize(
    ("said", "warnings", "infos"),
    [
        ({"warnings": ["store gateway down"], "infos": [STYLE]}, ("store gateway down",), (STYLE,)),
        ({"infos": ["a zone was left out", STYLE]}, ("a zone was left out",), (STYLE,)),
        ({"isPartial": True}, (PARTIAL,), ()),
        ({"isPartial": False, "stats": {}, "warnings": None}, (), ()),
    ],
    ids=["prometheus", "unknown-info", "victoriametrics-partial", "victoriametrics-whole"],
)
async def test_whatever_may_be_missing_from_an_answer_is_a_warning(
    said: dict[str, Any], warnings: tuple[str, ...], infos: tuple[str, ...]
) -> None:
    async with serving(answering(200, vector(("p", "1"), **said))) as client:
        answer = await client.query("up")

    assert (answer.warnings, answer.infos) == (warnings, infos)


async def test_an_empty_vector_and_a_zero_are_different_answers() -> None:
    async with serving(answering(200, vector())) as client:
        nothing = await client.query("up")
    async with serving(answering(200, vector(("p", "0")))) as client:
        zero = await client.query("up")

    assert (values(nothing), values(zero)) == ([], ["0"])


async def test_values_that_are_no_numbers_arrive_as_what_they_are() -> None:
    async with serving(answering(200, vector(("p", "NaN"), ("q", "+Inf")))) as client:
        assert values(await client.query("up")) == ["NaN", "+Inf"]


FAULT = {"status": "error", "errorType": "bad_data", "error": "parse error: unexpected end"}


@pytest.mark.parametrize(
    ("handler", "error", "told"),
    [
        (answering(400, FAULT), BadQuery, "bad_data: parse error"),
        (answering(422, {**FAULT, "errorType": "execution"}), BadQuery, "execution"),
        (answering(200, {**FAULT, "errorType": "timeout"}), ServerError, "timeout"),
        (answering(401, "no", kind="text/plain"), Refused, "401"),
        (answering(403, {**FAULT, "error": "tenant unknown"}), Refused, "tenant unknown"),
        (answering(429, "slow down", kind="text/plain"), Throttled, "slow down"),
        (
            answering(503, {**FAULT, "errorType": "unavailable", "error": "TSDB not ready"}),
            ServerError,
            "TSDB not ready",
        ),
        (answering(500, "boom", kind="text/plain"), ServerError, "boom"),
        (answering(200, "<html>login</html>", kind="text/html"), NotPrometheus, "not an answer"),
        (answering(404, "404 page not found", kind="text/plain"), NotPrometheus, "404"),
        (answering(405, "no POST here", kind="text/plain"), MethodRefused, "405: no POST here"),
        (answering(408, "too slow", kind="text/plain"), NotPrometheus, "408"),
        (answering(413, "max response size", kind="text/plain"), TooLarge, "413: max response size"),
        (answering(502, "<html>bad gateway</html>", kind="text/html"), ServerError, "502"),
        (answering(200, {"kind": "Status", "status": "Failure"}), NotPrometheus, "no status and result"),
        (answering(200, {"version": "11.2"}), NotPrometheus, "not an answer"),
        (answering(204, ""), NotPrometheus, "204"),
    ],
)
async def test_each_fault_has_its_own_type(handler: Handler, error: type[PrometheusError], told: str) -> None:
    async with serving(handler) as client:
        with pytest.raises(error, match=told):
            await client.query("up")


async def test_a_bad_query_keeps_its_error_type() -> None:
    async with serving(answering(422, {**FAULT, "errorType": "execution"})) as client:
        with pytest.raises(BadQuery) as caught:
            await client.query("up")

    assert caught.value.error_type == "execution"


@pytest.mark.parametrize(
    ("status", "kind", "timed_out"), [(503, "timeout", True), (503, "unavailable", False)]
)
async def test_a_store_that_gave_up_for_time_is_told_from_one_that_is_down(
    status: int, kind: str, timed_out: bool
) -> None:
    async with serving(answering(status, {**FAULT, "errorType": kind})) as client:
        with pytest.raises(ServerError) as caught:
            await client.query("up")

    assert caught.value.timed_out == timed_out


DATE = "Fri, 15 Jan 2027 08:00:00 GMT"


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "Fri, 15 Jan 2027 08:01:30 GMT", "Date": DATE}, 90.0),
        ({"Retry-After": "Fri, 15 Jan 2027 07:00:00 GMT", "Date": DATE}, 0.0),
        ({"Retry-After": "999999999"}, 86_400.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-1"}, None),
        ({}, None),
    ],
)
async def test_how_long_the_store_wants_to_be_left_alone_is_kept(
    status: int, headers: dict[str, str], wait_s: float | None
) -> None:
    async with serving(answering(status, "busy", kind="text/plain", **headers)) as client:
        with pytest.raises((Throttled, ServerError)) as caught:
            await client.query("up")

    assert caught.value.retry_after_s == wait_s


async def test_a_silent_server_is_a_timeout() -> None:
    silence = asyncio.Event()

    async def handle(_: web.Request) -> web.Response:
        await silence.wait()
        return web.Response()

    async with serving(handle, timeout_s=0.2) as client:
        with pytest.raises(TimedOut, match=r"no answer in 0.2 s"):
            await client.query("up")
        silence.set()


async def test_an_answer_that_stops_halfway_is_no_answer() -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b'{"status":"success"')
        assert request.transport is not None
        request.transport.close()
        return response

    async with serving(handle) as client:
        with pytest.raises(Unreachable):
            await client.query("up")


async def test_nobody_listening_is_unreachable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        async with PrometheusClient(f"http://127.0.0.1:{port}") as client:
            with pytest.raises(Unreachable, match=f"127.0.0.1:{port}"):
                await client.query("up")


@pytest.mark.parametrize("chunked", [False, True])
async def test_an_answer_over_the_cap_is_not_read(chunked: bool) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={} if chunked else {"Content-Length": "5000"})
        await response.prepare(request)
        await response.write(b"x" * 5000)
        return response

    async with serving(handle, max_bytes=4000) as client:
        with pytest.raises(TooLarge, match="4000"):
            await client.query("up")


async def test_a_redirect_to_another_host_is_not_followed() -> None:
    followed = []

    async def elsewhere(request: web.Request) -> web.Response:
        followed.append(request.headers.get("Authorization"))
        return web.json_response(vector())

    async with TestServer(_catch_all(elsewhere)) as other:
        target = str(other.make_url("/login?secret=1"))
        async with serving(answering(307, "", Location=target)) as client:
            with pytest.raises(NotPrometheus, match=r"redirected \(307\).*login: not followed"):
                await client.query("up")

    assert followed == []


@pytest.mark.parametrize("status", [301, 302, 303])
async def test_a_redirect_that_drops_the_query_is_not_followed(status: int) -> None:
    async with serving(answering(status, "", Location="/api/v1/query")) as client:
        with pytest.raises(NotPrometheus, match="not followed"):
            await client.query("up")


async def test_a_redirect_within_the_store_is_followed_a_few_times() -> None:
    async def handle(request: web.Request) -> web.Response:
        if request.path.startswith("/moved"):
            return web.json_response(vector(((await request.post())["query"], "1")))  # type: ignore[arg-type]
        raise web.HTTPTemporaryRedirect("/moved/api/v1/query")

    async with serving(handle) as client:
        answer = await client.query("up")
    async with serving(answering(308, "", Location="/api/v1/query")) as client:
        with pytest.raises(NotPrometheus, match="redirects"):
            await client.query("up")

    assert b'"up"' in answer.result


async def test_the_token_file_is_read_for_each_query(tmp_path: Path) -> None:
    seen = []

    async def handle(request: web.Request) -> web.Response:
        seen.append((request.headers.get("Authorization"), request.headers.get("X-Scope-OrgID")))
        return web.json_response(vector())

    token = tmp_path / "token"
    token.write_text("first\n", encoding="utf-8")
    async with serving(handle, token_file=token, headers={"X-Scope-OrgID": "team"}) as client:
        await client.query("up")
        token.write_text("second\n", encoding="utf-8")
        await client.query("up")
        token.unlink()
        with pytest.raises(Refused, match="token file"):
            await client.query("up")

    assert seen == [("Bearer first", "team"), ("Bearer second", "team")]


async def test_the_stores_clock_is_what_it_evaluates() -> None:
    clock = {
        "status": "success",
        "data": {"resultType": "scalar", "result": [1_800_000_000.25, "1800000000.25"]},
    }
    async with serving(answering(200, clock)) as client:
        assert await client.now_ms() == 1_800_000_000_250
    async with serving(answering(200, vector())) as client:
        with pytest.raises(NotPrometheus, match="gave no clock"):
            await client.now_ms()


@pytest.mark.parametrize(
    "url",
    ["", "prometheus:9090", "ftp://host", "http://", "http://h:99999", "http://h/?tenant=a", "http://h/#x"],
)
def test_a_url_that_is_no_url_is_refused_at_once(url: str) -> None:
    with pytest.raises(ValueError, match="not an http"):
        PrometheusClient(url)
