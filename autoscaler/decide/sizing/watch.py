"""What was seen of one unit so far, small enough to keep for every unit of a fleet: a fold over its samples.

Idle time counts only where samples prove it. A hole longer than a few sample intervals proves nothing: it adds neither idle
hours nor wakes, and idleness has to be proven anew after it. A released unit shows no samples, yet its idleness is
known: demand would have woken it.
"""

import math
from typing import Final

import msgspec

from autoscaler.decide.sizing.rules import SizingRules

HOUR_S: Final = 3600.0
LOAD_BUCKETS: Final = 20
"""Of five per cent each: finer than any step of a ladder."""
LOAD_HALF_LIFE_S: Final = 86_400.0
"""A day, as for need: most load has a daily shape."""
SPELLS_KEPT: Final = 64
"""The latest idle spells; more change no sentence."""
SPELL_WORTH_KEEPING_S: Final = 300.0
"""Shorter ones are pauses between requests."""


class Tally(msgspec.Struct, frozen=True, gc=False):
    """Wakes, and the idle hours in which they could have happened; older ones count less."""

    wakes: float = 0.0
    idle_hours: float = 0.0

    def later(self, gap_s: float, half_life_s: float, *, idle: bool, woke: bool = False) -> "Tally":
        """The tally after a gap that was idle throughout or not, and ended in a wake or not."""
        kept = 0.5 ** (gap_s / half_life_s)
        gained = (1 - kept) * half_life_s / math.log(2) / HOUR_S if idle else 0.0
        return Tally(self.wakes * kept + woke, self.idle_hours * kept + gained)


class Watch(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One unit as its samples showed it. Times in seconds, load as a share of a whole board, memory in GiB."""

    interval_s: float
    """The distance between samples."""
    released: bool = False
    first_s: float | None = None
    last_s: float | None = None
    """The newest sample of activity."""
    idle_since_s: float | None = None
    """When the idle spell that is still going on began; None while it works, or while that is not proven."""
    counted_s: float = 0.0
    """The moment up to which the tallies are counted."""
    short: Tally = Tally()
    long: Tally = Tally()
    spells_s: tuple[float, ...] = ()
    """Lengths of its ended idle spells, the latest last."""
    load: tuple[float, ...] = (0.0,) * LOAD_BUCKETS
    """Weight of the samples in each bucket of load."""
    work: float = 0.0
    work_weight: float = 0.0
    """Sum and weight of the load in samples that showed work."""
    latest: tuple[float, ...] = ()
    """The loads of the last few samples, the newest last."""
    memory_gib: float | None = None
    memory_peak_gib: float = 0.0
    memory_marks: tuple[tuple[float, float], ...] = ()
    """(age in seconds, peak until then) at doubling ages from an hour on."""

    @property
    def work_load(self) -> float | None:
        """Mean load of the samples that showed work; None where none did."""
        return self.work / self.work_weight if self.work_weight > 0 else None

    def age_s(self, now_s: float) -> float:
        """How long it has been watched; 0 before the first sample."""
        return 0.0 if self.first_s is None else max(0.0, now_s - self.first_s)

    def fresh(self, now_s: float, rules: SizingRules) -> bool:
        """Whether the newest sample of activity is young enough to act on."""
        return self.last_s is not None and now_s - self.last_s <= self.fresh_s(rules)

    def fresh_s(self, rules: SizingRules) -> float:
        """How old the newest sample may be."""
        return rules.fresh_steps * self.interval_s

    def idle_s(self, now_s: float) -> float:
        """For how long it has been proven idle; 0 where it is not."""
        return 0.0 if self.idle_since_s is None else max(0.0, now_s - self.idle_since_s)

    def tallies(self, now_s: float, rules: SizingRules) -> tuple[Tally, Tally]:
        """The short and the long tally as of now; idle time of a released unit goes on counting."""
        gap = max(0.0, now_s - self.counted_s)
        return (
            self.short.later(gap, rules.forecast.short_half_life_s, idle=self.released),
            self.long.later(gap, rules.forecast.long_half_life_s, idle=self.released),
        )

    def percentile(self, share: float) -> float:
        """The load that is not exceeded in this share of the time, rounded up to its bucket's end; 1 without samples."""
        left = share * math.fsum(self.load)
        for bucket, weight in enumerate(self.load):
            left -= weight
            if weight > 0 and left <= 1e-9:
                return (bucket + 1) / LOAD_BUCKETS
        return 1.0


def active(watch: Watch, at_s: float, activity: float, rules: SizingRules) -> Watch:
    """The watch after a sample of activity; one that is not newer than the last, or no number, changes nothing.

    A sample of a released unit says that it is back.
    """
    if not math.isfinite(activity) or (watch.last_s is not None and at_s <= watch.last_s):
        return watch
    if watch.released:
        watch = woken(watch, at_s, rules)
    activity = min(1.0, max(0.0, activity))
    gap = at_s - watch.last_s if watch.last_s is not None else math.inf
    seen_through = gap <= watch.fresh_s(rules)
    works = activity > rules.idle_ceiling
    was_idle = seen_through and watch.idle_since_s is not None
    watch = _counted(watch, at_s, rules, idle=was_idle, woke=was_idle and works)
    idle_since = None if works else watch.idle_since_s if was_idle else at_s
    aged = 0.5 ** (min(gap, watch.age_s(at_s)) / LOAD_HALF_LIFE_S)
    load = [weight * aged for weight in watch.load]
    load[min(LOAD_BUCKETS - 1, int(activity * LOAD_BUCKETS))] += 1.0
    return msgspec.structs.replace(
        watch,
        first_s=at_s if watch.first_s is None else watch.first_s,
        last_s=at_s,
        idle_since_s=idle_since,
        load=tuple(load),
        work=watch.work * aged + (activity if works else 0.0),
        work_weight=watch.work_weight * aged + works,
        latest=(*watch.latest[-2:], activity),
    )


def holding(watch: Watch, at_s: float, memory_gib: float) -> Watch:
    """The watch after a sample of memory; no number changes nothing."""
    if not math.isfinite(memory_gib):
        return watch
    first = at_s if watch.first_s is None else watch.first_s
    peak = max(watch.memory_peak_gib, memory_gib)
    marks = watch.memory_marks
    while at_s - first >= HOUR_S * 2 ** len(marks):
        marks = (*marks, (HOUR_S * 2 ** len(marks), watch.memory_peak_gib))
    return msgspec.structs.replace(
        watch, first_s=first, memory_gib=memory_gib, memory_peak_gib=peak, memory_marks=marks
    )


def released(watch: Watch, at_s: float, rules: SizingRules) -> Watch:
    """The watch once the unit has given its board back."""
    counted = _counted(watch, at_s, rules, idle=watch.idle_since_s is not None and not watch.released)
    return msgspec.structs.replace(counted, released=True)


def woken(watch: Watch, at_s: float, rules: SizingRules) -> Watch:
    """The watch once demand has brought a released unit back: a wake, seen without a sample."""
    counted = _counted(watch, at_s, rules, idle=True, woke=True)
    return msgspec.structs.replace(counted, released=False, idle_since_s=None)


def memory_growth(watch: Watch, now_s: float) -> float | None:
    """By what factor the peak grew in the younger half of its history; None while that is too short or shows no memory."""
    half = watch.age_s(now_s) / 2
    earlier = [peak for age, peak in watch.memory_marks if age <= half]
    return watch.memory_peak_gib / earlier[-1] if earlier and earlier[-1] > 0 else None


def _counted(watch: Watch, at_s: float, rules: SizingRules, *, idle: bool, woke: bool = False) -> Watch:
    gap = max(0.0, at_s - watch.counted_s)
    spells = watch.spells_s
    if woke:
        spell = watch.idle_s(at_s)
        if spell >= SPELL_WORTH_KEEPING_S:
            spells = (*spells[1 - SPELLS_KEPT :], spell)
    return msgspec.structs.replace(
        watch,
        counted_s=at_s,
        short=watch.short.later(gap, rules.forecast.short_half_life_s, idle=idle, woke=woke),
        long=watch.long.later(gap, rules.forecast.long_half_life_s, idle=idle, woke=woke),
        spells_s=spells,
    )
