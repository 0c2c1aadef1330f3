"""Asks the metrics store the fixed set of queries of a cycle.

All queries of a cycle are evaluated at one instant of the store's own clock. Only series of a trusted scrape job are
read: the jobs that policy pins, else the only job that publishes any; where several do, nobody can say whose figures are
true and none are read. History is asked for less often and kept between cycles. Decoding runs in a thread, in small
pieces; only the waiting is on the event loop.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import msgspec

from autoscaler.model.evidence import Source
from autoscaler.observe.answers import Answer, AnswerError, jobs_of
from autoscaler.observe.plausible import MAX_COUNT
from autoscaler.observe.profiles import Profile, Signal
from autoscaler.observe.prometheus import PrometheusError
from autoscaler.observe.queries import (
    BoardHistoryQueries,
    BoardQueries,
    HistoryQueries,
    SignalQueries,
    board_activity_query,
    board_history_queries,
    board_queries,
    history_queries,
    jobs_query,
    pace_range_ms,
    pinned_jobs,
    signal_queries,
    traffic_queries,
)
from autoscaler.observe.scope import scoped
from autoscaler.observe.series import (
    NOTHING,
    BoardColumns,
    HistoryColumns,
    Merge,
    Positions,
    ProfileSeries,
    SeriesReading,
    ServingRow,
    SignalSeries,
    Sparse,
    WindowColumns,
    board_peaks,
    dense,
    largest,
)
from autoscaler.observe.serving import (
    ServingProfile,
    by_owner,
    live_query,
    names_of,
    serving_queries,
    serving_rows,
)
from autoscaler.observe.trust import Trust, weigh

_HISTORY_SHARE: Final = 168
"""History is read again after this part of its length (an hour for a week), but always within one evidence window: what
happened since is in the window, so no peak falls between the two."""

READ_DEADLINE_S: Final = 60.0
"""A reading takes no longer: evidence of more than a default cycle ago is too old to plan on."""

_NUMBERS: Final = ("best", "pace")
"""Single numbers of a whole source: without labels, so without a position among its series."""
_WINDOW_MERGE: Final[dict[str, Merge]] = {
    "maximum": "max",
    "minimum": "min",
    "mean": "max",
    "total": "sum",
    "count": "sum",
    "newest": "max",
    "covered": "max",
}
_HISTORY_MERGE: Final[dict[str, Merge]] = {
    "p95": "max",
    "maximum": "max",
    "busiest": "max",
    "count": "max",
    "first": "min",
    "total": "sum",
}
_BOARD_MERGE: Final[dict[str, Merge]] = {
    "used": "max",
    "least_used": "min",
    "most_free": "max",
    "reserved": "max",
    "total": "max",
    "power": "max",
    "energy": "max",
    "energy_least": "max",
    "last_active": "min",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spans:
    """What a cycle asks for: the two windows and the sample interval (0: measured), in ms, of which scrape jobs.

    `profiles` are those that are read, by name, `namespaces` those whose pods are; empty reads all that the store holds.
    """

    window_ms: int
    history_ms: int
    interval_ms: int = 0
    source_job: str = ""
    profiles: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()


@dataclass(slots=True)
class _Kept:
    """A profile's state between cycles: positions stay valid for the history that was read with them."""

    positions: Positions
    spans: Spans
    source: str
    read_ms: int
    history: dict[str, dict[str, Sparse]] = field(default_factory=dict)
    boards: dict[str, Sparse] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Beside:
    """What is read beside activity, memory and power; `queries` are names and texts."""

    traffic: tuple[Sparse, ...]
    board_peaks: dict[str, float]
    queries: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Cycle:
    """One reading in progress."""

    at_ms: int
    spans: Spans
    skew_ms: int = 0
    trust: Trust = field(default_factory=lambda: Trust(jobs=(), matchers={}))
    profiles: list[ProfileSeries] = field(default_factory=list)
    serving: list[ServingRow] = field(default_factory=list)
    warnings: set[str] = field(default_factory=set)
    queries: int = 0


class Store(Protocol):
    """What the reader needs of a metrics store."""

    async def now_ms(self) -> int:
        """The store's clock; raises a `PrometheusError`."""
        ...

    async def query(self, promql: str, *, at_ms: int | None = None) -> Answer:
        """The answer to an instant query; raises a `PrometheusError`."""
        ...


class SeriesReader:
    """Reads all live profiles. One reading at a time.

    A signal is live if it has samples in the window; profiles named in `wanted` always become sources, others
    only when live. `at_ms` fixes the evaluation time (for recorded data).
    """

    def __init__(  # noqa: PLR0913 - each is one fact of how to read, with a default
        self,
        client: Store,
        profiles: Sequence[Profile],
        *,
        serving: Sequence[ServingProfile] = (),
        wanted: Sequence[str] = (),
        concurrency: int = 2,
        at_ms: int | None = None,
        deadline_s: float = READ_DEADLINE_S,
    ) -> None:
        unknown = sorted(set(wanted) - {profile.name for profile in profiles})
        if unknown:
            raise ValueError(f"no profile named {', '.join(unknown)}")
        self._client = client
        self._profiles = tuple(profiles)
        self._serving = tuple(serving)
        self._wanted = frozenset(wanted)
        self._slots = asyncio.Semaphore(concurrency)
        self._decoding = asyncio.Lock()
        self._at_ms = at_ms
        self._deadline_s = deadline_s
        self._kept: dict[str, _Kept] = {}
        self._believed: str | None = None
        self._interval_ms: dict[tuple[str, str, str], int] = {}

    async def read(self, spans: Spans, *, api_now_ms: Callable[[], int | None]) -> SeriesReading:
        """One cycle's reading. Never raises for what the store does: `fault` then says what happened.

        `api_now_ms` is the API server's clock, asked at the moment the store's clock was read.
        """
        cycle = _Cycle(at_ms=-1, spans=spans)
        fault, began_s = "", time.monotonic()
        try:
            async with asyncio.timeout(self._deadline_s):
                await self._fill(cycle, api_now_ms)
        except PrometheusError as error:
            fault = f"{error.label}: {error}"
        except AnswerError as error:
            fault = f"not_prometheus: {error}"
        except TimeoutError:
            # A thread may still be decoding into what was kept.
            self._kept.clear()
            fault = (
                f"slow: {cycle.queries} queries took over {self._deadline_s:g}s; "
                "a shorter need.historyWindow asks for less"
            )
        return SeriesReading(
            window_ms=spans.window_ms,
            history_window_ms=spans.history_ms,
            fault=fault,
            warnings=tuple(sorted(cycle.warnings)),
            store_ms=cycle.at_ms,
            skew_ms=cycle.skew_ms,
            read_ms=max(0, round((time.monotonic() - began_s) * 1000)),
            source_job=spans.source_job,
            jobs=cycle.trust.jobs,
            untrusted=cycle.trust.untrusted,
            profiles=tuple(cycle.profiles),
            serving=tuple(cycle.serving),
            queries=cycle.queries,
        )

    async def _fill(self, cycle: _Cycle, api_now_ms: Callable[[], int | None]) -> None:
        asked_ms = api_now_ms()
        store_ms = await self._client.now_ms()
        heard_ms = api_now_ms()
        if asked_ms is not None and heard_ms is not None:
            cycle.skew_ms = store_ms - (asked_ms + heard_ms) // 2
        cycle.at_ms = store_ms if self._at_ms is None else self._at_ms
        cycle.trust = await self._trust(cycle)
        for profile in self._read(cycle.spans):
            found = await self._read_profile(profile, cycle)
            if found is not None:
                cycle.profiles.append(found)
        cycle.serving.extend(await self._read_serving(cycle))

    def _read(self, spans: Spans) -> tuple[Profile, ...]:
        """The profiles that are read."""
        return tuple(p for p in self._profiles if not spans.profiles or p.name in spans.profiles)

    async def _read_serving(self, cycle: _Cycle) -> list[ServingRow]:
        """The demand that inference servers state; only those are asked for that have a sample in the window."""
        if not self._serving:
            return []
        window_ms, rows = cycle.spans.window_ms, list[ServingRow]()
        answer = await self._query(live_query(self._serving, window_ms=window_ms), cycle)
        live = await asyncio.to_thread(names_of, answer)
        for profile in self._serving:
            if not live.isdisjoint(profile.metrics):
                queries = serving_queries(profile, window_ms=window_ms, namespaces=cycle.spans.namespaces)
                texts = msgspec.structs.asdict(queries)
                answers = {
                    name: await asyncio.to_thread(by_owner, profile, await self._query(text, cycle))
                    for name, text in texts.items()
                    if text is not None
                }
                rows.extend(serving_rows(profile, answers))
        return rows

    async def _trust(self, cycle: _Cycle) -> Trust:
        """Asked over the whole window: who published in it and stopped has left samples in it."""
        pinned, window_ms = pinned_jobs(cycle.spans.source_job), cycle.spans.window_ms
        found: dict[str, frozenset[str]] = {}
        profiles = self._read(cycle.spans)
        for profile in profiles:
            answer = await self._query(jobs_query(profile, window_ms=window_ms, source=pinned), cycle)
            found[profile.name] = await asyncio.to_thread(jobs_of, answer)
        trust = weigh(found, profiles, pinned=pinned, wanted=self._wanted, believed=self._believed)
        if not pinned and not trust.untrusted and len(trust.jobs) == 1:
            (self._believed,) = trust.jobs
        return trust

    async def _read_profile(self, profile: Profile, cycle: _Cycle) -> ProfileSeries | None:
        trusted = cycle.trust.matchers.get(profile.name)
        if trusted is None:
            self._kept.pop(profile.name, None)
            return None
        source = scoped(profile, trusted, cycle.spans.namespaces)
        kept = self._kept.get(profile.name)
        fresh = kept is None or kept.source != source or self._is_old(kept, cycle)
        if kept is None or fresh:
            kept = _Kept(Positions(profile), cycle.spans, source, cycle.at_ms)
        spans = cycle.spans
        live: list[tuple[Signal, dict[str, Sparse], SignalQueries, HistoryQueries]] = []
        for signal in profile.signals:
            queries = signal_queries(
                profile, signal, window_ms=spans.window_ms, source=source, everyone=trusted
            )
            history = history_queries(
                profile, signal, history_ms=spans.history_ms, window_ms=spans.window_ms, source=source
            )
            first = await self._ask(queries.maximum, kept.positions, cycle)
            if not first.positions.size and profile.name not in self._wanted:
                continue
            answers = await self._ask_all(queries, kept.positions, cycle, skip=("maximum", *_NUMBERS))
            answers["maximum"] = first
            for name in _NUMBERS:
                answers[name] = await self._ask(getattr(queries, name), Positions(profile), cycle)
            if fresh or signal.metric not in kept.history:
                kept.history[signal.metric] = await self._ask_all(history, kept.positions, cycle)
            live.append((signal, answers, queries, history))
        if not live:
            self._kept.pop(profile.name, None)
            return None
        self._kept[profile.name] = kept
        if fresh:
            past = board_history_queries(profile, history_ms=spans.history_ms, source=source)
            kept.boards = await self._ask_all(past, kept.positions, cycle)
        asked = board_queries(profile, window_ms=spans.window_ms, source=source)
        boards = await self._ask_all(asked, kept.positions, cycle)
        beside = await self._read_beside(profile, kept.positions, source, cycle)
        return await asyncio.to_thread(self._build, profile, kept, live, (boards, beside), asked, cycle)

    async def _read_beside(
        self, profile: Profile, positions: Positions, source: str, cycle: _Cycle
    ) -> _Beside:
        """Traffic by position, and the boards' own series, which have other labels than their owners'."""
        window_ms = cycle.spans.window_ms
        texts = traffic_queries(profile, window_ms=window_ms, source=source)
        traffic = [await self._ask(text, positions, cycle) for text in texts]
        named = [("traffic", text) for text in texts]
        asked = board_activity_query(profile, window_ms=window_ms, source=source)
        peaks: dict[str, float] = {}
        if asked is not None and profile.board is not None:
            boards = Positions(msgspec.structs.replace(profile, device=profile.board.device))
            peaks = board_peaks(boards, await self._ask(asked, boards, cycle), full=profile.board.full)
            named.append(("board_activity", asked))
        return _Beside(tuple(traffic), peaks, tuple(named))

    def _is_old(self, kept: _Kept, cycle: _Cycle) -> bool:
        age_ms = cycle.at_ms - kept.read_ms
        limit_ms = min(cycle.spans.window_ms, cycle.spans.history_ms // _HISTORY_SHARE)
        return kept.spans != cycle.spans or not 0 <= age_ms < limit_ms

    async def _ask_all(
        self,
        queries: SignalQueries | HistoryQueries | BoardQueries | BoardHistoryQueries,
        positions: Positions,
        cycle: _Cycle,
        *,
        skip: tuple[str, ...] = (),
    ) -> dict[str, Sparse]:
        texts = {name: text for name, text in msgspec.structs.asdict(queries).items() if name not in skip}
        try:
            async with asyncio.TaskGroup() as group:
                tasks = {
                    name: group.create_task(self._ask(text, positions, cycle), name=f"query-{name}")
                    for name, text in texts.items()
                    if text is not None
                }
        except ExceptionGroup as errors:
            raise _first(errors) from errors
        return {name: tasks[name].result() if name in tasks else NOTHING for name in texts}

    async def _ask(self, promql: str, positions: Positions, cycle: _Cycle) -> Sparse:
        async with self._slots:
            answer = await self._query(promql, cycle)
            async with self._decoding:
                return await asyncio.to_thread(positions.collect, answer)

    async def _query(self, promql: str, cycle: _Cycle) -> Answer:
        cycle.queries += 1
        answer: Answer = await self._client.query(promql, at_ms=cycle.at_ms)
        cycle.warnings.update(answer.warnings)
        return answer

    def _build(
        self,
        profile: Profile,
        kept: _Kept,
        live: Sequence[tuple[Signal, dict[str, Sparse], SignalQueries, HistoryQueries]],
        read: tuple[dict[str, Sparse], _Beside],
        asked: BoardQueries,
        cycle: _Cycle,
    ) -> ProfileSeries:
        length = len(kept.positions)
        boards, beside = read
        extra = {
            f"board.{name}": text for name, text in msgspec.structs.asdict(asked).items() if text is not None
        }
        signals = []
        for signal, answers, queries, history in live:
            window = WindowColumns(**{n: dense(answers[n], length, m) for n, m in _WINDOW_MERGE.items()})
            past = kept.history[signal.metric]
            interval_ms, measured = self._interval(
                (profile.name, signal.metric, kept.source), answers, cycle.spans
            )
            texts = _named("window", queries) + _named("history", history) + list(extra.items())
            texts += list(beside.queries)
            source = Source(
                profile=profile.name,
                signal=signal.metric,
                interval_ms=interval_ms,
                interval_measured=measured,
                queries=tuple(text for _, text in texts),
                query_names=tuple(name for name, _ in texts),
                series=int(window.count.seen.sum()),
            )
            signals.append(
                SignalSeries(
                    source=source,
                    signal=signal,
                    window=window,
                    history=HistoryColumns(
                        **{n: dense(past[n], length, m) for n, m in _HISTORY_MERGE.items()}
                    ),
                )
            )
        return ProfileSeries(
            profile=profile,
            identities=kept.positions.identities,
            nodes=kept.positions.nodes,
            targets=kept.positions.targets,
            beside=kept.positions.beside,
            boards=BoardColumns(
                **{n: dense(boards[n], length, m) for n, m in _BOARD_MERGE.items()},
                past_used=dense(kept.boards["used"], length, "max"),
                traffic=tuple(dense(sparse, length, "max") for sparse in beside.traffic),
            ),
            signals=tuple(signals),
            board_peaks=beside.board_peaks,
            matcher=kept.source,
        )

    def _interval(
        self, key: tuple[str, str, str], answers: dict[str, Sparse], spans: Spans
    ) -> tuple[int, bool]:
        if spans.interval_ms > 0:
            return spans.interval_ms, False
        measured = measured_interval_ms(
            window_ms=spans.window_ms,
            window_count=round(largest(answers["best"], limit=MAX_COUNT)),
            pace_ms=pace_range_ms(spans.window_ms),
            pace_count=round(largest(answers["pace"], limit=MAX_COUNT)),
            remembered_ms=self._interval_ms.get(key, 0),
        )
        self._interval_ms[key] = measured
        return measured, True


def _named(part: str, queries: SignalQueries | HistoryQueries) -> list[tuple[str, str]]:
    """The queries with what they ask for: the reader's own columns."""
    return [(f"{part}.{name}", text) for name, text in msgspec.structs.asdict(queries).items()]


def measured_interval_ms(
    *, window_ms: int, window_count: int, pace_ms: int, pace_count: int, remembered_ms: int = 0
) -> int:
    """The sample interval of the best covered series, 0 if there are no samples.

    The window's count gives the finer figure, but a gap in the whole source would stretch it and make half a window
    look complete. So it holds only while it agrees, to within one sample, with the best count of any part of the
    window. An interval measured before stands for as long as the parts do not disprove it.
    """
    if window_count <= 0:
        return 0
    over_window = window_ms / window_count
    if pace_count < 2:
        return round(min(over_window, remembered_ms or over_window))
    shortest, longest = pace_ms / (pace_count + 1), pace_ms / (pace_count - 1)
    measured = over_window if over_window <= longest else pace_ms / pace_count
    return round(min(measured, remembered_ms) if shortest <= remembered_ms <= longest else measured)


def _first(errors: ExceptionGroup[Exception]) -> Exception:
    """The first leaf of a group: one failed query is enough to say that the reading is incomplete."""
    error: Exception = errors
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error
