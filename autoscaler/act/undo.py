"""Putting back: what our own acts changed becomes actions of its own, under the same ledger and the same care.

It acts only where the live value is the one that we set; whatever else is there is its owner's and stays.
"""

import hashlib
from collections.abc import Sequence
from typing import Literal

import msgspec

from autoscaler.act import repair, transitions
from autoscaler.act.contract import AuthorityLostError, Outcome, Site
from autoscaler.act.executor import Executor
from autoscaler.act.ledger import ConfigMapLedger, LedgerError
from autoscaler.act.requests import evict_request
from autoscaler.act.transitions import RESTORING, TransitionError
from autoscaler.act.writer import Writer
from autoscaler.kube.errors import KubeError, NotFound
from autoscaler.kube.wire import Present
from autoscaler.model.ledger import Change, Entry, Record
from autoscaler.model.plan import Action, Method, PodRef
from autoscaler.model.reasons import Reason

Restorer = Literal["revert", "undo"]
_any = msgspec.json.Decoder(Present)
_FAILS = (KubeError, LedgerError, TransitionError)


class Restored(msgspec.Struct, frozen=True):
    """What became of one change of ours."""

    entry: Entry
    change: Change
    outcome: Outcome


async def undo_entry(
    entry: Entry, ledger: ConfigMapLedger, executor: Executor, writer: Writer, *, actor: Restorer = "undo"
) -> list[Restored]:
    """Puts back every value of ours in one workload; an accepted act that is not verified yet is closed by it.

    A live value that is no longer ours ends with `Superseded`, and is no longer counted as ours. While an act of it is
    only `intended` nothing is put back: see `repair.settle`. Raises `AuthorityLostError`, and what the ledger and the
    transport raise where letting go of a value could not be written down.
    """
    found = []
    now = ledger.entries.get(entry.uid, entry).open_record
    if now is not None and now.state == "intended":
        held = Outcome("refused", "an act on it may still be under way", Reason.COOLDOWN, record=now)
        return [Restored(entry, change, held) for change in _in_order(entry)]
    for change in _in_order(entry):
        action = reverse_action(entry, change, actor=actor)
        outcome = await executor.execute(
            action, writer, actor=actor, recheck=None, undoes=_undone_id(entry, change)
        )
        if outcome.kind == "gone" or outcome.reason is Reason.SUPERSEDED:
            await _let_go(entry, change, outcome, ledger, executor, writer)
        found.append(Restored(entry, change, outcome))
    return await _with_aftercare(entry, found, ledger, executor, writer)


async def undo_all(ledger: ConfigMapLedger, executor: Executor, writer: Writer) -> list[Restored]:
    """Puts back everything that is ours; what a crash left open is settled first. One that fails stops no other."""
    found = []
    for entry in [entry for _, entry in sorted(ledger.entries.items())]:
        try:
            waiting = await _settled(entry, ledger, executor, writer)
            if waiting is not None:
                found.append(waiting)
                continue
            found += await undo_entry(ledger.entries.get(entry.uid, entry), ledger, executor, writer)
        except _FAILS as error:
            found += [Restored(entry, change, Outcome("refused", str(error))) for change in entry.changes]
    return found


async def revert(
    record: Record, ledger: ConfigMapLedger, executor: Executor, writer: Writer
) -> Outcome | None:
    """Puts back what a failed act changed, to the value before that very act; None where it changed nothing.

    A StatefulSet's pod that is stuck at the reverted revision stays there by itself: see `evict_stuck`.
    """
    entry = ledger.entries.get(record.action.uid)
    change = transitions.change_of(entry, record.action) if entry is not None else None
    if entry is None or change is None or change.current != record.action.after:
        return None
    step = msgspec.structs.replace(change, original=record.action.before)
    action = reverse_action(entry, step, actor="revert")
    outcome = await executor.execute(action, writer, actor="revert", recheck=None, undoes=record.id)
    if outcome.kind == "gone" or outcome.reason is Reason.SUPERSEDED:
        await _let_go(entry, change, outcome, ledger, executor, writer)
    return outcome


def owed_revert(entry: Entry) -> Record | None:
    """A failed act whose value is still in force: a crash, a conflict or a refusal kept it from being put back."""
    if entry.open_record is not None:
        return None
    for change in entry.changes:
        sent = [
            one for one in entry.records if one.acted_ms >= 0 and transitions.is_about(change, one.action)
        ]
        if sent and sent[-1].state == "failed" and sent[-1].actor not in RESTORING:
            return sent[-1]
    return None


async def evict_stuck(pods: Sequence[PodRef], writer: Writer) -> list[str]:
    """Evicts pods that are pending still; a pending pod is let go without asking its budget. What failed, in words."""
    failed = []
    for pod in pods:
        live = await writer.pod(pod)
        if live is None or live.deleting or live.phase != "Pending":
            continue
        try:
            await writer.send(Site.EVICT_STUCK, evict_request(pod), _any)
        except NotFound:
            continue
        except KubeError as error:
            failed.append(f"pod {pod}: {error}")
    return failed


def reverse_action(entry: Entry, change: Change, *, actor: Restorer) -> Action:
    """The action that puts a value back."""
    identity = f"{actor}|{entry.uid}|{change.lever}|{change.resource}|{change.container}|{change.current}|{change.original}"
    return Action(
        id=hashlib.sha256(identity.encode()).hexdigest()[:12],
        method=_method(entry, change),
        reason=Reason.UNDONE if actor == "undo" else Reason.REVERTED,
        lever=change.lever,
        target=entry.ref,
        uid=entry.uid,
        resource_version="",
        resource=change.resource,
        container=change.container,
        before=change.current,
        after=change.original,
        saved_milli_boards=0,
        because=f"{change.field}: {change.original} was there before we set {change.current}",
        through=change.through,
    )


def _method(entry: Entry, change: Change) -> Method:
    """The method of the latest act on that field."""
    acts = [one.action for one in entry.records if transitions.is_about(change, one.action)]
    return acts[-1].method if acts else "right-size"


def _undone_id(entry: Entry, change: Change) -> str:
    """The id of the latest act on that field that was no putting back itself."""
    acts = [
        one.id
        for one in entry.records
        if one.acted_ms >= 0 and one.actor not in RESTORING and transitions.is_about(change, one.action)
    ]
    return acts[-1] if acts else ""


def _in_order(entry: Entry) -> list[Change]:
    """Sizes before counts, so that new pods have theirs at once.

    A StatefulSet's template comes last: that act stays open until no pod is stuck at the former revision.
    """
    template_first = entry.ref.kind != "StatefulSet"
    return sorted(
        entry.changes, key=lambda change: ((change.lever != "template") == template_first, change.container)
    )


async def _settled(
    entry: Entry, ledger: ConfigMapLedger, executor: Executor, writer: Writer
) -> Restored | None:
    """Settles an act that was perhaps sent; what there is to wait for, None where there is nothing."""
    record = entry.open_record
    if record is None or record.state != "intended":
        return None
    found = await repair.settle(record, ledger, executor, writer, now_ms=ledger.now_ms())
    if found.settled != "waiting":
        return None
    change = transitions.change_by(record.action, record.action.before)
    return Restored(entry, change, Outcome("refused", found.detail, Reason.COOLDOWN, record=record))


async def _let_go(
    entry: Entry,
    change: Change,
    outcome: Outcome,
    ledger: ConfigMapLedger,
    executor: Executor,
    writer: Writer,
) -> None:
    """The value is its owner's, or gone: it is no longer counted as ours, and an act that set it is closed."""
    gone = outcome.kind == "gone"
    now = ledger.entries.get(entry.uid, entry)
    open_act = now.open_record
    if open_act is not None and open_act.state == "acted" and transitions.is_about(change, open_act.action):
        await executor.finish(open_act, writer, closing=True)
        await ledger.advance(writer, open_act, "gone" if gone else "superseded", detail=outcome.detail)

    def without(now: Entry | None) -> Entry:
        left = now or entry
        begun = left.open_record
        if not gone and begun is not None and transitions.is_about(change, begun.action):
            return left  # Perhaps it is that act's value: whoever settles it will see.
        return (
            transitions.departed(left)
            if gone and change.through is None
            else transitions.taken_over(left, change, detail=outcome.detail)
        )

    await ledger.change(writer, entry.uid, Site.LEDGER_OUTCOME, without)


async def _with_aftercare(
    entry: Entry, found: list[Restored], ledger: ConfigMapLedger, executor: Executor, writer: Writer
) -> list[Restored]:
    """Takes our marks of an act off that was closed by putting it back; what that left undone is said."""
    former = entry.open_record
    records = {one.id: one for one in ledger.entries.get(entry.uid, entry).records}
    closed = records.get(former.id) if former is not None else None
    if closed is None or closed.state != "undone":
        return found
    try:
        await executor.finish(closed, writer, closing=True)
    except (KubeError, AuthorityLostError) as error:
        last = found[-1]
        said = msgspec.structs.replace(last.outcome, detail=f"not followed up: {error}")
        return [*found[:-1], msgspec.structs.replace(last, outcome=said)]
    return found
