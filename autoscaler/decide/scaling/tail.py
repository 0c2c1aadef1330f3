"""How far a forecast has fallen short: a decaying histogram of its misses, asked for the room that leaves a given loss.

Buckets grow by 5 % as VPA's do, so one histogram serves a service of two replicas and one of two thousand. Only
shortfalls are kept, since a load under its forecast loses nothing; the others count in the weight.
"""

from bisect import bisect_left
from typing import Final

_FIRST: Final = 0.005
_GROWTH: Final = 1.05
_BUCKETS: Final = 280
_EDGES: Final = tuple(_FIRST * _GROWTH**index for index in range(_BUCKETS))
"""Upper edges: a shortfall counts as the edge over it. The last is some 4,000; what lies beyond counts as that."""
_NEGLIGIBLE: Final = 1e-9
"""Weight under which a bucket is forgotten."""


class Tail:
    """Shortfalls and their weights."""

    def __init__(self) -> None:
        self._weights = [0.0] * _BUCKETS
        self._weight = 0.0
        self._top = -1

    @property
    def weight(self) -> float:
        """Weight of all forecasts, those that held too."""
        return self._weight

    def add(self, shortfall: float) -> None:
        """Counts one forecast; a shortfall of 0 or less is one that held."""
        self._weight += 1.0
        if shortfall > 0:
            bucket = min(bisect_left(_EDGES, shortfall), _BUCKETS - 1)
            self._weights[bucket] += 1.0
            self._top = max(self._top, bucket)

    def decay(self, factor: float) -> None:
        """Everything seen so far weighs this share of what it did."""
        self._weight *= factor
        self._weights = [weight * factor for weight in self._weights]
        while self._top >= 0 and self._weights[self._top] < _NEGLIGIBLE:
            self._weights[self._top] = 0.0
            self._top -= 1

    def room(self, loss: float) -> float:
        """The least room over which the mean shortfall is at most `loss`."""
        allowed, beyond, excess = loss * self._weight, 0.0, 0.0
        for index in range(self._top, -1, -1):
            beyond += self._weights[index]
            under = _EDGES[index - 1] if index else 0.0
            grown = excess + beyond * (_EDGES[index] - under)
            if grown > allowed:
                return _EDGES[index] - (allowed - excess) / beyond
            excess = grown
        return 0.0
