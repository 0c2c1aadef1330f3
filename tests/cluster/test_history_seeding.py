"""A week of history in a real Prometheus, read back by the feed in pieces that its limits allow."""

from collections.abc import Iterator

import numpy as np
from unit.observe.observed import ENGINE, PROFILES, board, deployment, owner, pod, replica_set, stores

from autoscaler.model.cluster import WorkloadRef
from autoscaler.observe.assemble import assemble
from autoscaler.observe.history.feed import HistoryFeed, HistorySource, HistorySpans
from autoscaler.observe.history.past import PastOwners
from autoscaler.observe.history.registry import Registry
from autoscaler.observe.prometheus import PrometheusClient
from autoscaler.observe.series import SeriesReading
from devcluster.backfill import Series, backfilled_prometheus

MINUTE = 60_000
DAY = 24 * 60 * MINUTE
WEEK = 7 * DAY
NOW = 1_788_000_000_000 // DAY * DAY + 9 * 60 * MINUTE
WEB = WorkloadRef("apps", "Deployment", "ml", "web")
OLD, PRESENT = "web-6c54bd5869-bcdfg", "web-7d9f8c6b5d-x2x4q"


def busy_by_day(times: np.ndarray) -> np.ndarray:
    """0.9 from 8 to 10 o'clock, 0.05 at other times."""
    hour = times // (60 * MINUTE) % 24
    return np.where((hour >= 8) & (hour < 10), 0.9, 0.05)


def recorded() -> Iterator[Series]:
    """A pod of four days ago and before, the present one since; each with two boards, the second always at 0.3."""
    for name, since, until in ((OLD, NOW - WEEK - DAY, NOW - 4 * DAY), (PRESENT, NOW - 4 * DAY, NOW)):
        times = np.arange(since + MINUTE, until + 1, MINUTE)
        for number, values in enumerate((busy_by_day(times), np.full(len(times), 0.3))):
            labels = {**board(f"{name}-{number}", name), "job": "dcgm"}
            yield Series(ENGINE, labels, list(zip(times.tolist(), values.tolist(), strict=True)))
            if number == 0:
                memory = list(zip(times[::60].tolist(), (3_000.0 + 0 * times[::60]).tolist(), strict=True))
                yield Series("DCGM_FI_DEV_FB_USED", labels, memory)


def owners() -> PastOwners:
    view = stores(
        deployment("web"),
        replica_set("web-7d9f8c6b5d", of="web", uid="rs"),
        pod(PRESENT, owner=owner("ReplicaSet", "web-7d9f8c6b5d", uid="rs")),
    ).freeze()
    return PastOwners.of(view, assemble(view, SeriesReading(), now_ms=NOW))


async def test_a_week_of_a_workload_is_read_back_over_a_rollout() -> None:
    dcgm = PROFILES["dcgm"]
    source = HistorySource(dcgm, ((dcgm.signals[0], MINUTE),), 'job="dcgm"', 4)
    async with backfilled_prometheus(recorded()) as url, PrometheusClient(url) as client:
        feed, spans = HistoryFeed(client), HistorySpans(WEEK, 30 * MINUTE, 0.05)
        while await feed.advance([source], Registry(owners()), spans=spans, now_ms=NOW):
            pass

    (row,) = feed.latest
    assert (feed.progress.done, feed.progress.fault) == (feed.progress.total, "")
    assert row.ref == WEB
    assert 0.999 * WEEK <= row.history_ms <= WEEK
    assert 1_200 <= row.load_milli < 1_200 * 1.07  # a twelfth of the time 0.9 + 0.3
    assert row.busiest_milli == 1_200
    assert (row.peak_milli, row.active_boards, row.memory_peak_mib) == (1_200, 2, 3_000)
