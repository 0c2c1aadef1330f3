"""A bar prints one line of JSON, and a missed one fails the command."""

import json
import sys
from types import SimpleNamespace

import pytest

from benchmarks import __main__ as command
from benchmarks.bars import Result


def result(*, ok: bool) -> Result:
    return Result(id="B0", value=1.23456, unit="x", bar="<= 1", ok=ok, extra={"pods": 7})


@pytest.fixture
def bar(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(command, "BARS", {"B0": "b0_stub"})
    return monkeypatch


def test_a_result_is_one_line_of_json() -> None:
    line = result(ok=True).line()

    assert "\n" not in line
    assert json.loads(line) == {
        "id": "B0",
        "value": 1.2346,
        "unit": "x",
        "bar": "<= 1",
        "ok": True,
        "pods": 7,
    }


@pytest.mark.parametrize(("ok", "code"), [(True, 0), (False, 1)])
def test_the_exit_code_says_whether_the_bar_is_met(
    bar: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ok: bool, code: int
) -> None:
    bar.setitem(sys.modules, "benchmarks.b0_stub", SimpleNamespace(run=lambda _: result(ok=ok)))
    bar.setattr(sys, "argv", ["benchmarks", "--here", "B0"])

    assert command.main() == code
    assert json.loads(capsys.readouterr().out)["ok"] is ok


@pytest.mark.parametrize(("passes", "code"), [((True, True), 0), ((True, False), 1)])
def test_one_missed_bar_fails_the_whole_run(
    monkeypatch: pytest.MonkeyPatch, passes: tuple[bool, ...], code: int
) -> None:
    outcomes = iter(passes)
    monkeypatch.setattr(command, "BARS", {"B0": "x", "B9": "y"})
    monkeypatch.setattr(command, "_passes", lambda _name, _scale: next(outcomes))
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--only", "B0,B9"])

    assert command.main() == code


def test_an_unknown_bar_is_named_with_those_that_exist(
    bar: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bar.setattr(sys, "argv", ["benchmarks", "--only", "B0,B42"])

    with pytest.raises(SystemExit) as caught:
        command.main()

    assert caught.value.code == 2
    assert "unknown: B42 (there are B0)" in capsys.readouterr().err


def test_bars_that_are_still_missed_run_only_by_name(
    monkeypatch: pytest.MonkeyPatch, bar: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    def passes(name: str, _scale: float) -> bool:
        ran.append(name)
        return True

    bar.setitem(command.BARS, "B9", "b9_stub")
    monkeypatch.setattr(command, "NOT_MET", ("B9",))
    monkeypatch.setattr(command, "_passes", passes)
    monkeypatch.setattr(sys, "argv", ["benchmarks"])

    assert command.main() == 0
    assert ran == ["B0"]
