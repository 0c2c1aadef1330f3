"""How much memory the history takes, measured on the real thing filled."""

import numpy as np

from autoscaler.model.cluster import WorkloadRef
from autoscaler.observe.history.workloads import WorkloadHistories, WorkloadSteps

_MINUTE_MS = 60_000
_WEEK_MS = 7 * 24 * 60 * _MINUTE_MS


def memory_of(*, workloads: int) -> int:
    """Bytes of the columns, spare rows included, for a week of so many workloads; boards add nothing to it."""
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
    return histories.nbytes
