import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster.child_processes import are_gone, children_of, wait_until
from tests.cluster.live_service import ROOT

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(200)]


@dataclass(frozen=True)
class Demo:
    """A demonstration in a child process, without a terminal."""

    process: subprocess.Popen[bytes]
    log: Path
    run_dirs: Path

    def until_shown(self, text: str, *, processes: int = 0) -> None:
        """Waits until it has told something and has so many children."""

        def is_far_enough() -> bool:
            told = self.log.read_text()
            assert self.process.poll() is None or text in told, told
            return text in told and len(children_of(self.process.pid)) >= processes

        wait_until(is_far_enough, timeout_s=150)

    def interrupt(self) -> None:
        """Ctrl-C, as a terminal sends it."""
        os.killpg(self.process.pid, signal.SIGINT)

    def told(self) -> list[str]:
        """Everything that it wrote, by line."""
        return self.log.read_text().splitlines()


@contextmanager
def running_demo(folder: Path) -> Iterator[Demo]:
    run_dirs, log = folder / "runs", folder / "demo.log"
    run_dirs.mkdir()
    with log.open("w") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", "devcluster", "demo"],
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(run_dirs), "PYTHONUNBUFFERED": "1"},
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield Demo(process, log, run_dirs)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def test_ctrl_c_during_the_start_ends_the_demonstration_without_a_trace(tmp_path: Path) -> None:
    with running_demo(tmp_path) as demo:
        demo.until_shown("starting etcd", processes=3)
        children = children_of(demo.process.pid)
        assert list(demo.run_dirs.iterdir())
        demo.interrupt()

        assert demo.process.wait(timeout=30) == 0
        assert demo.told()[-1] == "demo: stopped"
        assert are_gone(children)
        assert list(demo.run_dirs.iterdir()) == []


def test_ctrl_c_after_the_first_acts_puts_everything_back(tmp_path: Path) -> None:
    with running_demo(tmp_path) as demo:
        demo.until_shown("verified")
        children = children_of(demo.process.pid)
        demo.interrupt()

        assert demo.process.wait(timeout=120) == 0, demo.log.read_text()
        summary = json.loads(demo.told()[-1])
        assert summary["ok"]
        assert summary["undone"] > 0
        assert are_gone(children)
        assert list(demo.run_dirs.iterdir()) == []


def test_a_second_ctrl_c_stops_at_once(tmp_path: Path) -> None:
    with running_demo(tmp_path) as demo:
        demo.until_shown("verified")
        children = children_of(demo.process.pid)
        demo.interrupt()
        demo.until_shown("putting everything back")
        demo.interrupt()

        assert demo.process.wait(timeout=20) == 0
        assert demo.told()[-1] == "demo: stopped"
        assert are_gone(children)
        assert list(demo.run_dirs.iterdir()) == []
