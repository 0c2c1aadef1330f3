"""What one unit with one board should hold next, and the sentence that explains it.

Order: nothing without a fresh sample; up at once where a slice is saturated; a release where idleness is proven for as long as
tenants were promised *and* another idle hour is likely enough; else the smallest slice that carries load and memory.
"""

from typing import Final

import msgspec

from autoscaler.decide.sizing.forecast import Forecast, forecast
from autoscaler.decide.sizing.peers import Peers
from autoscaler.decide.sizing.rules import SizingRules
from autoscaler.decide.sizing.slices import (
    Ladder,
    load_bounds,
    memory_bound,
    saturated,
    smallest_step,
)
from autoscaler.decide.sizing.watch import Watch
from autoscaler.model.reasons import Reason

RELEASED: Final = 0


class Holding(msgspec.Struct, frozen=True, kw_only=True):
    """What a unit holds of one board."""

    ladder: Ladder
    step: int
    board_gib: float
    changed_s: float | None = None
    """When we last changed it."""

    @property
    def cooled_s(self) -> float:
        """When it was changed, or the beginning of time."""
        return float("-inf") if self.changed_s is None else self.changed_s


class Choice(msgspec.Struct, frozen=True):
    """The step to hold from now on, why, and that in words."""

    step: int
    reason: Reason
    sentence: str


def decide_allocation(
    watch: Watch, holding: Holding, peers: Peers, rules: SizingRules, now_s: float
) -> Choice:
    """The step that the unit should hold; the present one wherever doubt is left."""
    ladder, held = holding.ladder, holding.step
    if held == RELEASED:
        return Choice(held, Reason.RELEASED, "released; the next demand brings its board back")
    if not watch.fresh(now_s, rules):
        return Choice(held, Reason.EVIDENCE_STALE, "its last sample is too old to act on")
    if saturated(watch, ladder, held, holding.board_gib, rules):
        return Choice(
            ladder.whole, Reason.RIGHT_SIZED, "its slice is full: the whole board until its need is seen"
        )
    if now_s - holding.cooled_s < rules.cooldown_s:
        return Choice(held, Reason.COOLDOWN, f"changed less than {rules.cooldown_s / 60:.0f} min ago")
    if watch.age_s(now_s) < rules.min_history_s:
        return Choice(
            held,
            Reason.THIN_HISTORY,
            f"watched for {watch.age_s(now_s) / 60:.0f} min; nothing is taken before {rules.min_history_s / 60:.0f}",
        )
    expected = forecast_of(watch, peers, rules, now_s) if watch.idle_s(now_s) >= rules.idle_floor_s else None
    if expected is not None and expected.chance >= rules.asked_chance:
        return Choice(RELEASED, Reason.RELEASED, _bet(expected, rules))
    sized = _sized(watch, holding, peers, rules, now_s)
    if expected is not None and sized.step == held:
        return Choice(held, Reason.NOT_WORTH_RESTART, _bet(expected, rules))
    return sized


def forecast_of(watch: Watch, peers: Peers, rules: SizingRules, now_s: float) -> Forecast:
    """The forecast for a unit as of now."""
    _, own = watch.tallies(now_s, rules)
    return forecast(watch, peers, rules.forecast, own=own, now_s=now_s)


def _sized(watch: Watch, holding: Holding, peers: Peers, rules: SizingRules, now_s: float) -> Choice:
    """The smallest lawful slice, or what is held and why no less will do."""
    ladder, held, board = holding.ladder, holding.step, holding.board_gib
    lower, upper = load_bounds(watch, rules, now_s)
    memory = memory_bound(watch, peers.growth_of(watch), rules)
    wanted = smallest_step(ladder, load=upper, memory_gib=memory, board_gib=board)
    if wanted > held and lower > ladder.compute[held]:
        return Choice(wanted, Reason.RIGHT_SIZED, f"its load needs at least {lower:.2f} boards")
    if wanted < held:
        saved = ladder.compute[held] - ladder.compute[wanted]
        if saved < rules.savings_floor:
            return Choice(held, Reason.BELOW_SAVINGS_FLOOR, f"{saved:.2f} boards less is not worth a restart")
        return Choice(
            wanted,
            Reason.RIGHT_SIZED,
            f"its load needs at most {upper:.2f} boards, its memory {memory:.1f} GiB with the growth seen",
        )
    by_load = smallest_step(ladder, load=upper, memory_gib=0.0, board_gib=board)
    if by_load < held:
        return Choice(held, Reason.MEMORY_GATE, _gate(watch, memory))
    return Choice(
        held, Reason.LADDER_END, f"its load may need {upper:.2f} boards: no smaller step carries it"
    )


def _bet(expected: Forecast, rules: SizingRules) -> str:
    return f"{expected.sentence}, {rules.asked_chance:.0%} is asked"


def _gate(watch: Watch, memory_gib: float) -> str:
    peak = f"its memory peak of {watch.memory_peak_gib:.1f} GiB"
    if memory_gib == float("inf"):
        return f"{peak} may still grow: too little work was seen to tell by how much"
    return f"{peak} may grow to {memory_gib:.1f} GiB, as units like it did: no smaller step holds that"
