"""A back-filled Prometheus answers as one that scraped the same samples would."""

import pytest

from autoscaler.observe.answers import vector_rows
from autoscaler.observe.prometheus import PrometheusClient
from devcluster.backfill import BLOCK_MS, Series, backfilled_prometheus
from devcluster.errors import DevclusterError

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

END_MS = 250_000 * BLOCK_MS
"""The first moment of a block, so that the samples before it lie in another one."""
LABELS = {"UUID": 'GPU-"a"\\', "pod": ""}


def samples(count: int, *, value: float = 1.0, every_ms: int = 15_000) -> list[tuple[int, float]]:
    return [(END_MS - every_ms * back, value) for back in reversed(range(count))]


async def asked(url: str, promql: str, *, at_ms: int = END_MS) -> list[float]:
    async with PrometheusClient(url) as client:
        answer = await client.query(promql, at_ms=at_ms)
    return [float(row.value[1]) for rows in vector_rows(answer) for row in rows]


async def test_history_over_two_blocks_is_counted_whole_and_labels_come_back() -> None:
    async with backfilled_prometheus([Series("m", LABELS, samples(1_000))]) as url:
        assert await asked(url, 'count_over_time(m{UUID="GPU-\\"a\\"\\\\"}[1d])') == [1_000.0]
        assert await asked(url, "m", at_ms=END_MS + 4 * 60_000) == [1.0]
        assert await asked(url, "m", at_ms=END_MS + 6 * 60_000) == []


async def test_values_that_are_no_numbers_show_in_a_sum_and_nowhere_else() -> None:
    spoilt = [*samples(10)[:-1], (END_MS, float("nan"))]
    async with backfilled_prometheus([Series("m", {}, spoilt)]) as url:
        assert await asked(url, "max_over_time(m[1h])") == [1.0]
        assert [value != value for value in await asked(url, "sum_over_time(m[1h])")] == [True]  # noqa: PLR0124


async def test_a_text_that_promtool_does_not_read_is_told_in_its_words() -> None:
    with pytest.raises(DevclusterError, match=r"promtool made no blocks: .*invalid syntax"):
        async with backfilled_prometheus([Series("no metric name", {}, samples(10))]):
            pass
