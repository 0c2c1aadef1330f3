import re

import numpy as np
import pytest

from autoscaler.model.evidence import MISSING_ACTIVITY, HolderTable

NUMBERS = (
    "pod",
    "source",
    "samples",
    "mean",
    "peak",
    "last_ms",
    "history_samples",
    "history_p95",
    "history_peak",
    "history_busiest",
    "history_first_ms",
    "memory_peak_mib",
    "memory_total_mib",
    "flags",
)


def table(**changes: object) -> HolderTable:
    columns = {name: np.array([1], dtype=np.int64) for name in NUMBERS}
    return HolderTable(**{"device": ("gpu-0",), "container": ("main",), **columns, **changes})


def test_columns_are_read_only_and_of_the_designed_types() -> None:
    found = table()

    assert (found.mean.dtype, found.samples.dtype, found.last_ms.dtype) == (np.uint16, np.uint32, np.int64)
    with pytest.raises(ValueError, match="read-only"):
        found.mean[0] = 7


def test_a_column_is_a_copy() -> None:
    values = np.array([5], dtype=np.uint16)
    found = table(mean=values)
    values[0] = 9

    assert found.mean.tolist() == [5]


@pytest.mark.parametrize(
    ("name", "values", "told"),
    [
        ("mean", [65_536], "outside 0 to 65535"),
        ("peak", [-1], "outside 0 to 65535"),
        ("memory_peak_mib", [2**32], "outside 0 to"),
        ("flags", [256], "outside 0 to 255"),
        ("mean", [0.7], "expected whole numbers"),
        ("mean", [float("nan")], "expected whole numbers"),
        ("mean", [None], "expected whole numbers"),
        ("mean", [True], "expected whole numbers"),
        ("last_ms", [2**70], "expected whole numbers"),
        ("mean", [1, 2], "has shape (2,)"),
        ("mean", [], "has shape (0,)"),
        ("mean", [[1]], "has shape (1, 1)"),
        ("container", (), "column container"),
    ],
)
def test_a_value_that_a_column_cannot_hold_is_refused_and_never_wraps(
    name: str, values: object, told: str
) -> None:
    changed = values if name == "container" else np.array(values)
    with pytest.raises(ValueError, match=re.escape(told)):
        table(**{name: changed})


def test_tables_are_compared_by_their_values() -> None:
    assert table() == table()
    assert table() != table(mean=np.array([MISSING_ACTIVITY]))
    assert table().__eq__("table") is NotImplemented
    assert len(HolderTable()) == 0
    with pytest.raises(TypeError, match="unhashable"):
        hash(table())
