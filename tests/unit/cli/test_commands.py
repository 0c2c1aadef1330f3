import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from build import Spec, boards, cluster

from autoscaler import __version__
from autoscaler.cli import main
from autoscaler.cli.commands import app
from autoscaler.model.snapshot import encode_snapshot
from autoscaler.service import exit_codes

SNAPSHOT = cluster(
    Spec(name="web", gpus=2, seen=(boards(0.1, 0.0),), annotations={"gpu-autoscaler.io/allowed-gpus": "1,2"}),
    Spec(name="blind", seen=(None,)),
    *(Spec(name=f"busy-{index}", seen=(boards(0.9),)) for index in range(4)),
)


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    for name in list(os.environ):
        if name.startswith("AUTOSCALER_") or name == "COLUMNS":
            monkeypatch.delenv(name)
    path = tmp_path / "cluster.json.gz"
    path.write_bytes(encode_snapshot(SNAPSHOT))
    return str(path)


@pytest.mark.parametrize("command", [["plan"], ["report"], ["explain", "team/web"]])
def test_a_saved_snapshot_needs_no_cluster_and_no_metrics_store(
    saved: str, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    assert main([*command, "-f", saved]) == exit_codes.OK

    out, err = capsys.readouterr()
    assert "boards per pod 2 -> 1" in out
    assert err == ""


def test_every_form_comes_from_the_same_plan(saved: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["plan", "-f", saved, "-o", "json"])
    as_json = json.loads(capsys.readouterr().out)
    main(["plan", "-f", saved, "--output", "yaml"])
    as_yaml = yaml.safe_load(capsys.readouterr().out)

    assert as_json == as_yaml
    assert as_json["rows"][0]["workload"]["namespace"] == "team"


def test_the_same_snapshot_gives_the_same_bytes(saved: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["report", "-f", saved, "-o", "json"])
    first = capsys.readouterr().out
    main(["report", "-f", saved, "-o", "json"])

    assert capsys.readouterr().out == first


def test_the_policy_flag_wins_over_the_variable(
    saved: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    head = "apiVersion: gpu-autoscaler.io/v1alpha1\nkind: Policy\n"
    (tmp_path / "flag.yaml").write_text(f"{head}modes: {{default: observe}}\n")
    monkeypatch.setenv("AUTOSCALER_POLICY_FILE", str(tmp_path / "absent.yaml"))

    assert main(["plan", "-f", saved, "--policy", str(tmp_path / "flag.yaml"), "-o", "json"]) == exit_codes.OK
    assert json.loads(capsys.readouterr().out)["mode"] == "observe"


def test_the_environment_sets_policy_fields(
    saved: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AUTOSCALER_MODE", "observe")

    main(["plan", "-f", saved, "-o", "json"])

    assert json.loads(capsys.readouterr().out)["mode"] == "observe"


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (
            ["explain", "team/nobody", "-f", "SAVED"],
            exit_codes.NOT_FOUND,
            "no workload team/nobody holds or wants",
        ),
        (["explain", "web", "-f", "SAVED"], exit_codes.USAGE, "explain takes NAMESPACE/NAME, got 'web'"),
        (["explain", "a/b/c", "-f", "SAVED"], exit_codes.USAGE, "explain takes NAMESPACE/NAME"),
        (["plan", "-f", "/nowhere.json"], exit_codes.FAILED, "/nowhere.json: cannot be read: No such file"),
        (["plan", "-f", "BROKEN"], exit_codes.FAILED, "not a snapshot"),
        (
            ["plan", "-f", "SAVED", "-o", "xml"],
            exit_codes.USAGE,
            'Choose from: "table", "wide", "json", "yaml"',
        ),
        (["plan", "--nonsense"], exit_codes.USAGE, "Unknown option"),
        (["dance"], exit_codes.USAGE, "dance"),
        (
            ["plan", "-f", "SAVED", "--policy", "/nowhere.yaml"],
            exit_codes.USAGE,
            "/nowhere.yaml: cannot be read",
        ),
        (["plan"], exit_codes.USAGE, "AUTOSCALER_PROMETHEUS_URL is not set"),
        (["snapshot"], exit_codes.USAGE, "--output"),
        (["apply"], exit_codes.USAGE, "--file"),
        (["apply", "-f", "SAVED"], exit_codes.USAGE, "AUTOSCALER_PROMETHEUS_URL is not set"),
        (["undo"], exit_codes.USAGE, "undo takes either NAMESPACE/NAME or --all"),
        (["undo", "team/web", "--all"], exit_codes.USAGE, "undo takes either NAMESPACE/NAME or --all"),
        (["undo", "web"], exit_codes.USAGE, "undo takes NAMESPACE/NAME, got 'web'"),
        (["ledger", "a/b/c"], exit_codes.USAGE, "ledger takes NAMESPACE/NAME"),
        (["ledger", "-o", "xml"], exit_codes.USAGE, 'Choose from: "table", "wide", "json", "yaml"'),
        (["run", "--policy", "/nowhere.yaml"], exit_codes.USAGE, "AUTOSCALER_PROMETHEUS_URL is not set"),
    ],
)
def test_an_expected_fault_is_one_sentence_on_stderr_with_its_exit_code(
    saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, told: str
) -> None:
    (tmp_path / "broken").write_bytes(b"\x1f\x8bnot gzip")
    places = {"SAVED": saved, "BROKEN": str(tmp_path / "broken")}

    assert main([places.get(argument, argument) for argument in arguments]) == code

    out, err = capsys.readouterr()
    assert out == ""
    assert told in err
    assert err.startswith("gpu-autoscaler: ")
    assert err.count("\n") == 1


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == exit_codes.OK
    assert capsys.readouterr().out == f"gpu-autoscaler {__version__}\n"


@pytest.mark.parametrize("arguments", [["--help"], ["plan", "--help"], ["run", "--help"], ["undo", "--help"]])
def test_help_documents_the_exit_codes(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main(arguments) == exit_codes.OK

    text = " ".join(capsys.readouterr().out.split())
    assert exit_codes.SUMMARY.partition(":")[0] in text
    assert "3 no such workload" in text


@pytest.mark.parametrize("command", ["apply", "undo", "ledger", "pause", "resume"])
def test_help_names_what_acts_and_claims_nothing_else(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    main(["--help"])

    text = " ".join(capsys.readouterr().out.split())
    assert f"│ {command} " in text
    assert "changes nothing" not in text


def test_a_bad_plan_file_is_the_callers_fault(
    saved: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AUTOSCALER_PROMETHEUS_URL", "http://127.0.0.1:9")

    assert main(["apply", "-f", saved, "--yes"]) == exit_codes.USAGE
    assert "not UTF-8" in capsys.readouterr().err


def test_a_reader_that_goes_away_is_no_fault(saved: str) -> None:
    command = f"{sys.executable} -m autoscaler.cli report -f {saved} -o json | head -c 1"

    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "{", "")


def test_colour_is_for_terminals_without_no_color(saved: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["report", "-f", saved])

    assert "\x1b" not in capsys.readouterr().out


def test_every_command_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs/commands.md").read_text()

    names = [name for name in app if not name.startswith("-")]
    assert {"apply", "ledger", "undo", "pause", "resume"} < set(names)
    assert [name for name in names if f"| `{name}" not in page and f", `{name}`" not in page] == []
