"""Keeps the workloads' history beside the cycles: each cycle shows what it read, this task asks for what is missing.

It never holds a cycle up. What a cycle judges is the history as it stands then; a history that is not yet full is a
thin one, and thin history takes nothing away.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from autoscaler.model.history import WorkloadHistory
from autoscaler.model.policy import Policy
from autoscaler.model.snapshot import Snapshot
from autoscaler.observe.history.feed import (
    HistoryFeed,
    HistorySource,
    HistorySpans,
    RangeSource,
    history_sources,
)
from autoscaler.observe.history.past import PastOwners
from autoscaler.observe.history.registry import Registry
from autoscaler.observe.history.seeding import Progress
from autoscaler.observe.matrix import MatrixAnswer
from autoscaler.observe.series import SeriesReading
from autoscaler.observe.stores import StoresView
from autoscaler.service.clock import Clock
from autoscaler.service.logs import Log
from autoscaler.service.readiness import CheckResult

LOOK_EVERY_S: Final = 0.5
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
    sources: tuple[HistorySource, ...]
    store_ms: int
    spans: HistorySpans


class Remembering:
    """One feed and its task. `latest` may be read at any time."""

    def __init__(
        self,
        client: RangeSource,
        *,
        clock: Clock,
        log: Log,
        told: Callable[[Progress], None] = lambda _progress: None,
    ) -> None:
        """`told` hears how far it is after every piece."""
        self._heard = told
        self._client = client
        self._reading = 0
        self._feed = HistoryFeed(self)
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

    @contextmanager
    def aside(self) -> Iterator[None]:
        """While a cycle reads, nothing is asked for: two large answers at once would be held in memory together."""
        self._reading += 1
        try:
            yield
        finally:
            self._reading -= 1

    async def query_range(self, promql: str, *, start_ms: int, end_ms: int, step_ms: int) -> MatrixAnswer:
        """The store's answer, asked for while no cycle reads."""
        while self._reading:
            await self._clock.sleep(LOOK_EVERY_S)
        return await self._client.query_range(promql, start_ms=start_ms, end_ms=end_ms, step_ms=step_ms)

    def saw(self, stores: StoresView, reading: SeriesReading, snapshot: Snapshot, policy: Policy) -> None:
        """What a cycle looked at; kept only while it is wanted, from any thread."""
        if self._wants and not reading.fault:
            evidence, need = policy.evidence, policy.need
            spans = HistorySpans(int(need.history_window), int(evidence.window), evidence.active_floor)
            self._seen = _Seen(
                stores=stores,
                snapshot=snapshot,
                sources=history_sources(reading),
                store_ms=reading.store_ms,
                spans=spans,
            )

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
            if self._feed.has_work(seen.store_ms):
                registry = Registry(await asyncio.to_thread(PastOwners.of, seen.stores, seen.snapshot))
                sources, spans, now_ms = seen.sources, seen.spans, seen.store_ms
                # The view of the cluster is large: it does not stay for as long as pieces are asked for.
                del seen
                await self._catch_up(sources, registry, spans, now_ms)

    async def _catch_up(
        self, sources: tuple[HistorySource, ...], registry: Registry, spans: HistorySpans, now_ms: int
    ) -> None:
        """All that can be asked for now, as long as what is known of the cluster is fresh."""
        began_s, more = self._clock.monotonic_s(), True
        while more and self._clock.monotonic_s() - began_s < FRESH_FOR_S:
            more = await self._feed.advance(sources, registry, spans=spans, now_ms=now_ms)
            self._tell()
            await self._clock.sleep(PAUSE_S)

    def _tell(self) -> None:
        """One line for each tenth and for each new fault."""
        progress = self.progress
        self._heard(progress)
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
