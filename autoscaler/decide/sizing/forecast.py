"""The chance that an idle unit stays idle for another hour, from its own idle time and that of its peers.

Wakes are taken to come at a rate that moves with the time of day: at night a minute without work says less than at noon.
The rate is that of the peers over about the last hour, carried on to the middle of the next one by how it changed
against an average twice as old, and multiplied by how often the unit itself woke compared with them. Few wakes of its own
leave it at its peers' rate. The chance is that of no wake at that rate: exp(-rate x hour).
"""

import math

import msgspec

from autoscaler.decide.sizing.peers import Peers
from autoscaler.decide.sizing.rules import ForecastRules
from autoscaler.decide.sizing.watch import HOUR_S, Tally, Watch


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """What is expected of an idle unit."""

    chance: float
    """Of staying idle for the whole horizon, 0..1."""
    idle_s: float
    wakes_per_hour: float
    """The rate that the chance comes from, per idle hour."""
    reached: int
    """The unit's earlier idle spells that got as far as this one."""
    lasted: int
    """Those of them that then lasted for the horizon."""
    horizon_s: float

    @property
    def sentence(self) -> str:
        """The forecast in words."""
        for_so_long = f"idle for {_minutes(self.idle_s)}"
        ahead = "another hour" if self.horizon_s == HOUR_S else f"another {_minutes(self.horizon_s)}"
        if self.reached:
            noun = "spell" if self.reached == 1 else "spells"
            spells = f"of its {self.reached} earlier {noun} that got this far, {self.lasted} lasted {ahead}"
        else:
            spells = "none of its earlier spells got this far"
        rate = f"units like it wake {self.wakes_per_hour:.2g} times an idle hour now"
        return f"{for_so_long}; {spells}; {rate}: the chance of {ahead} is {self.chance:.0%}"


def forecast(watch: Watch, peers: Peers, rules: ForecastRules, *, own: Tally, now_s: float) -> Forecast:
    """What to expect of the unit; `own` is its long tally as of now."""
    short, long = peers.rates_of(watch)
    usual = (long.wakes + rules.prior_wakes) / (long.idle_hours + rules.prior_hours)
    recent = (short.wakes + rules.short_hours * usual) / (short.idle_hours + rules.short_hours)
    change = min(rules.trend_limit, max(1 / rules.trend_limit, recent / usual))
    likeness = (own.wakes + rules.own_wakes) / (own.idle_hours * usual + rules.own_wakes)
    rate = recent * change ** steps_ahead(rules) * likeness
    idle_s = watch.idle_s(now_s)
    reached = [spell for spell in watch.spells_s if spell >= idle_s]
    return Forecast(
        chance=math.exp(-rate * rules.horizon_s / HOUR_S),
        idle_s=idle_s,
        wakes_per_hour=rate,
        reached=len(reached),
        lasted=sum(spell >= idle_s + rules.horizon_s for spell in reached),
        horizon_s=rules.horizon_s,
    )


def steps_ahead(rules: ForecastRules) -> float:
    """How many times the change between the two averages leads from the short one to the middle of the horizon.

    An average with this ageing is half-life / ln 2 old.
    """
    age = rules.short_half_life_s / math.log(2)
    apart = (rules.long_half_life_s - rules.short_half_life_s) / math.log(2)
    return (age + rules.horizon_s / 2) / apart


def _minutes(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02d} min"
