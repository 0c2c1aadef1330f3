import io
import json
import os
import sys
from pathlib import Path

import pytest

from autoscaler.cli import main
from autoscaler.service import exit_codes

STORED = Path(__file__).parents[2] / "data" / "backtest"
VERTICAL_FIELDS = [
    "policy", "board_gib", "gaps", "pods", "freed_pct", "oracle_pct", "lost_pct", "oom", "blind",
    "wrong_per_1000_pod_hours", "restarts_per_pod_day", "cold_starts_per_pod_day",
]  # fmt: skip
HORIZONTAL_FIELDS = ["policy", "service", "replica_hours_x_oracle", "unserved_pct", "acts_per_hour"]


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("AUTOSCALER_"):
            monkeypatch.delenv(name)


@pytest.fixture
def requests(tmp_path: Path) -> Path:
    """One hour of requests in the layout of the public trace of requests to language models."""
    rows = [
        f"2023-11-16 18:{minute:02}:{second:02}.0000000,{100 + 40 * (minute % 7)},50"
        for minute in range(60)
        for second in range(0, 60, 5)
    ]
    file = tmp_path / "AzureLLMInferenceTrace_chat.csv"
    file.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n" + "\n".join(rows) + "\n")
    return tmp_path


def test_vertical_json_is_a_list_of_rows_with_these_fields_and_no_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert (
        main(["backtest", "vertical", "--traces", str(STORED), "-o", "json", "--board-gib", "80", "--gaps"])
        == exit_codes.OK
    )
    rows = json.loads(capsys.readouterr().out)

    assert {tuple(row) for row in rows} == {tuple(VERTICAL_FIELDS)}
    assert {(row["board_gib"], row["gaps"], row["pods"]) for row in rows} == {(80.0, True, 8)}
    assert {"autoscaler-careful", "autoscaler-saving", "gpu-pruner", "seed-script"} <= {
        row["policy"] for row in rows
    }


def test_policies_are_chosen_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--policy", "gpu-pruner", "--policy", "do-nothing", "-o", "json"]

    assert main(["backtest", "vertical", "--traces", str(STORED), *arguments]) == exit_codes.OK
    assert [row["policy"] for row in json.loads(capsys.readouterr().out)] == ["do-nothing", "gpu-pruner"]


def test_the_table_names_the_oracle_and_every_policy(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backtest", "vertical", "--traces", str(STORED)]) == exit_codes.OK
    text = capsys.readouterr().out

    assert "oracle frees" in text
    assert "kruize-performance" in text


def test_the_page_is_whole_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backtest", "vertical", "--traces", str(STORED), "-o", "html"]) == exit_codes.OK
    page = capsys.readouterr().out

    assert page.startswith("<!doctype html>")
    assert page.count("<details>") == 8


def test_horizontal_json_is_a_list_of_rows_with_these_fields_and_no_others(
    requests: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["backtest", "horizontal", "--traces", str(requests), "-o", "json"]) == exit_codes.OK
    rows = json.loads(capsys.readouterr().out)

    assert {tuple(row) for row in rows} == {tuple(HORIZONTAL_FIELDS)}
    assert "autoscaler" in {row["policy"] for row in rows}


def test_horizontal_has_a_table_and_a_page_with_the_same_rows(
    requests: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["backtest", "horizontal", "--traces", str(requests), "--policy", "hpa-80"]
    shown = []
    for form in ("table", "html", "json"):
        assert main([*command, "-o", form]) == exit_codes.OK
        shown.append(capsys.readouterr().out)
    (row,) = json.loads(shown[2])
    cost = f"{row['replica_hours_x_oracle']:.3f}"

    assert cost in shown[0]
    assert f"<td>{cost}</td>" in shown[1]
    assert "<details>" in shown[1]


@pytest.mark.parametrize("direction", ["vertical", "horizontal"])
def test_a_directory_without_a_trace_is_a_fault_with_its_name(
    direction: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["backtest", direction, "--traces", str(tmp_path)]) == exit_codes.FAILED
    assert str(tmp_path) in capsys.readouterr().err


@pytest.mark.parametrize("direction", ["vertical", "horizontal"])
def test_an_unknown_policy_is_the_callers_fault_and_the_known_ones_are_named(
    direction: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["backtest", direction, "--traces", str(STORED), "--policy", "guess"]) == exit_codes.USAGE
    assert "--policy guess: there is none of that name, only autoscaler" in capsys.readouterr().err


@pytest.mark.parametrize("size", ["0", "-1", "nan", "inf"])
def test_a_board_has_a_size(size: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backtest", "vertical", "--traces", str(STORED), f"--board-gib={size}"]) == exit_codes.USAGE
    assert "--board-gib" in capsys.readouterr().err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_shown_on_a_terminal_and_stays_out_of_the_data(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)

    assert main(["backtest", "vertical", "--traces", str(STORED), "-o", "json"]) == exit_codes.OK
    assert "replaying" in terminal.getvalue()
    assert json.loads(capsys.readouterr().out)


def test_without_a_terminal_there_is_no_progress(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backtest", "vertical", "--traces", str(STORED), "-o", "json"]) == exit_codes.OK
    assert capsys.readouterr().err == ""
