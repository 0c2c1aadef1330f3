"""What is read of one scrape offline is what a real Prometheus answers that has had these values for as long."""

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

import msgspec
import numpy as np
import pytest
import pytest_asyncio

from autoscaler.observe.exposition import parse_exposition
from autoscaler.observe.profiles import Profile, load_profiles
from autoscaler.observe.prometheus import PrometheusClient
from autoscaler.observe.reader import SeriesReader, Spans, Store
from autoscaler.observe.series import Column, ProfileSeries, SeriesReading
from autoscaler.observe.serving import load_serving_profiles
from autoscaler.observe.still_store import StillStore
from autoscaler.service.config_root import shipped_config
from devcluster.backfill import Series, backfilled_prometheus
from tests.fixtures.objects import EXPORTERS, exporter_text

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(150)]

NOW_MS = 1_767_225_600_000
INTERVAL_MS = 15_000
SPANS = Spans(window_ms=30 * 60_000, history_ms=2 * 3_600_000)
SERVING = load_serving_profiles(shipped_config() / "profiles" / "serving")
SERVERS = {"sglang", "tgi", "triton", "vllm", "vllm-old"}
NAMES = sorted(path.stem for path in EXPORTERS.glob("*.prom"))


def filled(name: str) -> Iterable[Series]:
    """Every series of a text with its one value, for longer than the history."""
    start_ms = NOW_MS - SPANS.history_ms - 10 * INTERVAL_MS
    times = range(start_ms, NOW_MS + 1, INTERVAL_MS)
    for sample in parse_exposition(exporter_text(name)).samples:
        labels = {**sample.labels, "fixture": name}
        yield Series(sample.name, labels, [(at_ms, sample.value) for at_ms in times])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def prometheus() -> AsyncIterator[str]:
    async with backfilled_prometheus(series for name in NAMES for series in filled(name)) as url:
        yield url


def profiles_of(name: str) -> list[Profile]:
    return [
        msgspec.structs.replace(profile, match={"fixture": name})
        for profile in load_profiles(shipped_config() / "profiles")
    ]


def by_identity(series: ProfileSeries) -> Mapping[str, Any]:
    """Every value of a profile's series by what it is a value of, whatever the positions."""
    found: dict[str, Any] = {"peaks": dict(series.board_peaks), "targets": series.targets}
    columns: list[tuple[str, msgspec.Struct]] = [("boards", series.boards)]
    for signal in series.signals:
        metric = signal.source.signal
        columns += [(f"{metric} window", signal.window), (f"{metric} history", signal.history)]
        found[f"{metric} interval"] = signal.source.interval_ms
    for where, struct in columns:
        for field, value in msgspec.structs.asdict(struct).items():
            for number, column in enumerate((value,) if isinstance(value, Column) else value):
                for i in np.flatnonzero(column.seen).tolist():
                    found[f"{where} {field} {number} {series.identities[i]}"] = repr(float(column.values[i]))
    return found


async def reading(store: Store, profiles: list[Profile]) -> SeriesReading:
    reader = SeriesReader(store, profiles, serving=SERVING, at_ms=NOW_MS)
    return await reader.read(SPANS, api_now_ms=lambda: NOW_MS)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", NAMES)
async def test_a_scrape_reads_as_a_store_filled_with_it(name: str, prometheus: str) -> None:
    profiles = profiles_of(name)
    samples = [
        msgspec.structs.replace(sample, labels={**sample.labels, "fixture": name})
        for sample in parse_exposition(exporter_text(name)).samples
    ]
    offline = await reading(StillStore(samples, now_ms=NOW_MS, interval_ms=INTERVAL_MS), profiles)
    async with PrometheusClient(prometheus) as client:
        live = await reading(client, profiles)

    assert (live.fault, offline.fault) == ("", "")
    assert bool(offline.profiles) == (name not in {*SERVERS, "kube-state-metrics"})
    assert bool(offline.serving) == (name in SERVERS)
    # Servers' profiles state no labels to match: the store has those of all texts.
    assert set(offline.serving) <= set(live.serving)
    assert [by_identity(series) for series in live.profiles] == [by_identity(s) for s in offline.profiles]
