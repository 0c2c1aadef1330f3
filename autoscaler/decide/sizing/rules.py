"""The numbers that sizing one unit rests on, each with the reason for it.

They are round values with reasons, not the result of a search; which of them were settled with a recorded load in view, and
what each is worth there, is in docs/sizing.md.
"""

from enum import StrEnum

import msgspec


class Risk(StrEnum):
    """How much the operator dares when idle units are released."""

    CAREFUL = "careful"
    SAVING = "saving"


class ForecastRules(msgspec.Struct, frozen=True, kw_only=True):
    """How the chance of more idle time is estimated from wakes and idle hours."""

    horizon_s: float = 3600.0
    """What is forecast: a release that lasts an hour outweighs the minutes that a cold start costs."""
    short_half_life_s: float = 3600.0
    """Wakes count half after this: the horizon itself, since what happens in an hour is told by about an hour."""
    long_half_life_s: float = 7200.0
    """The average that the short one is compared with, twice as old: their ratio is the trend."""
    prior_wakes: float = 1.0
    prior_hours: float = 1.0
    """What is assumed of units never seen: a wake an hour, and that is given up after about an hour of watching."""
    short_hours: float = 1.0
    """Idle hours that the long average counts for within the short one, so that a handful of samples is no trend."""
    trend_limit: float = 4.0
    """The most that rates are taken to change between the two averages: four times in an hour and a half is a daily edge."""
    own_wakes: float = 1.0
    """The peers' rate counts as so many wakes of the unit's own, as the other priors do."""
    peer_factor: float = 2.0
    """Peers are units whose load while they work is within this factor of the unit's own."""


class SizingRules(msgspec.Struct, frozen=True, kw_only=True):
    """What a release and a change of size must satisfy."""

    risk: Risk = Risk.CAREFUL
    careful_chance: float = 0.50
    """Careful: another idle hour is more likely than work, although a lost bet costs a minute and a won one hours."""
    saving_chance: float = 0.30
    """Saving: the same bet is taken at less than even odds."""
    idle_ceiling: float = 0.0
    """Activity at or under this share is no work."""
    idle_floor_s: float = 1800.0
    """Proven idleness before a release: a promise to tenants that no forecast undercuts."""
    min_work_s: float = 3600.0
    """Work that must have been seen before a slice: memory grows at work, so an idle unit has not shown its peak."""
    min_history_s: float = 3600.0
    """A forecast of an hour needs an hour of history."""
    fresh_steps: float = 3.0
    """Nothing is done to a unit whose last sample is older than so many sample intervals."""
    cooldown_s: float = 3600.0
    """At most one change of a unit in this time: an hour shows a change's effect."""
    savings_floor: float = 0.25
    """Boards that a slice must save; less is not worth a restart."""
    target_utilization: float = 0.70
    """Busy share of a slice that is aimed at: room for bursts inside one sample interval."""
    margin: float = 0.15
    """Added to the load's percentile, as VPA's recommender does."""
    percentile: float = 0.95
    """Of the load, with samples weighing half after a day."""
    activity_floor: float = 0.05
    """The least load that is assumed; less is an idle context's noise."""
    confidence_unit_s: float = 86_400.0
    """History that counts as confidence 1; a day, since most load has a daily shape."""
    memory_target: float = 0.90
    """Share of a slice's memory that may be filled."""
    saturation: float = 0.90
    """Use of a slice from which it cannot show a higher demand."""
    forecast: ForecastRules = ForecastRules()

    @property
    def asked_chance(self) -> float:
        """The least chance of another idle hour at which an idle unit is released."""
        return self.careful_chance if self.risk is Risk.CAREFUL else self.saving_chance
