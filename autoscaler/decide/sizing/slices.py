"""Which step of a board's ladder carries a unit: its load with margin and confidence, and its memory with growth."""

import math
from typing import Final

import msgspec

from autoscaler.decide.sizing.rules import SizingRules
from autoscaler.decide.sizing.watch import Watch

UNBOUNDED: Final = math.inf


class Ladder(msgspec.Struct, frozen=True):
    """The allocations of one board, the smallest first: nothing, slices, the whole."""

    compute: tuple[float, ...]
    """Share of the board's compute, 0 for released, 1 for the whole board."""
    memory: tuple[float, ...]
    """Share of its memory."""

    def __post_init__(self) -> None:
        if len(self.compute) != len(self.memory) or len(self.compute) < 2:
            raise ValueError("a ladder has a compute and a memory share for each of two or more steps")
        if (self.compute[0], self.memory[0], self.compute[-1], self.memory[-1]) != (0, 0, 1, 1):
            raise ValueError("a ladder begins with nothing and ends with the whole board")
        if list(self.compute) != sorted(self.compute) or list(self.memory) != sorted(self.memory):
            raise ValueError("no step of a ladder may be smaller than the one before it")

    @property
    def whole(self) -> int:
        """The step that is the whole board."""
        return len(self.compute) - 1


def load_bounds(watch: Watch, rules: SizingRules, now_s: float) -> tuple[float, float]:
    """Lower and upper bound of the load in boards; thin history widens them, none leaves the upper without end.

    The chain and the confidence formulas are VPA's: percentile, margin, confidence.
    """
    confidence = watch.age_s(now_s) / rules.confidence_unit_s
    busy = max(rules.activity_floor, watch.percentile(rules.percentile)) / rules.target_utilization
    if confidence <= 0:
        return 0.0, UNBOUNDED
    target = busy * (1 + rules.margin)
    return busy * (1 + 0.001 / confidence) ** -2, target * (1 + 1 / confidence)


def memory_bound(watch: Watch, growth: float | None, rules: SizingRules) -> float:
    """GiB that a slice must have: the peak so far, grown as units like it grew, filling no more than may be filled.

    Without end while too little work was seen to have shown it, or nobody like it has history enough to show growth.
    """
    worked = watch.work_weight * watch.interval_s >= rules.min_work_s
    if growth is None or not worked or watch.memory_peak_gib <= 0:
        return UNBOUNDED
    return watch.memory_peak_gib * max(1.0, growth) / rules.memory_target


def smallest_step(ladder: Ladder, *, load: float, memory_gib: float, board_gib: float) -> int:
    """The smallest step above nothing that carries both; the whole board where no slice does."""
    for step in range(1, ladder.whole):
        if load <= ladder.compute[step] and memory_gib <= ladder.memory[step] * board_gib:
            return step
    return ladder.whole


def saturated(watch: Watch, ladder: Ladder, step: int, board_gib: float, rules: SizingRules) -> bool:
    """Whether use of the slice held is so near its size that it cannot show what is wanted."""
    if step in (0, ladder.whole):
        return False
    load = max(watch.latest, default=0.0)
    full = (
        watch.memory_gib is not None
        and watch.memory_gib >= rules.saturation * ladder.memory[step] * board_gib
    )
    return full or load >= rules.saturation * ladder.compute[step]
