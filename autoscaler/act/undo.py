"""Putting back: what our own acts changed becomes actions of its own, under the same ledger and the same care.

It acts only where the live value is the one that we set; whatever else is there is its owner's and stays.
"""

import hashlib
from collections.abc import Sequence
from typing import Literal

import msgspec

from autoscaler.act import transitions
from autoscaler.act.contract import Outcome, Site
from autoscaler.act.executor import Executor
from autoscaler.act.ledger import ConfigMapLedger
from autoscaler.act.requests import evict_request
from autoscaler.act.writer import Writer
from autoscaler.kube.errors import KubeError, NotFound
from autoscaler.kube.wire import Present
from autoscaler.model.ledger import Change, Entry, Record
from autoscaler.model.plan import Action, Method, PodRef
from autoscaler.model.reasons import Reason

Restorer = Literal["revert", "undo"]
_any = msgspec.json.Decoder(Present)


class Restored(msgspec.Struct, frozen=True):
    """What became of one change of ours."""

    entry: Entry
    change: Change
    outcome: Outcome


async def undo_entry(
    entry: Entry, ledger: ConfigMapLedger, executor: Executor, writer: Writer, *, actor: Restorer = "undo"
) -> list[Restored]:
    """Puts back every value of ours in one workload; an act that is not verified yet is closed first.

    A live value that is no longer ours ends with `Superseded`, and is no longer counted as ours.
    """
    await _close_open_act(entry, ledger, executor, writer)
    found = []
    for change in _sizes_before_counts(entry):
        action = reverse_action(entry, change, actor=actor)
        undoes = entry.records[-1].id if entry.records else ""
        outcome = await executor.execute(action, writer, actor=actor, recheck=None, undoes=undoes)
        if outcome.kind == "gone" or outcome.reason is Reason.SUPERSEDED:
            await _let_go(entry, change, ledger, writer, detail=outcome.detail)
        found.append(Restored(entry, change, outcome))
    return found


async def undo_all(ledger: ConfigMapLedger, executor: Executor, writer: Writer) -> list[Restored]:
    """Puts back everything that is ours."""
    found = []
    for uid in sorted(ledger.entries):
        entry = ledger.entries[uid]
        if entry.changes:
            found += await undo_entry(entry, ledger, executor, writer)
    return found


async def revert(
    record: Record, ledger: ConfigMapLedger, executor: Executor, writer: Writer
) -> Outcome | None:
    """Puts back what a failed act changed, to the value before that very act; None where it changed nothing.

    A StatefulSet's pod that is stuck at the reverted revision stays there by itself, so it is evicted.
    """
    entry = ledger.entries.get(record.action.uid)
    change = transitions.change_of(entry, record.action) if entry is not None else None
    if entry is None or change is None or change.current != record.action.after:
        return None
    step = msgspec.structs.replace(change, original=record.action.before)
    action = reverse_action(entry, step, actor="revert")
    return await executor.execute(action, writer, actor="revert", recheck=None, undoes=record.id)


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
    what = f"{change.resource} of container {change.container}" if change.container else "replicas"
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
        because=f"{what}: {change.original} was there before we set {change.current}",
    )


def _method(entry: Entry, change: Change) -> Method:
    """The method of the latest act on that field."""
    acts = [one.action for one in entry.records if transitions.is_about(change, one.action)]
    return acts[-1].method if acts else "right-size"


def _sizes_before_counts(entry: Entry) -> list[Change]:
    return sorted(entry.changes, key=lambda change: (change.lever != "template", change.container))


async def _close_open_act(entry: Entry, ledger: ConfigMapLedger, executor: Executor, writer: Writer) -> None:
    record = entry.open_record
    if record is not None and record.state == "acted":
        closed = await ledger.advance(writer, record, "undone", detail="put back before it was verified")
        await executor.finish(closed, writer, closing=True)


async def _let_go(
    entry: Entry, change: Change, ledger: ConfigMapLedger, writer: Writer, *, detail: str
) -> None:
    def without(now: Entry | None) -> Entry:
        return transitions.taken_over(now or entry, change, detail=detail[:300])

    await ledger.change(writer, entry.uid, Site.LEDGER_OUTCOME, without)
