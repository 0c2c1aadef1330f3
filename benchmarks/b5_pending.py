"""B5: from a pod that turns unschedulable, as a watch event, to the plan that says who makes room for it.

The nodes are full. The reading of the metrics store is there already: it is of windows, and one of a moment ago serves.
Processor time of the thread that does all of it; what an event waits for besides (the debounce) is a policy's choice.
"""

import asyncio
import gc
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import numpy as np

from autoscaler.decide import plan
from autoscaler.kube import ClusterAccess, KubeSession, Reflector, SessionLimits
from autoscaler.kube.kinds import KINDS
from autoscaler.kube.wire import Pod
from autoscaler.model.plan import Plan
from autoscaler.observe.assemble import assemble
from autoscaler.observe.profiles import load_profiles
from autoscaler.observe.prometheus import PrometheusClient
from autoscaler.observe.reader import SeriesReader
from autoscaler.observe.series import SeriesReading
from autoscaler.observe.stores import Stores
from autoscaler.service.config_root import shipped_config
from autoscaler.service.peers import spans_of
from benchmarks.bars import Result
from benchmarks.live_service import Peers, peers
from benchmarks.snapshots import policy
from benchmarks.synthetic import pending_pod_document

PODS = 150_000
SIZES = (1, 2, 4)
"""Boards that the pods wait for, in turn."""
MOST = 100
LEAST = 20
"""As many pods as two minutes allow, between these."""
BUDGET_S = 120.0
BAR_MS = 250.0
FIXED_MS = 25.0
"""What a plan costs whatever the size of the cluster; at a part of the size only the rest of the bar is scaled."""


@dataclass(frozen=True)
class Cluster:
    """What the service has in memory when the event comes."""

    stores: Stores
    reading: SeriesReading


def run(scale: float) -> Result:
    """The 99th percentile over pods of different sizes, each alone."""
    pods = max(15_000, round(PODS * scale))
    bar_ms = FIXED_MS + (BAR_MS - FIXED_MS) * pods / PODS
    with peers(pods) as against:
        cluster = asyncio.run(_read(against))
    seats = 0
    spent_ms: dict[str, list[float]] = {}
    for steps, made in _plans(cluster):
        seats += any(action.method == "make-room" for action in made.actions)
        for name, ms in steps.items():
            spent_ms.setdefault(name, []).append(ms)
    value = float(np.percentile(spent_ms["all"], 99))
    return Result(
        id="B5",
        value=value,
        unit="CPU-ms p99",
        bar=f"<= {bar_ms:g}, and somebody makes room for each",
        ok=value <= bar_ms and seats == len(spent_ms["all"]),
        extra={
            "pods": pods,
            "plans": len(spent_ms["all"]),
            "seats": seats,
            **{f"median_ms_{name}": round(float(np.median(found)), 1) for name, found in spent_ms.items()},
            "bar_at_full_size": f"<= {BAR_MS:g}",
        },
    )


async def _read(against: Peers) -> Cluster:
    stores = Stores(policy().resources)
    limits = SessionLimits(reads_per_s=500, reads_burst=500)
    async with KubeSession(ClusterAccess(server=against.api_url), limits=limits) as session:
        for name, store in stores.writers.items():
            reflector = Reflector(session, KINDS[name], store)
            task = asyncio.create_task(reflector.run())
            await reflector.wait_synced()
            task.cancel()
            await asyncio.wait({task})
    async with PrometheusClient(against.store_url) as client:
        reader = SeriesReader(client, load_profiles(shipped_config() / "profiles"), deadline_s=600.0)
        reading = await reader.read(spans_of(policy()), api_now_ms=lambda: None)
    if reading.fault:
        raise RuntimeError(f"the store failed: {reading.fault}")
    return Cluster(stores, msgspec.structs.replace(reading, read_ms=0))


def _plans(cluster: Cluster) -> Iterator[tuple[dict[str, float], Plan]]:
    """Milliseconds of each step and the plan, for one pod after the other."""
    rules, until_s = policy(), time.monotonic() + BUDGET_S
    for number in range(MOST):
        if number >= LEAST and time.monotonic() > until_s:
            return
        document = pending_pod_document(number, gpus=SIZES[number % len(SIZES)])
        pod = msgspec.json.decode(json.dumps(document), type=Pod)
        gc.collect()
        gc.disable()
        began = time.thread_time()
        cluster.stores.pods.apply(pod)
        frozen = cluster.stores.freeze()
        froze = time.thread_time()
        snapshot = assemble(frozen, cluster.reading, now_ms=cluster.reading.store_ms)
        assembled = time.thread_time()
        made = plan(snapshot, rules, snapshot.taken_ms)
        ended = time.thread_time()
        gc.enable()
        cluster.stores.pods.delete(pod)
        steps = {
            "freeze": froze - began,
            "assemble": assembled - froze,
            "decide": ended - assembled,
            "all": ended - began,
        }
        yield {name: seconds * 1000 for name, seconds in steps.items()}, made
