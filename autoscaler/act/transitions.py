"""How an entry of the ledger moves on: pure, and the only place where entries change."""

from typing import Final

import msgspec

from autoscaler.model.duration import LATEST_MS
from autoscaler.model.ledger import RECORDS_KEPT, Change, Entry, Record, State
from autoscaler.model.plan import Action, Lever
from autoscaler.model.policy import DAY_MS, Guards

ALLOWED: Final[dict[State, frozenset[State]]] = {
    "intended": frozenset({"acted", "dropped", "superseded", "gone"}),
    "acted": frozenset({"verified", "failed", "undone", "superseded", "gone"}),
    "verified": frozenset(),
    "failed": frozenset(),
    "undone": frozenset(),
    "dropped": frozenset(),
    "superseded": frozenset(),
    "gone": frozenset(),
}
RESTORING: Final = frozenset({"revert", "undo"})
"""Actors whose acts put something back."""
FORGOTTEN_AFTER_MS: Final = 30 * DAY_MS


class TransitionError(ValueError):
    """The record cannot move there from where it is."""


class InHandError(Exception):
    """An act of the workload is still open; nothing else is begun before its end is known."""


def begin(entry: Entry | None, record: Record) -> Entry:
    """Writes an act down before it is sent; raises `InHandError` while another one is open."""
    action = record.action
    if entry is None:
        return Entry(ref=action.target, uid=action.uid, records=(record,))
    if entry.open_record is not None:
        raise InHandError(f"{entry.ref}: act {entry.open_record.id} is still open")
    return msgspec.structs.replace(entry, records=_kept((*entry.records, record)))


def advance(
    entry: Entry, record_id: str, state: State, *, at_ms: int, guards: Guards, detail: str = ""
) -> Entry:
    """Moves a record on, with what that means for the entry; raises `TransitionError` where it cannot go there."""
    record = next((one for one in entry.records if one.id == record_id), None)
    if record is None or state not in ALLOWED[record.state]:
        raise TransitionError(
            f"{entry.ref}: {record_id} is {record.state if record else 'unknown'}, not to be {state}"
        )
    moved = msgspec.structs.replace(
        record,
        state=state,
        detail=detail or record.detail,
        acted_ms=at_ms if state == "acted" else record.acted_ms,
        closed_ms=at_ms if ALLOWED[state] == frozenset() else record.closed_ms,
    )
    records = tuple(moved if one.id == record_id else one for one in entry.records)
    return _consequences(msgspec.structs.replace(entry, records=records), moved, at_ms=at_ms, guards=guards)


def pods_ready(entry: Entry, record_id: str, *, at_ms: int) -> Entry:
    """The new pods of an act are ready: its probation begins."""
    records = tuple(
        msgspec.structs.replace(one, ready_ms=at_ms) if one.id == record_id and one.ready_ms < 0 else one
        for one in entry.records
    )
    return msgspec.structs.replace(entry, records=records)


def reversed_by_others(entry: Entry, change: Change, *, at_ms: int, guards: Guards) -> Entry:
    """Somebody put our change back: it is not fought, and it is counted."""
    reversals = entry.reversals + 1
    return msgspec.structs.replace(
        _without(entry, change),
        reversals=reversals,
        not_before_ms=_later(at_ms, _backoff(guards, reversals)),
        why=f"somebody put our change back ({reversals} of {guards.max_reversals} times before it counts as contested)",
    )


def taken_over(entry: Entry, change: Change, *, detail: str) -> Entry:
    """The live value is neither ours nor the former one: the field is its owner's again."""
    return msgspec.structs.replace(_without(entry, change), why=detail if not entry.why else entry.why)


def settled(entry: Entry) -> Entry:
    """A person looked at it: reversals, failures and back-off are forgotten."""
    return msgspec.structs.replace(entry, reversals=0, failures=0, not_before_ms=-1, why="")


def is_forgettable(entry: Entry, now_ms: int) -> bool:
    """Whether nothing of the entry can matter any more."""
    if entry.changes or entry.open_record or entry.not_before_ms > now_ms:
        return False
    newest = max((max(one.closed_ms, one.intended_ms) for one in entry.records), default=0)
    return now_ms - newest > FORGOTTEN_AFTER_MS


def change_of(entry: Entry, action: Action) -> Change | None:
    """Our value in the field that an action is about."""
    return next((one for one in entry.changes if is_about(one, action)), None)


def _consequences(entry: Entry, record: Record, *, at_ms: int, guards: Guards) -> Entry:
    match record.state:
        case "acted":
            return _acted(entry, record, at_ms=at_ms, guards=guards)
        case "verified":
            return entry if record.actor in RESTORING else msgspec.structs.replace(entry, failures=0)
        case "failed" if record.actor not in RESTORING:
            failures = entry.failures + 1
            return msgspec.structs.replace(
                entry,
                failures=failures,
                not_before_ms=_later(at_ms, _backoff(guards, failures)),
                why=f"verification failed ({failures} in a row): {record.detail}"[:300],
            )
        case "superseded" | "gone":
            change = change_of(entry, record.action)
            return _without(entry, change) if change is not None and record.acted_ms >= 0 else entry
        case _:
            return entry


def _acted(entry: Entry, record: Record, *, at_ms: int, guards: Guards) -> Entry:
    action = record.action
    if action.lever == "evict":
        lately = [
            one for one in entry.records if one.action.lever == "evict" and at_ms - one.acted_ms < DAY_MS
        ]
        return msgspec.structs.replace(
            entry,
            not_before_ms=_later(at_ms, _backoff(guards, len(lately))),
            why=f"evicted {len(lately)} times in a day",
        )
    former = change_of(entry, action)
    changes = tuple(one for one in entry.changes if one is not former)
    original = action.before if former is None else former.original
    if action.after != original:
        changes = (*changes, _change(action, original))
    entry = msgspec.structs.replace(entry, changes=changes)
    if record.actor != "undo":
        return entry
    return msgspec.structs.replace(
        entry,
        not_before_ms=_later(at_ms, int(guards.after_undo)),
        why="put back by a person",
        reversals=0,
        failures=0,
    )


def _change(action: Action, original: int) -> Change:
    field: tuple[Lever, str, str] = (
        (action.lever, "", "")
        if action.lever == "scale"
        else (action.lever, action.resource, action.container)
    )
    return Change(
        lever=field[0], original=original, current=action.after, resource=field[1], container=field[2]
    )


def is_about(change: Change, action: Action) -> bool:
    """Whether the change is of the field that the action changes."""
    if change.lever != action.lever:
        return False
    return change.lever == "scale" or (change.resource, change.container) == (
        action.resource,
        action.container,
    )


def _without(entry: Entry, change: Change) -> Entry:
    return msgspec.structs.replace(entry, changes=tuple(one for one in entry.changes if one != change))


def _backoff(guards: Guards, times: int) -> int:
    """The back-off after so many times in a row, doubling up to the policy's cap."""
    doubled = int(guards.backoff) << min(max(times - 1, 0), 32)
    return min(doubled, max(int(guards.max_backoff), int(guards.backoff)))


def _later(at_ms: int, span_ms: int) -> int:
    return min(at_ms + span_ms, LATEST_MS)


def _kept(records: tuple[Record, ...]) -> tuple[Record, ...]:
    """The newest records, and every open one."""
    surplus = len(records) - RECORDS_KEPT
    return tuple(one for index, one in enumerate(records) if index >= surplus or one.is_open)
