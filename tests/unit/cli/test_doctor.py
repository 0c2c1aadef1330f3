import json
import os
from pathlib import Path

import pytest

from autoscaler.cli import main
from autoscaler.service import exit_codes

SERIES = 'DCGM_FI_DEV_GPU_UTIL{UUID="GPU-1",pod="web-0",namespace="team",container="main",hostname="n1"} 80\n'


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("AUTOSCALER_"):
            monkeypatch.delenv(name)


def test_with_nothing_to_ask_every_check_says_so_and_the_command_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AUTOSCALER_KUBECONFIG", str(tmp_path / "absent"))

    assert main(["doctor", "-o", "json"]) == exit_codes.FAILED
    document = json.loads(capsys.readouterr().out)
    assert document["failed"] == ["D1", "D6"]
    assert [check["id"] for check in document["checks"]] == [f"D{n}" for n in range(1, 13)]
    assert {check["state"] for check in document["checks"]} == {"failed", "skipped"}


def test_a_page_of_an_exporter_is_judged_without_any_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.prom"
    page.write_text(SERIES)

    assert main(["doctor", "--exposition", str(page), "-o", "json"]) == exit_codes.OK
    (pod,) = json.loads(capsys.readouterr().out)["pods"]
    assert (pod["namespace"], pod["pod"], pod["verdict"]) == ("team", "web-0", "busy")


def test_objects_alone_are_no_question(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--objects", "pods.json"]) == exit_codes.USAGE
    assert "only together with --exposition" in capsys.readouterr().err
