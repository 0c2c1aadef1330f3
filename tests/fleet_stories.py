"""A fleet over several cycles: each one sees the cluster of its minute and what the cycles before it found."""

from dataclasses import dataclass, field
from typing import Any

import msgspec
from build import MINUTE_MS, NOW_MS, Spec, cluster, policy

from autoscaler.decide import plan_and_watch
from autoscaler.model.breaker import NOTHING_SEEN, FleetHealth, FleetWatch
from autoscaler.model.plan import Plan
from autoscaler.model.policy import Policy


def unit(number: int, *, seen: bool = True, namespace: str = "team", **changes: Any) -> Spec:
    """A workload of one busy unit, on a node of its own."""
    spec = Spec(f"web-{number}", namespace=namespace, node=f"node-{number}", **changes)
    return spec if seen else spec.but(seen=(None,))


def units(count: int, *, dark: int = 0, **changes: Any) -> list[Spec]:
    """So many units, of which the first ones have no samples."""
    return [unit(number, seen=number >= dark, **changes) for number in range(count)]


@dataclass
class Story:
    """The cycles of one process."""

    policy: Policy = field(default_factory=policy)
    watch: FleetWatch = NOTHING_SEEN
    plan: Plan | None = None

    def at(self, minute: float, specs: list[Spec], **tables: Any) -> FleetHealth:
        """The fleet's health in the cycle of this minute."""
        snapshot = msgspec.structs.replace(cluster(*specs, **tables), watch=self.watch)
        now_ms = NOW_MS + round(minute * MINUTE_MS)
        self.plan, self.watch = plan_and_watch(snapshot, self.policy, now_ms)
        return self.plan.fleet.health

    def restarted(self) -> "Story":
        """The same fleet under a process that knows nothing of it."""
        return Story(self.policy)
