"""Remembers from cycle to cycle how the fleet's evidence stood, and tells when the fleet freezes and when it is free again.

The judgement itself is the core's, made of the snapshot alone; this is only where its memory lives. A restart loses it: what
failed before shows in the store's own data, as long as it lies inside the evidence window.
"""

from autoscaler.decide import plan_and_watch
from autoscaler.model.breaker import NOTHING_SEEN, FleetHealth
from autoscaler.model.plan import Plan
from autoscaler.model.policy import Policy
from autoscaler.model.snapshot import Snapshot
from autoscaler.service.logs import Log


class Breaker:
    """The fleet's watch. One cycle at a time decides; anybody may read `watch`, which never changes in place."""

    def __init__(self) -> None:
        self.watch = NOTHING_SEEN

    def decide(self, snapshot: Snapshot, policy: Policy, now_ms: int) -> Plan:
        """The plan, which is remembered for the next; what only looks ahead uses `plan` itself."""
        made, self.watch = plan_and_watch(snapshot, policy, now_ms)
        return made


def log_breaker(log: Log, before: FleetHealth, now: FleetHealth) -> None:
    """One line when the fleet freezes and one when it is free again, with the numbers."""
    numbers = {
        "units": now.units,
        "measured": now.measured,
        "seen": now.seen,
        "unattributed": now.unattributed,
        "coverage": round(now.coverage, 3),
        "attribution": None if now.attribution is None else round(now.attribution, 3),
    }
    if now.frozen and not before.frozen:
        log.warning("fleet_frozen", because=now.frozen, until_ms=now.until_ms, **numbers)
    elif before.frozen and not now.frozen:
        log.info("fleet_free", frozen_since_ms=before.since_ms, **numbers)
