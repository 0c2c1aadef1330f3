"""B7: how late the event loop is while the real service reads, assembles and plans a large cluster."""

import asyncio
import tempfile
import time
from pathlib import Path

import aiohttp
import numpy as np

from autoscaler.service.app import run_service
from autoscaler.service.logs import configure_logs
from autoscaler.service.settings import load_settings
from benchmarks.bars import Result
from benchmarks.servers import server_process

PODS = 150_000
CYCLES = 3
BAR_MS = 50.0
TICK_S = 0.002
DEADLINE_S = 900.0


def run(scale: float) -> Result:
    """The 99th percentile of the loop's lateness, from the first request to the third plan."""
    pods = max(10_000, round(PODS * scale))
    with server_process("cluster_server", str(pods)) as url, tempfile.TemporaryDirectory() as folder:
        lags_ms, seconds, rows = asyncio.run(_measure(url, Path(folder)))
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


async def _measure(url: str, folder: Path) -> tuple[list[float], float, int]:
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(_KUBECONFIG.format(url=url))
    environ = {
        "AUTOSCALER_KUBECONFIG": str(kubeconfig),
        "AUTOSCALER_PROMETHEUS_URL": f"{url}/prometheus",
        "AUTOSCALER_LISTEN": "127.0.0.1:0",
        "AUTOSCALER_CYCLE": "1s",
        "AUTOSCALER_API_QPS": "500",
        "AUTOSCALER_API_BURST": "500",
    }
    stop, address = asyncio.Event(), asyncio.get_running_loop().create_future()
    lags_ms: list[float] = []
    started = time.monotonic()
    with (folder / "log").open("w") as log:
        configure_logs(stream=log)
        service = asyncio.create_task(
            run_service(load_settings(environ), environ, stop=stop, on_listening=address.set_result)
        )
        sampler = asyncio.create_task(_sample(lags_ms))
        try:
            rows = await _await_plans(await asyncio.wait_for(address, 30), service)
        except RuntimeError as error:
            error.add_note((folder / "log").read_text()[-4000:])
            raise
        finally:
            sampler.cancel()
            stop.set()
            await service
    return lags_ms, time.monotonic() - started, rows


async def _sample(lags_ms: list[float]) -> None:
    while True:
        before = time.monotonic()
        await asyncio.sleep(TICK_S)
        lags_ms.append((time.monotonic() - before - TICK_S) * 1000)


async def _await_plans(address: tuple[str, int], service: "asyncio.Task[int]") -> int:
    """Rows of the plan, once the wanted number of cycles has passed."""
    seen: set[str] = set()
    workloads = 0
    deadline = time.monotonic() + DEADLINE_S
    async with aiohttp.ClientSession() as session:
        while len(seen) < CYCLES:
            if service.done() or time.monotonic() > deadline:
                raise RuntimeError(f"the service gave {len(seen)} of {CYCLES} plans")
            async with session.get(f"http://{address[0]}:{address[1]}/api/v1/plan?limit=1") as answer:
                if answer.status == 200:
                    document = await answer.json()
                    seen.add(document["decision_id"])
                    workloads = document["plan"]["fleet"]["workloads"]
                else:
                    await answer.read()
            await asyncio.sleep(0.25)
    return workloads


_KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: bench
contexts: [{{name: bench, context: {{cluster: bench, user: bench}}}}]
clusters: [{{name: bench, cluster: {{server: "{url}"}}}}]
users: [{{name: bench, user: {{token: bench}}}}]
"""
