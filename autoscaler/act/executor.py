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

from autoscaler.act import aftercare
from autoscaler.act.answers import classify, not_prepared, nothing_taken
from autoscaler.act.contract import AuthorityLostError, Outcome, Recheck
from autoscaler.act.ledger import (
    ConfigMapLedger,
    InHandError,
    LedgerConflictError,
    LedgerError,
    LedgerUnreadableError,
)
from autoscaler.act.preparation import Prepared, prepare
from autoscaler.act.requests import NoRequestError
from autoscaler.act.seats import is_paid_for
from autoscaler.act.transitions import RESTORING, TransitionError
from autoscaler.act.writer import REQUEST_S, Writer
from autoscaler.kube.errors import KubeError
from autoscaler.model.ledger import Actor, Freed, Record, State
from autoscaler.model.plan import Action
from autoscaler.model.reasons import Reason

SETTLE_MS: Final = round(3 * REQUEST_S * 1000)
"""A request that was sent in time cannot be under way any more: its own limit, with room for a slow server."""
ACTS_PER_MINUTE: Final = 30
_NOT_WRITTEN = (KubeError, LedgerError, TransitionError)
"""What writing an outcome down may end in."""


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
        self,
        action: Action,
        writer: Writer,
        *,
        actor: Actor,
        recheck: Recheck | None,
        undoes: str = "",
        held: tuple[Freed, ...] = (),
    ) -> Outcome:
        """How it ended; raises `AuthorityLostError` as soon as nothing may be sent any more, before the act is `done`.

        `recheck` is None only for what puts back. `held` is what the workload holds now, to be followed later. Errors of the transport become outcomes.
        """
        lock = self._locks.setdefault(action.uid, asyncio.Lock())
        async with lock:
            # Before the object is read: what waits its turn must not act on an old look.
            await self._limiter.acquire()
            writer.authority.remaining_s()
            try:
                found = await prepare(action, writer, restoring=actor in RESTORING, recheck=recheck)
                if isinstance(found, Outcome):
                    return found
                record = await self._intend(found, writer, actor=actor, undoes=undoes, held=held)
            except NoRequestError as error:
                return Outcome("refused", str(error), Reason.NO_LEVER)
            except InHandError as error:
                return Outcome("refused", str(error), Reason.COOLDOWN)
            except LedgerUnreadableError as error:
                return Outcome("refused", str(error), Reason.LEDGER_UNREADABLE)
            except LedgerConflictError as error:
                return Outcome("conflict", str(error))
            except KubeError as error:
                return nothing_taken(error)
            return await self._carry_out(found, record, writer)

    async def finish(self, record: Record, writer: Writer, *, closing: bool = False) -> None:
        """What follows an accepted change; safe to repeat. `closing` is for an act whose end is known.

        A deletion cost stays until then: the ReplicaSet's controller reads it some time after the replicas changed.
        """
        if record.action.lever != "evict":
            await aftercare.disown(record.action, writer)
        if closing:
            await aftercare.clear_costs(record.action.leaving, writer)

    async def abandon(self, record: Record, writer: Writer) -> None:
        """Takes back what prepared an act that did not happen; safe to repeat. A seat that others left for is kept."""
        await aftercare.clear_costs(record.action.leaving, writer)
        seat = record.action.seat
        if seat is not None and not is_paid_for(self._ledger.entries.values(), record):
            await aftercare.give_up_seat(seat, writer)

    async def _intend(
        self, prepared: Prepared, writer: Writer, *, actor: Actor, undoes: str, held: tuple[Freed, ...]
    ) -> Record:
        settle_ms = self._now_ms() + SETTLE_MS * (1 + len(prepared.before))
        return await self._ledger.intend(
            writer, prepared.action, actor=actor, settle_ms=settle_ms, undoes=undoes, held=held
        )

    async def _carry_out(self, prepared: Prepared, record: Record, writer: Writer) -> Outcome:
        """Sends what was written down and writes down what came of it."""
        try:
            for step in prepared.before:
                await writer.send(step.site, step.request)
        except KubeError as error:
            return await self._drop(record, writer, not_prepared(error))
        try:
            await writer.send(prepared.act.site, prepared.act.request)
        except KubeError as error:
            found = classify(error)
            if found.kind == "unknown":
                return msgspec.structs.replace(found, record=record)
            return await self._drop(record, writer, found)
        return await self._accepted(record, writer)

    async def _accepted(self, record: Record, writer: Writer) -> Outcome:
        try:
            record = await self._ledger.advance(writer, record, "acted")
        except _NOT_WRITTEN as error:
            return Outcome("unknown", f"accepted, and not written down yet: {error}", record=record)
        nothing_to_prove = record.actor == "undo" and not may_get_stuck(record.action)
        try:
            # Clean-up comes first: a closed record is not looked at again.
            await self.finish(record, writer, closing=nothing_to_prove)
            if nothing_to_prove:
                record = await self._ledger.advance(writer, record, "verified", detail="put back")
        except (*_NOT_WRITTEN, AuthorityLostError) as error:
            # It is done and written down; whoever leads next follows it up.
            return Outcome("done", f"not followed up yet: {error}", record=record)
        return Outcome("done", record=record)

    async def _drop(self, record: Record, writer: Writer, found: Outcome) -> Outcome:
        """Cleans up first: a closed record is not looked at again."""
        state: State = "gone" if found.kind == "gone" else "dropped"
        try:
            await self.abandon(record, writer)
            record = await self._ledger.advance(writer, record, state, detail=found.detail[:300])
        except _NOT_WRITTEN as error:
            detail = f"{found.detail}; not written down yet: {error}"
            return msgspec.structs.replace(found, detail=detail, record=record)
        return msgspec.structs.replace(found, record=record)


def may_get_stuck(action: Action) -> bool:
    """A StatefulSet's pod that is pending at the former revision stays so by itself: somebody has to look after it."""
    return action.lever == "template" and action.target.kind == "StatefulSet"
