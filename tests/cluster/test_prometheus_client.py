"""The client and every built-in query against a real Prometheus whose history is written down."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import numpy as np
import pytest
from unit.observe.observed import PROFILES
from unit.observe.test_every_query import NAMESPACES, SERVING, board_texts, built

from autoscaler.observe import serving
from autoscaler.observe.answers import Answer, vector_rows
from autoscaler.observe.prometheus import BadQuery, PrometheusClient
from autoscaler.observe.queries import one_job, selector
from autoscaler.observe.scope import scoped, served_from
from devcluster.backfill import Series, backfilled_prometheus

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]

NOW_MS = 1_800_000_000_000
MINUTE_MS = 60_000
HOSTILE = (
    '"} or vector(0) or x{job="',
    "\\",
    '\\"',
    "\\n",
    "a\nb",
    "a\rb\tc",
    "{{}}[5m]",
    "'`#",
    "a|.*",
    ".*",
    "(?i)ml",
    "é漢\u2028",
)
OWNERS = {
    "ours": {"exported_pod": "p", "exported_namespace": "ml", "namespace": "monitoring"},
    "theirs": {"exported_pod": "p", "exported_namespace": "other", "namespace": "ml"},
    "nobody": {"namespace": "monitoring", "pod": "dcgm-x"},
}


def history() -> list[Series]:
    times = range(NOW_MS - 60 * MINUTE_MS, NOW_MS + 1, MINUTE_MS)
    samples = [(at_ms, 0.5) for at_ms in times]
    named = [Series("named", {"job": value, "namespace": value}, samples) for value in HOSTILE]
    owned = [Series("owned", {"row": row, **labels}, samples) for row, labels in OWNERS.items()]
    metrics = [m for profile in (*PROFILES.values(), *SERVING.values()) for m in profile.metrics]
    scraped = [
        Series(m, {"job": "e", "namespace": "ml", "pod": "p", "UUID": "GPU-1"}, samples) for m in metrics
    ]
    return [*named, *owned, *scraped, Series("gap", {}, [*samples[:10], *samples[20:]])]


@asynccontextmanager
async def store(**options: object) -> AsyncIterator[PrometheusClient]:
    async with backfilled_prometheus(history()) as url, PrometheusClient(url, **options) as client:  # type: ignore[arg-type]
        yield client


def found(answer: Answer, label: str) -> list[str]:
    labels = [json.loads(bytes(row.metric)) for rows in vector_rows(answer) for row in rows]
    return sorted(row[label] for row in labels)


async def test_a_real_store_takes_every_built_in_query_and_reads_names_as_we_write_them() -> None:
    async with store() as client:
        for profile in PROFILES.values():
            for namespaces in ((), NAMESPACES):
                for name, text in board_texts(profile, job="e", namespaces=namespaces):
                    answer = await client.query(text, at_ms=NOW_MS)

                    assert (answer.kind, answer.warnings, answer.infos) == ("vector", (), ()), name
        for server in SERVING.values():
            for name, text in built(serving, server, namespaces=NAMESPACES):
                answer = await client.query(text, at_ms=NOW_MS)

                assert (answer.kind, answer.warnings, answer.infos) == ("vector", (), ()), name
        for value in HOSTILE:
            for matcher in (one_job(value), served_from("namespace", (value,))):
                answer = await client.query(selector("named", {}, matcher), at_ms=NOW_MS)

                assert found(answer, "job") == [value]
        inside = selector("owned", {}, scoped(PROFILES["dcgm"], "", ("ml",)))

        assert found(await client.query(inside, at_ms=NOW_MS), "row") == ["nobody", "ours"]


async def test_ranges_lists_and_facts_of_a_real_store() -> None:
    start_ms = NOW_MS - 60 * MINUTE_MS
    async with store() as client:
        answer = await client.query_range("gap", start_ms=start_ms, end_ms=NOW_MS, step_ms=MINUTE_MS)
        (block,) = answer.blocks()
        steps = ((block.times_ms - start_ms) // MINUTE_MS).tolist()
        names = await client.label_values("__name__", match=['{__name__=~"gap|owned"}'])
        flags = await client.status("flags")
        build = await client.status("buildinfo")
        runtime = await client.status("runtimeinfo")
        with pytest.raises(BadQuery, match="11,000 points"):
            await client.query_range("gap", start_ms=start_ms, end_ms=NOW_MS, step_ms=100)
        with pytest.raises(BadQuery) as caught:
            await client.query("named{")

    # The look-back of five minutes fills the first points of the gap.
    assert steps == [*range(14), *range(20, 61)]
    assert np.array_equal(block.values, np.full(55, 0.5))
    assert (answer.warnings, answer.infos) == ((), ())
    assert names.names == ("gap", "owned")
    assert isinstance(flags, dict)
    assert flags["storage.tsdb.retention.time"] == "100y"
    assert isinstance(build, dict)
    assert build["version"]
    assert isinstance(runtime, dict)
    assert "storageRetention" in runtime
    assert caught.value.error_type == "bad_data"


async def test_a_store_that_is_asked_by_get_answers_the_same() -> None:
    async with store(method="GET", params=(("dedup", "true"),)) as client:
        answer = await client.query(selector("named", {}, one_job(HOSTILE[0])), at_ms=NOW_MS)

    assert found(answer, "job") == [HOSTILE[0]]
