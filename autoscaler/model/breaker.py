"""The fleet's evidence as a whole: how it stands in one cycle, and what the next cycle has to know of it.

A monitoring that fails looks like a fleet that falls asleep. One unit cannot tell the two apart; the fleet can.
"""

from typing import Final

import msgspec

from autoscaler.model.duration import Instant


class Sight(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """When a unit was last measured, and when all its boards were last seen with its name on them; -1: not lately."""

    measured_ms: Instant = -1
    seen_ms: Instant = -1


class FleetWatch(msgspec.Struct, frozen=True):
    """What the cycles before this one found; empty after a start, when only the store's own data can tell.

    `units` are the judged units by pod uid. `incident_ms` is the latest time at which an incident was under way, in the
    words of `incident`. `since_ms` is when the fleet froze, -1 while it is not frozen.
    """

    units: dict[str, Sight] = {}
    incident: str = ""
    incident_ms: Instant = -1
    since_ms: Instant = -1


NOTHING_SEEN: Final = FleetWatch()
"""What a process knows that has only just started."""


class FleetHealth(msgspec.Struct, frozen=True):
    """The evidence of all judged units together: those that run, hold boards and are old enough to be judged.

    `seen` units have fresh samples of every board that they hold. `unattributed` ones have not, while boards on their node
    that should be held have samples that name nobody. `frozen` says why nothing may be taken away, empty where it may.
    `until_ms` is the earliest time at which that can end, -1 where it cannot be told.
    """

    units: int = 0
    measured: int = 0
    seen: int = 0
    unattributed: int = 0
    frozen: str = ""
    since_ms: Instant = -1
    until_ms: Instant = -1

    @property
    def coverage(self) -> float:
        """Measured units / units; 0 where there are none."""
        return self.measured / self.units if self.units else 0.0

    @property
    def attribution(self) -> float | None:
        """Seen units / units that have samples which are theirs or may be; None where there are none."""
        named = self.seen + self.unattributed
        return self.seen / named if named else None
