"""What people reported about GPU metrics, back-filled into a real Prometheus: each entry gets its right answer."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from devcluster.backfill import Series, backfilled_prometheus
from tests.cluster.backfilled import END_MS, MINUTE_MS, TIMES, WINDOW_MS, planned
from tests.fixtures.report_worlds import WORLDS, Line, ReportWorld

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(150)]

_NAMESPACES = ("namespace", "exported_namespace", "pod_namespace", "podnamespace")


def place_of(number: int) -> str:
    """The namespace of a world: servers are found by name, so that no two worlds may share one."""
    return f"ml-{number}"


def _samples(line: Line) -> Iterator[tuple[int, float]]:
    start_ms = END_MS - WINDOW_MS
    for number, at_ms in enumerate(TIMES):
        minute = (at_ms - start_ms) / MINUTE_MS
        if any(begin <= minute <= end for begin, end in line.minutes):
            yield at_ms, line.value + number * line.step


def history_of(number: int, world: ReportWorld) -> Iterator[Series]:
    """The world's series under its own job, in its own namespace; lines that are one series are joined."""
    joined: dict[tuple[str, frozenset[tuple[str, str]]], dict[int, float]] = {}
    for line in world.lines:
        own = {k: place_of(number) if k in _NAMESPACES and v == "ml" else v for k, v in line.labels.items()}
        key = (line.metric, frozenset((own | {"job": f"job-{number}"}).items()))
        joined.setdefault(key, {}).update(_samples(line))
    for (metric, labels), samples in joined.items():
        yield Series(metric, dict(labels), sorted(samples.items()))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def store() -> AsyncIterator[str]:
    written = (one for number, world in enumerate(WORLDS) for one in history_of(number, world))
    async with backfilled_prometheus(written) as url:
        yield url


@pytest.mark.parametrize("number", range(len(WORLDS)), ids=[world.name for world in WORLDS])
@pytest.mark.asyncio(loop_scope="session")
async def test_every_report_gets_its_right_answer(number: int, store: str) -> None:
    world = WORLDS[number]
    objects = [_moved(document, place_of(number)) for document in world.objects]
    found = await planned(store, f"job-{number}", objects)
    told = {row.workload.name: row for row in found.rows}

    for pod, right in world.verdicts.items():
        row = told[pod.rpartition("-")[0]]
        assert row.verdict in right, f"{pod}: {row.reason.value}: {row.detail}"
    if not world.may_act:
        assert [action.target.name for action in found.actions] == []


def _moved(document: dict[str, object], namespace: str) -> dict[str, object]:
    meta = document["metadata"]
    assert isinstance(meta, dict)
    return (
        {**document, "metadata": {**meta, "namespace": namespace}}
        if meta.get("namespace") == "ml"
        else document
    )
