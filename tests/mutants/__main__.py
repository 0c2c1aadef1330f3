"""`python -m tests.mutants [--module limits] [--jobs 2]`: weakens every guard in turn; exit 1 if a mutant lives.

Each mutant runs in a copy of the package, first against the tests of its own module, then against all tests of the core.
One JSON line for each survivor and one with the numbers at the end.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.mutants.operators import Mutant, mutants

ROOT = Path(__file__).resolve().parent.parent.parent
GUARDS = Path("autoscaler/decide/guards")
CORE = "tests/unit/decide"
COPIED = ("autoscaler", "tests", "config", "pyproject.toml")
TIMEOUT_S = 600


def main() -> int:
    """Runs the campaign."""
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--module", action="append", help="only these modules of the guards")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    started = time.monotonic()
    paths = [
        path
        for path in sorted((ROOT / GUARDS).glob("*.py"))
        if not arguments.module or path.stem in arguments.module
    ]
    cases = [(path.relative_to(ROOT), mutant) for path in paths for mutant in mutants(path.read_text())]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(arguments.jobs) as pool:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(arguments.jobs):
            copies.put(_copied(Path(folder) / str(number)))
        if not _passes(Path(folder) / "0", [CORE]):
            sys.exit("the tests fail without a mutant")
        survivors = 0
        for (path, mutant), alive in zip(
            cases, pool.map(lambda case: _lives(copies, *case), cases), strict=True
        ):
            if alive:
                survivors += 1
                print(json.dumps({"survivor": f"{path}:{mutant.line}", "what": mutant.what}), flush=True)
    seconds = round(time.monotonic() - started)
    print(json.dumps({"mutants": len(cases), "survivors": survivors, "seconds": seconds}), flush=True)
    return 1 if survivors or not cases else 0


def _copied(target: Path) -> Path:
    ignored = shutil.ignore_patterns("__pycache__")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=ignored)
        else:
            shutil.copy2(source, target / name)
    return target


def _lives(copies: "SimpleQueue[Path]", path: Path, mutant: Mutant) -> bool:
    """Whether no test notices."""
    copy = copies.get()
    original = (copy / path).read_text()
    try:
        (copy / path).write_text(mutant.source)
        own = [str(found.relative_to(copy)) for found in (copy / CORE).rglob(f"test_{path.stem}*.py")]
        return all(_passes(copy, where) for where in [*([own] if own else []), [CORE]])
    finally:
        (copy / path).write_text(original)
        copies.put(copy)


def _passes(copy: Path, where: list[str]) -> bool:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", *where]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(copy)}
    result = subprocess.run(
        command, cwd=copy, env=environment, capture_output=True, check=False, timeout=TIMEOUT_S
    )
    return result.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
