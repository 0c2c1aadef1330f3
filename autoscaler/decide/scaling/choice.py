"""What the horizontal policy is told and what it answers."""

import msgspec

from autoscaler.model.reasons import Reason


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """What the owner and the cluster allow.

    Without a `ceiling` nothing grows: its owner has not said how far. `seats` are free places inside the quota, None
    where they are not counted. A `floor` of 0 is honoured only under a wake signal.
    """

    floor: int = 1
    ceiling: int | None = None
    seats: int | None = None


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The replicas that should be there, why, and the sentence for people.

    `reason` is None where nothing changes and nothing stands in the way. `wanted` is the need before bounds and pace.
    """

    replicas: int
    wanted: int
    reason: Reason | None
    sentence: str
