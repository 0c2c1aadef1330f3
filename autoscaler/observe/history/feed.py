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
from autoscaler.observe.history.past import PastOwners
from autoscaler.observe.history.seeding import Progress, SeedPlan, step_for
from autoscaler.observe.history.step_queries import StepQueries, memory_query, step_queries
from autoscaler.observe.history.steps import NO_POINTS, Grid, Points, SourceSteps, placed, points_of
from autoscaler.observe.history.units import Gathering, UnitName
from autoscaler.observe.history.workloads import WorkloadHistories
from autoscaler.observe.matrix import MatrixAnswer
from autoscaler.observe.profiles import Profile, Signal
from autoscaler.observe.series import Positions, SeriesReading
from autoscaler.observe.store_faults import BadQuery, PrometheusError, ServerError, TimedOut, TooLarge

PERCENTILE: Final = 0.95
_MAX_MIB: Final = 16 * 1024 * 1024
_MAX_COUNT: Final = 1e9


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


class _Answers(msgspec.Struct, frozen=True):
    """One signal's answers as points; `memory` is the profile's."""

    signal: Signal
    interval_ms: int
    mean: Points
    peak: Points
    count: Points
    busiest: Points


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
        self._held: dict[UnitName, int] = {}
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
        self, sources: Sequence[HistorySource], owners: PastOwners, *, spans: HistorySpans, now_ms: int
    ) -> bool:
        """Asks for one piece and counts it; whether there may be more to ask for at once.

        `now_ms` is the store's clock. Never raises for what the store does: `progress.fault` then says what happened.
        """
        usable = [source for source in sources if source.profile.scope == "device"]
        if not usable:
            return False
        plan = self._begin(usable, spans)
        piece = plan.next_piece(now_ms=now_ms, series=max(source.series for source in usable))
        if piece is None:
            await asyncio.to_thread(self._settle, owners, now_ms)
            return False
        try:
            gathering = Gathering(piece, owners, active_floor=spans.active_floor, held=self._held)
            for source in usable:
                await self._gather(source, piece, gathering)
            await asyncio.to_thread(self._count, gathering)
        except PrometheusError as error:
            why = f"{error.label}: {error}"
            if _by_size(error):
                plan.too_large(piece, now_ms=now_ms, why=why)
            else:
                pause_ms = round((error.retry_after_s or 0.0) * 1000)
                plan.failed(piece, now_ms=now_ms, why=why, pause_ms=pause_ms)
        except (AnswerError, PartialAnswer) as error:
            plan.failed(piece, now_ms=now_ms, why=str(error))
        await asyncio.to_thread(self._settle, owners, now_ms)
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

    async def _gather(self, source: HistorySource, piece: Grid, gathering: Gathering) -> None:
        profile, positions = source.profile, Positions(source.profile)
        used = await self._memory(source, piece, positions)
        for signal, interval_ms in source.signals:
            queries = step_queries(
                profile, signal, step_ms=piece.step_ms, window_ms=self._spans.window_ms, source=source.matcher
            )
            answers = await self._signal(signal, interval_ms, queries, piece, positions)
            await asyncio.to_thread(_add, gathering, profile, positions, answers, used, piece)

    async def _signal(
        self, signal: Signal, interval_ms: int, queries: StepQueries, piece: Grid, positions: Positions
    ) -> _Answers:
        clamp, full = signal.over == "clamp", float(signal.full)
        mean = await self._ask(queries.mean, piece, positions, full=full, clamp=clamp)
        return _Answers(
            signal=signal,
            interval_ms=interval_ms,
            mean=mean,
            peak=await self._ask(queries.peak, piece, positions, full=full, clamp=clamp),
            count=await self._ask(queries.count, piece, positions, full=_MAX_COUNT),
            busiest=await self._ask(queries.busiest, piece, positions, full=full, clamp=clamp)
            if queries.busiest
            else mean,
        )

    async def _memory(self, source: HistorySource, piece: Grid, positions: Positions) -> Points | None:
        query = memory_query(source.profile, step_ms=piece.step_ms, source=source.matcher)
        memory = source.profile.memory
        if query is None or memory is None:
            return None
        return await self._ask(query, piece, positions, full=float(_MAX_MIB * memory.per_mib))

    async def _ask(
        self, promql: str, piece: Grid, positions: Positions, *, full: float, clamp: bool = False
    ) -> Points:
        answer = await self._client.query_range(
            promql, start_ms=piece.first_ms, end_ms=piece.last_ms, step_ms=piece.step_ms
        )
        if answer.warnings:
            raise PartialAnswer(f"the metrics store warned: {answer.warnings[0]}")
        place = partial(placed, positions)
        return await asyncio.to_thread(points_of, answer, place, piece, full=full, clamp=clamp)

    def _count(self, gathering: Gathering) -> None:
        """Counted and noted as counted in one go: a task that is cancelled in between would count a piece twice."""
        if self._plan is None or self._histories is None:
            raise RuntimeError("a piece was gathered before the feed began")
        self._histories.add(gathering.steps())
        self._plan.counted(gathering.grid)
        self.left_out = dict(sorted(gathering.left_out.items()))

    def _settle(self, owners: PastOwners, now_ms: int) -> None:
        """What readers see from now on."""
        plan, histories = self._plan, self._histories
        if plan is None or histories is None:
            return
        histories.drop_missing(owners.workloads, now_ms=now_ms)
        self._held = {
            name: boards for name, boards in self._held.items() if f"{name[0]}/{name[1]}" in owners.live
        }
        self.latest = histories.reduced(self._percentile, now_ms=now_ms)
        self.progress = plan.progress(now_ms)


def _by_size(error: PrometheusError) -> bool:
    """Whether a smaller piece may be answered: a limit of the store or ours, or no answer in time."""
    return isinstance(error, TooLarge | BadQuery | TimedOut) or (
        isinstance(error, ServerError) and error.timed_out
    )


def _add(
    gathering: Gathering,
    profile: Profile,
    positions: Positions,
    answers: _Answers,
    used: Points | None,
    piece: Grid,
) -> None:
    """One signal's points as tables, added to what is gathered."""
    rows, full = len(positions), answers.signal.full
    per_mib = profile.memory.per_mib if profile.memory else 1
    mean = answers.mean.table(rows, piece) / full
    gathering.add(
        SourceSteps(
            profile=profile,
            signal=answers.signal,
            interval_ms=answers.interval_ms,
            identities=positions.identities,
            targets=positions.targets,
            mean=mean,
            peak=answers.peak.table(rows, piece) / full,
            count=answers.count.table(rows, piece),
            busiest=mean if answers.busiest is answers.mean else answers.busiest.table(rows, piece) / full,
            used_mib=(used or NO_POINTS).table(rows, piece) / per_mib,
        )
    )
