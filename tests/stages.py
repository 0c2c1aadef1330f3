"""The stages of `make test`, with their times; the devcluster's binaries are built beside the fast ones.

The first stage that fails ends the run with its exit code.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
PYTEST = (sys.executable, "-m", "pytest")

FAST: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("format", (str(BIN / "ruff"), "format", "--check", ".")),
    ("lint", (str(BIN / "ruff"), "check", ".")),
    ("dependencies", (str(BIN / "deptry"), ".")),
    ("import contracts", (str(BIN / "lint-imports"), "--no-cache")),
    ("types", (str(BIN / "mypy"),)),
    ("unit and contract", (*PYTEST, "tests/unit", "tests/contract", "-n", "2", "--cov", "--cov-report=")),
    (
        "coverage of the core",
        (
            *(sys.executable, "-m", "coverage", "report", "--include=autoscaler/model/*,autoscaler/decide/*"),
            "--fail-under=100",
        ),
    ),
)


def stage(name: str, command: Sequence[str], times: dict[str, float]) -> None:
    """Runs one stage; a failure ends the program with the stage's exit code."""
    print(f"\n== {name}", flush=True)
    started = time.monotonic()
    code = subprocess.run(command, cwd=ROOT, check=False).returncode
    times[name] = time.monotonic() - started
    if code:
        print(f"\n{name} failed with exit code {code}", flush=True)
        report(times)
        sys.exit(code)


def report(times: dict[str, float]) -> None:
    """Prints how long each stage took."""
    print("\n== stage times", flush=True)
    for name, seconds in times.items():
        print(f"{seconds:8.1f} s  {name}", flush=True)


def main() -> None:
    """Runs all stages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slow", action="store_true", help="whole benchmarks and the slow families")
    slow = parser.parse_args().slow
    times: dict[str, float] = {}
    log = ROOT / ".build.log"
    with log.open("w") as sink:
        build_command = ["nice", "-n", "10", sys.executable, "-m", "devcluster", "build"]
        build = subprocess.Popen(build_command, cwd=ROOT, stdout=sink, stderr=sink)
        try:
            for name, command in FAST:
                stage(name, command, times)
            print("\n== devcluster binaries (built once, then cached; up to 15 minutes cold)", flush=True)
            started = time.monotonic()
            if build.wait() != 0:
                print(log.read_text(errors="replace")[-8000:])
                sys.exit(f"the devcluster's binaries did not build, see {log.name}")
            times["waiting for binaries"] = time.monotonic() - started
        finally:
            if build.poll() is None:
                build.terminate()
                build.wait()
    stage("cluster", (*PYTEST, "tests/cluster", *(() if slow else ("-m", "not slow"))), times)
    if slow:
        stage("mutants of the guards", (sys.executable, "-m", "tests.mutants"), times)
    scale = () if slow else ("--scale", "0.1")
    stage("benchmarks", (sys.executable, "-m", "benchmarks", *scale), times)
    stage("demo, once", (sys.executable, "-m", "devcluster", "demo", "--once"), times)
    report(times)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    main()
