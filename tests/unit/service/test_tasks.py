import pytest
from service_fakes import RecordingLog

from autoscaler.service.tasks import TaskDiedError, guarded
from autoscaler.service.telemetry import Metrics


async def returns() -> None:
    """A task that should have run for ever."""


async def raises() -> None:
    raise ValueError("a defect")


@pytest.mark.parametrize(("work", "error"), [(returns, "returned"), (raises, "ValueError: a defect")])
async def test_a_task_that_ends_is_logged_counted_and_raised_by_name(work: object, error: str) -> None:
    log, metrics = RecordingLog(), Metrics(clock=lambda: 0.0)

    with pytest.raises(TaskDiedError, match="cycle"):
        await guarded("cycle", work(), log=log, metrics=metrics)  # type: ignore[operator,arg-type]

    assert [(event, fields["task"], fields["error"]) for _, event, fields in log.lines] == [
        ("task_died", "cycle", error)
    ]
    assert metrics.registry.get_sample_value("gpu_autoscaler_task_exceptions_total", {"task": "cycle"}) == 1
