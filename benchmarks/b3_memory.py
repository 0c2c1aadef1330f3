"""B3: the memory of the real service on the largest cluster, over three cycles and one full relist of everything.

The API server and the metrics store run in processes of their own: what is weighed is what an operator's Deployment weighs.
At a part of the size the service's own weight stays, and only what is above it is scaled.
"""

import asyncio
import gc
import time

import aiohttp

from benchmarks.bars import Result
from benchmarks.live_service import WINDOWS, Peers, peers, running
from benchmarks.memory import resident_mib

PODS = 150_000
CYCLES = 3
RESIDENT_MIB = 450.0
PEAK_MIB = 600.0
FIXED_MIB = 30.0
"""What the service loads once it runs, whatever the cluster's size; it is not scaled down with it."""


def run(scale: float) -> Result:
    """Resident memory once the last cycle is over, against the bar; the peak's bar is judged too."""
    pods = max(15_000, round(PODS * scale))
    share = pods / PODS
    with peers(pods, **WINDOWS, AUTOSCALER_CYCLE="1s") as against:
        gc.collect()
        base, _ = resident_mib()
        started = time.monotonic()
        resident, peak, fleet = asyncio.run(_measure(against))
        seconds = time.monotonic() - started
    fixed = base + FIXED_MIB
    resident_bar, peak_bar = (fixed + (bar - fixed) * share for bar in (RESIDENT_MIB, PEAK_MIB))
    return Result(
        id="B3",
        value=resident,
        unit="MiB resident",
        bar=f"<= {resident_bar:.0f} and <= {peak_bar:.0f} at the peak",
        ok=resident <= resident_bar and peak <= peak_bar and fleet["workloads"] > 0,
        extra={
            "pods": pods,
            "boards": fleet["boards"],
            "units": fleet["units"],
            "coverage": fleet["coverage"],
            "cycles": CYCLES,
            "relists": 1,
            "peak_mib": round(peak, 1),
            "before_reading_mib": round(base, 1),
            "bar_at_full_size": f"<= {RESIDENT_MIB:g} and <= {PEAK_MIB:g} at the peak",
            "seconds": round(seconds, 1),
        },
    )


async def _measure(against: Peers) -> tuple[float, float, dict[str, float]]:
    async with running(against) as service:
        await service.await_plans(CYCLES - 1)
        await _relist_everything(against.api_url)
        # The plan that was being made while the lists came in may rest on what was there before.
        await service.await_plans(len(service.plans) + 2)
        resident, peak = resident_mib()
        last = list(service.plans.values())[-1]
    return resident, peak, last["fleet"]


async def _relist_everything(api_url: str) -> None:
    """Ends every watch with 410 and waits until each kind was listed once more."""
    async with aiohttp.ClientSession() as session:

        async def lists() -> dict[str, int]:
            async with session.get(f"{api_url}/bench/lists") as answer:
                return dict(await answer.json())

        before = await lists()
        async with session.post(f"{api_url}/bench/expire") as answer:
            answer.raise_for_status()
        while any(count == before[kind] for kind, count in (await lists()).items() if before[kind]):
            await asyncio.sleep(0.1)
