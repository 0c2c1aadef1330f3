"""Every number of the horizontal policy, with its unit, its default and the reason for it."""

import math
from typing import Annotated

from msgspec import Meta

from autoscaler.model.duration import Duration
from autoscaler.model.policy_sections import DAY_MS, HOUR_MS, MINUTE_MS, Ratio, Section


class ScalingRules(Section, frozen=True):
    """How replicas follow the load."""

    interval: Annotated[
        Duration, Meta(description="time between samples and decisions; HPA and KEDA decide every 15 to 30 s")
    ] = Duration(MINUTE_MS // 2)
    startup: Annotated[
        Duration,
        Meta(description="time from the request of a replica to its first answer, where none was measured"),
    ] = Duration(2 * MINUTE_MS)
    unserved: Annotated[
        float,
        Meta(
            gt=0,
            lt=1,
            description="share of the load that may come while there are too few replicas; one in ten thousand is under most error budgets",
        ),
    ] = 0.0001
    thin_target: Annotated[
        float,
        Meta(
            gt=0,
            le=1,
            description="use aimed at while the past says little; 0.80 is the tightest target that is common for replicas",
        ),
    ] = 0.80
    trust: Annotated[
        Duration,
        Meta(
            gt=0,
            description="past after which the load's own figures and thinTarget weigh the same; 2h is a rise and a fall",
        ),
    ] = Duration(2 * HOUR_MS)
    warm_up: Annotated[
        Duration,
        Meta(description="samples after a start or a gap that teach nothing; 10m fills every mean and trend"),
    ] = Duration(10 * MINUTE_MS)
    half_life: Annotated[
        Duration, Meta(description="age at which the past weighs half; a week holds a weekend")
    ] = Duration(7 * DAY_MS)
    window: Annotated[
        Duration,
        Meta(description="the highest load of this time must still fit after a scale-in; 5m is HPA's window"),
    ] = Duration(5 * MINUTE_MS)
    act_cost: Annotated[
        float,
        Meta(
            ge=0,
            description="replica-minutes that are spent idle before a scale-in; 10 is what a model's reload costs one replica",
        ),
    ] = 10.0
    outlook: Annotated[
        Duration,
        Meta(description="a growing load gets room for this long at once; 5m makes one act of several"),
    ] = Duration(5 * MINUTE_MS)
    up_pods: Annotated[
        int, Meta(ge=1, description="replicas that may be added within an interval; 4 is HPA's default")
    ] = 4
    up_share: Annotated[
        float, Meta(ge=0, description="or this share of those there are, if more; 1 doubles, as HPA does")
    ] = 1.0
    down_share: Annotated[
        Ratio,
        Meta(
            description="share of the replicas that may go within `window`, at least one; half survives a load that only seemed to end"
        ),
    ] = 0.5
    idle_floor: Annotated[
        Duration, Meta(description="time without any demand before a release to 0; a promise to tenants")
    ] = Duration(30 * MINUTE_MS)

    def steps(self, span: Duration) -> int:
        """Intervals that cover a span."""
        return math.ceil(int(span) / max(1, int(self.interval)))
