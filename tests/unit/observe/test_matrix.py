"""Answers of range queries as columns: the same numbers as the text says, or no answer."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.observe.answers import AnswerError
from autoscaler.observe.matrix import Block, MatrixAnswer

pytestmark = pytest.mark.unit

START_MS, STEP_MS, STEPS = 1_800_000_000_000, 15_000, 8
Points = list[tuple[float, str]]


def answer(*series: tuple[dict[str, str], Points], indent: int | None = None) -> MatrixAnswer:
    rows = [{"metric": labels, "values": points} for labels, points in series]
    separators = (",", ":") if indent is None else None
    return of(json.dumps(rows, separators=separators, indent=indent).encode())


def of(text: bytes) -> MatrixAnswer:
    return MatrixAnswer(result=text, start_ms=START_MS, end_ms=START_MS + STEPS * STEP_MS, step_ms=STEP_MS)


def series_of(*blocks: Block) -> list[tuple[dict[str, str], list[tuple[int, float]]]]:
    """Each series as plain Python, from all blocks in order."""
    found = []
    for block in blocks:
        for i, text in enumerate(block.labels):
            part = slice(int(block.offsets[i]), int(block.offsets[i + 1]))
            points = zip(block.times_ms[part].tolist(), block.values[part].tolist(), strict=True)
            found.append((json.loads(text), list(points)))
    return found


def at_s(step: int) -> float:
    return (START_MS + step * STEP_MS) / 1000


texts = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(0, 100).map(str),
    st.sampled_from(["NaN", "+Inf", "-Inf", "1e-07", "-0"]),
)
points = st.lists(st.tuples(st.integers(0, STEPS), texts), max_size=STEPS, unique_by=lambda p: p[0]).map(
    lambda found: [(at_s(step), text) for step, text in sorted(found)]
)
labels = st.dictionaries(st.sampled_from(["pod", "x"]), st.text(max_size=10) | st.just(',{"metric":['))


@given(st.lists(st.tuples(labels, points), max_size=12), st.sampled_from([None, 1]), st.integers(1, 300))
def test_columns_hold_what_the_text_says(
    series: list[tuple[dict[str, str], Points]], indent: int | None, piece: int
) -> None:
    from autoscaler.observe import answers  # noqa: PLC0415 - its piece size is changed below

    before = answers._PIECE_BYTES
    answers._PIECE_BYTES = piece  # type: ignore[misc]
    try:
        found = series_of(*answer(*series, indent=indent).blocks())
    finally:
        answers._PIECE_BYTES = before  # type: ignore[misc]

    expected = [
        (names, [(round(time * 1000), float(text)) for time, text in values]) for names, values in series
    ]
    assert [names for names, _ in found] == [names for names, _ in expected]
    for (_, got), (_, wanted) in zip(found, expected, strict=True):
        assert [time for time, _ in got] == [time for time, _ in wanted]
        assert np.array_equal([v for _, v in got], [v for _, v in wanted], equal_nan=True)


def test_a_missing_point_is_not_filled_in() -> None:
    (block,) = answer(({"pod": "p"}, [(at_s(0), "1"), (at_s(3), "2")])).blocks()

    assert block.times_ms.tolist() == [START_MS, START_MS + 3 * STEP_MS]


def test_a_series_of_native_histograms_has_no_points() -> None:
    text = b'[{"metric":{"a":"b"},"histograms":[[1800000000,{"count":"1"}]]}]'

    assert series_of(*of(text).blocks()) == [({"a": "b"}, [])]


def test_no_series_is_no_block_or_an_empty_one() -> None:
    assert series_of(*answer().blocks()) == []


def test_a_grid_moved_by_less_than_a_step_is_kept_as_the_store_has_it() -> None:
    shifted = [(at_s(0) - 14, "1"), (at_s(1) - 14, "2")]
    (block,) = answer(({}, shifted)).blocks()

    assert block.times_ms.tolist() == [START_MS - 14_000, START_MS + 1_000]


@pytest.mark.parametrize(
    "values",
    [
        [[at_s(0)]],
        [[at_s(0), "1", "2"]],
        [[at_s(0), "1"], [at_s(1)], ["2"]],
        [[at_s(0), "x"]],
        [[at_s(0), ""]],
        [[at_s(0), "1,2,3"]],
        [["NaN", "1"]],
        [[math.inf, "1"]],
        [[at_s(1), "1"], [at_s(0), "2"]],
        [[at_s(1), "1"], [at_s(1), "2"]],
        [[at_s(-2), "1"]],
        [[at_s(STEPS + 2), "1"]],
        [[1e300, "1"]],
        {"a": 1},
        "1,2,3",
    ],
)
def test_anything_else_is_no_answer(values: object) -> None:
    with pytest.raises(AnswerError, match="unreadable matrix"):
        list(of(json.dumps([{"metric": {}, "values": values}]).encode()).blocks())


@pytest.mark.parametrize(
    "text", [b"", b"{}", b"[1]", b'[{"values":[]}]', b'[{"metric":{},"values":[[1,"2"]]']
)
def test_what_is_no_matrix_is_no_answer(text: bytes) -> None:
    with pytest.raises(AnswerError):
        list(of(text).blocks())


def test_the_last_time_of_a_series_may_be_later_than_the_first_of_the_next() -> None:
    (block,) = answer(
        ({"a": "1"}, [(at_s(5), "1")]), ({"a": "2"}, []), ({"a": "3"}, [(at_s(0), "1")])
    ).blocks()

    assert block.times_ms.tolist() == [START_MS + 5 * STEP_MS, START_MS]
