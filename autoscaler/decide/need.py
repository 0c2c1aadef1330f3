"""How many boards a unit requires: small estimators wrapped round each other, as VPA's recommender has them.

Percentile of the load, margin, memory, confidence, and rounding last.
Sources: kubernetes/autoscaler vertical-pod-autoscaler `pkg/recommender/logic/estimator.go` for the wrapping and
for the confidence formulas; docs/how-it-decides.md for the load.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import msgspec

from autoscaler.decide.remembered import NOTHING_REMEMBERED, Remembered
from autoscaler.model.evidence import ACTIVITY_SCALE, BoardUse, Measured
from autoscaler.model.plan import Need
from autoscaler.model.policy import Policy

Estimator: TypeAlias = Callable[[Measured], float]
"""Milli-boards that one unit requires."""

MILLI = 1000


def activity_load(value: Callable[[Measured], int], *, target_utilization: float) -> Estimator:
    """The boards' activity together over the busy share aimed at."""
    return lambda unit: value(unit) * MILLI / ACTIVITY_SCALE / target_utilization


def remembered_load(past: Remembered, *, target_utilization: float) -> Estimator:
    """The activity of units that are gone, over the busy share aimed at."""
    return lambda _: past.activity_milli / target_utilization


def memory_load(*, memory_target: float, past_peak_mib: int = 0) -> Estimator:
    """Sum of the boards' peak memory over the share of a board that may be filled.

    A board whose memory is not known counts as full. One board, the fullest, must hold what any board of the past held.
    """

    def estimate(unit: Measured) -> float:
        load = 0.0
        for board in unit.boards:
            if board.memory_peak_mib is None or not board.memory_total_mib:
                load += MILLI
            else:
                load += MILLI * board.memory_peak_mib / (memory_target * board.memory_total_mib)
        return load + _missing_memory(unit, past_peak_mib, memory_target)

    return estimate


def _missing_memory(unit: Measured, past_peak_mib: int, memory_target: float) -> float:
    """What the fullest board lacks of the past's peak; of boards that count as full anyway, nothing."""
    known = [(b.memory_peak_mib, b.memory_total_mib) for b in unit.boards if b.memory_total_mib]
    fullest = max(((peak, total) for peak, total in known if peak is not None), default=None)
    if fullest is None:
        return 0.0
    return MILLI * max(0, past_peak_mib - fullest[0]) / (memory_target * fullest[1])


def with_margin(inner: Estimator, *, margin: float) -> Estimator:
    """The inner estimate and a share more."""
    return lambda unit: inner(unit) * (1 + margin)


def at_least(left: Estimator, right: Estimator) -> Estimator:
    """The larger of two estimates."""
    return lambda unit: max(left(unit), right(unit))


def with_confidence(inner: Estimator, *, unit_ms: int, multiplier: float, exponent: float) -> Estimator:
    """Inner x (1 + multiplier / c)^exponent, c = history in confidence units; infinite or 0 without history."""

    def estimate(unit: Measured) -> float:
        confidence = confidence_of(unit, unit_ms=unit_ms)
        if confidence <= 0:
            return math.inf if exponent > 0 else 0.0
        return float(inner(unit) * (1 + multiplier / confidence) ** exponent)

    return estimate


def confidence_of(unit: Measured, *, unit_ms: int) -> float:
    """History in confidence units."""
    return unit.history_ms / unit_ms


def usual_activity(board: BoardUse) -> int:
    """The percentile of the history, or the window's mean where that is higher: load that has just come counts."""
    return max(board.history_p95, board.mean)


def activity_of(boards: Iterable[BoardUse]) -> int:
    """The activity that boards have to carry together, in 1/10,000.

    The percentile forgives a board whatever lasts under 5 % of the history, so that boards with a busy hour a day
    would count as unused; load that lasted for a whole window counts in full.
    """
    seen = tuple(boards)
    return max(sum(usual_activity(board) for board in seen), sum(board.history_busiest for board in seen))


def active_boards(unit: Measured, *, active_floor: float) -> int:
    """An upper bound of the boards that were ever active at once: those that ever were."""
    return sum(1 for board in unit.boards if board.history_peak >= active_floor * ACTIVITY_SCALE)


UNBOUNDED_MILLI = 2**53
"""Stands for an upper bound that thin history leaves infinite."""


def _milli(value: float) -> int:
    return UNBOUNDED_MILLI if value >= UNBOUNDED_MILLI else math.ceil(value - 1e-9)


def estimate_need(
    unit: Measured, policy: Policy, *, runs: int | None = None, past: Remembered = NOTHING_REMEMBERED
) -> Need:
    """What one unit requires; lower and upper widen as history thins.

    Of recurring work completed `runs` are the history: the unit itself is as young as its run. `past` is what is
    remembered of the workload's units; the larger of it and of the live boards' own history counts.
    """
    need = policy.need
    unit = msgspec.structs.replace(unit, history_ms=max(unit.history_ms, past.history_ms))
    activity = at_least(
        activity_load(lambda u: activity_of(u.boards), target_utilization=need.target_utilization),
        remembered_load(past, target_utilization=need.target_utilization),
    )
    mean = activity_load(lambda u: sum(b.mean for b in u.boards), target_utilization=need.target_utilization)
    memory = memory_load(memory_target=need.memory_target, past_peak_mib=past.memory_peak_mib)
    target = at_least(with_margin(activity, margin=need.margin), memory)
    unit_ms = int(need.confidence_unit)
    upper = with_confidence(target, unit_ms=unit_ms, multiplier=1.0, exponent=1.0)
    lower = with_confidence(mean, unit_ms=unit_ms, multiplier=0.001, exponent=-2.0)
    confidence = confidence_of(unit, unit_ms=unit_ms) if runs is None else runs / need.min_runs
    return Need(
        lower=_milli(min(lower(unit), target(unit))),
        target=_milli(target(unit)),
        upper=_milli(upper(unit)) if runs is None else confident(target(unit), confidence),
        activity=_milli(activity(unit)),
        memory=_milli(memory(unit)),
        active_peak=max(active_boards(unit, active_floor=policy.evidence.active_floor), past.active_boards),
        confidence=round(confidence, 6),
    )


def largest_need(needs: Sequence[Need]) -> Need | None:
    """The workload's need: the largest of its replicas' in every component, the least of their confidence."""
    if not needs:
        return None
    return Need(
        lower=max(n.lower for n in needs),
        target=max(n.target for n in needs),
        upper=max(n.upper for n in needs),
        activity=max(n.activity for n in needs),
        memory=max(n.memory for n in needs),
        active_peak=max(n.active_peak for n in needs),
        confidence=min(n.confidence for n in needs),
    )


def confident(milli: float, confidence: float) -> int:
    """The upper bound of a load for a confidence, in milli-boards."""
    return UNBOUNDED_MILLI if confidence <= 0 else _milli(milli * (1 + 1 / confidence))


def boards_for(milli: int) -> int:
    """Whole boards that hold the load: rounded up, never under one."""
    return max(1, -(-milli // MILLI))
