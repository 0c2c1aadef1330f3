"""The ledger in ConfigMaps of our own namespace: read whole, written by compare-and-swap.

That swap is the fence for every lever. A new leader stamps every shard with its term; an older leader's next swap then
meets a version that it has not read, reads again, finds a larger term, and has lost its authority.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from autoscaler.act import shards, transitions
from autoscaler.act.contract import Api, AuthorityLostError, Site
from autoscaler.act.history import clean_days, past_acts
from autoscaler.act.shards import Shard, decoder
from autoscaler.act.transitions import RESTORING, InHandError
from autoscaler.act.writer import Writer
from autoscaler.kube.errors import Conflict, NotFound
from autoscaler.model.cluster import PastAct, WorkloadRef
from autoscaler.model.ledger import Actor, Entry, Freed, Record, State
from autoscaler.model.plan import Action
from autoscaler.model.policy import Guards

SHARDS: Final = 8
_TRIES: Final = 3
Change = Callable[[Entry | None], Entry]


class LedgerError(Exception):
    """The ledger does not allow what was asked."""


class LedgerConflictError(LedgerError):
    """Somebody else wrote the shard again and again; think again later."""


class LedgerUnreadableError(LedgerError):
    """An entry or a shard's term cannot be read, or a shard is full."""


class ConfigMapLedger:
    """All entries by workload uid, as they were read or written last."""

    def __init__(
        self, *, namespace: str, now_ms: Callable[[], int], guards: Callable[[], Guards], shards: int = SHARDS
    ) -> None:
        self._namespace = namespace
        self._now_ms = now_ms
        self._guards = guards
        self._shards: list[Shard] = [Shard() for _ in range(shards)]
        self._locks = [asyncio.Lock() for _ in range(shards)]

    @property
    def entries(self) -> dict[str, Entry]:
        """Every readable entry."""
        return {uid: entry for shard in self._shards for uid, entry in shard.entries.items()}

    @property
    def unreadable(self) -> dict[str, str]:
        """Entries that this version cannot read, by workload uid: they are kept and never acted on."""
        return {uid: found.why for shard in self._shards for uid, found in shard.unread.items()}

    @property
    def unreadable_refs(self) -> dict[WorkloadRef, str]:
        """The workloads of such entries, where the text still names one: these are left alone, others are not."""
        return shards.unread_refs(self._shards)

    @property
    def fault(self) -> str:
        """Why nothing may be done at all: a shard whose term cannot be read, or an entry that may be about any workload."""
        faults = [shard.fault for shard in self._shards if shard.fault]
        unnamed = [
            found.why for shard in self._shards for found in shard.unread.values() if found.ref is None
        ]
        return next(iter((*faults, *unnamed)), "")

    @property
    def largest_term(self) -> int:
        """The largest term that any shard carries."""
        return max(0, *(shard.term for shard in self._shards))

    def now_ms(self) -> int:
        """The time by which it is kept."""
        return self._now_ms()

    def past_acts(self) -> tuple[PastAct, ...]:
        """What cool-downs, back-offs and budgets need to know."""
        return past_acts(self.entries.values(), now_ms=self._now_ms(), unreadable=self.unreadable_refs)

    @property
    def clean_days(self) -> int:
        """Days in a row without harm; none where an entry cannot be read, as it may tell of some."""
        return (
            0 if self.unreadable or self.fault else clean_days(self.entries.values(), now_ms=self._now_ms())
        )

    async def load(self, api: Api) -> None:
        """Reads every shard; one that does not exist is empty."""
        for number, lock in enumerate(self._locks):
            # An answer from before one of our own swaps must not replace what that swap left.
            async with lock:
                self._shards[number] = await self._read(api, number)

    async def take_over(self, writer: Writer) -> None:
        """Stamps every shard with our term, so that an older leader can write none of them any more.

        Raises `AuthorityLostError` where a shard carries a larger one, or ours under another holder.
        """
        for number in range(len(self._shards)):
            await self._swap(writer, number, Site.FENCE, lambda shard: shard.entries)

    async def intend(
        self,
        writer: Writer,
        action: Action,
        *,
        actor: Actor,
        settle_ms: int,
        undoes: str = "",
        held: tuple[Freed, ...] = (),
    ) -> Record:
        """Writes an act down before it is sent; whoever loses the swap must not send it.

        A person's undo closes an accepted act that is not verified yet, in the same swap. Raises `InHandError`,
        `LedgerConflictError`, `LedgerUnreadableError` (also where the shard has no room for another act; putting back
        always has), `AuthorityLostError`, or the transport's errors, after which the act may be written down.
        """
        now_ms = self._now_ms()
        record = Record(
            id=f"{action.id}-{now_ms}",
            action=action,
            state="intended",
            actor=actor,
            intended_ms=now_ms,
            settle_ms=settle_ms,
            term=writer.authority.term,
            undoes=undoes,
            freed=held,
        )
        entry = await self._change(
            writer,
            action.uid,
            Site.LEDGER_INTENT,
            lambda entry: transitions.begin(entry, record),
            most_bytes=None if actor in RESTORING else shards.MAX_BYTES,
        )
        return entry.records[-1]

    async def advance(self, writer: Writer, record: Record, state: State, *, detail: str = "") -> Record:
        """Writes down how an act went on; raises `TransitionError` where it went on otherwise in the meantime."""
        now_ms, guards = self._now_ms(), self._guards()

        def moved(entry: Entry | None) -> Entry:
            if entry is None:
                raise LedgerConflictError(f"the entry of {record.action.target} is no longer in the ledger")
            return transitions.advance(entry, record.id, state, at_ms=now_ms, guards=guards, detail=detail)

        entry = await self.change(writer, record.action.uid, Site.LEDGER_OUTCOME, moved)
        return next(one for one in entry.records if one.id == record.id)

    async def note(self, writer: Writer, uid: str, apply: Change) -> Entry:
        """The same for what is only told: it never takes the room that outcomes and putting back need."""
        return await self._change(writer, uid, Site.LEDGER_OUTCOME, apply, most_bytes=shards.MAX_BYTES)

    async def change(self, writer: Writer, uid: str, site: Site, apply: Change) -> Entry:
        """Changes one entry by compare-and-swap, on whatever is there now."""
        return await self._change(writer, uid, site, apply)

    async def _change(
        self, writer: Writer, uid: str, site: Site, apply: Change, *, most_bytes: int | None = None
    ) -> Entry:
        changed: list[Entry] = []

        def entries_after(shard: Shard) -> Mapping[str, Entry]:
            unread = shard.unread.get(uid)
            if unread is not None:
                raise LedgerUnreadableError(unread.why)
            changed[:] = [apply(shard.entries.get(uid))]
            return {**shard.entries, uid: changed[0]}

        number = shards.number_of(uid, len(self._shards))
        await self._swap(writer, number, site, entries_after, most_bytes=most_bytes)
        return changed[0]

    async def _swap(
        self,
        writer: Writer,
        number: int,
        site: Site,
        entries_after: Callable[[Shard], Mapping[str, Entry]],
        *,
        most_bytes: int | None = None,
    ) -> None:
        async with self._locks[number]:
            for attempt in range(_TRIES):
                if attempt:
                    self._shards[number] = await self._read(writer.api, number)
                shard = self._shards[number]
                term, holder = _stamp(writer, shard)
                texts = self._texts(shard, entries_after(shard), most_bytes)
                request = shards.swap_request(
                    shard, texts, namespace=self._namespace, number=number, term=term, holder=holder
                )
                try:
                    self._shards[number] = shards.shard_of(await writer.send(site, request, decoder))
                except (Conflict, NotFound):
                    continue
                return
        raise LedgerConflictError(f"shard {number} was written by others {_TRIES} times in a row")

    def _texts(self, shard: Shard, entries: Mapping[str, Entry], most_bytes: int | None) -> dict[str, str]:
        now_ms = self._now_ms()
        kept = shards.remembered(entries, now_ms)
        texts = shards.texts_after(shard, kept)
        if shards.size_of(texts) <= shards.MAX_BYTES:
            return texts
        texts = shards.texts_after(shard, shards.shortened(kept, now_ms))
        size = shards.size_of(texts)
        if most_bytes is not None and size > most_bytes:
            raise LedgerUnreadableError(f"a shard of the ledger is full: {size} of {most_bytes} bytes")
        return texts

    async def _read(self, api: Api, number: int) -> Shard:
        try:
            return shards.shard_of(await api.get_json(shards.path_of(self._namespace, number), None, decoder))
        except NotFound:
            return Shard()


def _stamp(writer: Writer, shard: Shard) -> tuple[int, str]:
    """The term and holder to write; a person's command keeps what is there, a leader must find no other leader's.

    A Lease that was deleted counts its terms from the beginning, so the same term under another holder is not ours.
    """
    if shard.fault:
        raise LedgerUnreadableError(shard.fault)
    term, holder = writer.authority.term, writer.authority.holder
    if not term:
        return shard.term, shard.holder
    if shard.term > term or (shard.term == term and shard.holder not in {"", holder}):
        raise AuthorityLostError(f"the ledger belongs to term {shard.term} of {shard.holder}, ours is {term}")
    return term, holder


__all__ = [
    "ConfigMapLedger",
    "InHandError",
    "LedgerConflictError",
    "LedgerError",
    "LedgerUnreadableError",
    "decoder",
]
