"""A whole vertical backtest in one pass over a trace: all policies and the oracle side by side."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.model.backtest import PodLoad, VerticalReport, VerticalRow
from autoscaler.replay.gaps import Holes
from autoscaler.replay.oracle import Oracle
from autoscaler.replay.score import Totals, outcome
from autoscaler.replay.traces import Extent, Step, TraceError, TraceSource
from autoscaler.replay.vertical import ASK_S, Arm, VerticalPolicy

MakePolicy = Callable[[float], VerticalPolicy]
"""A new policy for boards of so many GiB."""
Progress = Callable[[int, int], None]
"""Told after each step: steps done, steps in all."""

CEILING_SEGMENT_S: Final = 3600.0
DRAWN_BUCKETS: Final = 288
"""Points of a drawn load; more could not be told apart on a page."""


def run_vertical(
    source: TraceSource,
    policies: Mapping[str, MakePolicy],
    *,
    board_gib: float,
    gaps: bool = False,
    keep: bool = False,
    progress: Progress = lambda _done, _all: None,
) -> VerticalReport:
    """Every policy over the whole trace, one row each in the order given; ``keep`` adds what a drill-down draws.

    Raises `TraceError` where the trace cannot be read or has no pod.
    """
    extent = source.extent()
    if not extent.spans:
        raise TraceError("the trace has no pod with a duty sample")
    slots = _most_at_once(extent)
    arms = {
        name: Arm(make(board_gib), slots=slots, step_s=extent.step_s, board_gib=board_gib, keep=keep)
        for name, make in policies.items()
    }
    oracle = Oracle(slots=slots, step_s=extent.step_s, board_gib=board_gib)
    ceiling = Oracle(slots=slots, step_s=extent.step_s, board_gib=board_gib, segment_s=CEILING_SEGMENT_S)
    holes = Holes(step_s=extent.step_s) if gaps else None
    fleet = _Fleet(extent, slots, (*arms.values(), oracle, ceiling), keep=keep)
    for step in source.steps():
        fleet.begin(step)
        _advance(fleet, step, tuple(arms.values()), (oracle, ceiling), holes)
        fleet.finish(step)
        progress(step.index + 1, extent.steps)
    return VerticalReport(
        rows=tuple(
            _row(name, arm.tally.total, oracle.freed_pct, extent, board_gib=board_gib, gaps=gaps)
            for name, arm in arms.items()
        ),
        step_s=extent.step_s,
        pods=len(extent.spans),
        pod_hours=round(oracle.steps * extent.step_s / 3600, 2),
        oracle_freed_pct=round(oracle.freed_pct, 2),
        ceiling_pct=round(100 * ceiling.freed_pct / oracle.freed_pct, 1) if oracle.freed_pct else 0.0,
        outcomes=tuple(
            outcome(name, extent.step_s, pod, counts, changes)
            for name, arm in arms.items()
            for pod, counts, changes in sorted(arm.tally.outcomes)
        ),
        loads=fleet.loads(),
    )


class _Fleet:
    """Which pod lives in which slot, and its true load: a missing sample leaves the load as it was."""

    def __init__(self, extent: Extent, slots: int, members: Sequence[Arm | Oracle], *, keep: bool) -> None:
        self.step_s = extent.step_s
        self._members = members
        self._free = list(range(slots - 1, -1, -1))
        self._slot: dict[str, int] = {}
        self._begins: defaultdict[int, list[str]] = defaultdict(list)
        self._ends: defaultdict[int, list[str]] = defaultdict(list)
        for pod, span in extent.spans.items():
            self._begins[span.first].append(pod)
            self._ends[span.last].append(pod)
        self.mask = np.zeros(slots, dtype=np.bool_)
        self.demand = np.zeros(slots)
        self.memory_gib = np.zeros(slots)
        self.active: tuple[int, ...] = ()
        self._drawn = _Drawn(extent) if keep else None

    def begin(self, step: Step) -> None:
        """Starts the step's new pods and takes its samples as the truth."""
        for pod in self._begins.pop(step.index, ()):
            slot = self._slot[pod] = self._free.pop()
            self.mask[slot] = True
            self.demand[slot] = self.memory_gib[slot] = 0.0
            for member in self._members:
                if isinstance(member, Arm):
                    member.start(slot, pod, step.index, step.now_s)
                else:
                    member.start(slot)
        for pod, duty in step.duty.items():
            self.demand[self._slot[pod]] = duty
        for pod, memory in step.memory_gib.items():
            self.memory_gib[self._slot[pod]] = memory
        self.active = tuple(sorted(self._slot.values()))
        if self._drawn is not None:
            self._drawn.add(step)

    def finish(self, step: Step) -> None:
        """Ends the pods whose last sample this was."""
        for pod in self._ends.pop(step.index, ()):
            slot = self._slot.pop(pod)
            for member in self._members:
                if isinstance(member, Arm):
                    member.end(slot, step.now_s)
                else:
                    member.end(slot)
            self.mask[slot] = False
            self.demand[slot] = self.memory_gib[slot] = 0.0
            self._free.append(slot)

    def slots_seen(
        self, step: Step, holes: Holes | None
    ) -> tuple[list[int], NDArray[np.bool_], NDArray[np.bool_]]:
        """The slots with a sample that is not hidden, and of which half of it."""
        duty = np.zeros(len(self.mask), dtype=np.bool_)
        memory = np.zeros(len(self.mask), dtype=np.bool_)
        for samples, seen in ((step.duty, duty), (step.memory_gib, memory)):
            for pod in samples:
                seen[self._slot[pod]] = holes is None or not holes.hides(pod, step.index)
        return np.flatnonzero(duty | memory).tolist(), duty, memory

    def loads(self) -> tuple[PodLoad, ...]:
        """What a drill-down draws; empty unless it was kept."""
        return self._drawn.loads() if self._drawn is not None else ()


def _advance(
    fleet: _Fleet, step: Step, arms: Sequence[Arm], oracles: Sequence[Oracle], holes: Holes | None
) -> None:
    for oracle in oracles:
        oracle.add(fleet.mask, fleet.demand, fleet.memory_gib)
    slots, with_duty, with_memory = fleet.slots_seen(step, holes)
    asked = _asked(step, fleet)
    for arm in arms:
        duty, memory = arm.live(step.index, step.now_s, fleet.active, fleet.demand, fleet.memory_gib)
        arm.show(step.now_s, slots, np.where(with_duty, duty, np.nan), np.where(with_memory, memory, np.nan))
        if asked:
            arm.ask(step.index, step.now_s, fleet.active)


def _asked(step: Step, fleet: _Fleet) -> bool:
    """Whether this is the first step of another five minutes."""
    elapsed = step.index * fleet.step_s
    return int(elapsed // ASK_S) != int((elapsed - fleet.step_s) // ASK_S)


def _most_at_once(extent: Extent) -> int:
    """How many pods live at the same time at most."""
    edges = Counter(span.first for span in extent.spans.values())
    edges.subtract(Counter(span.last + 1 for span in extent.spans.values()))
    return max(accumulate(edges[index] for index in sorted(edges)))


def _row(
    name: str, total: Totals, oracle_pct: float, extent: Extent, *, board_gib: float, gaps: bool
) -> VerticalRow:
    hours = total.steps * extent.step_s / 3600
    return VerticalRow(
        policy=name,
        board_gib=board_gib,
        gaps=gaps,
        pods=len(extent.spans),
        freed_pct=round(total.freed_pct, 2),
        oracle_pct=round(100 * total.freed_pct / oracle_pct, 1) if oracle_pct else 0.0,
        lost_pct=round(total.lost_pct, 3),
        oom=total.oom,
        blind=total.blind,
        wrong_per_1000_pod_hours=round(1000 * total.wrong / hours, 1),
        restarts_per_pod_day=round(24 * total.restarts / hours, 2),
        cold_starts_per_pod_day=round(24 * total.cold_starts / hours, 2),
    )


class _Drawn:
    """Highest duty and memory of each bucket of steps, of every pod."""

    def __init__(self, extent: Extent) -> None:
        self._extent = extent
        self._bucket = max(1, -(-extent.steps // DRAWN_BUCKETS))
        self._duty: dict[str, dict[int, float]] = {pod: {} for pod in extent.spans}
        self._memory: dict[str, dict[int, float]] = {pod: {} for pod in extent.spans}

    def add(self, step: Step) -> None:
        bucket = step.index // self._bucket
        for samples, kept in ((step.duty, self._duty), (step.memory_gib, self._memory)):
            for pod, value in samples.items():
                known = kept[pod]
                known[bucket] = max(known.get(bucket, 0.0), value)

    def loads(self) -> tuple[PodLoad, ...]:
        return tuple(self._load(pod) for pod in self._extent.spans)

    def _load(self, pod: str) -> PodLoad:
        span = self._extent.spans[pod]
        buckets = range(span.first // self._bucket, span.last // self._bucket + 1)
        return PodLoad(
            pod=pod,
            first_step=span.first,
            last_step=span.last,
            bucket_steps=self._bucket,
            duty=tuple(round(self._duty[pod].get(bucket, 0.0), 3) for bucket in buckets),
            memory_gib=tuple(round(self._memory[pod].get(bucket, 0.0), 2) for bucket in buckets),
        )
