"""What the load will be when a replica asked for now is ready: several simple ways to foretell it, judged by their own past.

Every way says how much load to expect over the next start-up time. How far each fell short is remembered, and so the room
over it that leaves no more unserved than promised is known. The way that was cheapest, its room included, is followed: a
smooth load is foretold best by its last slope, a ragged one by its mean. Nothing is fitted beforehand.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import msgspec

from autoscaler.decide.scaling.rules import ScalingRules
from autoscaler.decide.scaling.tail import Tail
from autoscaler.model.duration import Duration
from autoscaler.model.policy_sections import MINUTE_MS

LEARN_EVERY: Final = Duration(10 * MINUTE_MS)
"""Time between two comparisons of the ways; the room of the one that is followed changes with them."""
_SHORT: Final = Duration(2 * MINUTE_MS)
_LONG: Final = Duration(5 * MINUTE_MS)
_LEAST_SCALE: Final = 0.01

Trend: TypeAlias = tuple[float, float]
"""Level, and growth in one interval (never under 0: a falling load is not trusted to fall further)."""
Way: TypeAlias = Callable[[Sequence[float]], Trend]


class Outlook(msgspec.Struct, frozen=True, kw_only=True):
    """The load to expect over the next start-up time, the room for misses, and on what grounds.

    `need` is what must be there for it, in replicas and unrounded; `growth` is what an interval adds where the way that is
    followed says so. `trust` 0..1 is the weight of the load's own past in it.
    """

    need: float
    expected: float
    room: float
    growth: float
    trust: float
    way: str


class Forecasts:
    """Samples in, outlook out. Samples come at the rules' interval; `gap` tells where some are missing."""

    def __init__(self, rules: ScalingRules, *, startup: Duration) -> None:
        self._rules = rules
        self._lead = max(1, rules.steps(startup))
        self._warm = max(rules.steps(_LONG), rules.steps(rules.warm_up))
        self._trust_steps = rules.steps(rules.trust)
        self._learn_every = rules.steps(LEARN_EVERY)
        self._decay = 0.5 ** (int(LEARN_EVERY) / int(rules.half_life))
        self._ways = _ways(rules)
        self._candidates = [
            _Candidate(way, grows) for way in range(len(self._ways)) for grows in (False, True)
        ]
        self._recent: deque[float] = deque(maxlen=max(2 * rules.steps(_LONG), self._lead) + 1)
        self._foretold: deque[float] = deque(maxlen=self._lead + 1)
        self._made: deque[tuple[list[float], float]] = deque()
        self._clean = 0
        self._learnt = 0
        self._sum = self._weight = 0.0
        self._followed: _Candidate | None = None

    def observe(self, load: float, *, teaches: bool = True, foretold: float = 0.0) -> None:
        """One sample. One that does not teach (part of it was guessed) is followed, and nothing is learnt around it.

        `foretold` is a load that others knew would come now: what it covers is no miss of a forecast.
        """
        self._recent.append(load)
        self._foretold.append(foretold)
        self._sum += load
        self._weight += 1.0
        self._clean = self._clean + 1 if teaches else 0
        if len(self._made) == self._lead:
            forecasts, mean = self._made.popleft()
            if self._clean > self._warm + self._lead:
                self._learn(forecasts, mean)
        self._made.append(([self._expected(way) for way in self._ways], self._mean))

    def gap(self) -> None:
        """Samples are missing here: no trend and no lesson reaches across."""
        self._recent.clear()
        self._foretold.clear()
        self._made.clear()
        self._clean = 0

    def outlook(self) -> Outlook | None:
        """What to expect; None before the first sample after a gap."""
        if not self._recent:
            return None
        now, followed = self._recent[-1], self._followed
        thin = now / self._rules.thin_target
        if followed is None:
            return Outlook(
                need=thin, expected=now, room=thin - now, growth=0.0, trust=0.0, way="the last sample"
            )
        way = self._ways[followed.way]
        expected, trust = self._expected(way), self._learnt / (self._learnt + self._trust_steps)
        learnt = expected + followed.room * followed.scale(expected, self._mean)
        need = max(now, trust * learnt + (1 - trust) * thin)
        growth = way[1](self._recent)[1] if trust > 1 / 2 else 0.0
        return Outlook(
            need=need, expected=expected, room=need - expected, growth=growth, trust=trust, way=way[0]
        )

    @property
    def _mean(self) -> float:
        return self._sum / self._weight

    def _expected(self, way: tuple[str, Way]) -> float:
        level, growth = way[1](self._recent)
        return level + growth * self._lead

    def _learn(self, forecasts: Sequence[float], mean: float) -> None:
        """The load that came since those forecasts, where nobody foretold it, against each of them."""
        since = zip(list(self._recent)[-1 - self._lead :], self._foretold, strict=True)
        came = max((load for load, foretold in since if load > foretold), default=0.0)
        for candidate in self._candidates:
            candidate.learn(came, forecasts[candidate.way], mean)
        self._learnt += 1
        if self._learnt % self._learn_every:
            return
        for candidate in self._candidates:
            candidate.settle(self._rules.unserved * self._mean)
        self._followed = min(self._candidates, key=lambda candidate: candidate.cost)
        for candidate in self._candidates:
            candidate.decay(self._decay)
        self._sum *= self._decay
        self._weight *= self._decay


class _Candidate:
    """One way with one opinion of how its misses scale, and what following it would have cost.

    Misses either stay the same whatever the load, or go half-way with it: in between lies noise of many small requests.
    """

    def __init__(self, way: int, grows: bool) -> None:  # noqa: FBT001 - the other half of a pair
        self.way = way
        self._grows = grows
        self._tail = Tail()
        self._forecasts = self._scales = 0.0
        self.room = 0.0
        self.cost = 0.0

    def scale(self, expected: float, mean: float) -> float:
        """The unit of its misses, in replicas."""
        return max(_LEAST_SCALE, (expected + mean) / 2) if self._grows else 1.0

    def learn(self, came: float, expected: float, mean: float) -> None:
        """What came against what was expected."""
        scale = self.scale(expected, mean)
        self._tail.add((came - expected) / scale)
        self._forecasts += expected
        self._scales += scale

    def settle(self, loss: float) -> None:
        """The room that leaves this loss, and the mean of what would have been held."""
        weight = self._tail.weight
        scale = self._scales / weight
        self.room = self._tail.room(loss / scale)
        self.cost = self._forecasts / weight + scale * self.room

    def decay(self, factor: float) -> None:
        """The past weighs less."""
        self._tail.decay(factor)
        self._forecasts *= factor
        self._scales *= factor


def _ways(rules: ScalingRules) -> tuple[tuple[str, Way], ...]:
    short, long = rules.steps(_SHORT), rules.steps(_LONG)
    return (
        ("the last sample", _slope(0)),
        ("the slope of the last interval", _slope(1)),
        (f"the slope of the last {_SHORT}", _slope(short)),
        (f"the mean of the last {_SHORT}", _mean(short)),
        (f"the mean of the last {_LONG}", _mean(long)),
        (f"the trend of the means of {_SHORT}", _trend_of_means(short)),
        (f"the trend of the means of {_LONG}", _trend_of_means(long)),
    )


def _slope(steps: int) -> Way:
    def trend(recent: Sequence[float]) -> Trend:
        back = min(steps, len(recent) - 1)
        return recent[-1], max(0.0, (recent[-1] - recent[-1 - back]) / back) if back else 0.0

    return trend


def _mean(steps: int) -> Way:
    def trend(recent: Sequence[float]) -> Trend:
        last = list(recent)[-steps:]
        return sum(last) / len(last), 0.0

    return trend


def _trend_of_means(steps: int) -> Way:
    """Two means, one after the other: their difference is the growth, and it carries the last from its middle to now."""

    def trend(recent: Sequence[float]) -> Trend:
        last = list(recent)[-2 * steps :]
        if len(last) < 2 * steps:
            return recent[-1], 0.0
        before, after = sum(last[:steps]) / steps, sum(last[steps:]) / steps
        growth = max(0.0, (after - before) / steps)
        return after + growth * (steps - 1) / 2, growth

    return trend
