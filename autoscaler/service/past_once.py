"""The workloads' history for commands that read a cluster once: as much of it as can be read in a stated time."""

import asyncio
from collections.abc import Callable

from autoscaler.model.history import WorkloadHistory
from autoscaler.model.policy import Policy
from autoscaler.model.snapshot import Snapshot
from autoscaler.observe.history.feed import HistoryFeed, HistorySpans, RangeSource, history_sources
from autoscaler.observe.history.past import PastOwners
from autoscaler.observe.history.registry import Registry
from autoscaler.observe.series import SeriesReading
from autoscaler.observe.stores import StoresView


async def read_past(  # noqa: PLR0913 - everything that one reading of a cluster has, by name
    client: RangeSource,
    stores: StoresView,
    series: SeriesReading,
    snapshot: Snapshot,
    policy: Policy,
    *,
    limit_s: float,
    show: Callable[[str], None],
) -> tuple[WorkloadHistory, ...]:
    """What a service would have seeded, the newest first; what could not be read in time is missing.

    Less of it never takes more: history only raises needs, and its length is what makes them certain. ``show`` is told how
    far it is.
    """
    if series.fault or limit_s <= 0:
        return ()
    spans = HistorySpans(
        int(policy.need.history_window), int(policy.evidence.window), policy.evidence.active_floor
    )
    feed, sources = HistoryFeed(client), history_sources(series)
    registry = Registry(await asyncio.to_thread(PastOwners.of, stores, snapshot))
    try:
        async with asyncio.timeout(limit_s):
            while await feed.advance(sources, registry, spans=spans, now_ms=series.store_ms):
                show(str(feed.progress))
    except TimeoutError:
        show(str(feed.progress))
    return feed.latest
