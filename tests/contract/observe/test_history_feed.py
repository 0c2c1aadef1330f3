"""The feed against a store that holds recorded samples: what comes out is what was used, whatever the store does."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from unit.observe.observed import ENGINE, PROFILES, board, deployment, owner, pod, replica_set, stores

from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.history import WorkloadHistory
from autoscaler.observe.assemble import assemble
from autoscaler.observe.history.feed import HistoryFeed, HistorySource, HistorySpans
from autoscaler.observe.history.past import PastOwners
from autoscaler.observe.history.registry import Registry
from autoscaler.observe.matrix import MatrixAnswer
from autoscaler.observe.series import SeriesReading
from autoscaler.observe.store_faults import BadQuery, PrometheusError, ServerError, Throttled, Unreachable

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WINDOW = 30 * MINUTE
STEP = 5 * MINUTE
NOW = 1_800_000_000_000 // DAY * DAY + 9 * HOUR + 2 * MINUTE
HISTORY = 2 * DAY
SPANS = HistorySpans(HISTORY, WINDOW, 0.05)
DCGM = PROFILES["dcgm"]
WEB = WorkloadRef("apps", "Deployment", "ml", "web")
Activity = Callable[[np.ndarray], np.ndarray]
_QUERY = re.compile(
    r"max by \((?P<by>.*)\) \((?P<what>\w+)_over_time\((?P<metric>\w+)(?:{.*})?\[(?P<range>\d+)ms\]\)\)"
)


@dataclass
class Store:
    """One sample a minute of each series; `refuse` may raise instead of an answer."""

    series: list[tuple[str, dict[str, str], np.ndarray, np.ndarray]] = field(default_factory=list)
    refuse: Callable[[int], None] = lambda _: None
    warnings: tuple[str, ...] = ()
    asked: list[tuple[int, int]] = field(default_factory=list)

    def record(
        self,
        labels: dict[str, str],
        since_ms: int,
        until_ms: int,
        activity: Activity,
        *,
        metric: str = ENGINE,
    ) -> None:
        """Samples in (since, until]."""
        times = np.arange(since_ms // MINUTE * MINUTE + MINUTE, until_ms + 1, MINUTE)
        self.series.append((metric, labels, times, activity(times)))

    async def query_range(self, promql: str, *, start_ms: int, end_ms: int, step_ms: int) -> MatrixAnswer:
        found = _QUERY.fullmatch(promql)
        assert found, promql
        ends = np.arange(start_ms, end_ms + 1, step_ms)
        self.asked.append((start_ms, end_ms))
        self.refuse(len(ends))
        reduce = {"avg": np.mean, "max": np.max, "count": len}[found["what"]]
        groups: dict[str, dict[int, float]] = {}
        for metric, labels, times, values in self.series:
            if metric != found["metric"]:
                continue
            key = json.dumps({name: labels[name] for name in found["by"].split(", ") if name in labels})
            for end in ends.tolist():
                low, high = np.searchsorted(times, [end - int(found["range"]), end], side="right")
                if high > low:
                    points = groups.setdefault(key, {})
                    points[end] = max(points.get(end, -np.inf), float(reduce(values[low:high])))
        rows = [
            {
                "metric": json.loads(key),
                "values": [[end / 1000, repr(value)] for end, value in points.items()],
            }
            for key, points in groups.items()
        ]
        text = json.dumps(rows, separators=(",", ":")).encode()
        return MatrixAnswer(text, start_ms, end_ms, step_ms, warnings=self.warnings)


def owners() -> PastOwners:
    view = stores(
        deployment("web"),
        replica_set("web-7d9f8c6b5d", of="web", uid="rs"),
        pod("web-7d9f8c6b5d-x2x4q", owner=owner("ReplicaSet", "web-7d9f8c6b5d", uid="rs")),
    ).freeze()
    return PastOwners.of(view, assemble(view, SeriesReading(), now_ms=NOW))


def source(*, series: int = 4, interval_ms: int = MINUTE) -> HistorySource:
    return HistorySource(DCGM, ((DCGM.signals[0], interval_ms),), "", series)


def new_feed(store: Store) -> HistoryFeed:
    return HistoryFeed(store)


async def advance(
    feed: HistoryFeed, *, now_ms: int = NOW, sources: Sequence[HistorySource] | None = None
) -> None:
    """Until there is nothing to ask for now."""
    while await feed.advance(
        [source()] if sources is None else sources, Registry(owners()), spans=SPANS, now_ms=now_ms
    ):
        pass


async def seeded(store: Store, *, now_ms: int = NOW) -> HistoryFeed:
    feed = new_feed(store)
    await advance(feed, now_ms=now_ms)
    return feed


def only(feed: HistoryFeed) -> WorkloadHistory:
    (row,) = feed.latest
    return row


def bursts(times: np.ndarray) -> np.ndarray:
    """10 minutes of every hour a whole board, else a tenth."""
    return np.where((times // MINUTE) % 60 < 10, 1.0, 0.1)


def level(share: float) -> Activity:
    return lambda times: np.full(len(times), share)


def two_rollouts() -> Store:
    """Pods of a ReplicaSet that is gone, until yesterday, then those of the present one; two boards that take turns."""
    store = Store()
    for name, since, until in (
        ("web-6c54bd5869-bcdfg", NOW - 10 * DAY, NOW - DAY),
        ("web-7d9f8c6b5d-x2x4q", NOW - DAY, NOW + DAY),
    ):
        store.record(board(f"{name}-0", name), since, until, bursts)
        store.record(board(f"{name}-1", name), since, until, lambda times: 1.1 - bursts(times))
        store.record(board(f"{name}-0", name), since, until, level(5_000.0), metric="DCGM_FI_DEV_FB_USED")
    return store


async def test_a_workload_keeps_its_history_across_a_rollout_and_boards_that_take_turns_are_one_load() -> (
    None
):
    row = only(await seeded(two_rollouts()))

    assert (row.ref, row.container) == (WEB, "main")
    assert HISTORY - 2 * STEP <= row.history_ms <= HISTORY
    assert 1_100 <= row.load_milli < 1_100 * 1.07
    assert row.busiest_milli in {1_100, 1_101}
    assert row.peak_milli == 2_000  # the steps in which they change places
    assert row.active_boards == 2
    assert row.memory_peak_mib == 5_000


async def test_a_percentile_of_the_load_is_that_of_the_samples_to_the_bucket() -> None:
    store = Store()
    store.record(board("b", "web-7d9f8c6b5d-x2x4q"), NOW - 3 * DAY, NOW, bursts)
    row = only(await seeded(store))

    assert 1_000 <= row.load_milli < 1_060  # a sixth of all steps
    assert 400 <= row.busiest_milli <= 402  # ten minutes of thirty: (10 x 1 + 20 x 0.1) / 30


async def test_after_a_restart_everything_is_as_it_was() -> None:
    store = two_rollouts()
    lived = new_feed(store)
    await advance(lived, now_ms=NOW - DAY)
    for now_ms in range(NOW - DAY, NOW + 1, STEP):
        await advance(lived, now_ms=now_ms)
    again = await seeded(store)

    before, after = only(lived), only(again)
    # Extremes leave the history by whole days, so what has run for longer knows a little more of the past.
    assert 0 <= before.history_ms - after.history_ms <= 2 * STEP
    for name in ("ref", "busiest_milli", "peak_milli", "active_boards", "memory_peak_mib"):
        assert getattr(before, name) == getattr(after, name)
    assert abs(before.load_milli - after.load_milli) <= 0.06 * after.load_milli
    assert lived.progress.done == lived.progress.total == again.progress.total


async def test_an_outage_is_a_hole_until_the_store_is_back_and_has_it() -> None:
    store = two_rollouts()

    def down(_: int) -> None:
        raise Unreachable("store: refused")

    feed = await seeded(store, now_ms=NOW - 6 * HOUR)
    before = only(feed).history_ms
    store.refuse = down
    await advance(feed, now_ms=NOW - 3 * HOUR)
    assert only(feed).history_ms == before
    assert feed.progress.fault == "unreachable: store: refused"
    store.refuse = lambda _: None
    await advance(feed)

    assert feed.progress.done == feed.progress.total
    assert 0 <= only(feed).history_ms - only(await seeded(store)).history_ms <= 2 * STEP


@pytest.mark.parametrize(
    "error",
    [
        BadQuery("422 execution: query processing would load too many samples", error_type="execution"),
        ServerError("503 timeout", error_type="timeout"),
    ],
)
async def test_a_store_with_small_limits_is_asked_for_less_and_gives_the_same(error: PrometheusError) -> None:
    store = two_rollouts()
    expected = (await seeded(store)).latest
    store.asked.clear()

    def limited(points: int) -> None:
        if points > 40:
            raise error

    store.refuse = limited

    assert (await seeded(store)).latest == expected
    assert (
        len({asked for asked in store.asked if (asked[1] - asked[0]) // STEP < 40}) >= HISTORY // STEP // 40
    )


async def test_a_partial_answer_is_not_counted() -> None:
    store = two_rollouts()
    store.warnings = ("1 store did not answer",)
    feed = await seeded(store)

    assert feed.latest == ()
    assert feed.progress.done == 0
    assert "1 store did not answer" in feed.progress.fault
    store.warnings = ()
    await advance(feed, now_ms=NOW + HOUR)
    assert feed.progress.done == feed.progress.total


async def test_a_store_that_asks_to_be_left_alone_is_left_alone() -> None:
    store = two_rollouts()

    def throttle(_: int) -> None:
        error = Throttled("429: slow down")
        error.retry_after_s = 120.0
        raise error

    store.refuse = throttle
    feed = await seeded(store)
    store.refuse = lambda _: None
    store.asked.clear()
    await advance(feed, now_ms=NOW + 119_000)
    assert store.asked == []
    await advance(feed, now_ms=NOW + 120_000)

    assert store.asked != []


async def test_an_answer_that_cannot_be_read_is_a_fault_and_no_history() -> None:
    class Broken(Store):
        async def query_range(self, promql: str, *, start_ms: int, end_ms: int, step_ms: int) -> MatrixAnswer:
            del promql
            return MatrixAnswer(b'[{"metric":7}]', start_ms, end_ms, step_ms)

    feed = await seeded(Broken())

    assert feed.latest == ()
    assert "unreadable" in feed.progress.fault


async def test_idle_hours_are_history_and_gaps_are_not() -> None:
    store = Store()
    store.record(board("b", "web-7d9f8c6b5d-x2x4q"), NOW - 2 * DAY, NOW - DAY, level(0.0))
    store.record(board("b", "web-7d9f8c6b5d-x2x4q"), NOW - HOUR, NOW, level(0.0))
    row = only(await seeded(store))

    assert DAY + HOUR - 3 * STEP <= row.history_ms <= DAY + HOUR
    assert (row.load_milli, row.busiest_milli, row.peak_milli, row.active_boards) == (0, 0, 0, 0)


async def test_series_of_nobody_are_counted_by_why() -> None:
    store = two_rollouts()
    store.record(board("x", "somebody"), NOW - DAY, NOW, level(0.5))
    store.record(board("y"), NOW - DAY, NOW, level(0.5))
    feed = new_feed(store)
    await feed.advance([source()], Registry(owners()), spans=SPANS, now_ms=NOW)

    assert feed.left_out == {"unknown": 1, "unowned": 1}


async def test_nothing_is_counted_before_anything_is_published() -> None:
    feed = new_feed(Store())

    assert not await feed.advance([], Registry(owners()), spans=SPANS, now_ms=NOW)
    assert (feed.progress.total, feed.nbytes, feed.latest) == (0, 0, ())


async def test_one_value_for_a_whole_pod_is_no_history_of_its_boards() -> None:
    by_pod = next(profile for profile in PROFILES.values() if profile.scope == "pod")
    store = Store()
    feed = new_feed(store)

    assert not await feed.advance(
        [HistorySource(by_pod, ((by_pod.signals[0], MINUTE),), "", 1)],
        Registry(owners()),
        spans=SPANS,
        now_ms=NOW,
    )
    assert store.asked == []


async def test_large_fleets_are_asked_for_in_steps_of_the_evidence_window() -> None:
    store = two_rollouts()
    feed = new_feed(store)
    await advance(feed, sources=[source(series=20_000)])

    assert feed.progress.step_ms == WINDOW
    assert HISTORY - 2 * WINDOW <= only(feed).history_ms <= HISTORY
    assert feed.nbytes > 0


async def test_other_spans_or_another_scrape_job_begin_anew() -> None:
    store = two_rollouts()
    feed = await seeded(store)
    asked = len(store.asked)
    await feed.advance([source()], Registry(owners()), spans=HistorySpans(DAY, WINDOW, 0.05), now_ms=NOW)
    assert only(feed).history_ms <= DAY
    assert len(store.asked) == asked + 5
    moved = HistorySource(DCGM, ((DCGM.signals[0], MINUTE),), 'job="other"', 4)
    await feed.advance([moved], Registry(owners()), spans=HistorySpans(DAY, WINDOW, 0.05), now_ms=NOW)

    assert len(store.asked) == asked + 10
