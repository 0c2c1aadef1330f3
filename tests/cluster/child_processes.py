"""What became of exactly the processes that another one started."""

import re
import time
from collections.abc import Callable
from pathlib import Path


def parent_of(process_dir: Path) -> int | None:
    """The parent's pid of a process in /proc."""
    try:
        found = re.search(r"\nPPid:\s+(\d+)", (process_dir / "status").read_text())
    except OSError:
        return None
    return int(found[1]) if found else None


def children_of(pid: int) -> list[Path]:
    """The /proc folders of a process' children."""
    return [one for one in Path("/proc").glob("[0-9]*") if parent_of(one) == pid]


def are_gone(process_dirs: list[Path]) -> bool:
    """Whether none of them is left."""
    return not any(one.exists() for one in process_dirs)


def wait_until(condition: Callable[[], bool], timeout_s: float) -> None:
    """For tests without an event loop."""
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
