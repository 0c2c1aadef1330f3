"""What the client does not let happen: memory filled, secrets told, requests led astray."""

import base64
import gzip
import json
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from autoscaler.observe.prometheus import (
    NotPrometheus,
    PrometheusClient,
    PrometheusError,
    Refused,
    ServerError,
    TooLarge,
    Unreachable,
)

pytestmark = pytest.mark.contract

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
EMPTY = b'{"status":"success","data":{"resultType":"vector","result":[]}}'


@asynccontextmanager
async def serving(
    handler: Handler, *, credentials: str = "", path: str = "/", **options: Any
) -> AsyncIterator[PrometheusClient]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    async with TestServer(app) as server:
        url = str(server.make_url(path)).replace("://", f"://{credentials}")
        async with PrometheusClient(url, **options) as client:
            yield client


def sending(body: bytes, *, encoding: str = "gzip", status: int = 200) -> Handler:
    async def handle(_: web.Request) -> web.Response:
        headers = {"Content-Encoding": encoding, "Content-Type": "application/json"}
        return web.Response(status=status, body=body, headers=headers)

    return handle


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "GZIP"])
async def test_a_compressed_answer_is_asked_for_and_read(encoding: str) -> None:
    accepted = []

    async def handle(request: web.Request) -> web.StreamResponse:
        accepted.append(request.headers["Accept-Encoding"])
        return await sending(gzip.compress(EMPTY), encoding=encoding)(request)

    async with serving(handle, headers={"accept-encoding": "br"}) as client:
        answer = await client.query("up")

    assert (answer.result, accepted) == (b"[]", ["gzip"])


async def test_an_answer_that_is_not_compressed_is_read_too() -> None:
    async with serving(sending(EMPTY, encoding="identity")) as client:
        assert (await client.query("up")).result == b"[]"


@pytest.mark.parametrize("size", [4001, 50_000_000])
async def test_a_small_answer_that_unpacks_to_a_large_one_is_not_read(size: int) -> None:
    bomb = gzip.compress(b" " * size)
    assert len(bomb) < 60_000

    async with serving(sending(bomb), max_bytes=60_000 if size > 60_000 else 4000) as client:
        with pytest.raises(TooLarge, match="when decompressed"):
            await client.query("up")


async def test_an_answer_of_just_the_cap_is_read() -> None:
    async with serving(sending(gzip.compress(EMPTY)), max_bytes=len(EMPTY) + 100) as client:
        assert (await client.query("up")).result == b"[]"


@pytest.mark.parametrize(
    ("body", "encoding", "error", "told"),
    [
        (EMPTY, "gzip", NotPrometheus, "unreadable gzip"),
        (gzip.compress(EMPTY)[:-9], "gzip", Unreachable, "was cut"),
        (b"", "gzip", Unreachable, "was cut"),
        (gzip.compress(EMPTY) + gzip.compress(EMPTY), "gzip", NotPrometheus, "after the end"),
        (gzip.compress(EMPTY) + b"x", "gzip", NotPrometheus, "after the end"),
        (zlib.compress(EMPTY), "deflate", NotPrometheus, "encoding 'deflate'"),
        (b"x", "br", NotPrometheus, "encoding 'br'"),
    ],
    ids=["plain", "cut", "empty", "two-members", "trailing-byte", "deflate", "brotli"],
)
async def test_compression_that_cannot_be_undone_is_no_answer(
    body: bytes, encoding: str, error: type[PrometheusError], told: str
) -> None:
    async with serving(sending(body, encoding=encoding)) as client:
        with pytest.raises(error, match=told):
            await client.query("up")


async def test_a_compressed_error_is_understood() -> None:
    body = gzip.compress(b'{"status":"error","errorType":"unavailable","error":"TSDB not ready"}')
    async with serving(sending(body, status=503)) as client:
        with pytest.raises(ServerError, match="503: TSDB not ready"):
            await client.query("up")


async def test_extra_parameters_go_with_every_query() -> None:
    asked: list[dict[str, Any]] = []

    async def handle(request: web.Request) -> web.Response:
        asked.append({**request.query, **(await request.post())})
        kind = "matrix" if request.path.endswith("range") else "vector"
        return web.json_response({"status": "success", "data": {"resultType": kind, "result": []}})

    params = (("partial_response", "false"), ("extra_filters[]", '{a="b"}'))
    async with serving(handle, params=params) as client:
        await client.query("up")
        await client.query_range("up", start_ms=0, end_ms=0, step_ms=1)

    assert [(one["partial_response"], one["extra_filters[]"]) for one in asked] == [("false", '{a="b"}')] * 2


@pytest.mark.parametrize("name", ["query", "time", "start", "end", "step", "timeout", "limit", "match[]"])
def test_an_extra_parameter_cannot_change_what_is_asked(name: str) -> None:
    with pytest.raises(ValueError, match="that queries set themselves"):
        PrometheusClient("http://store", params=[(name, "1")])


async def test_a_store_without_post_is_asked_by_get_and_a_redirect_keeps_the_query() -> None:
    asked: list[tuple[str, str, dict[str, str]]] = []

    async def handle(request: web.Request) -> web.Response:
        asked.append((request.method, request.path, dict(request.query)))
        if not request.path.startswith("/moved"):
            raise web.HTTPPermanentRedirect(f"/moved{request.path_qs}")
        return web.Response(body=EMPTY, content_type="application/json")

    query = 'max by (pod) (x{pod="a&b+c#%41",y=~"é|"})'
    async with serving(handle, method="GET", path="/tenant") as client:
        await client.query(query)

    fields = {"query": query, "timeout": "27"}
    assert asked == [("GET", "/tenant/api/v1/query", fields), ("GET", "/moved/tenant/api/v1/query", fields)]


async def test_the_stores_limit_is_a_little_shorter_than_ours() -> None:
    asked: list[str] = []

    async def handle(request: web.Request) -> web.Response:
        asked.append(str((await request.post())["timeout"]))
        return web.Response(body=EMPTY, content_type="application/json")

    async with serving(handle, timeout_s=0.5) as client:
        await client.query("up")

    assert asked == ["0.45"]


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    async with serving(sending(gzip.compress(EMPTY))) as client:
        assert (await client.query("up")).result == b"[]"


async def test_credentials_in_the_url_are_sent_as_basic_authentication() -> None:
    seen = []

    async def handle(request: web.Request) -> web.Response:
        seen.append(request.headers["Authorization"])
        return web.Response(body=EMPTY, content_type="application/json")

    async with serving(handle, credentials="me:p%40ss@") as client:
        await client.query("up")

    assert seen == [f"Basic {base64.b64encode(b'me:p@ss').decode()}"]


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("http://me:pw@store", {"token_file": Path("token")}),
        ("http://store", {"token_file": Path("token"), "headers": {"authorization": "Basic x"}}),
        ("http://me:pw@store", {"headers": {"Authorization": "Basic x"}}),
    ],
)
def test_two_credentials_at_once_are_refused(url: str, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="more than one of") as caught:
        PrometheusClient(url, **options)

    assert "pw" not in str(caught.value)


def _told(request: web.Request) -> str:
    return f"refused: {dict(request.headers)}"


def _sent(request: web.Request) -> str:
    return request.headers["Authorization"].rpartition(" ")[2]


REPEATING: dict[str, Callable[[web.Request], web.StreamResponse]] = {
    "401": lambda asked: web.Response(status=401, text=_told(asked), reason=_sent(asked)),
    "429": lambda asked: web.Response(status=429, text=_told(asked)),
    "500": lambda asked: web.Response(status=500, text=_told(asked)),
    "405": lambda asked: web.Response(status=405, text=_told(asked)),
    "redirect": lambda asked: web.Response(
        status=307, headers={"Location": f"http://other/{_sent(asked)}?a"}
    ),
    "api-400": lambda asked: _api_error(400, _told(asked)),
    "api-422": lambda asked: _api_error(422, _told(asked)),
    "api-503": lambda asked: _api_error(503, _told(asked)),
    "api-200": lambda asked: _api_error(200, _told(asked)),
}


@pytest.mark.parametrize("form", REPEATING)
async def test_a_store_that_repeats_what_it_was_sent_puts_no_secret_into_an_error(
    form: str, tmp_path: Path
) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        return REPEATING[form](request)

    token_file = tmp_path / "token"
    token_file.write_text("canary-token\n", encoding="utf-8")
    secrets = ("canary", base64.b64encode(b"me:canary-p@ss").decode(), "'c4'")
    told = []
    for options in (
        {"token_file": token_file, "headers": {"X-Scope-OrgID": "canary-header", "X-Id": "c4"}},
        {"credentials": "me:canary-p%40ss@"},
        {"headers": {"Authorization": "Bearer canary-token"}},
    ):
        async with serving(handle, **options) as client:
            with pytest.raises(PrometheusError) as caught:
                await client.query("up")
        told.append(str(caught.value))

    assert ["**********" in text for text in told] == [True, True, True]
    assert [secret for secret in secrets for text in told if secret in text] == []


def _api_error(status: int, text: str) -> web.Response:
    body = {"status": "error", "errorType": "unavailable" if status == 503 else "execution", "error": text}
    return web.Response(status=status, text=json.dumps(body), content_type="application/json")


async def test_an_unreachable_store_is_named_without_its_password() -> None:
    async with PrometheusClient("http://me:canary@127.0.0.1:9") as client:
        with pytest.raises(Unreachable, match=r"127\.0\.0\.1:9") as caught:
            await client.query("up")

    assert "canary" not in str(caught.value)


def test_a_url_that_is_none_is_named_without_its_password() -> None:
    with pytest.raises(ValueError, match="not an http") as caught:
        PrometheusClient("ftp://me:canary@host")

    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [b"", b" \n", b"one\ntwo", b"a\x00b", b"\xff\xfe", "tökén".encode()],
    ids=["empty", "blank", "two-lines", "control", "no-text", "no-ascii"],
)
async def test_a_token_file_that_holds_no_token_is_refused_before_anything_is_sent(
    content: bytes, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_bytes(content)
    asked = []

    async def handle(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response()

    async with serving(handle, token_file=token) as client:
        with pytest.raises(Refused, match="token file"):
            await client.query("up")

    assert asked == []
