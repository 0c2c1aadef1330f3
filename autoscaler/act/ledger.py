"""The ledger in ConfigMaps of our own namespace: read whole, written by compare-and-swap.

That swap is the fence for every lever. A new leader stamps every shard with its term; an older leader's next swap then
meets a version that it has not read, reads again, finds a larger term, and has lost its authority.
"""

import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec

from autoscaler.act import transitions
from autoscaler.act.contract import Api, AuthorityLostError, Site
from autoscaler.act.history import past_acts
from autoscaler.act.requests import Request
from autoscaler.act.transitions import InHandError
from autoscaler.act.writer import Writer
from autoscaler.kube.errors import Conflict, NotFound
from autoscaler.kube.wire import Wire
from autoscaler.model.cluster import PastAct
from autoscaler.model.ledger import VERSION, Actor, Entry, Record, State
from autoscaler.model.plan import Action
from autoscaler.model.policy import Guards

SHARDS: Final = 8
NAME: Final = "gpu-autoscaler-ledger"
TERM: Final = "gpu-autoscaler.io/ledger-term"
HOLDER: Final = "gpu-autoscaler.io/ledger-holder"
MAX_BYTES: Final = 900 * 1024
"""The API server takes 1 MiB of ConfigMap."""
_TRIES: Final = 4


class LedgerError(Exception):
    """The ledger does not allow what was asked."""


class LedgerConflictError(LedgerError):
    """Somebody else wrote the shard again and again; think again later."""


class LedgerUnreadableError(LedgerError):
    """An entry cannot be read, or a shard is full."""


class _Meta(Wire):
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class ConfigMap(Wire):
    """A ConfigMap as far as it is read."""

    metadata: _Meta = msgspec.field(default_factory=_Meta)
    data: dict[str, str] | None = None


decoder = msgspec.json.Decoder(ConfigMap)
_entry_decoder = msgspec.json.Decoder(Entry)
Change = Callable[[Entry | None], Entry]


class Shard(msgspec.Struct, frozen=True):
    """One ConfigMap as it was read or written last; `texts` of entries that cannot be read stay as they are."""

    version: str = ""
    term: int = 0
    holder: str = ""
    texts: Mapping[str, str] = {}
    entries: Mapping[str, Entry] = {}


class ConfigMapLedger:
    """All entries by workload uid, as they were read or written last."""

    def __init__(
        self, *, namespace: str, now_ms: Callable[[], int], guards: Callable[[], Guards], shards: int = SHARDS
    ) -> None:
        self._namespace = namespace
        self._now_ms = now_ms
        self._guards = guards
        self._shards: list[Shard] = [Shard() for _ in range(shards)]

    @property
    def entries(self) -> dict[str, Entry]:
        """Every readable entry."""
        return {uid: entry for shard in self._shards for uid, entry in shard.entries.items()}

    @property
    def unreadable(self) -> dict[str, str]:
        """Entries that this version cannot read, by workload uid: they are kept and never acted on."""
        return {
            uid: f"entry {uid} has a form that this version does not know"
            for shard in self._shards
            for uid in shard.texts
            if uid not in shard.entries
        }

    @property
    def fault(self) -> str:
        """Why nothing may be done; an entry that cannot be read may be about any workload."""
        return next(iter(self.unreadable.values()), "")

    @property
    def largest_term(self) -> int:
        """The largest term that any shard carries."""
        return max(shard.term for shard in self._shards)

    def past_acts(self) -> tuple[PastAct, ...]:
        """What cool-downs, back-offs and budgets need to know."""
        return past_acts(self.entries.values(), now_ms=self._now_ms())

    async def load(self, api: Api) -> None:
        """Reads every shard; one that does not exist is empty."""
        for number in range(len(self._shards)):
            self._shards[number] = await self._read(api, number)

    async def take_over(self, writer: Writer) -> None:
        """Stamps every shard with our term, so that an older leader can write none of them any more.

        Raises `AuthorityLostError` where a shard carries a larger one.
        """
        for number in range(len(self._shards)):
            await self._swap(writer, number, Site.FENCE, lambda shard: shard.entries)

    async def intend(
        self, writer: Writer, action: Action, *, actor: Actor, settle_ms: int, undoes: str = ""
    ) -> Record:
        """Writes an act down before it is sent; whoever loses the swap must not send it."""
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
        )
        await self.change(
            writer, action.uid, Site.LEDGER_INTENT, lambda entry: transitions.begin(entry, record)
        )
        return record

    async def advance(self, writer: Writer, record: Record, state: State, *, detail: str = "") -> Record:
        """Writes down how an act went on."""
        now_ms, guards = self._now_ms(), self._guards()

        def moved(entry: Entry | None) -> Entry:
            if entry is None:
                raise LedgerConflictError(f"the entry of {record.action.target} is no longer in the ledger")
            return transitions.advance(entry, record.id, state, at_ms=now_ms, guards=guards, detail=detail)

        entry = await self.change(writer, record.action.uid, Site.LEDGER_OUTCOME, moved)
        return next(one for one in entry.records if one.id == record.id)

    async def change(self, writer: Writer, uid: str, site: Site, apply: Change) -> Entry:
        """Changes one entry by compare-and-swap, on whatever is there now."""
        changed: list[Entry] = []

        def entries_after(shard: Shard) -> Mapping[str, Entry]:
            if uid in shard.texts and uid not in shard.entries:
                raise LedgerUnreadableError(f"the entry of {uid} has a form that this version does not know")
            changed[:] = [apply(shard.entries.get(uid))]
            return {**shard.entries, uid: changed[0]}

        await self._swap(writer, self._number(uid), site, entries_after)
        return changed[0]

    def _number(self, uid: str) -> int:
        return zlib.crc32(uid.encode()) % len(self._shards)

    async def _swap(
        self, writer: Writer, number: int, site: Site, entries_after: Callable[[Shard], Mapping[str, Entry]]
    ) -> None:
        for attempt in range(_TRIES):
            if attempt:
                self._shards[number] = await self._read(writer.api, number)
            shard = self._shards[number]
            term = self._term(writer, shard)
            entries = self._remembered(entries_after(shard))
            texts = self._texts(shard, entries)
            try:
                answer = await writer.send(
                    site, self._request(number, shard, texts, term, writer.authority.holder), decoder
                )
            except (Conflict, NotFound):
                continue
            self._shards[number] = _shard(answer)
            return
        raise LedgerConflictError(f"shard {number} was written by others {_TRIES} times in a row")

    def _term(self, writer: Writer, shard: Shard) -> int:
        """A person's command keeps the term that is there; a leader must not find a larger one."""
        term = writer.authority.term
        if term and shard.term > term:
            raise AuthorityLostError(
                f"the ledger belongs to term {shard.term} of {shard.holder}, ours is {term}"
            )
        return term or shard.term

    def _remembered(self, entries: Mapping[str, Entry]) -> dict[str, Entry]:
        now_ms = self._now_ms()
        return {uid: one for uid, one in entries.items() if not transitions.is_forgettable(one, now_ms)}

    def _texts(self, shard: Shard, entries: Mapping[str, Entry]) -> dict[str, str]:
        kept = {uid: text for uid, text in shard.texts.items() if uid not in shard.entries}
        kept |= {
            uid: shard.texts[uid]
            if shard.entries.get(uid) == entry
            else msgspec.json.encode(entry, order="deterministic").decode()
            for uid, entry in entries.items()
        }
        size = sum(len(uid) + len(text.encode()) for uid, text in kept.items())
        if size > MAX_BYTES:
            raise LedgerUnreadableError(f"a shard of the ledger is full: {size} of {MAX_BYTES} bytes")
        return dict(sorted(kept.items()))

    def _path(self, number: int | None) -> str:
        base = f"/api/v1/namespaces/{quote(self._namespace, safe='')}/configmaps"
        return base if number is None else f"{base}/{NAME}-{number}"

    def _request(
        self, number: int, shard: Shard, texts: Mapping[str, str], term: int, holder: str
    ) -> Request:
        metadata: dict[str, Any] = {
            "name": f"{NAME}-{number}",
            "namespace": self._namespace,
            "labels": {"app.kubernetes.io/name": "gpu-autoscaler"},
            "annotations": {TERM: str(term), HOLDER: holder},
        }
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": texts}
        if not shard.version:
            return Request("POST", self._path(None), body)
        metadata["resourceVersion"] = shard.version
        return Request("PUT", self._path(number), body)

    async def _read(self, api: Api, number: int) -> Shard:
        try:
            return _shard(await api.get_json(self._path(number), None, decoder))
        except NotFound:
            return Shard()


def _shard(item: ConfigMap) -> Shard:
    texts = item.data or {}
    marks = item.metadata.annotations or {}
    term = marks.get(TERM, "0")
    read = {uid: _entry(text) for uid, text in texts.items()}
    return Shard(
        version=item.metadata.resource_version,
        term=int(term) if term.isascii() and term.isdecimal() else 0,
        holder=marks.get(HOLDER, ""),
        texts=texts,
        entries={uid: entry for uid, entry in read.items() if entry is not None and entry.uid == uid},
    )


def _entry(text: str) -> Entry | None:
    """The entry, or None for a text of another version or form."""
    try:
        entry = _entry_decoder.decode(text)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None
    return entry if entry.version == VERSION else None


__all__ = [
    "ConfigMapLedger",
    "InHandError",
    "LedgerConflictError",
    "LedgerError",
    "LedgerUnreadableError",
]
