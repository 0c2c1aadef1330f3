"""What a fleet's units say about one of them: the rate at which units alike wake, and how much their memory grew.

Units are alike when their load while they work is within a factor of each other: replicas behind one balancer are, and a
notebook and a training run are not. A unit that has never worked is like others that have not.
"""

import math
from collections.abc import Iterable
from typing import Final

import msgspec

from autoscaler.decide.sizing.rules import SizingRules
from autoscaler.decide.sizing.watch import Tally, Watch, memory_growth

BUCKETS_PER_DOUBLING: Final = 8
"""Nine per cent each: finer than loads repeat."""
LEAST_LOAD: Final = 0.005
"""Half a per cent: gauges round less to nothing."""


class Peers(msgspec.Struct, frozen=True):
    """A fleet at one moment, by load while working. Built once a moment, asked once a unit."""

    short: dict[int, Tally]
    long: dict[int, Tally]
    growth: dict[int, float]
    """The largest growth of memory in each bucket that has any."""
    width: int

    def rates_of(self, watch: Watch) -> tuple[Tally, Tally]:
        """Short and long tally of all units like this one, itself among them."""
        return self._sum(self.short, watch), self._sum(self.long, watch)

    def growth_of(self, watch: Watch) -> float | None:
        """The largest growth of memory that a unit like this one showed; None where nobody has history enough."""
        return max(
            (self.growth[bucket] for bucket in self._near(watch) if bucket in self.growth), default=None
        )

    def _near(self, watch: Watch) -> range:
        middle = _bucket(watch)
        return range(middle - self.width, middle + self.width + 1)

    def _sum(self, tallies: dict[int, Tally], watch: Watch) -> Tally:
        near = [tallies[bucket] for bucket in self._near(watch) if bucket in tallies]
        return Tally(math.fsum(t.wakes for t in near), math.fsum(t.idle_hours for t in near))


def peers_of(watches: Iterable[Watch], rules: SizingRules, now_s: float) -> Peers:
    """The fleet as its watches show it now; their order does not matter."""
    short: dict[int, list[Tally]] = {}
    long: dict[int, list[Tally]] = {}
    growth: dict[int, float] = {}
    for watch in watches:
        bucket = _bucket(watch)
        now_short, now_long = watch.tallies(now_s, rules)
        short.setdefault(bucket, []).append(now_short)
        long.setdefault(bucket, []).append(now_long)
        grown = memory_growth(watch, now_s)
        if grown is not None:
            growth[bucket] = max(growth.get(bucket, 1.0), grown)
    width = round(math.log2(rules.forecast.peer_factor) * BUCKETS_PER_DOUBLING)
    return Peers(_summed(short), _summed(long), growth, width)


def _summed(tallies: dict[int, list[Tally]]) -> dict[int, Tally]:
    return {
        bucket: Tally(math.fsum(t.wakes for t in many), math.fsum(t.idle_hours for t in many))
        for bucket, many in tallies.items()
    }


def _bucket(watch: Watch) -> int:
    load = max(LEAST_LOAD, watch.work_load or 0.0)
    return math.floor(math.log2(load) * BUCKETS_PER_DOUBLING)
