"""Seats that take several evictions: each eviction is a record of its own, the nomination belongs to all of them. Pure."""

from collections.abc import Iterable, Iterator
from typing import Final

from autoscaler.model.ledger import Entry, Record
from autoscaler.model.plan import Plan, Seat
from autoscaler.model.snapshot import Snapshot

_PAID: Final = frozenset({"acted", "verified"})


def is_paid_for(entries: Iterable[Entry], record: Record) -> bool:
    """Whether another eviction than this one was made for its seat: giving the seat up would make it one in vain."""
    seat = record.action.seat
    return seat is not None and any(
        other.id != record.id and other.state in _PAID for other in _records(entries, seat)
    )


def stalled(entries: Iterable[Entry], plan: Plan, snapshot: Snapshot, *, within_ms: int) -> Iterator[Seat]:
    """Seats that were begun and are not gone on with: their pods still wait, nothing was done in time and nothing is planned.

    A nomination keeps room from others, so it must not outlast what it was made for.
    """
    rows = tuple(entries)
    planned = {_key(action.seat) for action in plan.actions if action.seat and not action.held_by}
    begun = (record.action.seat for entry in rows for record in entry.records)
    for key, seat in {_key(seat): seat for seat in begun if seat is not None}.items():
        records = list(_records(rows, seat))
        newest_ms = max(max(record.closed_ms, record.intended_ms) for record in records)
        is_open = any(record.is_open for record in records)
        is_late = snapshot.taken_ms - newest_ms > within_ms
        if is_late and not is_open and key not in planned and _waits(snapshot, seat):
            yield seat


def _key(seat: Seat) -> tuple[str, str]:
    return seat.pod.uid, seat.node


def _waits(snapshot: Snapshot, seat: Seat) -> bool:
    return any(
        pod.uid == seat.pod.uid and not pod.node and pod.nominated_node == seat.node for pod in snapshot.pods
    )


def _records(entries: Iterable[Entry], seat: Seat) -> Iterator[Record]:
    for entry in entries:
        for record in entry.records:
            its = record.action.seat
            if its is not None and _key(its) == _key(seat):
                yield record
