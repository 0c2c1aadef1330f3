"""B7: how late the event loop is while the real service reads, assembles and plans a large cluster."""

import asyncio
import time

import numpy as np

from benchmarks.bars import Result
from benchmarks.live_service import Peers, peers, running

PODS = 150_000
CYCLES = 3
BAR_MS = 50.0
TICK_S = 0.002


def run(scale: float) -> Result:
    """The 99th percentile of the loop's lateness, from the first request to the third plan."""
    pods = max(10_000, round(PODS * scale))
    with peers(pods, AUTOSCALER_CYCLE="1s") as against:
        lags_ms, seconds, rows = asyncio.run(_measure(against))
    value = float(np.percentile(lags_ms, 99))
    return Result(
        id="B7",
        value=value,
        unit="ms p99",
        bar=f"<= {BAR_MS:g}",
        ok=value <= BAR_MS and rows > 0,
        extra={
            "pods": pods,
            "workloads": rows,
            "cycles": CYCLES,
            "seconds": round(seconds, 1),
            "p50_ms": round(float(np.percentile(lags_ms, 50)), 2),
            "max_ms": round(float(max(lags_ms)), 1),
            "ticks": len(lags_ms),
        },
    )


async def _measure(against: Peers) -> tuple[list[float], float, int]:
    lags_ms: list[float] = []
    started = time.monotonic()
    async with running(against) as service:
        sampler = asyncio.create_task(_sample(lags_ms))
        try:
            await service.await_plans(CYCLES)
        finally:
            sampler.cancel()
        last = list(service.plans.values())[-1]
    return lags_ms, time.monotonic() - started, last["fleet"]["workloads"]


async def _sample(lags_ms: list[float]) -> None:
    while True:
        before = time.monotonic()
        await asyncio.sleep(TICK_S)
        lags_ms.append((time.monotonic() - before - TICK_S) * 1000)
