"""A cycle's reading over real sockets: fixed queries, one instant, history kept, faults told."""

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from autoscaler.observe.profiles import Profile, load_profiles
from autoscaler.observe.prometheus import PrometheusClient
from autoscaler.observe.reader import SeriesReader, Spans

pytestmark = pytest.mark.contract

PROFILES: tuple[Profile, ...] = load_profiles(Path(__file__).parents[3] / "config" / "profiles")
SPANS = Spans(window_ms=1_800_000, history_ms=86_400_000)
LABELS = {"UUID": "GPU-A", "pod": "p", "namespace": "ml", "container": "c"}


class Store:
    """Answers every query by its function for one device, and remembers what was asked."""

    def __init__(self, *metrics: str, pods: int = 1) -> None:
        self.metrics = metrics
        self.pods = pods
        self.jobs = ["dcgm-exporter"]
        self.now_s = 1_800_000_000
        self.asked: list[tuple[str, str]] = []
        self.warnings: list[str] = []
        self.before: Callable[[str], Awaitable[None]] | None = None
        self.fault: Callable[[str], web.Response | None] = lambda _: None

    async def handle(self, request: web.Request) -> web.Response:
        form = await request.post()
        query = str(form["query"])
        self.asked.append((query, str(form.get("time", ""))))
        if self.before is not None:
            await self.before(query)
        if query == "time()":
            return self._answer("scalar", [self.now_s, str(self.now_s)])
        return self.fault(query) or self._answer("vector", self._rows(query))

    def _rows(self, query: str) -> list[dict[str, Any]]:
        if not any(metric in query for metric in self.metrics):
            return []
        if query.startswith("max(max_over_time(count"):
            return [{"metric": {}, "value": [self.now_s, "30"]}]
        if query.startswith("max(count"):
            return [{"metric": {}, "value": [self.now_s, "120"]}]
        if query.startswith("count by (job)"):
            return [{"metric": {"job": job} if job else {}, "value": [self.now_s, "1"]} for job in self.jobs]
        words = {"count_over_time": "120", "timestamp": str(self.now_s - 5)}
        value = next((text for word, text in words.items() if word in query), "0.5")
        return [
            {"metric": {**LABELS, "pod": f"p{i}"}, "value": [self.now_s, value]} for i in range(self.pods)
        ]

    def _answer(self, kind: str, result: object) -> web.Response:
        more = {"warnings": self.warnings} if self.warnings else {}
        return web.json_response(
            {"status": "success", "data": {"resultType": kind, "result": result}, **more}
        )


@asynccontextmanager
async def reading_from(store: Store, **options: Any) -> AsyncIterator[SeriesReader]:
    app = web.Application()
    app.router.add_post("/api/v1/query", store.handle)
    async with TestServer(app) as server, PrometheusClient(str(server.make_url("/"))) as client:
        yield SeriesReader(client, PROFILES, **options)


def unknown() -> int | None:
    return None


ENGINE, UTIL = "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_GPU_UTIL"


async def test_live_signals_are_found_in_what_the_store_holds() -> None:
    async with reading_from(Store(ENGINE)) as reader:
        reading = await reader.read(SPANS, api_now_ms=unknown)

    (found,) = reading.profiles
    assert (found.profile.name, [s.source.signal for s in found.signals]) == ("dcgm", [ENGINE])
    assert (found.signals[0].source.interval_ms, found.signals[0].source.series) == (15_000, 1)
    assert reading.fault == ""


async def test_a_wanted_profile_is_a_source_even_without_series() -> None:
    async with reading_from(Store(), wanted=("seed",)) as reader:
        reading = await reader.read(SPANS, api_now_ms=unknown)

    assert [(p.profile.name, p.signals[0].source.series) for p in reading.profiles] == [("seed", 0)]


async def test_the_number_of_queries_does_not_depend_on_the_number_of_pods() -> None:
    counts = []
    for pods in (1, 50):
        store = Store(ENGINE, UTIL, pods=pods)
        async with reading_from(store) as reader:
            await reader.read(SPANS, api_now_ms=unknown)
        counts.append(len(store.asked))

    assert counts[0] == counts[1]


async def test_all_queries_of_a_cycle_are_evaluated_at_one_instant_of_the_stores_clock() -> None:
    store = Store(ENGINE)
    async with reading_from(store) as reader:
        reading = await reader.read(SPANS, api_now_ms=lambda: 1_799_999_990_000)

    assert {at for query, at in store.asked if query != "time()"} == {"1800000000.000"}
    assert (reading.store_ms, reading.skew_ms) == (1_800_000_000_000, 10_000)


async def test_history_is_asked_for_again_only_when_it_is_old() -> None:
    store = Store(ENGINE)
    history = Counter()
    async with reading_from(store) as reader:
        for now_s in (0, 60, 514, 515):
            store.now_s = 1_800_000_000 + now_s
            store.asked.clear()
            reading = await reader.read(SPANS, api_now_ms=unknown)
            history[now_s] = sum("[86400000ms" in query for query, _ in store.asked)
            assert reading.profiles[0].signals[0].history.count.values.tolist() == [120.0]

    assert history == {0: 7, 60: 0, 514: 0, 515: 7}


async def test_a_pod_that_is_new_since_the_last_history_has_none_yet() -> None:
    store = Store(ENGINE)
    async with reading_from(store) as reader:
        await reader.read(SPANS, api_now_ms=unknown)
        store.pods = 2
        store.now_s += 60
        reading = await reader.read(SPANS, api_now_ms=unknown)

    signal = reading.profiles[0].signals[0]
    assert signal.window.count.seen.tolist() == [True, True]
    assert signal.history.count.seen.tolist() == [True, False]


async def test_warnings_of_any_query_are_in_the_reading() -> None:
    store = Store(ENGINE)
    store.warnings = ["one store gateway did not answer"]
    async with reading_from(store) as reader:
        reading = await reader.read(SPANS, api_now_ms=unknown)

    assert reading.warnings == ("one store gateway did not answer",)


@pytest.mark.parametrize(
    "word", ["max_over_time", "quantile_over_time", "FB_USED", "count by", "avg_over_time", "86400000ms"]
)
async def test_one_failed_query_is_the_readings_fault_and_no_error(word: str) -> None:
    store = Store(ENGINE)
    body = json.dumps({"status": "error", "errorType": "execution", "error": "too many samples"})
    store.fault = lambda query: web.Response(status=422, text=body) if word in query else None
    async with reading_from(store) as reader:
        broken = await reader.read(SPANS, api_now_ms=unknown)
        store.fault = lambda _: None
        whole = await reader.read(SPANS, api_now_ms=unknown)

    assert re.match("bad_query: 422 execution: too many samples", broken.fault)
    assert broken.profiles == ()
    assert (whole.fault, len(whole.profiles)) == ("", 1)


async def test_a_store_that_is_not_there_is_a_fault_and_no_error() -> None:
    async with PrometheusClient("http://127.0.0.1:1") as client:
        reading = await SeriesReader(client, PROFILES).read(SPANS, api_now_ms=unknown)

    assert reading.fault.startswith("unreachable: 127.0.0.1:1")
    assert (reading.store_ms, reading.profiles) == (-1, ())


async def test_recorded_data_is_read_at_its_own_time() -> None:
    store = Store(ENGINE)
    async with reading_from(store, at_ms=1_700_000_000_000) as reader:
        reading = await reader.read(SPANS, api_now_ms=unknown)

    assert {at for query, at in store.asked if query != "time()"} == {"1700000000.000"}
    assert reading.store_ms == 1_700_000_000_000


def test_a_wanted_profile_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="no profile named none"):
        SeriesReader(PrometheusClient("http://localhost"), PROFILES, wanted=("none",))
