"""A cycle asks the same questions of a fleet of ten pods and of ten thousand: the store pays by answer, not by question."""

import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import promql_parser
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from autoscaler.observe.profiles import Profile, load_profiles
from autoscaler.observe.prometheus import PrometheusClient
from autoscaler.observe.reader import SeriesReader, Spans
from autoscaler.observe.series import SeriesReading
from autoscaler.observe.serving import ServingProfile, load_serving_profiles

pytestmark = pytest.mark.contract

FOLDER = Path(__file__).parents[3] / "config" / "profiles"
PROFILES: tuple[Profile, ...] = load_profiles(FOLDER)
SERVING: tuple[ServingProfile, ...] = load_serving_profiles(FOLDER / "serving")
NOW_S = 1_800_000_000
SPANS = Spans(window_ms=1_800_000, history_ms=86_400_000)


class Fleet:
    """A store that holds `pods` series of every metric that begins with one of `live`, whatever is asked of it."""

    def __init__(self, pods: int, *live: str) -> None:
        self.pods = pods
        self.live = live
        self.asked: list[str] = []

    async def handle(self, request: web.Request) -> web.Response:
        form = await request.post()
        query = str(form["query"])
        self.asked.append(query)
        if query == "time()":
            return _answer("scalar", f'[{NOW_S},"{NOW_S}"]')
        answer = self._vector(query)
        if not request.path.endswith("/query_range"):
            return _answer("vector", answer)
        point = f'"values":[[{form["start"]},'
        return _answer("matrix", answer.replace(f'"value":[{NOW_S},', point).replace('"]}', '"]]}'))

    def _vector(self, query: str) -> str:
        tree = promql_parser.parse(query)
        names = _metrics(tree)
        if not any(name.startswith(self.live) for name in names):
            return "[]"
        labels = _grouping(tree)
        if "__name__" in labels:
            known = [name for name in sorted(names) if name.startswith(self.live)]
            return _rows(tuple(({"__name__": name}, "1") for name in known))
        if labels == ("job",):
            return _rows((({"job": "exporter"}, "1"),))
        words = {"count_over_time": "120", "timestamp": str(NOW_S - 5)}
        value = next((text for word, text in words.items() if word in query), "0.5")
        return _fleet_rows(labels, self.pods if labels else 1, value)


def _metrics(tree: Any) -> set[str]:
    found: set[str] = set()

    def visit(node: Any) -> None:
        if isinstance(node, promql_parser.VectorSelector):
            named = [m.value for m in node.matchers.matchers if m.name == "__name__"]
            found.update(named[0].split("|") if named else [str(node.name)])

    promql_parser.walk(tree, visit)
    return found


def _grouping(tree: Any) -> tuple[str, ...]:
    """The labels that the answer's rows have."""
    while isinstance(tree, promql_parser.BinaryExpr | promql_parser.ParenExpr):
        tree = tree.lhs if isinstance(tree, promql_parser.BinaryExpr) else tree.expr
    assert isinstance(tree, promql_parser.AggregateExpr)
    return tuple(tree.modifier.labels) if tree.modifier else ()


def _rows(pairs: tuple[tuple[dict[str, str], str], ...]) -> str:
    rows = [{"metric": labels, "value": [NOW_S, value]} for labels, value in pairs]
    return json.dumps(rows, separators=(",", ":"))


@cache
def _fleet_rows(labels: tuple[str, ...], pods: int, value: str) -> str:
    return _rows(tuple(({label: f"{label}-{i}" for label in labels}, value) for i in range(pods)))


def _answer(kind: str, result: str) -> web.Response:
    text = f'{{"status":"success","data":{{"resultType":"{kind}","result":{result}}}}}'
    return web.Response(text=text, content_type="application/json")


@asynccontextmanager
async def reading_from(fleet: Fleet) -> AsyncIterator[SeriesReader]:
    app = web.Application()
    app.router.add_post("/api/v1/{what}", fleet.handle)
    async with TestServer(app) as server, PrometheusClient(str(server.make_url("/"))) as client:
        yield SeriesReader(client, PROFILES, serving=SERVING)


async def two_cycles(fleet: Fleet) -> tuple[list[Counter[str]], list[SeriesReading]]:
    """What each of two cycles asked, and what was read; the second finds the history of the first."""
    asked, readings = [], []
    async with reading_from(fleet) as reader:
        for _ in range(2):
            fleet.asked.clear()
            readings.append(await reader.read(SPANS, api_now_ms=lambda: None))
            asked.append(Counter(fleet.asked))
    return asked, readings


async def test_ten_thousand_pods_take_the_queries_of_ten() -> None:
    small, few = await two_cycles(Fleet(10, "DCGM_", "vllm:"))
    large, many = await two_cycles(Fleet(10_000, "DCGM_", "vllm:"))

    assert [reading.fault for reading in (*few, *many)] == [""] * 4
    assert [len(found.identities) for found in (*few[0].profiles, *many[0].profiles)] == [10, 10_000]
    assert [len(reading.serving) for reading in (*few, *many)] == [10, 10, 10_000, 10_000]
    assert small == large
    assert [reading.queries for reading in few] == [reading.queries for reading in many]


async def test_no_exporter_makes_the_number_of_queries_grow_with_the_fleet() -> None:
    every = tuple(metric for profile in (*PROFILES, *SERVING) for metric in profile.metrics)
    small, few = await two_cycles(Fleet(3, *every))
    large, many = await two_cycles(Fleet(60, *every))

    assert {found.profile.name for found in many[0].profiles} == {profile.name for profile in PROFILES}
    assert few[0].fault == many[0].fault == ""
    assert small == large


async def test_history_is_not_asked_for_again_in_the_next_cycle() -> None:
    (first, second), _ = await two_cycles(Fleet(1, "DCGM_"))

    assert "[86400000ms" in " ".join(first)
    assert "[86400000ms" not in " ".join(second)
