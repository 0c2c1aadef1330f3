"""What a backtest says: one row a policy, and what each did to each pod. Replay makes them, views draw them."""

from typing import Final

import msgspec

COMPUTE: Final = (0.0, 1 / 7, 2 / 7, 3 / 7, 4 / 7, 1.0)
"""Share of a board's compute at each allocation: released, four slices, whole."""
MEMORY: Final = (0.0, 1 / 8, 2 / 8, 4 / 8, 4 / 8, 1.0)
"""Share of a board's memory at each allocation: what MIG's 1g, 2g, 3g and 4g profiles carry."""
RELEASED: Final = 0
WHOLE: Final = len(COMPUTE) - 1


class VerticalRow(msgspec.Struct, frozen=True, kw_only=True):
    """One policy over all pods of a trace; percentages are of 100, counts are totals."""

    policy: str
    board_gib: float
    gaps: bool
    pods: int
    freed_pct: float
    """Mean of (1 - allocation) over the time that pods held a board."""
    oracle_pct: float
    """The same over what the clairvoyant oracle frees."""
    lost_pct: float
    """Demand above the usable capacity, over all demand."""
    oom: int
    blind: int
    wrong_per_1000_pod_hours: float
    restarts_per_pod_day: float
    cold_starts_per_pod_day: float


class HorizontalRow(msgspec.Struct, frozen=True, kw_only=True):
    """One policy over one service's request rate."""

    policy: str
    service: str
    replica_hours_x_oracle: float
    unserved_pct: float
    acts_per_hour: float


class ReplicaLine(msgspec.Struct, frozen=True, kw_only=True):
    """What one policy requested for one service over its load, for drawing: the highest of each bucket of time."""

    policy: str
    service: str
    hours: float
    load: tuple[float, ...]
    """In replicas' worth of work."""
    requested: tuple[int, ...]


class HorizontalReport(msgspec.Struct, frozen=True, kw_only=True):
    """A whole horizontal backtest."""

    rows: tuple[HorizontalRow, ...]
    lines: tuple[ReplicaLine, ...] = ()


class PodOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What one policy did to one pod."""

    policy: str
    pod: str
    hours: float
    freed_pct: float
    lost_pct: float
    oom: int
    blind: int
    wrong: int
    restarts: int
    cold_starts: int
    changes: tuple[tuple[int, int], ...] = ()
    """(step, allocation) from which step on the pod held what; empty unless a drill-down was asked for."""


class PodLoad(msgspec.Struct, frozen=True, kw_only=True):
    """A pod's load for drawing: the highest duty and memory of each bucket of steps."""

    pod: str
    first_step: int
    last_step: int
    bucket_steps: int
    duty: tuple[float, ...]
    memory_gib: tuple[float, ...]


class VerticalReport(msgspec.Struct, frozen=True, kw_only=True):
    """A whole vertical backtest."""

    rows: tuple[VerticalRow, ...]
    step_s: float
    pods: int
    pod_hours: float
    oracle_freed_pct: float
    ceiling_pct: float
    """What of the oracle's saving is left when no shrink may be followed by demand above it within an hour."""
    outcomes: tuple[PodOutcome, ...] = ()
    loads: tuple[PodLoad, ...] = ()
