"""The watches' own counters, read off the reflectors at each scrape instead of being kept twice."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from autoscaler.service.telemetry import P


@dataclass(frozen=True, kw_only=True)
class WatchReading:
    """One kind's counters at this moment."""

    resource: str
    events: dict[str, int] = field(default_factory=dict)
    restarts: dict[str, int] = field(default_factory=dict)
    last_event_ms: int | None = None
    objects: int = 0


class WatchCollector(Collector):
    """Turns readings into metric families."""

    def __init__(self, readings: Callable[[], Iterable[WatchReading]]) -> None:
        self._readings = readings

    def collect(self) -> Iterator[Metric]:
        """Called by the registry at each scrape."""
        events = CounterMetricFamily(P + "watch_events", "Changes received.", labels=("resource", "type"))
        restarts = CounterMetricFamily(
            P + "watch_restarts", "Lists and watches begun again.", labels=("resource", "reason")
        )
        last = GaugeMetricFamily(
            P + "watch_last_event_timestamp_seconds", "When anything last arrived.", labels=("resource",)
        )
        objects = GaugeMetricFamily(P + "cache_objects", "Objects in the store.", labels=("resource",))
        for reading in self._readings():
            for kind, count in sorted(reading.events.items()):
                events.add_metric((reading.resource, kind), count)
            for reason, count in sorted(reading.restarts.items()):
                restarts.add_metric((reading.resource, reason), count)
            if reading.last_event_ms is not None:
                last.add_metric((reading.resource,), reading.last_event_ms / 1000)
            objects.add_metric((reading.resource,), reading.objects)
        yield from (events, restarts, last, objects)
