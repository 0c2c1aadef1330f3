"""Answers of the query API as typed values."""

import json

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.observe.observed import PROFILES, vector

from autoscaler.observe.answers import (
    PARTIAL,
    Answer,
    AnswerError,
    Failure,
    Names,
    Row,
    decode_answer,
    decode_facts,
    decode_names,
    scalar_of,
    vector_rows,
)
from autoscaler.observe.series import NOTHING, Positions, Sparse, dense, normal_device, number

pytestmark = pytest.mark.unit


def success(kind: str, result: object, **more: object) -> bytes:
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": result}, **more}).encode()


def test_warnings_and_infos_are_kept() -> None:
    answer = decode_answer(success("vector", [], warnings=["partial"], infos=["PromQL info: i"]))

    assert isinstance(answer, Answer)
    assert (answer.warnings, answer.infos) == (("partial",), ("PromQL info: i",))


def test_an_info_that_is_no_remark_on_style_is_a_warning() -> None:
    answer = decode_answer(success("vector", [], infos=["PromQL info: i", "a store was skipped"]))

    assert isinstance(answer, Answer)
    assert (answer.warnings, answer.infos) == (("a store was skipped",), ("PromQL info: i",))


def test_a_store_that_calls_its_answer_partial_warns() -> None:
    answer = decode_answer(success("vector", [], isPartial=True))

    assert isinstance(answer, Answer)
    assert answer.warnings == (PARTIAL,)


def test_names_are_a_list_of_texts_or_no_answer() -> None:
    listed = b'{"status":"success","data":["a","b"],"warnings":["w"]}'

    assert decode_names(listed) == Names(("a", "b"), ("w",))
    assert decode_names(b'{"status":"error","errorType":"bad_data","error":"e"}') == Failure("bad_data", "e")
    for body in (
        b'{"status":"success","data":{}}',
        b'{"status":"success"}',
        b'{"status":"success","data":[1]}',
    ):
        with pytest.raises(AnswerError):
            decode_names(body)


def test_facts_are_texts_by_name_and_nested_ones_are_left_out() -> None:
    body = b'{"status":"success","data":{"a":"x","b":15,"c":true,"d":{"e":1},"f":null}}'

    assert decode_facts(body) == {"a": "x", "b": "15", "c": "true"}
    assert decode_facts(b'{"status":"error","errorType":"bad_data","error":"e"}') == Failure("bad_data", "e")


def test_the_apis_own_error_is_a_value() -> None:
    body = b'{"status":"error","errorType":"bad_data","error":"parse error"}'

    assert decode_answer(body) == Failure("bad_data", "parse error")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"{}",
        b'{"status":"ok"}',
        b'{"status":"success"}',
        b'{"status":"success","data":{}}',
        b"\xff",
    ],
)
def test_anything_else_is_no_answer(body: bytes) -> None:
    with pytest.raises(AnswerError):
        decode_answer(body)


@given(st.lists(st.tuples(st.text(max_size=12), st.text(max_size=12)), max_size=30), st.integers(1, 400))
def test_rows_are_the_same_however_the_answer_is_cut(pairs: list[tuple[str, str]], piece: int) -> None:
    from autoscaler.observe import answers  # noqa: PLC0415 - its piece size is changed below

    answer = vector([({"pod": f'{name}{{"metric":', "x": ',{"metric":{'}, value) for name, value in pairs])
    whole = msgspec.json.decode(answer.result, type=list[Row])
    before = answers._PIECE_BYTES
    answers._PIECE_BYTES = piece  # type: ignore[misc]
    try:
        cut = [row for rows in vector_rows(answer) for row in rows]
    finally:
        answers._PIECE_BYTES = before  # type: ignore[misc]

    assert [(bytes(r.metric), r.value) for r in cut] == [(bytes(r.metric), r.value) for r in whole]


def test_a_pretty_printed_vector_is_read_in_one_piece() -> None:
    text = json.dumps([{"metric": {"pod": "p"}, "value": [1, "2"]}], indent=2).encode()

    assert [row.value for rows in vector_rows(Answer("vector", text)) for row in rows] == [(1.0, "2")]


@pytest.mark.parametrize(
    "answer",
    [Answer("matrix", b"[]"), Answer("vector", b"{}"), Answer("vector", b'[{"metric":{},"value":[1,2]}]')],
)
def test_a_vector_of_another_form_is_no_answer(answer: Answer) -> None:
    with pytest.raises(AnswerError):
        list(vector_rows(answer))


def test_a_scalar_is_a_number_or_no_answer() -> None:
    assert scalar_of(Answer("scalar", b'[1,"1700000000.5"]')) == 1_700_000_000.5
    assert scalar_of(Answer("vector", b'[{"metric":{},"value":[1,"17.5"]}]')) == 17.5
    for answer in (Answer("vector", b"[]"), Answer("scalar", b'[1,"soon"]'), Answer("scalar", b"[]")):
        with pytest.raises(AnswerError):
            scalar_of(answer)


@pytest.mark.parametrize(
    ("text", "finite"), [("0", True), ("NaN", False), ("+Inf", False), ("-Inf", False), ("x", False)]
)
def test_a_value_that_is_no_number_never_reads_as_one(text: str, finite: bool) -> None:
    assert np.isfinite(number(Row(msgspec.Raw(b"{}"), (1.0, text)))) == finite


def test_one_position_for_one_device_and_owner_whatever_else_the_labels_say() -> None:
    positions = Positions(PROFILES["dcgm"])
    labels = {"UUID": "GPU-A", "pod": "p", "namespace": "n", "container": "c"}
    first = positions.collect(
        vector([({**labels, "instance": "1:9400"}, "1"), ({**labels, "instance": "2:9400"}, "2")])
    )
    second = positions.collect(vector([({**labels, "instance": "3:9400"}, "3")]))

    assert (first.positions.tolist(), second.positions.tolist(), len(positions)) == ([0, 0], [0], 1)
    assert positions.nodes == (frozenset({"1:9400", "2:9400", "3:9400"}),)


def test_not_a_number_survives_every_merge() -> None:
    rows = Sparse(np.array([0, 0, 1]), np.array([1.0, np.nan, 2.0]))
    for merge in ("max", "min", "sum"):
        column = dense(rows, 3, merge)

        assert np.isnan(column.values[0])
        assert (column.values[1], column.seen.tolist()) == (2.0, [True, True, False])


def test_an_answer_without_rows_is_nothing_seen() -> None:
    column = dense(NOTHING, 2, "max")

    assert not column.seen.any()


@pytest.mark.parametrize(
    ("text", "normal"), [("GPU-AB", "ab"), ("MIG-gpu-x", "gpu-x"), ("ab", "ab"), (" Gpu-1 ", "1")]
)
def test_device_ids_have_one_form(text: str, normal: str) -> None:
    assert normal_device(text) == normal
