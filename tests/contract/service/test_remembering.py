"""The history beside the cycles: what a cycle saw is enough to go on, and nothing waits for it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
from service_fakes import ManualClock, RecordingLog
from unit.observe.observed import (
    ENGINE,
    NOW_MS,
    Scrape,
    Seen,
    board,
    deployment,
    owner,
    pod,
    reading,
    replica_set,
    stores,
)

from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.history import WorkloadHistory
from autoscaler.model.policy import policy_from_dict
from autoscaler.observe.assemble import assemble
from autoscaler.observe.matrix import MatrixAnswer
from autoscaler.observe.series import SeriesReading
from autoscaler.observe.store_faults import Unreachable
from autoscaler.service.past_once import read_past
from autoscaler.service.remembering import Remembering

POD = "web-7d9f8c6b5d-x2x4q"
STEP_MS = 300_000
POLICY = policy_from_dict({"need": {"historyWindow": "2h"}})
STORES = stores(
    deployment("web"),
    replica_set("web-7d9f8c6b5d", of="web", uid="rs"),
    pod(POD, owner=owner("ReplicaSet", "web-7d9f8c6b5d", uid="rs")),
).freeze()


class Store:
    """One board at 0.5 all the time; `down` refuses everything."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []
        self.down = False

    async def query_range(self, promql: str, *, start_ms: int, end_ms: int, step_ms: int) -> MatrixAnswer:
        if self.down:
            raise Unreachable("store: refused")
        self.asked.append((start_ms, end_ms))
        value = "20" if "count_over_time" in promql else "0.5"
        points = [[end / 1000, value] for end in range(start_ms, end_ms + 1, step_ms)]
        rows = [{"metric": board("a", POD), "values": points}]
        return MatrixAnswer(msgspec.json.encode(rows), start_ms, end_ms, step_ms)


def seen(*, at_ms: int = NOW_MS, fault: str = "") -> SeriesReading:
    found = reading(Scrape("dcgm", {ENGINE: [Seen(board("a", POD), peak="0.5")]}), fault=fault)
    return msgspec.structs.replace(found, store_ms=at_ms)


def show(to: Remembering, series: SeriesReading) -> None:
    """What a cycle does."""
    to.saw(STORES, series, assemble(STORES, series, now_ms=NOW_MS), POLICY)


@asynccontextmanager
async def remembering(store: Store) -> AsyncIterator[tuple[Remembering, ManualClock, RecordingLog]]:
    clock, log = ManualClock(), RecordingLog()
    found = Remembering(store, clock=clock, log=log)
    task = asyncio.create_task(found.run())
    try:
        yield found, clock, log
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def until(clock: ManualClock, done: object) -> None:
    """Time passes until it holds; threads need real time of their own."""
    for _ in range(2_000):
        if done():  # type: ignore[operator]
            return
        await clock.advance(0.5)
        await asyncio.sleep(0.001)
    raise AssertionError("it never came to hold")


async def test_a_cycle_s_view_is_enough_to_fill_the_history() -> None:
    store = Store()
    async with remembering(store) as (found, clock, log):
        assert (found.latest, found.check().ok, found.check().required) == ((), True, False)
        show(found, seen())
        await until(clock, lambda: log.lines)

    (row,) = found.latest
    assert row.ref == WorkloadRef("apps", "Deployment", "ml", "web")
    assert (row.busiest_milli, row.boards) == (500, 1)
    assert found.check().detail == "23 of 23 steps of history"
    assert [level for level, event, _ in log.lines if event == "history"] == ["info"]
    assert log.lines[-1][2] == {"done": 23, "total": 23, "step_s": 300, "workloads": 1, "left_out": {}}


async def test_later_cycles_ask_for_the_steps_that_closed_and_for_nothing_else() -> None:
    store = Store()
    async with remembering(store) as (found, clock, _):
        show(found, seen())
        await until(clock, lambda: found.latest)
        asked, last = len(store.asked), max(end for _, end in store.asked)
        for _ in range(3):
            await clock.advance(60)
            show(found, seen(at_ms=NOW_MS + 60_000))
        assert len(store.asked) == asked
        show(found, seen(at_ms=NOW_MS + STEP_MS))
        await until(clock, lambda: len(store.asked) > asked)

    assert {(last + STEP_MS, last + STEP_MS)} == set(store.asked[asked:])


async def test_a_reading_with_a_fault_is_not_looked_at() -> None:
    store = Store()
    async with remembering(store) as (found, clock, _):
        show(found, seen(fault="unreachable"))
        await clock.advance(10)

    assert (store.asked, found.latest) == ([], ())


async def test_a_store_that_is_down_is_told_once_and_is_no_end() -> None:
    store = Store()
    store.down = True
    async with remembering(store) as (found, clock, log):
        show(found, seen())
        await until(clock, lambda: found.progress.fault)
        assert not found.check().ok
        assert "unreachable" in found.check().detail
        store.down = False
        for minute in range(1, 20):
            show(found, seen(at_ms=NOW_MS + minute * 60_000))
            await clock.advance(60)
        await until(clock, lambda: found.latest)

    assert found.check().ok
    levels = [level for level, event, _ in log.lines if event == "history"]
    assert (levels[0], levels.count("warning")) == ("warning", 1)


async def test_nothing_is_asked_for_while_a_cycle_reads() -> None:
    store = Store()
    async with remembering(store) as (found, clock, log):
        with found.aside():
            show(found, seen())
            for _ in range(20):
                await clock.advance(1)
                await asyncio.sleep(0.001)
            assert store.asked == []
        await until(clock, lambda: log.lines)

    assert store.asked != []


async def past(
    store: Store, *, limit_s: float, fault: str = ""
) -> tuple[tuple[WorkloadHistory, ...], list[str]]:
    series, told = seen(fault=fault), list[str]()
    snapshot = assemble(STORES, series, now_ms=NOW_MS)
    found = await read_past(store, STORES, series, snapshot, POLICY, limit_s=limit_s, show=told.append)
    return found, told


async def test_a_command_reads_what_a_service_would_have_seeded() -> None:
    (found,), told = await past(Store(), limit_s=10)

    assert (found.ref.name, found.history_ms) == (
        "web",
        23 * STEP_MS,
    )  # the newest step is not over for long enough
    assert found.busiest_milli == 500
    assert told == [] or "of 24 steps of history" in told[-1]


async def test_a_command_judges_without_history_where_it_is_switched_off_or_nothing_answers() -> None:
    silent = Store()
    silent.down = True
    slow = Store()

    async def for_ever(_promql: str, **_times: int) -> MatrixAnswer:
        return await asyncio.get_running_loop().create_future()

    slow.query_range = for_ever  # type: ignore[method-assign]

    assert (await past(Store(), limit_s=0))[0] == ()
    assert (await past(Store(), limit_s=10, fault="refused"))[0] == ()
    assert (await past(silent, limit_s=10))[0] == ()
    assert (await past(slow, limit_s=0.01))[0] == ()
