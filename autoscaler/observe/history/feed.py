"""Fills the histories of workloads from the metrics store, one piece at a time, for as long as the service runs.

It is the one way in: the past after a start and each step that closes later are asked for alike, so a restart gives back
what was there before. Decoding and counting run in a thread; only the waiting is on the event loop. One task calls it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, Protocol

import msgspec

from autoscaler.model.history import WorkloadHistory
from autoscaler.observe.answers import AnswerError
from autoscaler.observe.history.registry import Registry
from autoscaler.observe.history.seeding import Progress, SeedPlan, step_for
from autoscaler.observe.history.step_queries import memory_query, step_queries
from autoscaler.observe.history.steps import (
    COUNT,
    Grid,
    Measure,
    Place,
    SourceSteps,
    Table,
    activity_of,
    memory_of,
)
from autoscaler.observe.history.units import Gathering
from autoscaler.observe.history.workloads import WorkloadHistories
from autoscaler.observe.matrix import MatrixAnswer
from autoscaler.observe.profiles import Profile, Signal
from autoscaler.observe.series import SeriesReading
from autoscaler.observe.store_faults import BadQuery, PrometheusError, ServerError, TimedOut, TooLarge

PERCENTILE: Final = 0.95
_HELD_BEYOND: Final = 1_000
"""Units that are gone and still remembered before they are looked for."""


class RangeSource(Protocol):
    """A metrics store that answers range queries."""

    async def query_range(self, promql: str, *, start_ms: int, end_ms: int, step_ms: int) -> MatrixAnswer:
        """The answer, both ends included; raises a `PrometheusError`."""


class HistorySource(msgspec.Struct, frozen=True):
    """A live profile as the last reading found it: its signals in order of preference with their sample intervals.

    `matcher` is that of the trusted scrape job, `series` how many series one query of it has.
    """

    profile: Profile
    signals: tuple[tuple[Signal, int], ...]
    matcher: str
    series: int


def history_sources(reading: SeriesReading) -> tuple[HistorySource, ...]:
    """The live profiles of a reading."""
    return tuple(
        HistorySource(
            profile=series.profile,
            signals=tuple((signal.signal, signal.source.interval_ms) for signal in series.signals),
            matcher=series.matcher,
            series=max((signal.source.series for signal in series.signals), default=0),
        )
        for series in reading.profiles
    )


class HistorySpans(msgspec.Struct, frozen=True):
    """What policy says of the history: its length, the evidence window, and from what activity on a board is active."""

    history_ms: int
    window_ms: int
    active_floor: float


class PartialAnswer(Exception):  # noqa: N818 - it reads as an outcome, as the store's own do
    """The store warned that its answer is not whole."""


class HistoryFeed:
    """`latest` and `progress` may be read at any time: they are replaced, never changed.

    Everything begins anew when policy changes the spans, or when a profile's series are trusted from another scrape job:
    what was counted may not be true.
    """

    def __init__(self, client: RangeSource, *, percentile: float = PERCENTILE) -> None:
        self._client = client
        self._percentile = percentile
        self._spans = HistorySpans(0, 0, 0.0)
        self._matchers: dict[str, str] = {}
        self._plan: SeedPlan | None = None
        self._histories: WorkloadHistories | None = None
        self._held: dict[int, int] = {}
        self.latest: tuple[WorkloadHistory, ...] = ()
        self.progress = Progress()
        self.left_out: Mapping[str, int] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of the histories' columns."""
        return self._histories.nbytes if self._histories else 0

    def has_work(self, now_ms: int) -> bool:
        """Whether there may be something to ask for at that time of the store's clock."""
        return self._plan is None or self._plan.next_piece(now_ms=now_ms, series=1) is not None

    async def advance(
        self, sources: Sequence[HistorySource], registry: Registry, *, spans: HistorySpans, now_ms: int
    ) -> bool:
        """Asks for one piece and counts it; whether there may be more to ask for at once.

        `registry` is of the newest view of the cluster; `now_ms` is the store's clock. Never raises for what the store does: `progress.fault` then says what happened.
        """
        usable = [source for source in sources if source.profile.scope == "device"]
        if not usable:
            return False
        plan = self._begin(usable, spans)
        piece = plan.next_piece(now_ms=now_ms, series=max(source.series for source in usable))
        if piece is None:
            await asyncio.to_thread(self._settle, registry, now_ms)
            return False
        try:
            gathering = Gathering(piece, registry, active_floor=spans.active_floor, held=self._held)
            for source in usable:
                await self._gather(source, piece, registry, gathering)
            await asyncio.to_thread(self._count, gathering)
            self.left_out = dict(sorted(registry.left_out.items()))
        except PrometheusError as error:
            why = f"{error.label}: {error}"
            if _by_size(error):
                plan.too_large(piece, now_ms=now_ms, why=why)
            else:
                pause_ms = round((error.retry_after_s or 0.0) * 1000)
                plan.failed(piece, now_ms=now_ms, why=why, pause_ms=pause_ms)
        except (AnswerError, PartialAnswer) as error:
            plan.failed(piece, now_ms=now_ms, why=str(error))
        await asyncio.to_thread(self._settle, registry, now_ms)
        return self.has_work(now_ms)

    def _begin(self, sources: Sequence[HistorySource], spans: HistorySpans) -> SeedPlan:
        """The step is chosen by the fleet's size at the beginning."""
        matchers = {source.profile.name: source.matcher for source in sources}
        moved = any(self._matchers.get(name, matcher) != matcher for name, matcher in matchers.items())
        if self._plan is None or spans != self._spans or moved:
            step_ms = step_for(sum(source.series for source in sources), window_ms=spans.window_ms)
            self._spans, self._matchers, self._held = spans, {}, {}
            self._histories = WorkloadHistories(history_ms=spans.history_ms, step_ms=step_ms)
            self._plan = SeedPlan(history_ms=spans.history_ms, step_ms=step_ms)
        self._matchers.update(matchers)
        return self._plan

    async def _gather(
        self, source: HistorySource, piece: Grid, registry: Registry, gathering: Gathering
    ) -> None:
        profile, window_ms = source.profile, self._spans.window_ms
        used = Table(piece)
        query = memory_query(profile, step_ms=piece.step_ms, source=source.matcher)
        if query is not None and profile.memory is not None:
            place = partial(registry.rows, profile, None)
            await self._ask(query, used, place, memory_of(profile.memory), piece)
        for signal, interval_ms in source.signals:
            place = partial(registry.rows, profile, signal)
            queries = step_queries(
                profile, signal, step_ms=piece.step_ms, window_ms=window_ms, source=source.matcher
            )
            mean, peak, count, busiest = (Table(piece) for _ in range(4))
            await self._ask(queries.count, count, place, COUNT, piece)
            if not await asyncio.to_thread(gathering.lacks, count):
                continue
            activity = activity_of(signal)
            await self._ask(queries.mean, mean, place, activity, piece)
            await self._ask(queries.peak, peak, place, activity, piece)
            if queries.busiest is None:
                busiest = mean
            else:
                await self._ask(queries.busiest, busiest, place, activity, piece)
            steps = SourceSteps(interval_ms, mean, peak, count, busiest, used)
            await asyncio.to_thread(gathering.add, steps)

    async def _ask(self, promql: str, into: Table, place: Place, measure: Measure, piece: Grid) -> None:
        answer = await self._client.query_range(
            promql, start_ms=piece.first_ms, end_ms=piece.last_ms, step_ms=piece.step_ms
        )
        if answer.warnings:
            raise PartialAnswer(f"the metrics store warned: {answer.warnings[0]}")
        await asyncio.to_thread(into.read, answer, place, measure)

    def _count(self, gathering: Gathering) -> None:
        """Counted and noted as counted in one go: a task that is cancelled in between would count a piece twice."""
        if self._plan is None or self._histories is None:
            raise RuntimeError("a piece was gathered before the feed began")
        self._histories.add(gathering.steps())
        self._plan.counted(gathering.grid)

    def _settle(self, registry: Registry, now_ms: int) -> None:
        """What readers see from now on."""
        plan, histories = self._plan, self._histories
        if plan is None or histories is None:
            return
        histories.drop_missing(registry.workloads, now_ms=now_ms)
        if len(self._held) > _HELD_BEYOND + 2 * len(registry.names):
            self._held = {name: self._held[name] for name in registry.names.tolist() if name in self._held}
        self.latest = histories.reduced(self._percentile, now_ms=now_ms)
        self.progress = plan.progress(now_ms)


def _by_size(error: PrometheusError) -> bool:
    """Whether a smaller piece may be answered: a limit of the store or ours, or no answer in time."""
    return isinstance(error, TooLarge | BadQuery | TimedOut) or (
        isinstance(error, ServerError) and error.timed_out
    )
