"""Whose series are read: of the pinned scrape jobs, of the only one, or of nobody."""

import asyncio
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from contract.observe.test_reader import ENGINE, PROFILES, SPANS, UTIL, Store, reading_from, unknown

from autoscaler.observe.profiles import Profile
from autoscaler.observe.reader import SeriesReader

pytestmark = pytest.mark.contract


def spans(source_job: str = "") -> Any:
    return type(SPANS)(window_ms=SPANS.window_ms, history_ms=SPANS.history_ms, source_job=source_job)


def selectors(text: str) -> list[str]:
    """What stands in braces behind each metric of a query."""
    return re.findall(r"(?:DCGM_\w+|gpu_gpu_utilization)(\{[^}]*\}|)", text)


async def test_the_only_job_is_trusted_and_nothing_else_is_read() -> None:
    store = Store(ENGINE, UTIL)
    async with reading_from(store) as reader:
        reading = await reader.read(spans(), api_now_ms=unknown)

    assert (reading.jobs, reading.untrusted, len(reading.profiles)) == (("dcgm-exporter",), (), 1)
    for query, _ in store.asked:
        for braces in selectors(query):
            assert 'job="dcgm-exporter"' in braces or query.startswith("count by (job)")


async def test_every_query_of_every_profile_carries_the_pin() -> None:
    store = Store(ENGINE, UTIL, "gpu_gpu_utilization")
    store.jobs = ["gpu-a", "gpu-b"]
    async with reading_from(store) as reader:
        reading = await reader.read(spans('gpu-.*|x"y'), api_now_ms=unknown)

    assert (reading.source_job, reading.untrusted, len(reading.profiles)) == ('gpu-.*|x"y', (), 2)
    assert len(store.asked) > 40
    for query, _ in store.asked:
        assert query == "time()" or all('job=~"gpu-.*|x\\"y"' in braces for braces in selectors(query))


async def test_where_several_jobs_publish_none_of_the_profile_is_read() -> None:
    store = Store(ENGINE)
    store.jobs = ["dcgm-exporter", "tenant", ""]
    async with reading_from(store) as reader:
        reading = await reader.read(spans(), api_now_ms=unknown)

    assert reading.fault == ""
    assert reading.profiles == ()
    assert reading.untrusted == ("dcgm: (no job label), dcgm-exporter, tenant",)
    assert reading.queries == len(PROFILES)


async def test_a_profile_that_only_a_second_job_publishes_is_not_trusted_either() -> None:
    """Who can publish the one metric can publish another profile's."""
    store = Store(ENGINE, "gpu_gpu_utilization")
    store.fault = lambda query: (
        _jobs("tenant") if query.startswith("count by (job)") and "gpu_gpu" in query else None
    )
    async with reading_from(store) as reader:
        reading = await reader.read(spans(), api_now_ms=unknown)

    assert reading.untrusted == ("dcgm: dcgm-exporter", "seed: tenant")


async def test_a_profile_that_states_its_job_stays_trusted_beside_others() -> None:
    dcgm: Profile = msgspec.structs.replace(BY_NAME["dcgm"], match={"job": "gpu"})
    store = Store(ENGINE, "gpu_gpu_utilization")
    store.fault = lambda query: (
        _jobs("gpu" if "DCGM" in query else "tenant") if query.startswith("count by (job)") else None
    )
    async with reading_from(store) as reader:
        mixed = SeriesReader(reader._client, (dcgm, BY_NAME["seed"]))
        reading = await mixed.read(spans(), api_now_ms=unknown)

    assert ([p.profile.name for p in reading.profiles], reading.untrusted) == (["dcgm"], ("seed: tenant",))


async def test_another_job_that_takes_the_place_of_the_believed_one_must_be_pinned() -> None:
    store = Store(ENGINE)
    async with reading_from(store) as reader:
        before = await reader.read(spans(), api_now_ms=unknown)
        store.jobs = ["tenant"]
        after = await reader.read(spans(), api_now_ms=unknown)
        pinned = await reader.read(spans(source_job="tenant"), api_now_ms=unknown)

    assert [len(reading.profiles) for reading in (before, after, pinned)] == [1, 0, 1]
    assert after.untrusted == ("dcgm: tenant",)


async def test_thousands_of_invented_jobs_are_not_all_named() -> None:
    store = Store(ENGINE)
    store.jobs = [f"job-{number:05}" * 20 for number in range(5000)]
    async with reading_from(store) as reader:
        reading = await reader.read(spans(), api_now_ms=unknown)

    assert len(reading.jobs) == 20
    (told,) = reading.untrusted
    assert told.endswith("4995 more")
    assert len(told) < 600


async def test_history_of_another_job_is_not_kept() -> None:
    store = Store(ENGINE)
    async with reading_from(store) as reader:
        await reader.read(spans(), api_now_ms=unknown)
        store.jobs = ["renamed"]
        store.asked.clear()
        await reader.read(spans(source_job="renamed"), api_now_ms=unknown)

    assert sum("[86400000ms" in query and 'job=~"renamed"' in query for query, _ in store.asked) == 7


async def test_a_reading_that_takes_too_long_is_a_fault_and_the_next_one_is_whole() -> None:
    store = Store(ENGINE)
    async with reading_from(store, deadline_s=0.5) as reader:

        async def stall(query: str) -> None:
            await asyncio.sleep(30 if "quantile" in query else 0)

        store.before = stall
        slow = await reader.read(spans(), api_now_ms=unknown)
        store.before = None
        whole = await reader.read(spans(), api_now_ms=unknown)

    assert re.match(r"slow: \d+ queries took over 0.5s; a shorter need.historyWindow", slow.fault)
    assert slow.read_ms >= 500
    assert (whole.fault, len(whole.profiles)) == ("", 1)


BY_NAME = {profile.name: profile for profile in PROFILES}


def _jobs(*names: str) -> web.Response:
    rows = [{"metric": {"job": name}, "value": [1_800_000_000, "1"]} for name in names]
    return web.json_response({"status": "success", "data": {"resultType": "vector", "result": rows}})


def test_the_shipped_profiles_pin_no_job() -> None:
    """Installations name their jobs as they like: a wrong guess would read as no data for everybody."""
    assert not any(profile.match for profile in PROFILES)
    assert "sourceJob" in (Path(__file__).parents[3] / "config/profiles/dcgm.yaml").read_text()
