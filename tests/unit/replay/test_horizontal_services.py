import gzip
import io
import lzma
import tarfile
from pathlib import Path

import pytest

from autoscaler.replay.services import Service, services_in
from autoscaler.replay.traces import TraceError

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def archive_of(path: Path, members: dict[str, bytes]) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(buffer.getvalue()))


def only(directory: Path) -> Service:
    (service,) = services_in(directory)
    return service


def test_clients_of_one_model_are_summed_and_joined_by_straight_lines(tmp_path: Path) -> None:
    written(tmp_path / "m" / "chunk-1-trace.csv", "0,1,0,,0,0\n600,2,0,,0,0\n")
    written(tmp_path / "m" / "chunk-2-trace.csv", "0,,0,,0,0\n600,2,0,,0,0\n")
    service = only(tmp_path)

    assert service.name == "m"
    assert len(service.load) == 21
    assert service.load[[0, 10, 20]].tolist() == [1.0, 2.5, 4.0]


def test_an_archive_is_read_as_its_files_would_be(tmp_path: Path) -> None:
    members = {
        "./language/m/chunk-1-trace.csv": b"0,1,0,,0,0\n600,3,0,,0,0\n",
        "./language/m/chunk-2-trace.csv": b"0,1,0,,0,0\n600,1,0,,0,0\n",
        "./a/chunk-1-trace.csv": b"0,5,0,,0,0\n",
        "./a/notes.txt": b"not a client",
    }
    archive_of(tmp_path / "servegen" / "servegen_client_rate_traces.tar.xz", members)
    services = list(services_in(tmp_path))

    assert [service.name for service in services] == ["servegen/a", "servegen/language/m"]
    assert services[0].load.tolist() == [5.0]
    assert services[1].load[[0, -1]].tolist() == [2.0, 4.0]


def test_the_folder_itself_may_be_the_trace(tmp_path: Path) -> None:
    written(tmp_path / "m" / "chunk-1-trace.csv", "0,1\n")

    assert only(tmp_path / "m").name == "m"


def test_tokens_are_counted_in_half_minutes_and_the_unfinished_one_is_left_out(tmp_path: Path) -> None:
    rows = "2023-11-16 18:00:05.0000000,10,1\n2023-11-16 18:00:34.9999999,20,2\n2023-11-16 18:01:40.5,5,5\n2023-11-16 18:02:10,7,7\n"
    written(tmp_path / "azure" / "AzureLLMInferenceTrace_conv.csv", HEADER + rows)
    service = only(tmp_path)

    assert service.name == "azure/conv"
    assert service.load.tolist() == [33.0, 0.0, 0.0, 10.0]


def test_a_compressed_trace_is_read_too(tmp_path: Path) -> None:
    text = f"{HEADER}2023-11-16 18:00:00.0,1,1\n2023-11-16 18:00:31.0,1,1\n"
    (tmp_path / "AzureLLMInferenceTrace_code.csv.gz").write_bytes(gzip.compress(text.encode()))
    service = only(tmp_path)

    assert service.name.endswith("/code")
    assert service.load.tolist() == [2.0]


def test_a_directory_without_any_trace_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no servegen"):
        list(services_in(tmp_path))


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("m/chunk-1-trace.csv", "", "it holds no rates"),
        ("m/chunk-1-trace.csv", "0,x\n", "not a client's rates"),
        ("m/chunk-1-trace.csv", "0\n", "not a client's rates"),
        ("m/chunk-1-trace.csv", "0,-1\n", "is not a time and a rate"),
        ("m/chunk-1-trace.csv", "nan,1\n", "is not a time and a rate"),
        ("AzureLLMInferenceTrace_x.csv", "A,B\n1,2\n", "not a trace of requests"),
        ("AzureLLMInferenceTrace_x.csv", f"{HEADER}2023-11-16 18:00:00,1\n", "not a trace of requests"),
        ("AzureLLMInferenceTrace_x.csv", f"{HEADER}yesterday,1,1\n", "not a trace of requests"),
        (
            "AzureLLMInferenceTrace_x.csv",
            f"{HEADER}2023-11-16 18:05:00,1,1\n2023-11-16 18:00:00,1,1\n",
            "is out of order",
        ),
    ],
)
def test_a_file_that_is_no_trace_is_named_with_its_fault(
    tmp_path: Path, name: str, text: str, fault: str
) -> None:
    written(tmp_path / name, text)

    with pytest.raises(TraceError, match=fault):
        list(services_in(tmp_path))


@pytest.mark.parametrize("damage", ["cut", "noise", "text"])
def test_a_damaged_archive_is_named(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "servegen_x.tar.xz"
    content = b"\xff,1\n" if damage == "text" else b"0,1,0,,0,0\n" * 5_000
    archive_of(path, {"m/chunk-1-trace.csv": content})
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-40])
    if damage == "noise":
        path.write_bytes(b"no archive")

    with pytest.raises(TraceError, match=r"servegen_x\.tar\.xz: cannot be read"):
        list(services_in(tmp_path))
