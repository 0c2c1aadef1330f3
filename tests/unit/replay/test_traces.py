import gzip
from pathlib import Path

import pytest

from autoscaler.replay.traces import DUTY_FILE, MEMORY_FILE, DirectoryTraces, Span, TraceError
from tests.unit.replay.recorded import GIB, HEADER, STORED, stored_rows, write_csv


def written(directory: Path, duty: list[str], memory: list[str]) -> DirectoryTraces:
    write_csv(directory / f"{DUTY_FILE}.csv", duty)
    write_csv(directory / f"{MEMORY_FILE}.csv", memory)
    return DirectoryTraces(directory)


def test_duty_becomes_a_share_and_memory_gib_step_by_step(tmp_path: Path) -> None:
    source = written(
        tmp_path,
        ["100.0,a,50.0", "157.0,a,0.0", "157.0,b,25.0", "214.0,b,75.0"],
        [f"100.0,a,{2.0 * GIB}", f"214.0,b,{1.5 * GIB}"],
    )

    assert source.extent().step_s == 57.0
    assert source.extent().spans == {"a": Span(0, 1), "b": Span(1, 2)}
    assert [(step.index, step.now_s, dict(step.duty), dict(step.memory_gib)) for step in source.steps()] == [
        (0, 100.0, {"a": 0.5}, {"a": 2.0}),
        (1, 157.0, {"a": 0.0, "b": 0.25}, {}),
        (2, 214.0, {"b": 0.75}, {"b": 1.5}),
    ]


def test_moments_without_any_sample_are_steps_too(tmp_path: Path) -> None:
    source = written(
        tmp_path, ["0.0,a,1.0", "57.0,a,1.0", "114.0,a,1.0", "285.0,a,1.0"], ["285.0,a,1.0", "342.0,a,1.0"]
    )

    assert [len(step.duty) for step in source.steps()] == [1, 1, 1, 0, 0, 1]


def test_a_pod_lives_from_its_first_to_its_last_duty_sample(tmp_path: Path) -> None:
    source = written(
        tmp_path,
        ["0.0,a,1.0", "57.0,a,1.0", "114.0,b,1.0"],
        [f"0.0,memory-only,{GIB}", f"0.0,b,{GIB}", f"57.0,a,{GIB}", f"114.0,a,{GIB}"],
    )

    assert [dict(step.memory_gib) for step in source.steps()] == [{}, {"a": 1.0}, {}]


def test_rows_without_pod_or_value_say_nothing(tmp_path: Path) -> None:
    source = written(tmp_path, ["0.0,a,1.0", "57.0,,1.0", "57.0,a,", "57.0,b,nan", "inf,b,3.0"], [])

    assert source.extent().spans == {"a": Span(0, 0)}


def test_a_file_out_of_order_is_put_in_order(tmp_path: Path) -> None:
    rows = ["0.0,a,1.0", "57.0,a,2.0", "114.0,a,3.0"]
    for name in ("straight", "mixed"):
        (tmp_path / name).mkdir()
    straight = written(tmp_path / "straight", rows, [])
    mixed = written(tmp_path / "mixed", [rows[2], rows[0], rows[1]], [])

    assert list(mixed.steps()) == list(straight.steps())


def test_a_compressed_file_reads_like_a_plain_one(tmp_path: Path) -> None:
    source = written(tmp_path, ["0.0,a,1.0"], [f"0.0,a,{GIB}"])
    (tmp_path / "packed").mkdir()
    for name in (DUTY_FILE, MEMORY_FILE):
        plain = (tmp_path / f"{name}.csv").read_bytes()
        (tmp_path / "packed" / f"{name}.csv.gz").write_bytes(gzip.compress(plain))

    assert list(DirectoryTraces(tmp_path / "packed").steps()) == list(source.steps())


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("time,pod,value\n", "the columns are time,pod,value"),
        ("", "the columns are missing"),
        (f"{HEADER}\n1.0,a\n", f"{DUTY_FILE}.csv:2: 2 cells"),
        (f"{HEADER}\n1.0,a,full\n", f"{DUTY_FILE}.csv:2: time or value is not a number"),
        (f"{HEADER}\n", "no sample has a pod"),
    ],
)
def test_what_is_wrong_with_a_file_is_named(tmp_path: Path, text: str, named: str) -> None:
    source = written(tmp_path, [], [])
    (tmp_path / f"{DUTY_FILE}.csv").write_text(text)

    with pytest.raises(TraceError) as caught:
        source.extent()
    assert named in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [b"not gzip", gzip.compress(b"timestamp_s,pod,value\n" * 900)[:-9], gzip.compress(b"\xff")],
    ids=["plain", "cut", "not-utf8"],
)
def test_a_damaged_archive_is_a_fault_with_its_name(tmp_path: Path, content: bytes) -> None:
    source = written(tmp_path, [], [])
    (tmp_path / f"{DUTY_FILE}.csv.gz").write_bytes(content)

    with pytest.raises(TraceError, match=f"{DUTY_FILE}.csv.gz"):
        DirectoryTraces(tmp_path).extent()
    assert source is not None


def test_a_directory_without_the_files_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=f"neither {DUTY_FILE}.csv.gz nor {DUTY_FILE}.csv"):
        DirectoryTraces(tmp_path)


def test_the_stored_trace_is_the_one_that_its_builder_makes() -> None:
    for name, rows in zip((DUTY_FILE, MEMORY_FILE), stored_rows(), strict=True):
        with gzip.open(STORED / f"{name}.csv.gz", "rt") as stream:
            assert stream.read().splitlines() == [HEADER, *rows]
