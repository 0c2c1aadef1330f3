import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.child_processes import are_gone, children_of, wait_until
from tests.cluster.live_service import ROOT

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(150)]

EVERY_PROCESS = (
    8  # etcd, API server, controller manager, scheduler, KWOK, GPU exporter, Prometheus, the service
)


def start_demo(run_dirs: Path, log: Path) -> subprocess.Popen[bytes]:
    with log.open("w") as sink:
        return subprocess.Popen(
            [sys.executable, "-m", "devcluster", "demo"],
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(run_dirs), "PYTHONUNBUFFERED": "1"},
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


@pytest.mark.parametrize(
    ("when", "processes", "shown"),
    [("it starts", 3, "starting etcd"), ("it runs", EVERY_PROCESS, "research/trainer")],
)
def test_ctrl_c_ends_the_demonstration_without_a_trace(
    tmp_path: Path, when: str, processes: int, shown: str
) -> None:
    run_dirs, log = tmp_path / "runs", tmp_path / "demo.log"
    run_dirs.mkdir()
    demo = start_demo(run_dirs, log)

    def is_far_enough() -> bool:
        assert demo.poll() is None, log.read_text()
        return len(children_of(demo.pid)) >= processes and shown in log.read_text()

    wait_until(is_far_enough, timeout_s=90)
    children = children_of(demo.pid)
    assert list(run_dirs.iterdir())
    os.killpg(demo.pid, signal.SIGINT)

    assert demo.wait(timeout=30) == 0, when
    assert log.read_text().splitlines()[-1] == "demo: stopped"
    assert are_gone(children)
    assert list(run_dirs.iterdir()) == []
