"""Server processes of benchmarks: started, asked for their port, killed at the end."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def server_process(module: str, *arguments: str) -> Iterator[str]:
    """The URL of a module of this package that prints its port and serves until its standard input ends."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        if process.stdout is None:
            raise RuntimeError("the server has no output")
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()
