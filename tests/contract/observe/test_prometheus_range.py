"""Range queries and what a store says of itself, on real sockets."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from autoscaler.observe.prometheus import (
    BadQuery,
    NotPrometheus,
    NotServed,
    PrometheusClient,
    ServerError,
    TooLarge,
)

pytestmark = pytest.mark.contract

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
START_MS = 1_800_000_000_000
MINUTE_MS = 60_000


@asynccontextmanager
async def serving(handler: Handler, **options: Any) -> AsyncIterator[PrometheusClient]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    async with TestServer(app) as server, PrometheusClient(str(server.make_url("/")), **options) as client:
        yield client


def answering(status: int, body: object) -> Handler:
    text = body if isinstance(body, str) else json.dumps(body)

    async def handle(_: web.Request) -> web.Response:
        return web.Response(status=status, text=text, content_type="application/json")

    return handle


def matrix(*series: tuple[str, list[tuple[float, str]]], **more: Any) -> dict[str, Any]:
    result = [{"metric": {"pod": pod}, "values": points} for pod, points in series]
    return {"status": "success", "data": {"resultType": "matrix", "result": result}, **more}


async def test_a_range_query_says_its_range_and_step_in_seconds() -> None:
    asked: list[tuple[str, str, dict[str, Any]]] = []

    async def handle(request: web.Request) -> web.Response:
        asked.append((request.method, request.path, dict(await request.post())))
        return web.json_response(matrix())

    async with serving(handle) as client:
        await client.query_range("up", start_ms=START_MS, end_ms=START_MS + MINUTE_MS, step_ms=500)

    form = {
        "query": "up",
        "start": "1800000000.000",
        "end": "1800000060.000",
        "step": "0.500",
        "timeout": "27",
    }
    assert asked == [("POST", "/api/v1/query_range", form)]


async def test_a_matrix_comes_as_columns_with_its_warnings() -> None:
    start_s = START_MS / 1000
    body = matrix(
        ("p", [(start_s, "1"), (start_s + 60, "NaN")]),
        ("q", []),
        ("r", [(start_s + 60, "2.5")]),
        isPartial=True,
    )
    async with serving(answering(200, body)) as client:
        answer = await client.query_range(
            "up", start_ms=START_MS, end_ms=START_MS + MINUTE_MS, step_ms=MINUTE_MS
        )

    (block,) = answer.blocks()
    assert [json.loads(text)["pod"] for text in block.labels] == ["p", "q", "r"]
    assert block.offsets.tolist() == [0, 2, 2, 3]
    assert block.times_ms.tolist() == [START_MS, START_MS + MINUTE_MS, START_MS + MINUTE_MS]
    assert [str(value) for value in block.values] == ["1.0", "nan", "2.5"]
    assert answer.warnings == ("the store says that its answer is partial",)


@pytest.mark.parametrize(
    ("status", "body", "error", "told"),
    [
        (
            400,
            {
                "status": "error",
                "errorType": "bad_data",
                "error": "exceeded maximum resolution of 11,000 points per timeseries",
            },
            BadQuery,
            "11,000 points",
        ),
        (
            422,
            {
                "status": "error",
                "errorType": "execution",
                "error": "query processing would load too many samples into memory",
            },
            BadQuery,
            "too many samples",
        ),
        (
            200,
            {"status": "success", "data": {"resultType": "vector", "result": []}},
            NotPrometheus,
            "a vector",
        ),
        (503, "down", ServerError, "503: down"),
    ],
)
async def test_a_range_query_fails_as_queries_do(
    status: int, body: object, error: type[Exception], told: str
) -> None:
    async with serving(answering(status, body)) as client:
        with pytest.raises(error, match=told):
            await client.query_range("up", start_ms=START_MS, end_ms=START_MS, step_ms=1000)


async def test_a_matrix_over_the_cap_is_not_read() -> None:
    body = matrix(*[(f"p{i}", [(START_MS / 1000, "1")]) for i in range(100)])
    async with serving(answering(200, body), max_bytes=1000) as client:
        with pytest.raises(TooLarge):
            await client.query_range("up", start_ms=START_MS, end_ms=START_MS, step_ms=1000)


@pytest.mark.parametrize(("end_ms", "step_ms"), [(START_MS - 1, 1000), (START_MS, 0)])
async def test_a_range_that_is_none_is_not_asked_for(end_ms: int, step_ms: int) -> None:
    async with serving(answering(200, matrix())) as client:
        with pytest.raises(ValueError, match="no range"):
            await client.query_range("up", start_ms=START_MS, end_ms=end_ms, step_ms=step_ms)


async def test_the_values_of_a_label_are_asked_for_by_get() -> None:
    asked: list[tuple[str, str, list[tuple[str, str]]]] = []

    async def handle(request: web.Request) -> web.Response:
        asked.append((request.method, request.path, list(request.query.items())))
        return web.json_response({"status": "success", "data": ["DCGM_FI_DEV_GPU_UTIL"], "warnings": ["w"]})

    async with serving(handle, params=(("dedup", "true"),)) as client:
        found = await client.label_values("__name__", match=['{pod="a&b=+"}', "up"], since_ms=START_MS)

    assert (found.names, found.warnings) == (("DCGM_FI_DEV_GPU_UTIL",), ("w",))
    query = [("match[]", '{pod="a&b=+"}'), ("match[]", "up"), ("start", "1800000000.000"), ("dedup", "true")]
    assert asked == [("GET", "/api/v1/label/__name__/values", query)]


async def test_what_a_store_says_of_itself_is_text_by_name() -> None:
    body = {
        "status": "success",
        "data": {"storageRetention": "15d", "GOMAXPROCS": 2, "reloadConfigSuccess": True},
    }
    async with serving(answering(200, body)) as client:
        facts = await client.status("runtimeinfo")

    assert facts == {"storageRetention": "15d", "GOMAXPROCS": "2", "reloadConfigSuccess": "true"}


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, "404 page not found"),
        (405, ""),
        (403, "forbidden"),
        (501, "not implemented"),
        (400, "unsupported path requested"),
        (200, "<html>"),
        (404, {"status": "error", "errorType": "not_found", "error": "no such page"}),
    ],
)
async def test_a_page_that_a_store_does_not_have_is_told_and_no_error(status: int, body: object) -> None:
    async with serving(answering(status, body)) as client:
        found = await client.status("flags")

    assert isinstance(found, NotServed)
    assert str(status) in found.told


async def test_a_store_that_is_down_is_an_error_even_for_optional_pages() -> None:
    async with serving(answering(503, "down")) as client:
        with pytest.raises(ServerError):
            await client.status("flags")
