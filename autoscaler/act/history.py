"""What the planner has to know of the ledger: when what was changed, and who is to be left alone."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from autoscaler.act.transitions import REMEMBERED_MS, RESTORING
from autoscaler.model.cluster import PastAct, WorkloadRef
from autoscaler.model.duration import LATEST_MS
from autoscaler.model.ledger import Entry, Record

_ALL_READ: Final[Mapping[WorkloadRef, str]] = MappingProxyType({})


def past_acts(
    entries: Iterable[Entry], *, now_ms: int, unreadable: Mapping[WorkloadRef, str] = _ALL_READ
) -> tuple[PastAct, ...]:
    """One row for each act that was or may have been sent lately, and one for each workload that is left alone.

    A workload whose entry cannot be read is left alone for good, `unreadable` says why.
    """
    rows = [row for entry in entries for row in _rows(entry, now_ms)]
    rows += [PastAct(ref=ref, at_ms=0, not_before_ms=LATEST_MS, why=why) for ref, why in unreadable.items()]
    return tuple(sorted(rows, key=lambda row: (row.at_ms, row.ref, row.method)))


def _rows(entry: Entry, now_ms: int) -> Iterator[PastAct]:
    sent = [one for one in entry.records if one.is_open or one.acted_ms >= 0]
    recent = [one for one in sent if one.is_open or now_ms - one.intended_ms < REMEMBERED_MS]
    for record in recent:
        yield _row(entry, record)
    if not recent and (entry.reversals or entry.failures or entry.not_before_ms > now_ms):
        at_ms = max((one.intended_ms for one in sent), default=0)
        yield PastAct(
            ref=entry.ref,
            at_ms=at_ms,
            reversals=entry.reversals,
            failures=entry.failures,
            not_before_ms=entry.not_before_ms,
            why=entry.why,
        )


def _row(entry: Entry, record: Record) -> PastAct:
    restoring = record.actor in RESTORING
    action = record.action
    boards_milli = action.before * 1000 if action.lever == "evict" else abs(action.saved_milli_boards)
    return PastAct(
        ref=entry.ref,
        at_ms=record.intended_ms,
        boards_milli=0 if restoring else boards_milli,
        verified=not record.is_open,
        method="" if restoring else action.method,
        given_to=action.seat.pod.namespace if action.seat is not None else "",
        reversals=entry.reversals,
        failures=entry.failures,
        not_before_ms=entry.not_before_ms,
        why=entry.why,
    )
