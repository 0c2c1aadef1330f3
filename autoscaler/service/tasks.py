"""Background tasks that die visibly."""

from collections.abc import Awaitable, Callable

from autoscaler.service.logs import Log
from autoscaler.service.telemetry import Metrics


class TaskDiedError(RuntimeError):
    """A task that should run for ever failed or returned; the cause was logged where it happened."""


async def guarded(
    name: str, work: Awaitable[object], *, log: Log, metrics: Metrics, may_end: Callable[[], bool] = bool
) -> None:
    """Awaits work that must not end: its exception or its return is logged, counted and raised to the TaskGroup.

    It may return where `may_end` says so. A death that was told already is raised as it is.
    """
    try:
        await work
    except TaskDiedError:
        raise
    except Exception as error:
        metrics.task_died(name)
        log.exception("task_died", task=name, error=f"{type(error).__name__}: {error}")
        raise TaskDiedError(name) from error
    if may_end():
        return
    metrics.task_died(name)
    log.error("task_died", task=name, error="returned")
    raise TaskDiedError(name)
