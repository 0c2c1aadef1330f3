"""Every exporter's text, written into the history of a real Prometheus, and what the real reader makes of it.

Each text fills the window with its values; only energy counters move, as on a board that somebody reads.
"""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from autoscaler.observe.exposition import parse_exposition
from devcluster.backfill import Series, backfilled_prometheus
from tests.cluster.backfilled import ENERGY, TIMES, planned
from tests.fixtures.objects import exporter_text
from tests.fixtures.verdict_worlds import WORLDS, VerdictWorld

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(150)]

SERVERS = frozenset({"vllm", "vllm-old", "tgi", "triton", "sglang"})


def job_of(text: str) -> str:
    return f"job-{text}"


def history_of(text: str) -> Iterator[Series]:
    """The series of a text over the span; 60 J are used between two scrapes."""
    for sample in parse_exposition(exporter_text(text)).samples:
        step = 60_000.0 if sample.name in ENERGY else 0.0
        values = [(at, sample.value + step * number) for number, at in enumerate(TIMES)]
        yield Series(sample.name, {**sample.labels, "job": job_of(text)}, values)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def devices() -> AsyncIterator[str]:
    """A store with the texts of all exporters of devices."""
    texts = sorted({world.text for world in WORLDS} - SERVERS)
    async with backfilled_prometheus(one for text in texts for one in history_of(text)) as url:
        yield url


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def servers() -> AsyncIterator[str]:
    """One with the texts of all inference servers: their pods are found by name, whatever job scrapes them."""
    async with backfilled_prometheus(one for text in sorted(SERVERS) for one in history_of(text)) as url:
        yield url


@pytest.mark.parametrize("world", WORLDS, ids=[world.name for world in WORLDS])
@pytest.mark.asyncio(loop_scope="session")
async def test_every_exporters_pods_are_judged_as_the_reference_says(
    world: VerdictWorld, devices: str, servers: str
) -> None:
    url = servers if world.text in SERVERS else devices
    found = await planned(url, job_of(world.text), world.objects)
    verdicts = {str(row.workload): row.verdict for row in found.rows}

    for pod, right in world.verdicts.items():
        assert verdicts[pod] in right, f"{pod}: {verdicts}"


def test_every_text_of_an_exporter_has_its_world() -> None:
    folder = Path(__file__).parents[1] / "fixtures" / "exporters"
    texts = {path.stem for path in folder.glob("*.prom")}

    assert texts - {world.text for world in WORLDS} == {"kube-state-metrics"}
