"""Background tasks that die visibly."""

from collections.abc import Awaitable

from autoscaler.service.logs import Log
from autoscaler.service.telemetry import Metrics


class TaskDiedError(RuntimeError):
    """A task that should run for ever failed or returned; the cause was logged where it happened."""


async def guarded(name: str, work: Awaitable[object], *, log: Log, metrics: Metrics) -> None:
    """Awaits work that must not end: its exception or its return is logged, counted and raised to the TaskGroup."""
    try:
        await work
    except Exception as error:
        metrics.task_died(name)
        log.exception("task_died", task=name, error=f"{type(error).__name__}: {error}")
        raise TaskDiedError(name) from error
    metrics.task_died(name)
    log.error("task_died", task=name, error="returned")
    raise TaskDiedError(name)
