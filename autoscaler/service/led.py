"""Who decides and acts: this process, once it leads, or as soon as it starts where no lease is asked for.

Without a lease nothing is ever changed. A standby keeps its watches warm and makes no plan: two replicas would only say
the same, and figures of the fleet are one process' to publish.
"""

import asyncio
from dataclasses import dataclass
from typing import Final

from autoscaler.act.writer import Writer
from autoscaler.kube.session import KubeSession
from autoscaler.observe.series import SeriesReading
from autoscaler.service.clock import Clock
from autoscaler.service.cycle import Cycle
from autoscaler.service.event_recorder import EventRecorder
from autoscaler.service.frozen import FrozenCluster
from autoscaler.service.hands import Hands
from autoscaler.service.http import LedgerView
from autoscaler.service.leadership import Leadership, Term
from autoscaler.service.logs import Log
from autoscaler.service.policy_file import PolicySource
from autoscaler.service.readiness import CheckResult, lease_check
from autoscaler.service.tasks import guarded
from autoscaler.service.telemetry import Metrics

LiveCycle = Cycle[FrozenCluster, SeriesReading]
"""The cycle over the real stores and the real metrics store."""
_LOOK_S: Final = 1.0


@dataclass(frozen=True, kw_only=True)
class Led:
    """The deciding part of the process. `elects` is false where no lease is asked for until something may act."""

    session: KubeSession
    cycle: LiveCycle
    hands: Hands
    leadership: Leadership
    recorder: EventRecorder | None
    policy: PolicySource
    elects: bool
    may_elect: bool
    clock: Clock
    metrics: Metrics
    log: Log

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`; raises when the cycle dies."""
        if not self.elects:
            await self._alone(stop)
        if not stop.is_set():
            self.metrics.leads(leads=False)
            await self.leadership.lead(lambda term: self._lead(term, stop), stop)

    def standby_for(self) -> str:
        """Who leads while this process stands by; empty while it decides itself or nobody is known."""
        if not self._by_lease or self.leadership.term is not None:
            return ""
        return self.leadership.leader

    def ledger(self) -> LedgerView:
        """What was done, as it was read last; empty where nothing acts, since the ledger is not read then."""
        if not self.policy.loaded.policy.modes.acting:
            return LedgerView()
        return LedgerView(entries=list(self.hands.ledger.entries.values()), control=self.hands.control)

    def check(self) -> list[CheckResult]:
        """How the lease stands, where one is asked for."""
        if not self._by_lease:
            return []
        return [
            lease_check(
                leads=self.leadership.term is not None,
                leader=self.leadership.leader,
                fault=self.leadership.fault,
            )
        ]

    @property
    def _by_lease(self) -> bool:
        return self.elects or (self.may_elect and self.policy.loaded.policy.modes.acting)

    async def _alone(self, stop: asyncio.Event) -> None:
        """Plans without a lease, until `stop` or until something may act."""
        self.metrics.leads(leads=True)
        cycle = asyncio.create_task(self._cycle(), name="cycle")
        wanted = asyncio.create_task(self._wanted(), name="lease-wanted")
        stopping = asyncio.create_task(stop.wait(), name="cycle-stop")
        await _first_of(cycle, wanted, stopping)
        self.cycle.forget()

    async def _wanted(self) -> None:
        while not (self.may_elect and self.policy.loaded.policy.modes.acting):
            await self.clock.sleep(_LOOK_S)
        self.log.info("lease_wanted", because="a mode is apply")

    async def _lead(self, term: Term, stop: asyncio.Event) -> None:
        """One leadership: plans are made and carried out; it ends with the hands, which end their act in flight."""
        self.metrics.leads(leads=True)
        self.hands.rest(self.policy.loaded.policy)
        cycle = asyncio.create_task(self._cycle(), name="cycle")
        acting = asyncio.create_task(self.hands.lead(Writer(self.session, term), stop), name="hands")
        telling = [asyncio.create_task(self.recorder.run(), name="events")] if self.recorder else []
        try:
            await _first_of(cycle, acting, *telling)
        finally:
            self.cycle.forget()
            self.metrics.leads(leads=False)

    async def _cycle(self) -> None:
        await guarded("cycle", self.cycle.run(), log=self.log, metrics=self.metrics)


async def _first_of(*tasks: "asyncio.Task[None] | asyncio.Task[bool]") -> None:
    """Waits for the first to end, then cancels and awaits the others; raises what any of them died of."""
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.result()
