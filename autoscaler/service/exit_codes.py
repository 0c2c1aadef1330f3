"""What the process' exit code means; printed by ``--help`` and asserted in tests."""

from typing import Final

OK: Final = 0
"""Done; for ``run``: stopped by SIGTERM or SIGINT."""
FAILED: Final = 1
"""The world is at fault: a peer unreachable, a right missing, a file unreadable, a background task dead."""
USAGE: Final = 2
"""The caller is at fault: a bad argument, environment variable or policy file."""
NOT_FOUND: Final = 3
"""``explain``: the workload is not among those that hold or want accelerators."""
INTERRUPTED: Final = 130
"""A one-shot command was stopped by Ctrl-C."""

SUMMARY: Final = (
    "Exit codes: 0 done; 1 a peer, right, file or task failed; 2 bad argument, environment variable or policy file; "
    "3 no such workload; 130 interrupted."
)
