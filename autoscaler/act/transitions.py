"""How an entry of the ledger moves on: pure, and the only place where entries change."""

from typing import Final

import msgspec

from autoscaler.model.duration import LATEST_MS
from autoscaler.model.ledger import RECORDS_KEPT, Change, Entry, Record, State
from autoscaler.model.plan import Action
from autoscaler.model.policy import DAY_MS, HOUR_MS, Guards

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
REMEMBERED_MS: Final = DAY_MS + HOUR_MS
"""The longest budget and the eviction memory are a day."""
_DETAIL: Final = 300


class TransitionError(ValueError):
    """The record cannot move there from where it is."""


class InHandError(Exception):
    """An act of the workload is still open; nothing else is begun before its end is known."""


def begin(entry: Entry | None, record: Record) -> Entry:
    """Writes an act down before it is sent, as the last record; raises `InHandError` while another one is open.

    A person's undo does not wait for an accepted act to be verified: it closes it, until the undo itself is dropped.
    """
    action = record.action
    if entry is None:
        return Entry(ref=action.target, uid=action.uid, records=(record,))
    earlier = entry.records
    open_act = entry.open_record
    if open_act is not None:
        if record.actor != "undo" or open_act.state != "acted":
            raise InHandError(f"{entry.ref}: act {open_act.id} is still open")
        closed = msgspec.structs.replace(
            open_act,
            state="undone",
            closed_ms=record.intended_ms,
            detail="put back by a person before it was verified",
        )
        earlier = tuple(closed if one is open_act else one for one in earlier)
    record = _unlike(record, {one.id for one in earlier})
    return msgspec.structs.replace(entry, records=_kept((*earlier, record)))


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
        detail=detail[:_DETAIL] or record.detail,
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
    counted = msgspec.structs.replace(_without(entry, change), reversals=reversals)
    why = f"somebody put our change back ({reversals} of {guards.max_reversals} times before it counts as contested)"
    return _left_alone(counted, _later(at_ms, _backoff(guards, reversals)), why)


def taken_over(entry: Entry, change: Change, *, detail: str) -> Entry:
    """The live value is neither ours nor the former one: the field is its owner's again."""
    return msgspec.structs.replace(_without(entry, change), why=entry.why or detail[:_DETAIL])


def departed(entry: Entry) -> Entry:
    """The workload no longer exists: nothing of ours is left in it, and nobody needs to be left alone."""
    return msgspec.structs.replace(settled(entry), changes=())


def settled(entry: Entry) -> Entry:
    """A person looked at it: reversals, failures and back-off are forgotten."""
    return msgspec.structs.replace(entry, reversals=0, failures=0, not_before_ms=-1, why="")


def is_forgettable(entry: Entry, now_ms: int) -> bool:
    """Whether nothing of the entry can matter any more; a workload that is contested stays so."""
    if entry.changes or entry.open_record or entry.reversals or entry.failures:
        return False
    newest = max((max(one.closed_ms, one.intended_ms) for one in entry.records), default=0)
    return now_ms - max(newest, entry.not_before_ms) > FORGOTTEN_AFTER_MS


def without_old_acts(entry: Entry, now_ms: int) -> Entry:
    """The entry with its last act, the open one, and those that a budget or a back-off still looks at."""
    last = len(entry.records) - 1
    kept = tuple(
        one
        for index, one in enumerate(entry.records)
        if index == last or one.is_open or now_ms - one.intended_ms < REMEMBERED_MS
    )
    return entry if len(kept) == len(entry.records) else msgspec.structs.replace(entry, records=kept)


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
            why = f"verification failed ({failures} in a row): {record.detail}"
            counted = msgspec.structs.replace(entry, failures=failures)
            return _left_alone(counted, _later(at_ms, _backoff(guards, failures)), why)
        case "superseded" | "gone" if record.state == "superseded" or record.action.through is not None:
            # Neither the value from before the act nor the act's own: an earlier value of ours is not there either.
            change = change_of(entry, record.action)
            return entry if change is None else _without(entry, change)
        case "dropped" if record.actor == "undo":
            return _reopened(entry, record)
        case "gone" if record.action.lever != "evict":
            return msgspec.structs.replace(entry, changes=())
        case _:
            return entry


def _reopened(entry: Entry, dropped: Record) -> Entry:
    """The act that an undo had closed is open again: it was not put back after all, and is still to be verified."""
    *earlier, last = entry.records
    if last.id != dropped.id or not earlier:
        return entry
    closed = earlier[-1]
    if closed.state != "undone" or closed.closed_ms != dropped.intended_ms:
        return entry
    again = msgspec.structs.replace(closed, state="acted", closed_ms=-1, detail="")
    return msgspec.structs.replace(entry, records=(*earlier[:-1], again, last))


def _acted(entry: Entry, record: Record, *, at_ms: int, guards: Guards) -> Entry:
    action = record.action
    if action.lever == "evict":
        lately = [
            one for one in entry.records if one.action.lever == "evict" and at_ms - one.acted_ms < DAY_MS
        ]
        times = len(lately)
        why = f"a pod of it was evicted {'once' if times == 1 else f'{times} times'} within a day"
        return _left_alone(entry, _later(at_ms, _backoff(guards, times)), why)
    former = change_of(entry, action)
    changes = tuple(one for one in entry.changes if one is not former)
    # Where the act did not start from our value, somebody else had set another one, and that is the owner's.
    started = former is not None and former.current == action.before
    original = former.original if former is not None and started else action.before
    if action.after != original:
        changes = (*changes, change_by(action, original))
    entry = msgspec.structs.replace(entry, changes=changes)
    if record.actor != "undo":
        return entry
    until_ms = max(_later(at_ms, int(guards.after_undo)), entry.not_before_ms)
    return msgspec.structs.replace(
        entry, not_before_ms=until_ms, why="put back by a person", reversals=0, failures=0
    )


def change_by(action: Action, original: int) -> Change:
    """Our value in the field that an action changes, once it is done."""
    if action.lever != "template":
        return Change(lever=action.lever, original=original, current=action.after, through=action.through)
    return Change(
        lever=action.lever,
        original=original,
        current=action.after,
        resource=action.resource,
        container=action.container,
    )


def is_about(change: Change, action: Action) -> bool:
    """Whether the change is of the field that the action changes."""
    if change.lever != action.lever:
        return False
    if change.lever != "template":
        return change.through == action.through
    return (change.resource, change.container) == (action.resource, action.container)


def _without(entry: Entry, change: Change) -> Entry:
    return msgspec.structs.replace(entry, changes=tuple(one for one in entry.changes if one != change))


def _left_alone(entry: Entry, until_ms: int, why: str) -> Entry:
    """Left alone until then; what was said before and lasts longer stands."""
    if until_ms < entry.not_before_ms:
        return entry
    return msgspec.structs.replace(entry, not_before_ms=until_ms, why=why[:_DETAIL])


def _unlike(record: Record, taken: set[str]) -> Record:
    """The record under an id of its own: by the server's clock two acts can begin in the same millisecond."""
    number, name = 1, record.id
    while name in taken:
        number += 1
        name = f"{record.id}-{number}"
    return msgspec.structs.replace(record, id=name)


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
