"""Runs a scenario with the service beside it: live until Ctrl-C, or once with the expected plan asserted."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import msgspec
from rich.console import Console
from rich.live import Live

from autoscaler.model.plan import Plan
from devcluster.audit import describe
from devcluster.cluster import Cluster, running_cluster
from devcluster.demo.expectation import Expected, differences, load_expectation
from devcluster.demo.screen import Facts, frame
from devcluster.demo.service import ACCOUNT, NAMESPACE, DemoService, start_service
from devcluster.errors import DevclusterError
from devcluster.processes import fail_if_dead
from devcluster.scenario import load_scenario

_LOOK_INTERVAL_S = 0.5
_PLAN_DEADLINE_S = 150.0
_STOP_GRACE_S = 10.0


@dataclass
class Show:
    """A running demonstration: the cluster, the service and what was last seen of its plan."""

    cluster: Cluster
    service: DemoService
    session: aiohttp.ClientSession
    started_s: float
    plan: Plan | None = None
    readiness: str = field(default="")

    async def look(self) -> None:
        """Fetches the newest plan; a component that died ends the show with its log's tail."""
        fail_if_dead([*self.cluster.components(), self.service.component])
        document = await self.service.plan(self.session)
        if document is None:
            self.readiness = await self.service.readiness(self.session)
        else:
            self.plan = document.plan

    def facts(self) -> Facts:
        """What the header states."""
        return Facts(
            api_server_url=self.cluster.server_url,
            prometheus_url=self.cluster.prometheus_url,
            service_url=self.service.url,
            elapsed_s=time.monotonic() - self.started_s,
        )

    def writes(self) -> list[str]:
        """What the service's identity wrote, by the API server's audit log."""
        return [describe(event) for event in self.cluster.writes_by_service_account(NAMESPACE, ACCOUNT)]


async def demonstrate(scenario_path: Path, *, once: bool) -> int:
    """Plays the scenario; exit code 0 if all is as it should be."""
    for name in [name for name in os.environ if name.startswith("AUTOSCALER_")]:
        del os.environ[name]  # settings of another cluster have no business here
    started_s = time.monotonic()
    me = asyncio.current_task()
    if me is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, me.cancel)
    scenario = load_scenario(scenario_path)
    expected = load_expectation(scenario_path.with_suffix(".expected.yaml"))
    _say(
        "starting etcd, kube-apiserver, scheduler, controller-manager, KWOK, Prometheus and the GPU exporter"
    )
    async with (
        running_cluster() as cluster,
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(5)) as session,
    ):
        await cluster.play(scenario)
        service = await start_service(cluster)
        show = Show(cluster, service, session, started_s)
        try:
            return await (_once(show, expected) if once else _live(show))
        finally:
            await service.component.stop(_STOP_GRACE_S)


def _say(text: str) -> None:
    print(f"demo: {text}", file=sys.stderr, flush=True)


async def _live(show: Show) -> int:
    console = Console()
    if not console.is_terminal:
        return await _print_changes(show, console)
    with Live(console=console, screen=True, auto_refresh=False, vertical_overflow="crop") as live:
        while True:
            await show.look()
            live.update(frame(show.plan, show.facts(), show.readiness), refresh=True)
            await asyncio.sleep(_LOOK_INTERVAL_S)


async def _print_changes(show: Show, console: Console) -> int:
    """Where there is no terminal: the picture again whenever a workload's outcome changes."""
    last: list[tuple[str, str]] = []
    while True:
        await show.look()
        now = [(str(row.workload), row.reason.value) for row in show.plan.rows] if show.plan else []
        if now != last:
            console.print(frame(show.plan, show.facts(), show.readiness))
            last = now
        await asyncio.sleep(_LOOK_INTERVAL_S)


async def _once(show: Show, expected: Mapping[str, Expected]) -> int:
    """Waits for the expected plan, then proves that nothing was written; the last line is JSON."""
    _say("waiting for a full evidence window and the expected plan")
    deadline_s = time.monotonic() + _PLAN_DEADLINE_S
    wrong = ["no plan yet"]
    while wrong and time.monotonic() < deadline_s:
        await asyncio.sleep(_LOOK_INTERVAL_S)
        await show.look()
        wrong = differences(show.plan.rows, expected) if show.plan else ["no plan yet"]
    Console(width=150).print(frame(show.plan, show.facts(), show.readiness))
    writes = show.writes()
    for line in [*wrong, *(f"unexpected write: {write}" for write in writes)]:
        _say(line)
    summary = {
        "ok": not wrong and not writes,
        "planned": len(show.plan.actions) if show.plan else 0,
        "acts": len(writes),
        "undone": 0,
        "refusals": show.plan.refusals_by_reason() if show.plan else {},
        "seconds": round(time.monotonic() - show.started_s, 1),
    }
    if wrong or writes:
        show.cluster.keep_run_dir = True
    print(msgspec.json.encode(summary).decode(), flush=True)
    return 0 if summary["ok"] else 1


def run_demo(scenario_path: Path, *, once: bool) -> int:
    """The exit code of a demonstration; Ctrl-C is its normal end."""
    try:
        return asyncio.run(demonstrate(scenario_path, once=once))
    except DevclusterError as error:
        _say(str(error))
        return 1
    except (KeyboardInterrupt, asyncio.CancelledError):
        _say("stopped")
        return 0
