"""Runs a scenario with the service beside it: live for some days or until Ctrl-C, or one day as fast as it goes.

The first Ctrl-C ends the story and puts everything back, the second stops at once.
"""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from devcluster.audit import Reader
from devcluster.cluster import Cluster, running_cluster
from devcluster.demo.cast import cast_of
from devcluster.demo.display import Display, say
from devcluster.demo.expectation import load_expectation
from devcluster.demo.owners import Operator, Owners
from devcluster.demo.phases import Claims
from devcluster.demo.player import Player
from devcluster.demo.service import POLICY, start_service
from devcluster.demo.show import Show, keep_watching, new_witness
from devcluster.demo.story import Story
from devcluster.errors import DevclusterError
from devcluster.scenario import Scenario, load_scenario

_STOP_GRACE_S = 10.0
_DAYS_SHOWN = 6
"""The acts of the morning and six nights of evictions are 29 boards; the service's budget of an hour is the fleet's 32."""


class Interrupts:
    """What a Ctrl-C ends: the guarded part if there is one, else everything."""

    def __init__(self, everything: asyncio.Task[Any]) -> None:
        self._everything = everything
        self._guarded: asyncio.Task[None] | None = None

    def __call__(self) -> None:
        """A Ctrl-C."""
        guarded, self._guarded = self._guarded, None
        (guarded or self._everything).cancel()

    async def guard(self, part: Coroutine[Any, Any, None]) -> bool:
        """Whether the part came to its own end; False after the Ctrl-C that ended it."""
        task = self._guarded = asyncio.create_task(part, name="story")
        try:
            await asyncio.wait([task])
        finally:
            interrupted, self._guarded = self._guarded is None, None
            task.cancel()
        if interrupted:
            with contextlib.suppress(asyncio.CancelledError):
                await task
            return False
        await task
        return True


async def demonstrate(scenario_path: Path, *, once: bool) -> int:
    """Plays the scenario; exit code 0 if all is as it should be."""
    for name in [name for name in os.environ if name.startswith("AUTOSCALER_")]:
        del os.environ[name]  # settings of another cluster have no business here
    started_s = time.monotonic()
    me = asyncio.current_task()
    if me is None:
        raise RuntimeError("a demonstration runs in a task")
    interrupts = Interrupts(me)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, me.cancel)
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupts)
    scenario = load_scenario(scenario_path)
    claims = Claims(cast_of(scenario), load_expectation(scenario_path.with_suffix(".expected.yaml")))
    say("starting etcd, kube-apiserver, scheduler, controller-manager, KWOK, Prometheus and the GPU exporter")
    async with running_cluster() as cluster, _prepared(cluster, scenario, claims) as (show, operator):
        story = Story(in_no_hurry=not once)
        display = Display(show, story, started_s, is_live=not once)
        player = Player(show, Owners(cluster, scenario, claims.cast), operator, story, display.draw)
        with display:
            ended = await interrupts.guard(player.play(days=1 if once else _DAYS_SHOWN))
        if not ended:
            say("putting everything back; Ctrl-C again stops at once")
        await player.put_back()
        display.print_last()
        return _conclude(player, seconds=time.monotonic() - started_s)


@asynccontextmanager
async def _prepared(
    cluster: Cluster, scenario: Scenario, claims: Claims
) -> AsyncIterator[tuple[Show, Operator]]:
    """The scenario is set up and watched, and the service runs beside it."""
    witness = new_witness(claims.cast)
    operator = Operator(POLICY, cluster.run_dir / "policy.yaml")
    operator.allow("recommend")
    watching = asyncio.create_task(keep_watching(cluster, witness), name="witness")
    try:
        await cluster.play(scenario)
        service = await start_service(cluster, operator.policy_file)
        try:
            async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(5)) as session:
                audit = Reader(cluster.audit_log)
                yield Show(cluster, service, session, claims, witness, watching, audit), operator
        except BaseException:
            service.component.kill()  # whoever cuts this short does not want to wait for it
            raise
        finally:
            await service.component.stop(_STOP_GRACE_S)
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


def _conclude(player: Player, *, seconds: float) -> int:
    """Tells all faults and, in the last line, the figures."""
    show, ok = player.show, not player.faults
    for line in player.faults:
        say(line)
    summary = {
        "ok": ok,
        "acts": show.deeds.acts,
        "undone": player.undone,
        "evictions": len(show.deeds.evicted),
        "refusals": show.plan.refusals_by_reason() if show.plan else {},
        "seconds": round(seconds, 1),
    }
    show.cluster.keep_run_dir = not ok
    print(msgspec.json.encode(summary).decode(), flush=True)
    return 0 if ok else 1


def run_demo(scenario_path: Path, *, once: bool) -> int:
    """The exit code of a demonstration; Ctrl-C is its normal end."""
    try:
        return asyncio.run(demonstrate(scenario_path, once=once))
    except DevclusterError as error:
        say(str(error))
        return 1
    except (KeyboardInterrupt, asyncio.CancelledError):
        say("stopped")
        return 0
