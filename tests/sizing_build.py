"""Builders for sizing tests: watches from plain lists of samples."""

from collections.abc import Iterable

from autoscaler.decide.sizing.peers import Peers, peers_of
from autoscaler.decide.sizing.rules import SizingRules
from autoscaler.decide.sizing.slices import Ladder
from autoscaler.decide.sizing.vertical import Holding
from autoscaler.decide.sizing.watch import Watch, active, holding

RULES = SizingRules()
STEP_S = 60.0
HOUR = 60
"""Samples of an hour."""
DAY = 24 * HOUR
LADDER = Ladder((0.0, 1 / 7, 2 / 7, 3 / 7, 4 / 7, 1.0), (0.0, 1 / 8, 2 / 8, 4 / 8, 4 / 8, 1.0))
WHOLE = 5


def watched(
    activity: Iterable[float | None], *, memory_gib: float | None = None, rules: SizingRules = RULES
) -> Watch:
    """A watch after one sample a minute from time 0 on; None is a sample that is missing."""
    watch = Watch(interval_s=STEP_S)
    for index, value in enumerate(activity):
        if value is not None:
            watch = active(watch, index * STEP_S, value, rules)
            if memory_gib is not None:
                watch = holding(watch, index * STEP_S, memory_gib)
    return watch


def at(samples: int) -> float:
    """The time of the last of so many samples."""
    return (samples - 1) * STEP_S


def fleet(*watches: Watch, now_s: float, rules: SizingRules = RULES) -> Peers:
    return peers_of(watches, rules, now_s)


def holds(step: int = WHOLE, *, board_gib: float = 80.0, changed_s: float | None = None) -> Holding:
    return Holding(ladder=LADDER, step=step, board_gib=board_gib, changed_s=changed_s)
