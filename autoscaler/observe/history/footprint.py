"""How much memory the history takes, measured on the real thing filled."""

import msgspec
import numpy as np

from autoscaler.model.cluster import WorkloadRef
from autoscaler.observe.history.ring import Ring
from autoscaler.observe.history.workloads import WorkloadHistories, WorkloadSteps

_MINUTE_MS = 60_000
_WEEK_MS = 7 * 24 * 60 * _MINUTE_MS


class Footprint(msgspec.Struct, frozen=True):
    """Bytes of the columns, spare rows included."""

    boards: int
    intervals: int
    workloads: int
    ring_bytes: int
    workload_bytes: int

    @property
    def total_bytes(self) -> int:
        """Both together."""
        return self.ring_bytes + self.workload_bytes


def memory_of(*, boards: int, intervals: int, workloads: int) -> Footprint:
    """The memory of so many boards over so many one-minute intervals, and of a week of so many workloads."""
    ring = Ring(window_ms=intervals * _MINUTE_MS, interval_ms=_MINUTE_MS)
    positions = np.arange(boards)
    values = np.full(boards, 5_000)
    for interval in range(1, intervals + 1):
        ring.write(interval * _MINUTE_MS, positions, mean=values, peak=values, samples=values)
    histories = WorkloadHistories(history_ms=_WEEK_MS, step_ms=5 * _MINUTE_MS)
    ones = np.ones((workloads, 1), dtype=np.int64)
    histories.add(
        WorkloadSteps(
            keys=tuple(
                (WorkloadRef("apps", "Deployment", "team", f"web-{i}"), "main") for i in range(workloads)
            ),
            ends_ms=np.array([_WEEK_MS]),
            load_milli=500 * ones,
            busiest_milli=500 * ones,
            peak_milli=500 * ones,
            total_milli=500 * ones,
            total_peak_milli=500 * ones,
            active_boards=ones,
            boards=ones,
            memory_peak_mib=1024 * ones,
            covered_ms=5 * _MINUTE_MS * ones,
        )
    )
    return Footprint(boards, intervals, workloads, ring.nbytes, histories.nbytes)
