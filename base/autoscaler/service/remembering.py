"""Keeps the workloads' history beside the cycles: each cycle shows what it read, this task asks for what is missing.

It never holds a cycle up. What a cycle judges is the history as it stands then; a history that is not yet full is a
thin one, and thin history takes nothing away.
"""

import asyncio
from dataclasses import dataclass
from typing import Final

from autoscaler.model.history import WorkloadHistory
from autoscaler.model.policy import Policy
from autoscaler.model.snapshot import Snapshot
from autoscaler.observe.history.feed import HistoryFeed, HistorySpans, RangeSource, history_sources
from autoscaler.observe.history.past import PastOwners
from autoscaler.observe.history.seeding import Progress
from autoscaler.observe.series import SeriesReading
from autoscaler.observe.stores import StoresView
from autoscaler.service.clock import Clock
from autoscaler.service.logs import Log
from autoscaler.service.readiness import CheckResult

LOOK_EVERY_S: Final = 1.0
PAUSE_S: Final = 0.5
"""Between pieces: the store has other readers."""
FRESH_FOR_S: Final = 120.0
"""Pods come and go: after this a later cycle's view is taken for the next pieces."""
_TOLD_EVERY: Final = 10
"""Progress is logged by the tenth."""


@dataclass(frozen=True, kw_only=True)
class _Seen:
    stores: StoresView
    snapshot: Snapshot
    reading: SeriesReading
    spans: HistorySpans


class Remembering:
    """One feed and its task. `latest` may be read at any time."""

    def __init__(self, client: RangeSource, *, clock: Clock, log: Log) -> None:
        self._feed = HistoryFeed(client)
        self._clock = clock
        self._log = log
        self._seen: _Seen | None = None
        self._wants = True
        self._told = (-1, "")

    @property
    def latest(self) -> tuple[WorkloadHistory, ...]:
        """The histories as they stand."""
        return self._feed.latest

    @property
    def progress(self) -> Progress:
        """How much of the history is counted."""
        return self._feed.progress

    def saw(self, stores: StoresView, reading: SeriesReading, snapshot: Snapshot, policy: Policy) -> None:
        """What a cycle looked at; kept only while it is wanted, from any thread."""
        if self._wants and not reading.fault:
            evidence, need = policy.evidence, policy.need
            spans = HistorySpans(int(need.history_window), int(evidence.window), evidence.active_floor)
            self._seen = _Seen(stores=stores, snapshot=snapshot, reading=reading, spans=spans)

    def check(self) -> CheckResult:
        """How far the history is, for readiness: nothing waits for it."""
        progress = self.progress
        whole = progress.total > 0 and progress.done == progress.total
        return CheckResult(
            name="history", ok=whole or not progress.fault, required=False, detail=str(progress)
        )

    async def run(self) -> None:
        """For ever."""
        while True:
            self._wants = True
            while (seen := self._seen) is None:
                await self._clock.sleep(LOOK_EVERY_S)
            self._wants, self._seen = False, None
            await self._catch_up(seen)

    async def _catch_up(self, seen: _Seen) -> None:
        """All that can be asked for now, as long as the view of the cluster is fresh."""
        now_ms, began_s = seen.reading.store_ms, self._clock.monotonic_s()
        if not self._feed.has_work(now_ms):
            return
        sources = history_sources(seen.reading)
        owners = await asyncio.to_thread(PastOwners.of, seen.stores, seen.snapshot)
        more = True
        while more and self._clock.monotonic_s() - began_s < FRESH_FOR_S:
            more = await self._feed.advance(sources, owners, spans=seen.spans, now_ms=now_ms)
            self._tell()
            await self._clock.sleep(PAUSE_S)

    def _tell(self) -> None:
        """One line for each tenth and for each new fault."""
        progress = self.progress
        tenth = _TOLD_EVERY * progress.done // max(progress.total, 1)
        fault = progress.fault.partition(":")[0]
        if (tenth, fault) == self._told:
            return
        self._told = (tenth, fault)
        numbers = {
            "done": progress.done,
            "total": progress.total,
            "step_s": progress.step_ms // 1000,
            "workloads": len(self.latest),
            "left_out": dict(self._feed.left_out),
        }
        if progress.fault:
            self._log.warning("history", error=progress.fault, **numbers)
        else:
            self._log.info("history", **numbers)
