"""How a check answers, and the words that several of them need."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from autoscaler.model.duration import format_duration
from autoscaler.model.findings import State

_SHOWN: Final = 3
_SECOND_MS: Final = 1000


class Outcome(msgspec.Struct, frozen=True):
    """State, findings in words with their numbers, and the fix."""

    state: State
    found: str
    fix: str = ""


def skipped(because: str) -> Outcome:
    """The check has nothing to look at."""
    return Outcome("skipped", because)


def some(names: Iterable[object], *, shown: int = _SHOWN) -> str:
    """A few names and how many more there are."""
    listed = [str(name) for name in names]
    more = len(listed) - shown
    return ", ".join(listed[:shown]) + (f" and {more} more" if more > 0 else "")


def counted(counts: Sequence[tuple[str, int]]) -> str:
    """Named counts, the largest first."""
    ordered = sorted(counts, key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{name} {count}" for name, count in ordered)


def span(length_ms: int) -> str:
    """A length of time in whole seconds, for people; under a second as it is."""
    whole = length_ms if abs(length_ms) < _SECOND_MS else int(length_ms / _SECOND_MS) * _SECOND_MS
    return format_duration(whole)


def job_name(job: str) -> str:
    """A scrape job for people."""
    return job or "(no job label)"
