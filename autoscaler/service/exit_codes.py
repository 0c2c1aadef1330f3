"""What the process' exit code means; printed by ``--help`` and asserted in tests."""

from typing import Final

OK: Final = 0
"""Done; for ``run``: stopped by SIGTERM or SIGINT; for ``undo``: everything that was still ours is back."""
FAILED: Final = 1
"""The world is at fault: a peer unreachable, a right missing, a file unreadable, a background task dead.

Also: ``apply`` or ``undo`` did not do all that was asked, each act says why.
"""
USAGE: Final = 2
"""The caller is at fault: a bad argument, environment variable, policy or plan file, or an approval that is missing."""
NOT_FOUND: Final = 3
"""The workload is not among those that hold or want accelerators (``explain``), or nothing was done to it (``undo``, ``ledger``)."""
INTERRUPTED: Final = 130
"""A one-shot command was stopped by Ctrl-C."""

SUMMARY: Final = (
    "Exit codes: 0 done; 1 a peer, right, file or task failed, or not all of apply or undo was done; "
    "2 bad argument, environment variable, policy or plan file; 3 no such workload; 130 interrupted."
)
