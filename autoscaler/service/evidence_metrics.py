"""How good the data is, as metrics: coverage, attribution, the breaker, and what a reading could not use."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Gauge

from autoscaler.model.evidence import UNATTRIBUTED, Telemetry
from autoscaler.model.plan import Plan
from autoscaler.observe.history.seeding import Progress

FLEET: Final = "fleet"
"""The breaker of the whole fleet's evidence."""
DROPPED: Final = (
    *("not-a-number", "infinite", "negative", "out-of-range", "clamped", "no-count", "no-time", "other"),
)
"""Why values cannot be used, as the reader names it."""


class EvidenceMetrics:
    """Figures of the newest cycle; a ratio of nothing is not a number, since a zero would be an alarm."""

    def __init__(self, registry: CollectorRegistry, prefix: str) -> None:
        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(prefix + name, text, labels, registry=registry)

        self._coverage = gauge(
            "metric_coverage_ratio",
            "Units with usable samples / units that are old enough to have them.",
            "resource",
        )
        self._attribution = gauge(
            "attribution_ratio",
            "Units whose boards are seen / those and units whose boards have samples that name nobody.",
        )
        self._open = gauge("breaker_open", "Whether nothing is taken away from anybody.", "name")
        self._unattributed = gauge(
            "unattributed_series", "Series of the newest reading that are no live pod's.", "reason"
        )
        self._dropped = gauge(
            "samples_dropped", "Values of the newest reading that cannot be used.", "reason"
        )
        self._history = gauge(
            "history_progress_ratio", "Steps of the workloads' history that are counted / all of its window."
        )
        self._history.set(math.nan)
        self._resources: set[str] = set()
        self.forget()

    def forget(self) -> None:
        """Nobody decides here: no figure of the fleet is known."""
        self._coverage.clear()
        self._attribution.set(math.nan)
        self._open.labels(FLEET).set(0)
        _fill(self._unattributed, UNATTRIBUTED, {})
        _fill(self._dropped, DROPPED, {})

    def planned(self, plan: Plan) -> None:
        """A plan was made."""
        health, judged, measured = plan.fleet.health, Counter[str](), Counter[str]()
        for row in plan.rows:
            judged[row.resource] += row.quality.judged
            measured[row.resource] += row.quality.measured
        self._resources |= judged.keys()
        for resource in self._resources:
            units = judged[resource]
            self._coverage.labels(resource).set(measured[resource] / units if units else math.nan)
        self._attribution.set(math.nan if health.attribution is None else health.attribution)
        self._open.labels(FLEET).set(bool(health.frozen))

    def remembered(self, progress: Progress) -> None:
        """A piece of the history was asked for."""
        self._history.set(progress.done / progress.total if progress.total else math.nan)

    def read(self, telemetry: Telemetry) -> None:
        """The metrics store was read."""
        _fill(self._unattributed, UNATTRIBUTED, telemetry.unattributed)
        _fill(self._dropped, DROPPED, telemetry.dropped)


def _fill(gauge: Gauge, reasons: Iterable[str], counts: Mapping[str, int]) -> None:
    """Every reason has its series at any time; one that is not known here counts as `other`."""
    known = tuple(reasons)
    left = sum(count for reason, count in counts.items() if reason not in known)
    for reason in known:
        gauge.labels(reason).set(counts.get(reason, 0) + (left if reason == "other" else 0))
