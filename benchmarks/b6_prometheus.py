"""B6: the number of queries of a cycle, and what one answer of 40,000 series costs: parsed, placed and given owners.

It always runs whole: it takes seconds.
"""

import asyncio
import gc
import time
from collections.abc import Callable
from functools import partial

from autoscaler.model.snapshot import Snapshot
from autoscaler.observe.answers import Answer
from autoscaler.observe.attribution import Roster, attribute
from autoscaler.observe.hosts import Hosts
from autoscaler.observe.profiles import Profile, load_profiles
from autoscaler.observe.prometheus import PrometheusClient
from autoscaler.observe.queries import signal_queries
from autoscaler.observe.reader import SeriesReader
from autoscaler.observe.series import Positions, ProfileSeries, SeriesReading
from autoscaler.service.config_root import shipped_config
from autoscaler.service.peers import spans_of
from benchmarks.bars import Result
from benchmarks.live_service import Peers, peers
from benchmarks.servers import server_process
from benchmarks.snapshots import policy, snapshot_of

SERIES = 40_000
PODS = 93_750
"""As many as hold that many boards."""
FEW_PODS = 150
CYCLES = 3
ROUNDS = 5
BAR_S = 0.3


def run(_scale: float) -> Result:
    """Processor seconds of the first answer of a reading, whose labels nobody has seen; the best of a few."""
    with server_process("store_server", str(FEW_PODS)) as store_url:
        few = [reading.queries for reading in asyncio.run(_readings(store_url))]
    with peers(PODS) as against:
        cluster = snapshot_of(against)
        readings = asyncio.run(_readings(against.store_url))
        answer = asyncio.run(_one_answer(against))
    many = [reading.queries for reading in readings]
    first_s, again_s = _parse(answer)
    (series,) = [found for found in readings[-1].profiles if found.profile.name == "dcgm"]
    joined_s = _join(series, cluster, readings[-1].store_ms)
    value = first_s + joined_s
    return Result(
        id="B6",
        value=value,
        unit="CPU-s",
        bar=f"<= {BAR_S:g} for {SERIES} series, and the same number of queries for {FEW_PODS} and {PODS} pods",
        ok=value <= BAR_S and few == many and len(series.identities) == SERIES,
        extra={
            "series": len(series.identities),
            "megabytes": round(len(answer.result) / 1e6, 1),
            "queries_by_cycle": many,
            "queries_by_cycle_of_few": few,
            "parsed_s": round(first_s, 3),
            "parsed_again_s": round(again_s, 3),
            "joined_s": round(joined_s, 3),
        },
    )


def _profiles() -> tuple[Profile, ...]:
    return load_profiles(shipped_config() / "profiles")


def _dcgm() -> Profile:
    (profile,) = [one for one in _profiles() if one.name == "dcgm"]
    return profile


async def _readings(store_url: str) -> list[SeriesReading]:
    """Cycles in a row of one reader: the first also reads the history."""
    async with PrometheusClient(store_url) as client:
        reader = SeriesReader(client, _profiles(), deadline_s=600.0)
        readings = [await reader.read(spans_of(policy()), api_now_ms=lambda: None) for _ in range(CYCLES)]
    if faults := [reading.fault for reading in readings if reading.fault]:
        raise RuntimeError(f"the store failed: {faults[0]}")
    return readings


async def _one_answer(against: Peers) -> Answer:
    profile = _dcgm()
    queries = signal_queries(profile, profile.signals[0], window_ms=int(policy().evidence.window))
    async with PrometheusClient(against.store_url) as client:
        return await client.query(queries.maximum)


def _parse(answer: Answer) -> tuple[float, float]:
    profile = _dcgm()
    first_s = again_s = float("inf")
    for _ in range(ROUNDS):
        collect = partial(Positions(profile).collect, answer)
        first_s = min(first_s, _seconds(collect))
        again_s = min(again_s, _seconds(collect))
    return first_s, again_s


def _join(series: ProfileSeries, cluster: Snapshot, now_ms: int) -> float:
    roster = Roster.of(cluster.pods, {})
    hosts = Hosts.of(frozenset(node.name for node in cluster.nodes))

    def join() -> None:
        owners = attribute(series, roster, handover_ms=30_000, now_ms=now_ms, hosts=hosts)
        if not (owners.codes >= 0).all():
            raise RuntimeError("a series found no owner")

    return min(_seconds(join) for _ in range(ROUNDS))


def _seconds(work: Callable[[], object]) -> float:
    """Without the collector, which rests while a cycle thinks."""
    gc.collect()
    gc.disable()
    try:
        started = time.thread_time()
        work()
        return time.thread_time() - started
    finally:
        gc.enable()
