"""B3: the memory of the real service on the largest cluster, after three cycles and one full relist of everything.

The API server and the metrics store run in processes of their own: what is weighed is what an operator's Deployment weighs: while it rests between two cycles, and at the peak of them.
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
MEASURED = 0.9
"""Least share of measured units: on a machine too busy to read in time all evidence is stale and its plans weigh less."""
REST_S, LOOKS = 3.0, 12
"""How long and how often is looked after a plan is there; the next cycle begins after twice that."""
FIXED_MIB, FIXED_PEAK_MIB = 35.0, 55.0
"""What the service takes once it runs, whatever the cluster's size; it is not scaled down with it."""


def run(scale: float) -> Result:
    """Resident memory once the last cycle is over, against the bar; the peak's bar is judged too."""
    pods = max(15_000, round(PODS * scale))
    share = pods / PODS
    with peers(pods, **WINDOWS, AUTOSCALER_CYCLE=f"{round(REST_S * 2)}s") as against:
        gc.collect()
        base, _ = resident_mib()
        started = time.monotonic()
        resident, peak, fleet = asyncio.run(_measure(against))
        seconds = time.monotonic() - started
    resident_bar = _scaled(RESIDENT_MIB, base + FIXED_MIB, share)
    peak_bar = _scaled(PEAK_MIB, base + FIXED_PEAK_MIB, share)
    return Result(
        id="B3",
        value=resident,
        unit="MiB resident",
        bar=f"<= {resident_bar:.0f} and <= {peak_bar:.0f} at the peak",
        ok=resident <= resident_bar and peak <= peak_bar and fleet["coverage"] > MEASURED,
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
        await service.await_plans(len(service.plans) + 1)
        looks = [await _look(REST_S / LOOKS) for _ in range(LOOKS)]
        last = list(service.plans.values())[-1]
    # The history is still being read in the background, a chunk every other second: at rest is what is left between two.
    return min(now for now, _ in looks), max(peak for _, peak in looks), last["fleet"]


def _scaled(bar: float, fixed: float, share: float) -> float:
    return fixed + (bar - fixed) * share


async def _look(after_s: float) -> tuple[float, float]:
    await asyncio.sleep(after_s)
    return resident_mib()


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
