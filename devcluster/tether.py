"""Becomes another program that dies with its parent.

Run as a script: `tether.py PARENT_PID PROGRAM ARGUMENTS...`.  The kernel is asked to kill this process when
the parent ends, however it ends, and the request survives becoming the program.  A step between fork and
exec would do the same, but is refused in processes with threads.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Tie the process to its parent and become the program."""
    parent_pid, program = int(sys.argv[1]), sys.argv[2]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
        if os.getppid() != parent_pid:
            sys.exit(1)
    os.execv(program, sys.argv[2:])  # noqa: S606 - starting a program is its purpose


if __name__ == "__main__":
    main()
