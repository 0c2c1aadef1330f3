"""A metrics store that answers nonsense, query by query: the reading says so, nothing is taken away and nothing dies."""

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, web
from service_worlds import ScriptedApi, ScriptedStore, dcgm_series, deployment_objects, running, serving

from autoscaler.decide import plan
from autoscaler.model.plan import Plan
from autoscaler.model.policy import Policy
from autoscaler.model.snapshot import Snapshot, decode_snapshot, encode_snapshot
from autoscaler.service.once import read_live
from autoscaler.service.settings import load_settings

Hook = Callable[["HostileStore", str], str | None]
DEEP = 200_000


@dataclass
class HostileStore(ScriptedStore):
    """Answers with what `hook` makes of a query; None is the true answer."""

    hook: Hook = lambda _store, _query: None

    async def _answer(self, request: web.Request) -> web.Response:
        body = self.hook(self, str((await request.post()).get("query", "")))
        return await super()._answer(request) if body is None else web.Response(text=body)


def success(kind: str, result: object) -> str:
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": result}})


def rows(result: str) -> Hook:
    """This text as every vector's rows."""
    text = '{"status":"success","data":{"resultType":"vector","result":' + result + "}}"
    return lambda _, query: None if query == "time()" else text


def clock(value: str) -> Hook:
    return lambda _, query: success("scalar", [1, value]) if query == "time()" else None


def values(text: str, *words: str) -> Hook:
    """The true series with this value, in the queries that have one of the words."""

    def answer(store: HostileStore, query: str) -> str | None:
        if query == "time()" or query.startswith("count by") or not any(word in query for word in words):
            return None
        now_s = time.time_ns() / 1e9
        return success("vector", [{**row, "value": [now_s, text]} for row in store._vector(query, now_s)])

    return answer


async def judged(hook: Hook, folder: Path) -> tuple[Snapshot, Plan]:
    api = ScriptedApi(objects=deployment_objects(annotations={"gpu-autoscaler.io/allowed-gpus": "1,2"}))
    store = HostileStore(series=dcgm_series(10.0, 0.0), hook=hook)
    async with running(api, store, folder) as world:
        seen = await read_live(load_settings(world.environ), world.environ, Policy(), show=lambda _: None)
    assert decode_snapshot(encode_snapshot(seen)) == seen
    return seen, plan(seen, Policy(), seen.taken_ms)


@pytest.mark.parametrize(
    "hook",
    [
        rows('[{"metric":{"UUID":5,"job":6,"pod":[1]},"value":[1,"2"]}]'),
        rows('[{"metric":null,"value":[1,"2"]}]'),
        rows('[{"metric":[1],"value":[1,"2"]}]'),
        rows('[{"metric":{"UUID":"x"},"value":[1,2]}]'),
        rows('[{"metric":{"UUID":"x"},"value":[1e999,"2"]}]'),
        rows('[{"metric":{"UUID":"\\ud800","pod":"web-1-a"},"value":[1,"0"]}]'),
        rows('[{"metric":{"x":' + "[" * DEEP + "]" * DEEP + '},"value":[1,"2"]}]'),
        rows("[" * DEEP + "]" * DEEP),
        rows("[" * DEEP),
        clock("NaN"),
        clock("1e300"),
        clock("-1"),
        clock("0"),
        clock("9" * 400),
        clock("9" * 5000),
    ],
    ids=[
        *(
            "labels no text",
            "labels null",
            "labels a list",
            "value a number",
            "time out of range",
            "lone surrogate",
        ),
        *(
            "deep labels",
            "deep rows",
            "deep half",
            "clock nan",
            "clock 1e300",
            "clock -1",
            "clock 0",
            "clock 9..",
        ),
        "clock 9...",
    ],
)
async def test_an_answer_that_is_none_is_the_readings_fault(hook: Hook, tmp_path: Path) -> None:
    seen, planned = await judged(hook, tmp_path)

    assert seen.telemetry.fault.startswith("not_prometheus: ")
    assert planned.actions == ()


@pytest.mark.parametrize(
    "text", ["NaN", "+Inf", "-Inf", "-1", "1e300", "abc", "1e-320", "0x10", "1_0", "9" * 5000]
)
@pytest.mark.parametrize(
    "words", [("",), ("timestamp", "count"), ("timestamp",), ("count",), ("[604800000ms",)], ids=" ".join
)
async def test_a_value_that_cannot_be_takes_nothing_away(
    text: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    seen, planned = await judged(values(text, *words), tmp_path)

    assert seen.telemetry.fault == ""
    if text not in {"1_0", "1e-320"}:  # numbers like any other to Python and to the store
        assert planned.actions == ()


@pytest.mark.parametrize("text", ["NaN", "-1", "abc", "1e300"])
async def test_impossible_counts_and_times_are_unseen_and_counted(text: str, tmp_path: Path) -> None:
    seen, _ = await judged(values(text, "count_over_time"), tmp_path)
    timeless, _ = await judged(values(text, "timestamp"), tmp_path)

    assert len(seen.holders) == 0
    assert seen.telemetry.dropped["no-count"] > 0
    assert timeless.telemetry.dropped["no-time"] > 0


async def test_the_service_outlives_nonsense_and_reads_the_truth_again(tmp_path: Path) -> None:
    hostile = rows('[{"metric":{"UUID":5},"value":[1,"2"]}]')
    store = HostileStore(series=dcgm_series(10.0, 0.0), hook=hostile)
    api = ScriptedApi(objects=deployment_objects())
    async with running(api, store, tmp_path) as world, serving(world) as url, ClientSession() as session:

        async def until(part: str) -> str:
            text = ""
            for _ in range(300):
                text = await (await session.get(f"{url}/readyz?verbose")).text()
                if part in text:
                    break
                await asyncio.sleep(0.02)
            return text

        bad = await until("[-]prometheus failed: not_prometheus: unreadable labels")
        store.hook = lambda _store, _query: None
        good = await until("[+]prometheus ok")

    assert "unreadable labels" in bad
    assert "[+]series ok: series: dcgm 2; unpinned, the only scrape job: dcgm-exporter" in good


async def test_a_one_shot_command_asks_again_when_the_api_server_is_overloaded(tmp_path: Path) -> None:
    api = _Overloaded(objects=deployment_objects())
    async with running(api, ScriptedStore(series=dcgm_series(10.0, 0.0)), tmp_path) as world:
        seen = await read_live(load_settings(world.environ), world.environ, Policy(), show=lambda _: None)

    assert (len(seen.pods), api.refused) == (1, 2)


@dataclass
class _Overloaded(ScriptedApi):
    """Refuses the list of pods twice: once as priority and fairness does, once as a proxy before it would."""

    refused: int = 0

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/api/v1/pods" and self.refused < 2:
            self.refused += 1
            headers: dict[str, Any] = {"Retry-After": "1"} if self.refused == 1 else {}
            return web.Response(status=429 if headers else 502, headers=headers)
        return await super()._answer(request)


@pytest.fixture(autouse=True)
def retries() -> None:
    """Retries happen here, without waiting."""
    import stamina  # noqa: PLC0415 - the service's own fixture turned them off

    stamina.set_testing(True, attempts=4)
