"""The devcluster's binaries: built once per set of pins into a user cache, then reused by everybody.

A build takes minutes, so nobody may do it twice: a file lock lets one caller build while the others wait,
and a finished folder appears under its final name in one step, so a cut build leaves nothing half-done.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from devcluster.errors import BuildError
from devcluster.go_toolchain import go_command
from devcluster.pinsets import ALL_PIN_SETS, BUILD_ENVIRONMENT, CONTROL_PLANE, PROMETHEUS, PinSet

_PROGRESS_INTERVAL_S = 15


@dataclass(frozen=True)
class Binaries:
    """Where the built binaries and the data files of their modules are."""

    control_plane_dir: Path
    prometheus_dir: Path

    def path(self, name: str) -> Path:
        """The path of one binary by name, such as `kubectl` or `promtool`."""
        holder = self.prometheus_dir if name in PROMETHEUS.binaries else self.control_plane_dir
        return holder / "bin" / name

    def kwok_stages(self) -> list[Path]:
        """KWOK's stage files: how fake nodes and pods move through their lives."""
        return sorted(
            path
            for path in (self.control_plane_dir / "data").rglob("*.yaml")
            if path.name != "kustomization.yaml"
        )


def cache_root() -> Path:
    """The folder that keeps what is expensive to make, outside of any clone."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "gpu-autoscaler" / "devcluster"


def ensure_binaries() -> Binaries:
    """The binaries, built now if this machine has not built these pins before."""
    built = {pin_set.name: _ensure(pin_set, cache_root()) for pin_set in ALL_PIN_SETS}
    return Binaries(control_plane_dir=built[CONTROL_PLANE.name], prometheus_dir=built[PROMETHEUS.name])


def ensure_on_demand(pin_set: PinSet) -> Path:
    """The folder (`bin`, `data`) of a set that only some tests need, built now if this machine has not built it before."""
    return _ensure(pin_set, cache_root())


def _ensure(pin_set: PinSet, root: Path) -> Path:
    final = root / f"{pin_set.name}-{pin_set.key()}"
    if final.exists():
        return final
    root.mkdir(parents=True, exist_ok=True)
    with _file_lock(root / f"{pin_set.name}.lock", pin_set.name):
        if not final.exists():
            _build(pin_set, root, final)
    return final


@contextmanager
def _file_lock(path: Path, name: str) -> Iterator[None]:
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say(f"{name}: another process is building, waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(pin_set: PinSet, root: Path, final: Path) -> None:
    what = f"building {', '.join(pin_set.binaries)}" if pin_set.binaries else "copying data"
    _say(
        f"{pin_set.name}: {what} from pinned sources, once; "
        f"expect about {pin_set.expected_minutes} minutes on two cores"
    )
    started_s = time.monotonic()
    go = go_command(root)
    workshop = Path(tempfile.mkdtemp(prefix=f"{pin_set.name}-building-", dir=root))
    try:
        binaries_dir = workshop / "bin"
        binaries_dir.mkdir()
        if pin_set.binaries:
            _install(pin_set, go, binaries_dir, started_s)
        else:
            for module, _ in pin_set.copied_modules:
                _ask_go(pin_set, go, "mod", "download", module)
        _copy_module_data(pin_set, go, workshop / "data")
        workshop.chmod(0o755)
        workshop.rename(final)
    finally:
        shutil.rmtree(workshop, ignore_errors=True)
    _say(f"{pin_set.name}: built in {time.monotonic() - started_s:.0f} s")


def _install(pin_set: PinSet, go: Path, binaries_dir: Path, started_s: float) -> None:
    log_path = binaries_dir.parent / "build.log"
    with (
        log_path.open("w") as log,
        subprocess.Popen(
            ["nice", "-n", "10", go, *pin_set.install_arguments()],
            cwd=pin_set.directory,
            env=os.environ | BUILD_ENVIRONMENT | {"GOBIN": str(binaries_dir)},
            stdout=log,
            stderr=subprocess.STDOUT,
        ) as build,
    ):
        try:
            _show_progress(build, pin_set, binaries_dir, started_s)
        except BaseException:
            build.terminate()
            raise
    if build.returncode != 0:
        raise BuildError(f"{pin_set.name} did not build:\n{log_path.read_text()[-4000:]}")
    for built_name, wanted_name in pin_set.renames:
        (binaries_dir / built_name).rename(binaries_dir / wanted_name)
    missing = [name for name in pin_set.binaries if not (binaries_dir / name).exists()]
    if missing:
        raise BuildError(f"{pin_set.name} built without {', '.join(missing)}")


def _show_progress(
    build: subprocess.Popen[bytes], pin_set: PinSet, binaries_dir: Path, started_s: float
) -> None:
    while True:
        try:
            build.wait(timeout=_PROGRESS_INTERVAL_S)
        except subprocess.TimeoutExpired:
            done = len(list(binaries_dir.iterdir()))
            elapsed_s = time.monotonic() - started_s
            _say(
                f"{pin_set.name}: {elapsed_s / 60:.1f} of about {pin_set.expected_minutes} minutes, "
                f"{done} of {len(pin_set.binaries)} binaries done"
            )
        else:
            return


def _copy_module_data(pin_set: PinSet, go: Path, target: Path) -> None:
    target.mkdir()
    for module, folders in pin_set.copied_modules:
        found = _ask_go(pin_set, go, "list", "-m", "-f", "{{.Dir}}", module)
        for folder in folders:
            destination = target / folder
            destination.mkdir(parents=True)
            for path in (Path(found.strip()) / folder).glob("*.yaml"):
                shutil.copyfile(path, destination / path.name)


def _ask_go(pin_set: PinSet, go: Path, *arguments: str) -> str:
    """What a `go` command over the pins prints."""
    answer = subprocess.run(
        [go, *arguments],
        cwd=pin_set.directory,
        env=os.environ | BUILD_ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        raise BuildError(f"go {' '.join(arguments)} failed for {pin_set.name}:\n{answer.stderr}")
    return answer.stdout


def _say(text: str) -> None:
    print(f"devcluster: {text}", file=sys.stderr, flush=True)
