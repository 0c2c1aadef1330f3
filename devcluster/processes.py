"""Child processes that never outlive their purpose.

Every component runs in a session of its own (a Ctrl-C in the terminal reaches only us), writes to its own
log, is asked to die by the kernel when our process dies, and is stopped by its own process group id: never by
a name.  Plain `Popen` objects are bound to no event loop, so one cluster serves tests that each have their own.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from devcluster.errors import DevclusterError

_TETHER = Path(__file__).parent / "tether.py"
_POLL_INTERVAL_S = 0.02
_LOG_TAIL_LINES = 20


@dataclass(frozen=True, kw_only=True)
class Command:
    """How to start one component and where its output goes."""

    name: str
    arguments: Sequence[str | Path]
    log_path: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    terminate_first: bool = True


class Component:
    """One running component; it can be killed and started again under the same command."""

    def __init__(self, command: Command) -> None:
        self.command = command
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def name(self) -> str:
        """The component's name, such as `etcd`."""
        return self.command.name

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._process.pid if self._process is not None and self.is_running else None

    @property
    def is_running(self) -> bool:
        """Whether the process is there now."""
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """How the last process ended, negative for a signal; None while it runs and before the first."""
        return self._process.poll() if self._process is not None else None

    def start(self) -> None:
        """Start the process; its log is appended to."""
        if self.is_running:
            raise DevclusterError(f"{self.name} runs already")
        with self.command.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", _TETHER, str(os.getpid()), *self.command.arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ | dict(self.command.environment),
                start_new_session=True,
            )

    def kill(self) -> None:
        """Kill it as a crash would; it may still be there for a moment."""
        self._signal_group(signal.SIGKILL)

    async def stop(self, grace_s: float) -> None:
        """Ask it to end where that is quick, then kill it; returns when it is gone."""
        if self.command.terminate_first:
            self._signal_group(signal.SIGTERM)
            await self._wait_gone(grace_s)
        self._signal_group(signal.SIGKILL)
        await self._wait_gone(grace_s)

    def log_tail(self) -> str:
        """The last lines of the log."""
        if not self.command.log_path.exists():
            return ""
        lines = self.command.log_path.read_text(errors="replace").splitlines()
        return "\n".join(lines[-_LOG_TAIL_LINES:])

    def _signal_group(self, number: signal.Signals) -> None:
        if self._process is not None and self.is_running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    async def _wait_gone(self, timeout_s: float) -> None:
        deadline_s = time.monotonic() + timeout_s
        while self.is_running and time.monotonic() < deadline_s:  # noqa: ASYNC110 - a process has no event
            await asyncio.sleep(_POLL_INTERVAL_S)


def fail_if_dead(components: Sequence[Component]) -> None:
    """Raise with the tail of the log when one of the components is gone."""
    for component in components:
        if not component.is_running:
            raise DevclusterError(
                f"{component.name} is not running; the end of {component.command.log_path}:\n"
                f"{component.log_tail()}"
            )
