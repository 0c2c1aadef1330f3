"""One ConfigMap of the ledger: pure, and the only place that knows its form.

An entry is a text under its workload's uid. A text that this version cannot read is carried along byte for byte.
"""

import zlib
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec

from autoscaler.act import transitions
from autoscaler.act.requests import Request
from autoscaler.kube.errors import UNREADABLE
from autoscaler.kube.wire import Wire
from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.ledger import VERSION, Entry

NAME: Final = "gpu-autoscaler-ledger"
LABELS: Final = {"app.kubernetes.io/name": "gpu-autoscaler"}
TERM: Final = "gpu-autoscaler.io/ledger-term"
HOLDER: Final = "gpu-autoscaler.io/ledger-holder"
MAX_BYTES: Final = 900 * 1024
"""The API server takes 1 MiB of data: what is left is for outcomes and for putting back."""
_TERM_DIGITS: Final = 18


class _Meta(Wire):
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None
    labels: dict[str, str] | None = None


class ConfigMap(Wire):
    """A ConfigMap as far as it is read."""

    metadata: _Meta = msgspec.field(default_factory=_Meta)
    data: dict[str, str] | None = None


decoder = msgspec.json.Decoder(ConfigMap)
_entry_decoder = msgspec.json.Decoder(Entry)


class _Named(msgspec.Struct):
    ref: WorkloadRef


_named_decoder = msgspec.json.Decoder(_Named)


class Unread(msgspec.Struct, frozen=True):
    """An entry that cannot be read: why, and whose it is as far as its text still says so."""

    why: str
    ref: WorkloadRef | None = None


class Shard(msgspec.Struct, frozen=True):
    """One ConfigMap as it was read or written last; `fault` is why it must not be written at all."""

    version: str = ""
    term: int = 0
    holder: str = ""
    fault: str = ""
    texts: Mapping[str, str] = {}
    entries: Mapping[str, Entry] = {}
    unread: Mapping[str, Unread] = {}
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


def number_of(uid: str, shards: int) -> int:
    """Which shard an entry is in, the same in every process."""
    return zlib.crc32(uid.encode()) % shards


def shard_of(item: ConfigMap) -> Shard:
    """A shard of the answer to a request."""
    texts = item.data or {}
    marks = item.metadata.annotations or {}
    term = _term(marks.get(TERM, "0"))
    read = {uid: read_entry(uid, text) for uid, text in texts.items()}
    return Shard(
        version=item.metadata.resource_version,
        term=-1 if term is None else term,
        holder=marks.get(HOLDER, ""),
        fault=f"{item.metadata.name}: {TERM} is {marks[TERM][:40]!r}, no term" if term is None else "",
        texts=texts,
        entries={uid: found for uid, found in read.items() if isinstance(found, Entry)},
        unread={uid: found for uid, found in read.items() if isinstance(found, Unread)},
        labels=item.metadata.labels or {},
        annotations=marks,
    )


def read_entry(uid: str, text: str) -> Entry | Unread:
    """The entry, or why it must not be relied on: another version or form, or one that contradicts itself."""
    try:
        entry = _entry_decoder.decode(text)
    except UNREADABLE:
        return Unread(f"ledger entry {uid} has a form that this version does not know", _ref_in(text))
    if entry.version != VERSION:
        return Unread(f"ledger entry {uid} has version {entry.version}, this one knows {VERSION}", entry.ref)
    others = [one for one in entry.records if (one.action.uid, one.action.target) != (uid, entry.ref)]
    if entry.uid != uid or others:
        return Unread(f"ledger entry {uid} is about another workload")
    if sum(one.is_open for one in entry.records) > 1:
        return Unread(f"ledger entry {uid} has more than one open act", entry.ref)
    return entry


def _ref_in(text: str) -> WorkloadRef | None:
    try:
        ref = _named_decoder.decode(text).ref
    except UNREADABLE:
        return None
    return ref if ref.kind and ref.name else None


def _term(text: str) -> int | None:
    readable = text.isascii() and text.isdecimal() and len(text) <= _TERM_DIGITS
    return int(text) if readable else None


def texts_after(shard: Shard, entries: Mapping[str, Entry]) -> dict[str, str]:
    """The data with these entries; what is unchanged or cannot be read keeps its bytes."""
    texts = {uid: shard.texts[uid] for uid in shard.unread}
    for uid, entry in entries.items():
        unchanged = shard.entries.get(uid) == entry
        texts[uid] = shard.texts[uid] if unchanged else written(entry)
    return dict(sorted(texts.items()))


def written(entry: Entry) -> str:
    """Deterministic JSON."""
    return msgspec.json.encode(entry, order="deterministic").decode()


def remembered(entries: Mapping[str, Entry], now_ms: int) -> dict[str, Entry]:
    """Without the entries in which nothing can matter any more."""
    return {uid: one for uid, one in entries.items() if not transitions.is_forgettable(one, now_ms)}


def shortened(entries: Mapping[str, Entry], now_ms: int) -> dict[str, Entry]:
    """Without the acts that no cool-down, back-off or budget looks at: what a full shard can do without."""
    return {uid: transitions.without_old_acts(one, now_ms) for uid, one in entries.items()}


def size_of(texts: Mapping[str, str]) -> int:
    """Bytes, as they count against the server's limit."""
    return sum(len(uid.encode()) + len(text.encode()) for uid, text in texts.items())


def path_of(namespace: str, number: int | None = None) -> str:
    """Where a shard is, or where shards are made."""
    folder = f"/api/v1/namespaces/{quote(namespace, safe='')}/configmaps"
    return folder if number is None else f"{folder}/{NAME}-{number}"


def swap_request(
    shard: Shard, texts: Mapping[str, str], *, namespace: str, number: int, term: int, holder: str
) -> Request:
    """Writes a shard on the very version that was read, or makes it; marks of others on it are kept."""
    metadata: dict[str, Any] = {
        "name": f"{NAME}-{number}",
        "namespace": namespace,
        "labels": {**shard.labels, **LABELS},
        "annotations": {**shard.annotations, TERM: str(term), HOLDER: holder},
    }
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": texts}
    if not shard.version:
        return Request("POST", path_of(namespace), body)
    metadata["resourceVersion"] = shard.version
    return Request("PUT", path_of(namespace, number), body)


def unread_refs(all_shards: Iterable[Shard]) -> dict[WorkloadRef, str]:
    """Workloads whose entry cannot be read, and why."""
    return {
        found.ref: found.why
        for shard in all_shards
        for found in shard.unread.values()
        if found.ref is not None
    }
