"""B2: a watch stream through a socket from a server in its own process: split, decode, store."""

import asyncio
import contextlib
import time
from typing import Any

from kubernetes_asyncio import client, watch

from autoscaler.kube import ClusterAccess, KubeSession, Reflector
from autoscaler.kube.kinds import POD
from autoscaler.model.policy import Resources
from autoscaler.observe.pods import PodStore
from autoscaler.observe.shapes import ShapeTable
from autoscaler.service.garbage import GarbagePolicy
from benchmarks.bars import Result
from benchmarks.servers import server_process

EVENTS = 200_000
CLIENT_EVENTS = 2_000
BAR_EVENTS_PER_CPU_S = 20_000
CLIENT_BAR = 25.0


def run(scale: float) -> Result:
    """Events per second of processor time of the reading process."""
    events = max(20_000, round(EVENTS * scale))
    with server_process("watch_server") as url, GarbagePolicy().in_force():
        ours = asyncio.run(_ours(url, events))
        theirs = asyncio.run(_theirs(url, max(500, round(CLIENT_EVENTS * scale))))
    return Result(
        id="B2",
        value=ours,
        unit="events/CPU-s",
        bar=f">= {BAR_EVENTS_PER_CPU_S} and >= {CLIENT_BAR:g} x the client's Watch",
        ok=ours >= BAR_EVENTS_PER_CPU_S and ours / theirs >= CLIENT_BAR,
        extra={
            "events": events,
            "client_watch": round(theirs, 1),
            "faster_than_client": round(ours / theirs, 1),
        },
    )


async def _ours(url: str, events: int) -> float:
    store: Any = PodStore(ShapeTable(Resources()))
    async with KubeSession(ClusterAccess(server=url)) as session:
        reflector = Reflector(session, POD, store)
        task = asyncio.create_task(reflector.run())
        await reflector.wait_synced()
        while reflector.status.events == 0:
            await asyncio.sleep(0.001)
        first, started = reflector.status.events, time.process_time()
        while reflector.status.events - first < events and not task.done():
            await asyncio.sleep(0.01)
        spent = time.process_time() - started
        seen = reflector.status.events - first
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    return seen / spent


async def _theirs(url: str, events: int) -> float:
    async with client.ApiClient(client.Configuration(host=url)) as api:
        pods = client.CoreV1Api(api)
        stream = watch.Watch()
        seen, started = 0, time.process_time()
        async for _ in stream.stream(pods.list_pod_for_all_namespaces, resource_version="2000000"):
            seen += 1
            if seen >= events:
                break
        spent = time.process_time() - started
        stream.stop()
        await stream.close()
    return seen / spent
