import json
from collections.abc import Sequence

import numpy as np
import pytest
from unit.observe.observed import PROFILES

from autoscaler.observe.answers import AnswerError
from autoscaler.observe.history.steps import NO_POINTS, Grid, placed, points_of
from autoscaler.observe.matrix import MatrixAnswer
from autoscaler.observe.series import Positions

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
    return np.array([int(json.loads(text)["n"]) for text in labels])


def read(
    *series: tuple[dict[str, str], Sequence[tuple[float, str]]], full: float = 1.0, clamp: bool = False
) -> list[list[float]]:
    return points_of(answer(*series), numbered, GRID, full=full, clamp=clamp).table(2, GRID).tolist()


def test_a_point_stands_in_the_column_of_its_step() -> None:
    assert read(({"n": "0"}, [(0, "0.1"), (600, "0.3")]), ({"n": "1"}, [(900, "0.9")])) == [
        [0.1, -1, 0.3, -1],
        [-1, -1, -1, 0.9],
    ]


def test_a_store_that_moves_the_grid_by_a_little_is_understood() -> None:
    assert read(({"n": "0"}, [(-60, "0.1"), (240, "0.2")]))[0] == [0.1, 0.2, -1, -1]


def test_of_several_series_of_one_position_the_highest_counts() -> None:
    assert read(({"n": "0"}, [(0, "0.4")]), ({"n": "0"}, [(0, "0.2")]))[0] == [0.4, -1, -1, -1]


@pytest.mark.parametrize("text", ["NaN", "+Inf", "-Inf", "-0.1", "1.1", "9223372036854775794"])
def test_a_value_that_cannot_be_is_not_used_and_counted(text: str) -> None:
    points = points_of(answer(({"n": "0"}, [(0, text), (300, "0.5")])), numbered, GRID, full=1.0)

    assert points.table(1, GRID)[0].tolist() == [-1, 0.5, -1, -1]
    assert points.dropped == 1


def test_where_a_scale_is_exceeded_by_habit_more_than_full_is_full() -> None:
    assert read(({"n": "0"}, [(0, "130")]), full=100.0, clamp=True)[0] == [100.0, -1, -1, -1]


def test_an_empty_answer_has_no_points() -> None:
    empty = MatrixAnswer(b"[]", GRID.first_ms, GRID.last_ms, STEP)

    assert points_of(empty, numbered, GRID, full=1.0).table(1, GRID).tolist() == [[-1] * 4]
    assert NO_POINTS.table(1, GRID).tolist() == [[-1] * 4]


def test_what_is_no_matrix_is_refused() -> None:
    with pytest.raises(AnswerError):
        points_of(MatrixAnswer(b'[{"metric":{}}', 0, 1, 1), numbered, GRID, full=1.0)


def test_labels_get_the_positions_that_readings_give_them() -> None:
    positions = Positions(PROFILES["dcgm"])
    labels = [json.dumps({"UUID": f"GPU-{i % 2}", "pod": "p"}).encode() for i in range(4)]

    assert placed(positions, labels).tolist() == [0, 1, 0, 1]
    assert placed(positions, labels[:2]).tolist() == [0, 1]
    assert len(positions) == 2


def test_unreadable_labels_are_refused() -> None:
    with pytest.raises(AnswerError):
        placed(Positions(PROFILES["dcgm"]), [b'{"UUID":7}'])


def test_a_grid_names_its_steps_by_their_ends() -> None:
    assert GRID.ends_ms.tolist() == [FIRST, FIRST + STEP, FIRST + 2 * STEP, FIRST + 3 * STEP]
    assert GRID.last_ms == FIRST + 3 * STEP
