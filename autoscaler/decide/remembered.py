"""What a workload's history beyond the life of its pods says of the need: never less than the live boards say.

It stands for the confidence only where its units had at least as many boards: a load at the ceiling of fewer boards
says nothing of what more of them would carry.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from autoscaler.model.history import WorkloadHistory


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """Of one unit, in milli-boards, boards and MiB; `total_milli` and `total_peak_milli` are of all units together."""

    activity_milli: int = 0
    total_milli: int = 0
    total_peak_milli: int = 0
    active_boards: int = 0
    memory_peak_mib: int = 0
    history_ms: int = 0


NOTHING_REMEMBERED: Final = Remembered()


def remembered(histories: Iterable[WorkloadHistory], *, containers: Collection[str], held: int) -> Remembered:
    """The histories of those containers together, for units that hold `held` boards.

    An exporter that does not name containers leaves one history without a name; it counts where no other does.
    """
    rows = tuple(histories)
    found = tuple(row for row in rows if row.container in containers) or tuple(
        row for row in rows if not row.container
    )
    if not found:
        return NOTHING_REMEMBERED
    return Remembered(
        activity_milli=sum(max(row.load_milli, row.busiest_milli) for row in found),
        total_milli=sum(row.total_milli for row in found),
        total_peak_milli=sum(row.total_peak_milli for row in found),
        active_boards=sum(row.active_boards for row in found),
        memory_peak_mib=max(row.memory_peak_mib for row in found),
        history_ms=_history_ms(found, held),
    )


def _history_ms(found: Sequence[WorkloadHistory], held: int) -> int:
    """How long the use of as many boards is known; 0 where there were fewer."""
    if sum(row.boards for row in found) < held:
        return 0
    return min(row.history_ms for row in found)
