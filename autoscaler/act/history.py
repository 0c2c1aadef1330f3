"""What the planner has to know of the ledger: when what was changed, and who is to be left alone."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from autoscaler.act.transitions import REMEMBERED_MS, RESTORING
from autoscaler.model.cluster import PastAct, WorkloadRef
from autoscaler.model.duration import LATEST_MS
from autoscaler.model.ledger import Entry, Record
from autoscaler.model.plan import Action
from autoscaler.model.policy import DAY_MS

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
        pods=0 if restoring else _pods(action),
        reversals=entry.reversals,
        failures=entry.failures,
        not_before_ms=entry.not_before_ms,
        why=entry.why,
    )


def _pods(action: Action) -> int:
    """Pods that an act ends; a template is changed for every replica, and a CronJob's for runs to come."""
    if action.lever == "evict":
        return 1
    if action.lever == "deactivate":
        return action.pods
    if action.lever in {"scale", "bounds"}:
        return abs(action.before - action.after)
    if action.target.kind == "CronJob":
        return 0
    return abs(action.saved_milli_boards) // (1000 * max(1, abs(action.before - action.after)))


def clean_days(entries: Iterable[Entry], *, now_ms: int) -> int:
    """Whole days (UTC) in a row up to yesterday in which acts were verified and none went wrong; 0 if today one has.

    A day without acts proves nothing and ends the row.
    """
    today = now_ms // DAY_MS
    good: set[int] = set()
    bad: set[int] = set()
    for entry in entries:
        for record in entry.records:
            # Of a clock that was ahead: what went wrong then counts today.
            day = min(today, max(record.intended_ms, record.closed_ms) // DAY_MS)
            if _went_wrong(record):
                bad.add(day)
            elif record.state == "verified":
                good.add(day)
        if entry.reversals and entry.records:
            bad.add(min(today, entry.records[-1].intended_ms // DAY_MS))
    if today in bad:
        return 0
    return next(count for count in range(len(good) + 1) if today - 1 - count not in good - bad)


def _went_wrong(record: Record) -> bool:
    """It failed, somebody set another value, or it put something back."""
    put_back = record.actor in RESTORING and record.state != "dropped"
    return put_back or record.state in {"failed", "undone", "superseded"}
