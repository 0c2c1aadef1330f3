"""What is remembered of a workload's use of accelerators beyond the life of its pods."""

from typing import Annotated

import msgspec
from msgspec import Meta

from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.duration import LATEST_MS, Instant

Amount = Annotated[int, Meta(ge=0, le=2**53)]
"""Milli-boards, boards or MiB."""


class WorkloadHistory(msgspec.Struct, frozen=True, gc=False):
    """Use of one unit (a pod) of a workload by one container, over the history window.

    Where a workload has several units, a moment counts with the unit that used most, except in `total_milli` and
    `total_peak_milli`: the highest load of all units together in any step, and the highest sum of all their boards' peaks;
    a unit that came or went within a step counts by its part of it. `load_milli` is the percentile of
    the load (the activity of the unit's boards together) in milli-boards, rounded up to its bucket's end;
    `busiest_milli` the highest mean load of any evidence window; `peak_milli` the highest sum of the boards' peaks;
    `active_boards` the most boards that were active at once; `boards` the fewest whole boards that a unit had (0: slices
    or shares), since use of fewer boards cannot show what more of them would do; `memory_peak_mib` the highest memory of
    any one board, 0 where it is not known. `history_ms` is the time that samples stand for, `first_ms` when it began.
    """

    ref: WorkloadRef
    container: str
    load_milli: Amount
    busiest_milli: Amount
    peak_milli: Amount
    total_milli: Amount
    total_peak_milli: Amount
    active_boards: Amount
    boards: Amount
    memory_peak_mib: Amount
    history_ms: Annotated[int, Meta(ge=0, le=LATEST_MS)]
    first_ms: Instant
