import json
from collections.abc import Sequence

import numpy as np
import pytest
from unit.observe.observed import PROFILES

from autoscaler.observe.answers import AnswerError
from autoscaler.observe.history.steps import COUNT, Grid, Measure, Table, activity_of, memory_of
from autoscaler.observe.matrix import MatrixAnswer

STEP = 300_000
FIRST = 1_800_000_000_000 // STEP * STEP
GRID = Grid(FIRST, STEP, 4)


def answer(*series: tuple[dict[str, str], Sequence[tuple[float, str]]], grid: Grid = GRID) -> MatrixAnswer:
    """Series with (seconds after the first step's end, value) points."""
    rows = [
        {"metric": labels, "values": [[FIRST / 1000 + after, text] for after, text in points]}
        for labels, points in series
    ]
    text = json.dumps(rows, separators=(",", ":")).encode()
    return MatrixAnswer(text, grid.first_ms, grid.last_ms, grid.step_ms)


def numbered(labels: Sequence[bytes]) -> np.ndarray:
    return np.array([int(json.loads(text)["n"]) for text in labels], dtype=np.int64)


SHARE = Measure(1.0, 10_000.0)


def read(
    *series: tuple[dict[str, str], Sequence[tuple[float, str]]], measure: Measure = SHARE, rows: int = 2
) -> list[list[int]]:
    table = Table(GRID)
    table.read(answer(*series), numbered, measure)
    return table.rows(rows).tolist()


def test_a_point_stands_in_the_column_of_its_step() -> None:
    assert read(({"n": "0"}, [(0, "0.1"), (600, "0.3")]), ({"n": "1"}, [(900, "0.9")])) == [
        [1_000, -1, 3_000, -1],
        [-1, -1, -1, 9_000],
    ]


def test_a_store_that_moves_the_grid_by_a_little_is_understood() -> None:
    assert read(({"n": "0"}, [(-60, "0.1"), (240, "0.2")]))[0] == [1_000, 2_000, -1, -1]


def test_of_several_series_of_one_row_the_highest_counts() -> None:
    assert read(({"n": "0"}, [(0, "0.4")]), ({"n": "0"}, [(0, "0.2")]))[0] == [4_000, -1, -1, -1]


def test_a_series_that_counts_for_nobody_is_not_read() -> None:
    assert read(({"n": "-1"}, [(0, "0.4")]), ({"n": "-1"}, [(0, "NaN")])) == [[-1] * 4, [-1] * 4]


@pytest.mark.parametrize("text", ["NaN", "+Inf", "-Inf", "-0.1", "1.1", "9223372036854775794"])
def test_a_value_that_cannot_be_is_not_used_and_counted(text: str) -> None:
    table = Table(GRID)
    table.read(answer(({"n": "0"}, [(0, text), (300, "0.5")])), numbered, SHARE)

    assert table.rows(1).tolist() == [[-1, 5_000, -1, -1]]
    assert table.dropped == 1


def test_where_a_scale_is_exceeded_by_habit_more_than_full_is_full() -> None:
    percent = Measure(100.0, 100.0, clamp=True)

    assert read(({"n": "0"}, [(0, "130")]), measure=percent)[0] == [10_000, -1, -1, -1]


def test_memory_is_rounded_up_and_activity_to_the_nearest() -> None:
    memory = PROFILES["dcgm"].memory
    assert memory is not None

    assert read(({"n": "0"}, [(0, "100.2")]), measure=memory_of(memory))[0][0] == 101
    assert (
        read(({"n": "0"}, [(0, "0.12344")]), measure=activity_of(PROFILES["dcgm"].signals[0]))[0][0] == 1_234
    )
    assert read(({"n": "0"}, [(0, "20")]), measure=COUNT)[0][0] == 20


def test_an_answer_of_more_rows_than_there_was_room_for_keeps_what_was_there() -> None:
    found = read(({"n": "0"}, [(0, "0.1")]), ({"n": "5000"}, [(0, "0.2")]), rows=6_000)

    assert (found[0][0], found[4_999][0], found[5_000][0], found[5_999][0]) == (1_000, -1, 2_000, -1)


def test_an_empty_answer_has_no_values() -> None:
    table = Table(GRID)
    table.read(MatrixAnswer(b"[]", GRID.first_ms, GRID.last_ms, STEP), numbered, SHARE)

    assert table.rows(1).tolist() == [[-1] * 4]


def test_what_is_no_matrix_is_refused() -> None:
    with pytest.raises(AnswerError):
        Table(GRID).read(MatrixAnswer(b'[{"metric":{}}', 0, 1, 1), numbered, SHARE)


def test_a_grid_names_its_steps_by_their_ends() -> None:
    assert GRID.ends_ms.tolist() == [FIRST, FIRST + STEP, FIRST + 2 * STEP, FIRST + 3 * STEP]
    assert GRID.last_ms == FIRST + 3 * STEP
