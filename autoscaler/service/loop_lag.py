"""Measures how late the event loop is: a watchdog for blocking work that slipped into it."""

from autoscaler.service.clock import Clock
from autoscaler.service.telemetry import Metrics

INTERVAL_S = 0.1


async def measure_loop_lag(clock: Clock, metrics: Metrics) -> None:
    """Sleeps and looks how much longer it took; runs until cancelled."""
    while True:
        began_s = clock.monotonic_s()
        await clock.sleep(INTERVAL_S)
        metrics.loop_lag(clock.monotonic_s() - began_s - INTERVAL_S)
