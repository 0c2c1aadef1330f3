"""Carries out one action: look again, ask again, rehearse, write it down, send it, write down what came of it.

An act is sent once. A conflict is never tried again here: the world is not the one that was judged. Whatever the answer
leaves open stays `intended` in the ledger, and the next look at the object settles it.
"""

import asyncio
from collections.abc import Callable
from typing import Final
from weakref import WeakValueDictionary

import msgspec
from aiolimiter import AsyncLimiter

from autoscaler.act.answers import classify
from autoscaler.act.contract import Outcome, Recheck, Site
from autoscaler.act.ledger import ConfigMapLedger, InHandError, LedgerConflictError, LedgerUnreadableError
from autoscaler.act.live import LiveWorkload, live_workload, workload_decoder
from autoscaler.act.requests import (
    DELETION_COST,
    NoRequestError,
    Request,
    bears_our_cost,
    change_request,
    cost_request,
    disown_request,
    evict_request,
    nominate_request,
)
from autoscaler.act.transitions import RESTORING
from autoscaler.act.writer import REQUEST_S, Writer
from autoscaler.kube.errors import Conflict, Invalid, KubeError, NotFound
from autoscaler.kube.wire import Present
from autoscaler.model.ledger import Actor, Record, State
from autoscaler.model.plan import Action, Refusal
from autoscaler.model.reasons import Reason

SETTLE_MS: Final = round(3 * REQUEST_S * 1000)
"""A request that was sent in time cannot be under way any more: its own limit, with room for a slow server."""
ACTS_PER_MINUTE: Final = 30
_DISOWN_TRIES: Final = 5
_any = msgspec.json.Decoder(Present)


class Executor:
    """Carries out actions, one at a time for each workload."""

    def __init__(
        self, ledger: ConfigMapLedger, *, now_ms: Callable[[], int], acts_per_minute: float = ACTS_PER_MINUTE
    ) -> None:
        self._ledger = ledger
        self._now_ms = now_ms
        self._limiter = AsyncLimiter(acts_per_minute, 60)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def execute(
        self, action: Action, writer: Writer, *, actor: Actor, recheck: Recheck | None, undoes: str = ""
    ) -> Outcome:
        """How it ended; raises `AuthorityLostError` as soon as nothing may be sent any more.

        `recheck` is None only for what puts back. Errors of the transport become outcomes.
        """
        lock = self._locks.setdefault(action.uid, asyncio.Lock())
        async with lock:
            await self._limiter.acquire()
            try:
                if action.lever == "evict":
                    return await self._evict(action, writer, actor=actor, recheck=recheck)
                return await self._change(action, writer, actor=actor, recheck=recheck, undoes=undoes)
            except NoRequestError as error:
                return Outcome("refused", str(error), Reason.NO_LEVER)
            except InHandError as error:
                return Outcome("refused", str(error), Reason.COOLDOWN)
            except LedgerUnreadableError as error:
                return Outcome("refused", str(error), Reason.LEDGER_UNREADABLE)
            except LedgerConflictError as error:
                return Outcome("conflict", str(error))
            except KubeError as error:
                # Before the intent was written nothing was sent, so even an answer that never came changed nothing.
                return _nothing_taken(error)

    async def finish(self, record: Record, writer: Writer, *, closing: bool = False) -> None:
        """What follows an accepted change; safe to repeat. `closing` is for an act whose end is known.

        A deletion cost stays until then: the ReplicaSet's controller reads it some time after the replicas changed.
        """
        action = record.action
        if action.lever != "evict":
            await self._disown(action, writer)
        if closing:
            await self._clear_costs(action, writer)

    async def abandon(self, record: Record, writer: Writer) -> None:
        """Takes back what prepared an act that did not happen, or a seat that was not taken; safe to repeat."""
        action = record.action
        await self._clear_costs(action, writer)
        if action.seat is not None:
            live = await writer.pod(action.seat.pod)
            if live is not None and not live.node and live.nominated == action.seat.node:
                await self._send_to_pod(writer, Site.UNNOMINATE, nominate_request(action.seat.pod, ""))

    async def _change(
        self, action: Action, writer: Writer, *, actor: Actor, recheck: Recheck | None, undoes: str
    ) -> Outcome:
        live = await writer.workload(action.target)
        unfit = _unfit(action, live, restoring=actor in RESTORING)
        if unfit is not None or live is None:
            return unfit or Outcome("gone")
        if recheck is not None:
            again = await recheck(action)
            if isinstance(again, Refusal):
                return Outcome("refused", again.evidence, again.reason)
            if again.resource_version and again.resource_version != live.resource_version:
                seen = f"it was judged at version {again.resource_version} and is at {live.resource_version}"
                return Outcome("conflict", seen)
            action = again
        request = change_request(action, live)
        rehearsal = await writer.send(Site.DRY_RUN, request.rehearsed(), workload_decoder)
        shown = live_workload(action.target, rehearsal).value(
            action.lever, resource=action.resource, container=action.container
        )
        if shown != action.after:
            return Outcome("refused", f"admission makes {shown} of {action.after}", Reason.OTHER_OWNER)
        record = await self._intend(action, writer, actor=actor, undoes=undoes)
        if action.lever == "scale" and action.target.kind == "Deployment" and actor not in RESTORING:
            refused = await self._lower_costs(record, writer)
            if refused is not None:
                return refused
        return await self._act(record, writer, Site.CHANGE, request)

    async def _evict(
        self, action: Action, writer: Writer, *, actor: Actor, recheck: Recheck | None
    ) -> Outcome:
        pod = action.pod
        if pod is None:
            raise NoRequestError("an eviction names no pod")
        live = await writer.pod(pod)
        if live is None or live.deleting:
            return Outcome("gone", f"pod {pod} is no longer there")
        if recheck is not None:
            again = await recheck(action)
            if isinstance(again, Refusal):
                return Outcome("refused", again.evidence, again.reason)
            action = again
        request = evict_request(pod)
        await writer.send(Site.DRY_RUN, request.rehearsed(), _any)
        if action.seat is not None and await writer.pod(action.seat.pod) is None:
            return Outcome("gone", f"pod {action.seat.pod} no longer waits")
        record = await self._intend(action, writer, actor=actor, undoes="")
        if action.seat is not None:
            refused = await self._nominate(record, writer)
            if refused is not None:
                return refused
        return await self._act(record, writer, Site.EVICT, request)

    async def _intend(self, action: Action, writer: Writer, *, actor: Actor, undoes: str) -> Record:
        settle_ms = self._now_ms() + SETTLE_MS
        return await self._ledger.intend(writer, action, actor=actor, settle_ms=settle_ms, undoes=undoes)

    async def _act(self, record: Record, writer: Writer, site: Site, request: Request) -> Outcome:
        """Sends what was written down and writes down what came of it."""
        try:
            await writer.send(site, request, _any)
        except KubeError as error:
            found = classify(error, record.action.lever)
            if found.kind == "unknown":
                return msgspec.structs.replace(found, record=record)
            return await self._drop(record, writer, found)
        try:
            record = await self._ledger.advance(writer, record, "acted")
            await self.finish(record, writer)
            if record.actor == "undo" and not _may_get_stuck(record.action):
                record = await self._ledger.advance(writer, record, "verified", detail="put back")
                await self.finish(record, writer, closing=True)
        except (KubeError, LedgerConflictError) as error:
            # The change is made; the next look at the object writes it down and follows it up.
            return Outcome("unknown", f"accepted, and not followed up yet: {error}", record=record)
        return Outcome("done", record=record)

    async def _drop(self, record: Record, writer: Writer, found: Outcome) -> Outcome:
        state: State = "gone" if found.kind == "gone" else "dropped"
        try:
            record = await self._ledger.advance(writer, record, state, detail=found.detail[:300])
            await self.abandon(record, writer)
        except (KubeError, LedgerConflictError) as error:
            detail = f"{found.detail}; not written down yet: {error}"
            return msgspec.structs.replace(found, detail=detail, record=record)
        return msgspec.structs.replace(found, record=record)

    async def _nominate(self, record: Record, writer: Writer) -> Outcome | None:
        """Keeps the seat for the waiting pod before anybody is asked to leave it; the outcome if that is refused."""
        seat = record.action.seat
        if seat is None:
            return None
        try:
            live = await writer.pod(seat.pod)
            if live is None or live.node:
                where = "is gone" if live is None else f"runs on {live.node}"
                return await self._drop(record, writer, Outcome("conflict", f"pod {seat.pod} {where}"))
            if live.nominated != seat.node:
                await writer.send(Site.NOMINATE, nominate_request(seat.pod, seat.node), _any)
        except KubeError as error:
            return await self._drop(record, writer, _nothing_taken(error))
        return None

    async def _lower_costs(self, record: Record, writer: Writer) -> Outcome | None:
        """Marks who should go, an owner's own cost aside; the outcome if that is refused."""
        try:
            for pod in record.action.leaving:
                live = await writer.pod(pod)
                if live is not None and DELETION_COST not in live.annotations:
                    await self._send_to_pod(writer, Site.DELETION_COST, cost_request(pod, lowered=True))
        except KubeError as error:
            return await self._drop(record, writer, _nothing_taken(error))
        return None

    async def _clear_costs(self, action: Action, writer: Writer) -> None:
        for pod in action.leaving:
            live = await writer.pod(pod)
            if live is not None and not live.deleting and bears_our_cost(live):
                await self._send_to_pod(writer, Site.CLEAR_DELETION_COST, cost_request(pod, lowered=False))

    async def _send_to_pod(self, writer: Writer, site: Site, request: Request) -> None:
        """A pod that has gone meanwhile needs no mark."""
        try:
            await writer.send(site, request, _any)
        except (NotFound, Conflict):
            return
        except Invalid as error:
            if "uid" not in error.message.lower():
                raise

    async def _disown(self, action: Action, writer: Writer) -> None:
        """Takes our entries out of `managedFields`; the object may change under it a few times."""
        for _ in range(_DISOWN_TRIES):
            live = await writer.workload(action.target)
            if live is None or live.uid != action.uid:
                return
            request = disown_request(action, live)
            if request is None:
                return
            try:
                await writer.send(Site.DISOWN, request, _any)
            except (Conflict, Invalid):
                continue
            except NotFound:
                return


def _may_get_stuck(action: Action) -> bool:
    """A StatefulSet's pod that is pending at the former revision stays so by itself: somebody has to look after it."""
    return action.lever == "template" and action.target.kind == "StatefulSet"


def _nothing_taken(error: KubeError) -> Outcome:
    """The outcome of an act that failed at its preparation: nothing was taken, whatever became of that request."""
    found = classify(error, "scale")
    return msgspec.structs.replace(found, kind="refused") if found.kind == "unknown" else found


def _unfit(action: Action, live: LiveWorkload | None, *, restoring: bool) -> Outcome | None:
    """Why the object as it is cannot be changed as planned; None where it can."""
    if live is None or live.uid != action.uid or live.deleting:
        return Outcome("gone", f"{action.target.kind} {action.target} of uid {action.uid} is no longer there")
    value = live.value(action.lever, resource=action.resource, container=action.container)
    if value == action.before:
        return None
    seen = f"it is at {value}, the change starts from {action.before}"
    return Outcome("refused", seen, Reason.SUPERSEDED) if restoring else Outcome("conflict", seen)
