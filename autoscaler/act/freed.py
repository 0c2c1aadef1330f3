"""What became of the boards that our acts freed: pure, over the ledger's entries and the snapshot of a cycle.

Boards of one resource on one node are alike, so it is counted and not told apart: as many boards as others have begun to
hold on the node since the act are in use by them, the earliest act's first, and no board is counted for two acts.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from autoscaler.act.transitions import RESTORING
from autoscaler.model.cluster import TERMINAL, NodeRow, PodRow, WorkloadRef
from autoscaler.model.ledger import Entry, Fate, Freed, Record
from autoscaler.model.plan import Action
from autoscaler.model.snapshot import Snapshot

NODES_FOLLOWED: Final = 8
"""Of one act: those with the most boards. An entry of the ledger stays small."""
_SECOND_MS: Final = 1000
"""Times of the API are whole seconds."""
_OPEN: Final[frozenset[Fate]] = frozenset({"waiting", "cordoned"})
_UNDECIDED: Final[frozenset[Fate]] = _OPEN | {"held"}


class _Place(NamedTuple):
    """A node that is followed, where it still exists, and the pods that have a place on it."""

    node: NodeRow | None
    pods: list[PodRow]


class Followed(NamedTuple):
    """The boards of one act, as they are to be written down now."""

    entry: Entry
    record: Record
    freed: tuple[Freed, ...]


def held_before(action: Action, snapshot: Snapshot) -> tuple[Freed, ...]:
    """What the workload holds on each node just before an act; for an eviction only where its pod is."""
    held: Counter[str] = Counter()
    only = {pod.node for pod in snapshot.pods if action.pod is not None and pod.uid == action.pod.uid}
    for pod, boards in _holding(snapshot, action.resource, snapshot.pods):
        if snapshot.workloads[pod.workload].uid == action.uid and (not only or pod.node in only):
            held[pod.node] += boards
    most = sorted(held.items(), key=lambda row: (-row[1], row[0]))[:NODES_FOLLOWED]
    return tuple(Freed(node=name, boards=boards, fate="held") for name, boards in most)


def follow(entries: Iterable[Entry], snapshot: Snapshot, *, within_ms: int) -> Iterator[Followed]:
    """The verified acts of whose boards something else is true now than is written down, the earliest act first."""
    acts = sorted(
        (
            (record.closed_ms, record.id, entry, record)
            for entry in entries
            for record in entry.records
            if record.state == "verified" and record.freed and record.actor not in RESTORING
        ),
        key=lambda act: act[:2],
    )
    due = [
        (entry, record)
        for closed_ms, _id, entry, record in acts
        if closed_ms < snapshot.taken_ms <= closed_ms + within_ms
        and any(row.fate in _UNDECIDED for row in record.freed)
    ]
    if not due:
        return
    places = _places(snapshot, {row.node for _entry, record in due for row in record.freed})
    told: Counter[tuple[str, str, WorkloadRef]] = Counter()
    for _closed_ms, _id, _entry, record in acts:
        for row in record.freed:
            if row.by is not None:
                told[row.node, record.action.resource, row.by] += row.boards
    for entry, record in due:
        freed = tuple(_looked_at(entry, record, snapshot, places, told))
        if freed != record.freed:
            yield Followed(entry, record, freed)


def noted(entry: Entry, record_id: str, freed: tuple[Freed, ...]) -> Entry:
    """The entry with what became of the boards of one act."""
    records = tuple(
        msgspec.structs.replace(one, freed=freed) if one.id == record_id else one for one in entry.records
    )
    return msgspec.structs.replace(entry, records=records)


def boards_by_fate(entries: Iterable[Entry]) -> Counter[Fate]:
    """Boards that verified acts of the ledger freed, by what became of them."""
    found: Counter[Fate] = Counter()
    for entry in entries:
        for record in entry.records:
            for row in record.freed if record.state == "verified" else ():
                if row.fate != "held":
                    found[row.fate] += row.boards
    return found


def _looked_at(
    entry: Entry,
    record: Record,
    snapshot: Snapshot,
    places: dict[str, _Place],
    told: Counter[tuple[str, str, WorkloadRef]],
) -> Iterator[Freed]:
    own, since = _held_on(snapshot, places, entry, record)
    for row in record.freed:
        if row.fate == "held":
            kept = min(own[row.node], row.boards)
            if kept == row.boards:
                continue
            row = Freed(row.node, row.boards - kept, "waiting", kept=kept, at_ms=snapshot.taken_ms)  # noqa: PLW2901 - the same row, now that it is known
        if row.fate not in _OPEN:
            yield row
            continue
        node = places[row.node].node
        if node is None or node.deleting:
            yield _became(row, "node-removed", snapshot.taken_ms)
            continue
        left = row.boards
        takers: list[tuple[WorkloadRef, int, Fate]] = [(entry.ref, own[row.node] - row.kept, "taken-back")]
        takers += [(ref, n, "used") for (name, ref), n in sorted(since.items()) if name == row.node]
        for ref, boards, fate in takers:
            key = (row.node, record.action.resource, ref)
            more = min(left, boards - told[key])
            if more > 0:
                told[key] += more
                left -= more
                yield Freed(row.node, more, fate, by=ref, at_ms=snapshot.taken_ms)
        if left:
            rest = msgspec.structs.replace(row, boards=left)
            yield _became(rest, "cordoned" if node.unschedulable else "waiting", snapshot.taken_ms)


def _became(row: Freed, fate: Fate, at_ms: int) -> Freed:
    return row if row.fate == fate else msgspec.structs.replace(row, fate=fate, at_ms=at_ms)


def _held_on(
    snapshot: Snapshot, places: dict[str, _Place], entry: Entry, record: Record
) -> tuple[Counter[str], Counter[tuple[str, WorkloadRef]]]:
    """What the workload holds on each node, and what pods of others hold that came to a node after the act."""
    own: Counter[str] = Counter()
    since: Counter[tuple[str, WorkloadRef]] = Counter()
    pods = [pod for name in {row.node for row in record.freed} for pod in places[name].pods]
    for pod, boards in _holding(snapshot, record.action.resource, pods):
        workload = snapshot.workloads[pod.workload]
        if workload.uid == entry.uid:
            own[pod.node] += boards
        elif pod.started_ms < 0 or pod.started_ms + _SECOND_MS > record.acted_ms:
            since[pod.node, workload.ref] += boards
    return own, since


def _places(snapshot: Snapshot, names: set[str]) -> dict[str, _Place]:
    """The nodes of these names; the fleet is gone through once, whatever the number of acts."""
    nodes = {row.name: row for row in snapshot.nodes if row.name in names}
    places = {name: _Place(nodes.get(name), []) for name in names}
    for pod in snapshot.pods:
        if pod.node in places:
            places[pod.node].pods.append(pod)
    return places


def _holding(snapshot: Snapshot, resource: str, pods: Iterable[PodRow]) -> Iterator[tuple[PodRow, int]]:
    """Pods that have a place and hold boards of the resource there, and how many."""
    for pod in pods:
        boards = snapshot.shapes[pod.shape].demand.get(resource, 0)
        if pod.node and boards and pod.phase not in TERMINAL:
            yield pod, boards
