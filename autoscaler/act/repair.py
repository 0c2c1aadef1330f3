"""Half-done acts: what a crash, a lost answer or a lost lease left open is settled by looking at the object.

An act that the object shows has happened and is followed up. One that it does not show is dropped, but only once no
request of it can be under way any more.
"""

from typing import Final, Literal

import msgspec

from autoscaler.act.executor import Executor
from autoscaler.act.ledger import ConfigMapLedger
from autoscaler.act.writer import Writer
from autoscaler.model.ledger import Record

_End = Literal["acted", "dropped", "superseded", "gone"]
Settled = _End | Literal["waiting"]
MARGIN_MS: Final = 5_000
"""On top of the record's own limit: clocks of leaders differ, and what is seen late was sent in time."""


class Repair(msgspec.Struct, frozen=True):
    """What was found of one record."""

    record: Record
    settled: Settled
    detail: str = ""


async def settle(
    record: Record, ledger: ConfigMapLedger, executor: Executor, writer: Writer, *, now_ms: int
) -> Repair:
    """Settles an `intended` record, or repeats what follows an `acted` one."""
    if record.state == "acted":
        await executor.finish(record, writer)
        return Repair(record, "acted")
    state, detail = await _look(record, writer)
    if state is None:
        if now_ms <= record.settle_ms + MARGIN_MS:
            return Repair(record, "waiting", "its request may still be under way")
        state, detail = "dropped", "it was never carried out"
    if state != "acted":
        # Before it is closed: a closed record is not looked at again.
        await executor.abandon(record, writer)
    record = await ledger.advance(writer, record, state, detail=detail)
    if state == "acted":
        await executor.finish(record, writer)
    return Repair(record, state, detail)


async def _look(record: Record, writer: Writer) -> tuple[_End | None, str]:
    """Where the live object says that the act is; None where it shows the state before."""
    action = record.action
    if action.lever == "evict":
        if action.pod is None:
            return "dropped", "it names no pod"
        pod = await writer.pod(action.pod)
        happened = pod is None or pod.deleting
        return ("acted", "the pod has gone") if happened else (None, "")
    live = await writer.written(action)
    if live is None:
        ref, uid = action.written
        return "gone", f"no {ref.kind} {ref} of uid {uid}"
    value = live.value(action.lever, resource=action.resource, container=action.container)
    if value == action.after and live.own_entries:
        return "acted", "found done"
    if value == action.after:
        # Our entry in `managedFields` goes only after the act is written down as done.
        return "superseded", f"it is at {value}, and that was set by somebody else"
    if value == action.before:
        return None, ""
    return "superseded", f"it is at {value}"
