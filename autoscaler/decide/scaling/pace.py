"""How fast replicas follow a need: up at once and with room for what grows, down late, in part, and only where it pays.

A scale-in waits until the replicas it would take have stood idle for as long as an act is worth, then takes them all: large
surpluses go soon and small ones late, and at worst the waiting costs as much as the act that it saved (ski rental).
"""

import math
from collections import deque

from autoscaler.decide.scaling.rules import ScalingRules
from autoscaler.model.policy_sections import MINUTE_MS

_ROUNDING = 1e-9


class Pace:
    """What was seen lately: loads, replicas, and how much has stood idle."""

    def __init__(self, rules: ScalingRules) -> None:
        self._rules = rules
        self._loads: deque[tuple[int, float]] = deque()
        self._replicas: deque[tuple[int, int]] = deque()
        self._idle = 0.0

    def observe(self, now_ms: int, load: float) -> None:
        """One sample of the load."""
        self._loads.append((now_ms, load))

    def gap(self) -> None:
        """Samples are missing: a full window comes before the next scale-in."""
        self._loads.clear()
        self._idle = 0.0

    def covered(self, now_ms: int) -> bool:
        """Whether the whole window before now has samples."""
        self._forget(now_ms)
        window, interval = int(self._rules.window), int(self._rules.interval)
        return bool(self._loads) and now_ms - self._loads[0][0] >= window - interval

    def up(self, now_ms: int, replicas: int, need: float, growth: float) -> int:
        """Replicas for a need over what there is, with room for its growth over the outlook, at most the rate allows."""
        self._note(now_ms, replicas)
        self._idle = 0.0
        rules = self._rules
        ahead = whole(need + growth * rules.steps(rules.outlook))
        since = now_ms - int(rules.interval)
        base = min(count for at, count in self._replicas if at > since)
        return max(replicas, min(ahead, base + max(rules.up_pods, math.ceil(rules.up_share * base))))

    def down(self, now_ms: int, replicas: int, need: float) -> int:
        """Replicas for a need under what there is: as many as before while too little has stood idle.

        The highest load of the window must fit too, and the window must be covered by samples.
        """
        since = self._note(now_ms, replicas)
        if not self.covered(now_ms):
            return replicas
        least = max(whole(need), whole(max(load for _, load in self._loads)))
        if least >= replicas:
            self._idle = 0.0
            return replicas
        self._idle += (replicas - least) * since / MINUTE_MS
        most = max(count for _, count in self._replicas)
        target = max(least, most - max(1, math.floor(self._rules.down_share * most)))
        if target >= replicas or self._idle < self._rules.act_cost:
            return replicas
        self._idle = 0.0
        return target

    @property
    def idle(self) -> float:
        """Replica-minutes that have stood idle since the surplus began."""
        return self._idle

    def _note(self, now_ms: int, replicas: int) -> int:
        """Remembers what there is; the time since the last look, at most two intervals."""
        interval = int(self._rules.interval)
        since = min(now_ms - self._replicas[-1][0], 2 * interval) if self._replicas else interval
        self._replicas.append((now_ms, replicas))
        while self._replicas[0][0] <= now_ms - max(int(self._rules.window), interval):
            self._replicas.popleft()
        return since

    def _forget(self, now_ms: int) -> None:
        while self._loads and self._loads[0][0] <= now_ms - int(self._rules.window):
            self._loads.popleft()


def whole(replicas: float) -> int:
    """Whole replicas that carry a need."""
    return math.ceil(replicas - _ROUNDING)
