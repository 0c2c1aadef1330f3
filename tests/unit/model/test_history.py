import msgspec
import pytest

from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.history import WorkloadHistory

FIELDS = {
    "ref": {"group": "apps", "kind": "Deployment", "namespace": "ml", "name": "web"},
    "container": "main",
    "load_milli": 500,
    "busiest_milli": 700,
    "peak_milli": 1_000,
    "total_milli": 900,
    "total_peak_milli": 1_000,
    "active_boards": 1,
    "boards": 2,
    "memory_peak_mib": 4_096,
    "history_ms": 86_400_000,
    "first_ms": 1_799_913_600_000,
}


def decode(**changed: object) -> WorkloadHistory:
    return msgspec.json.decode(msgspec.json.encode({**FIELDS, **changed}), type=WorkloadHistory)


def test_a_history_is_the_same_after_it_was_written_and_read() -> None:
    found = decode()

    assert found.ref == WorkloadRef("apps", "Deployment", "ml", "web")
    assert msgspec.json.decode(msgspec.json.encode(found), type=WorkloadHistory) == found


@pytest.mark.parametrize(
    "field", ["load_milli", "busiest_milli", "active_boards", "memory_peak_mib", "history_ms"]
)
@pytest.mark.parametrize("value", [-1, 2**60, 0.5, "1"])
def test_figures_that_cannot_be_are_refused(field: str, value: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        decode(**{field: value})
