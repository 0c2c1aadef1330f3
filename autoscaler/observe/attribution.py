"""Which pod each series belongs to: by namespace and name, uid where the exporter says it, and time.

A wrong owner is worse than none, so every doubt ends in "nobody": names that match two pods, exporters' own labels,
pods that hold nothing, series that ended before the pod began.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from autoscaler.model.cluster import PodRow
from autoscaler.model.shapes import PodShape
from autoscaler.observe.hosts import Hosts
from autoscaler.observe.pods import FINISHED, Entry
from autoscaler.observe.series import Floats, Identity, ProfileSeries

UNOWNED: Final = -1
"""No owner label, or the labels of the exporter itself."""
GHOST: Final = -2
"""A pod that the API server does not know, or an earlier one of the same name."""
FINISHED_POD: Final = -3
"""A pod that has ended."""
AMBIGUOUS: Final = -4
"""A name without namespace that several pods with accelerators bear."""
MISFIT: Final = -5
"""A pod whose neighbour has the container that is named, or that runs on another node: the exporter is mistaken."""

Ints: TypeAlias = npt.NDArray[np.int64]


_ENDED: Final = frozenset({"Succeeded", "Failed"})
_SETTLING_MS: Final = 120_000
"""A pod that is younger may hold a board of which no sample is there yet."""


class Held(msgspec.Struct, frozen=True):
    """Boards that a pod on a node holds, and since when it runs; -1 where it has not started."""

    node: str
    boards: int
    since_ms: int


class Roster(msgspec.Struct, frozen=True):
    """The pods of a snapshot, as series are looked up in them. `starts_ms` is start, or creation before it.

    `device_owners` are pods (namespace, name) by board, from resource claims. `held` are the boards that pods hold on
    nodes that do not say whether what they count are whole boards. `containers` are the names of each pod's containers,
    `neighbours` those of all pods of a node.
    """

    pods: tuple[PodRow, ...]
    index: Mapping[str, int]
    by_name: Mapping[str, tuple[int, ...]]
    everyone: Mapping[str, Entry]
    starts_ms: Ints
    device_owners: Mapping[str, tuple[str, str]] = {}
    held: tuple[Held, ...] = ()
    containers: tuple[frozenset[str], ...] = ()
    neighbours: Mapping[str, frozenset[str]] = {}

    @classmethod
    def of(
        cls,
        pods: tuple[PodRow, ...],
        everyone: Mapping[str, Entry],
        *,
        device_owners: Mapping[str, tuple[str, str]] | None = None,
        held: tuple[Held, ...] = (),
        containers: tuple[frozenset[str], ...] = (),
    ) -> "Roster":
        """The roster of sorted rows and the store's table of all pods."""
        by_name: dict[str, tuple[int, ...]] = {}
        for i, pod in enumerate(pods):
            by_name[pod.name] = (*by_name.get(pod.name, ()), i)
        starts = [pod.started_ms if pod.started_ms >= 0 else pod.created_ms for pod in pods]
        neighbours: dict[str, frozenset[str]] = {}
        for pod, names in zip(pods, containers, strict=False):
            neighbours[pod.node] = neighbours.get(pod.node, frozenset()) | names
        return cls(
            pods=pods,
            index={f"{pod.namespace}/{pod.name}": i for i, pod in enumerate(pods)},
            by_name=by_name,
            everyone=everyone,
            starts_ms=np.array(starts, dtype=np.int64),
            device_owners=device_owners or {},
            held=held,
            containers=containers,
            neighbours=neighbours,
        )


def container_names(pods: Iterable[PodRow], shapes: Sequence[PodShape]) -> tuple[frozenset[str], ...]:
    """The names of each pod's containers."""
    by_shape = [frozenset(container.name for container in shape.containers) for shape in shapes]
    return tuple(by_shape[pod.shape] for pod in pods)


def held_boards(
    pods: Iterable[PodRow], shapes: Sequence[PodShape], *, boards: Collection[str], plain: Collection[str]
) -> tuple[Held, ...]:
    """What the pods on `plain` nodes hold of the resources whose unit is a whole board."""
    found = []
    for pod in pods:
        if pod.node in plain and pod.phase not in _ENDED:
            demand = shapes[pod.shape].demand
            if count := sum(demand.get(name, 0) for name in boards):
                found.append(Held(pod.node, count, pod.started_ms))
    return tuple(found)


class Owners(msgspec.Struct, frozen=True):
    """The result for one profile, by position: a pod's index or one of the codes above, and the newest sample's time.

    `crowded` marks positions on a node whose pods hold more boards than are seen there.
    """

    codes: Ints
    newest_ms: Ints
    shared: npt.NDArray[np.bool_]
    crowded: npt.NDArray[np.bool_]
    nodes: tuple[str, ...]
    ghosts: int


def attribute(
    series: ProfileSeries, roster: Roster, *, handover_ms: int, now_ms: int = -1, hosts: Hosts | None = None
) -> Owners:
    """Owners of every position; `handover_ms` is how long a gone pod's series may outlast its hold of a device."""
    newest_ms = newest_of(series)
    found = hosts or Hosts.of(frozenset())
    # The series of one node share one set of labels: a host's name is looked up once for all of them.
    named = {labels: found.named(labels) for labels in set(series.nodes)}
    codes = np.array(
        [
            _fitting(_code(identity, roster, series.targets), identity, roster, named[labels])
            for identity, labels in zip(series.identities, series.nodes, strict=True)
        ],
        dtype=np.int64,
    )
    for position, target in series.beside.items():
        # A pod that holds boards is no exporter: it may have put another's name on its own series.
        if codes[position] >= 0 and roster.index.get(target, codes[position]) != codes[position]:
            codes[position] = MISFIT
    held = codes >= 0
    starts = np.zeros(len(codes), dtype=np.int64)
    starts[held] = roster.starts_ms[codes[held]]
    codes[held & (newest_ms >= 0) & (newest_ms < starts)] = GHOST
    nodes = tuple(
        roster.pods[code].node if code >= 0 else found.node(labels)
        for code, labels in zip(codes.tolist(), series.nodes, strict=True)
    )
    return Owners(
        codes=codes,
        newest_ms=newest_ms,
        shared=_shared(series.identities, codes, newest_ms, roster, handover_ms),
        crowded=_crowded(series.identities, nodes, newest_ms, roster, since_ms=now_ms - _SETTLING_MS),
        nodes=nodes,
        ghosts=int((((codes == GHOST) | (codes == MISFIT)) & (newest_ms >= 0)).sum()),
    )


def adopt(series: ProfileSeries, owners: Owners, roster: Roster, known: Mapping[str, int]) -> Owners:
    """Owners for an exporter that names boards only: `known` has the one pod of each board, from another exporter."""
    if series.profile.owners or not known:
        return owners
    codes = owners.codes.copy()
    for i in np.flatnonzero((codes == UNOWNED) & (owners.newest_ms >= 0)).tolist():
        identity = series.identities[i]
        code = -1 if identity.sliced else known.get(identity.board, -1)
        if code >= 0 and owners.newest_ms[i] >= roster.starts_ms[code]:
            codes[i] = code
    return msgspec.structs.replace(owners, codes=codes)


def sole_owners(read: Iterable[tuple[ProfileSeries, Owners]]) -> dict[str, int]:
    """The pod of every whole board that exactly one pod was seen on."""
    found: dict[str, int] = {}
    several: set[str] = set()
    for series, owners in read:
        codes, shared = owners.codes.tolist(), owners.shared.tolist()
        for i in np.flatnonzero((owners.codes >= 0) & (owners.newest_ms >= 0)).tolist():
            identity = series.identities[i]
            code = -1 if identity.sliced or identity.share or shared[i] else codes[i]
            if found.setdefault(identity.board, code) != code:
                several.add(identity.board)
    return {board: code for board, code in found.items() if board and board not in several}


def owners_by_device(read: Iterable[tuple[ProfileSeries, Owners]]) -> dict[str, frozenset[int]]:
    """The pods that were seen on each device, whichever exporter names them; shares have one each."""
    found: dict[str, frozenset[int]] = {}
    alone: dict[int, frozenset[int]] = {}
    for series, owners in read:
        codes = owners.codes.tolist()
        for i in np.flatnonzero((owners.codes >= 0) & (owners.newest_ms >= 0)).tolist():
            identity, code = series.identities[i], codes[i]
            if identity.device and not identity.share:
                one = alone.get(code) or alone.setdefault(code, frozenset((code,)))
                known = found.setdefault(identity.device, one)
                if known is not one:
                    found[identity.device] = known | one
    return found


def shared_with_others(
    series: ProfileSeries, owners: Owners, everyone: Mapping[str, frozenset[int]]
) -> Owners:
    """Also marks devices as shared on which another exporter names another pod, whose rows may not have been read."""
    shared, codes = owners.shared.copy(), owners.codes.tolist()
    for i in np.flatnonzero((owners.codes >= 0) & (owners.newest_ms >= 0) & ~shared).tolist():
        identity = series.identities[i]
        if not identity.share and (others := everyone.get(identity.device)):
            shared[i] = len(others) > 1 or codes[i] not in others
    return msgspec.structs.replace(owners, shared=shared)


def _crowded(
    identities: Sequence[Identity],
    nodes: Sequence[str],
    newest_ms: Ints,
    roster: Roster,
    *,
    since_ms: int,
) -> npt.NDArray[np.bool_]:
    """Positions on nodes whose pods hold more boards than have samples there.

    Either a board has lost its series or several pods share one; nothing tells which, so no figure is one pod's own.
    """
    held: dict[str, int] = {}
    for row in roster.held:
        if 0 <= row.since_ms <= since_ms:
            held[row.node] = held.get(row.node, 0) + row.boards
    boards: dict[str, set[str]] = {}
    divided: set[str] = set()
    for identity, node, newest in zip(identities, nodes, newest_ms.tolist(), strict=True):
        if newest >= 0 and identity.board:
            boards.setdefault(node, set()).add(identity.board)
            if identity.sliced or identity.share:
                divided.add(node)
    lost = len(boards.pop("", ()))  # these may be on any node
    crowded = {n for n, seen in boards.items() if n not in divided and held.get(n, 0) > len(seen) + lost}
    return np.array([node in crowded for node in nodes], dtype=np.bool_)


def newest_of(series: ProfileSeries) -> Ints:
    """Time of the newest sample of any signal by position, -1 where none was seen."""
    newest: Floats = np.full(len(series.identities), -1.0)
    for signal in series.signals:
        column = signal.window.newest
        usable = column.seen & np.isfinite(column.values)
        newest = np.where(usable, np.maximum(newest, column.values * 1000.0), newest)
    return np.rint(newest).astype(np.int64)


def _code(identity: Identity, roster: Roster, targets: frozenset[str]) -> int:
    code = _code_by_labels(identity, roster, targets)
    if code == UNOWNED and not identity.sliced and identity.board in roster.device_owners:
        return roster.index.get("/".join(roster.device_owners[identity.board]), UNOWNED)
    return code


def _fitting(code: int, identity: Identity, roster: Roster, nodes: frozenset[str]) -> int:
    """The owner, if it runs where the series comes from, and the container named is not that of a neighbour.

    A container that nobody there has proves nothing: some exporters name it in their own way.
    """
    if code < 0:
        return code
    node = roster.pods[code].node
    elsewhere = bool(nodes) and node not in nodes
    foreign = bool(roster.containers) and identity.container not in roster.containers[code]
    mistaken = elsewhere or (foreign and identity.container in roster.neighbours[node])
    return MISFIT if mistaken else code


def _code_by_labels(identity: Identity, roster: Roster, targets: frozenset[str]) -> int:
    if not identity.pod:
        return UNOWNED
    if not identity.namespace:
        found = roster.by_name.get(identity.pod, ())
        if len(found) > 1:
            return AMBIGUOUS
        return _same_uid(identity, roster, found[0]) if found else GHOST
    name = f"{identity.namespace}/{identity.pod}"
    if name in targets:
        return UNOWNED
    index = roster.index.get(name)
    if index is not None:
        return _same_uid(identity, roster, index)
    other = roster.everyone.get(name)
    if other is None:
        return GHOST
    return FINISHED_POD if other == FINISHED else UNOWNED


def _same_uid(identity: Identity, roster: Roster, index: int) -> int:
    return GHOST if identity.uid and identity.uid != roster.pods[index].uid else index


def _shared(
    identities: Sequence[Identity], codes: Ints, newest_ms: Ints, roster: Roster, handover_ms: int
) -> npt.NDArray[np.bool_]:
    """Positions whose device several pods used in the window.

    A pod that is gone does not count if its series ended before the present one started.
    """
    shared = np.zeros(len(codes), dtype=np.bool_)
    first: dict[str, int] = {}
    groups: dict[int, list[int]] = {}
    for i in np.flatnonzero((codes != UNOWNED) & (newest_ms >= 0)).tolist():
        device = "" if identities[i].share else identities[i].device
        earlier = first.setdefault(device, i) if device else i
        if earlier != i:
            groups.setdefault(earlier, [earlier]).append(i)
    for group in groups.values():
        for i in group:
            shared[i] = codes[i] >= 0 and _has_rival(i, group, codes, newest_ms, roster, handover_ms)
    return shared


def _has_rival(
    row: int, group: Iterable[int], codes: Ints, newest_ms: Ints, roster: Roster, handover_ms: int
) -> bool:
    start_ms = int(roster.starts_ms[codes[row]])
    for other in group:
        if codes[other] == codes[row]:
            continue
        if codes[other] >= 0 or int(newest_ms[other]) > start_ms + handover_ms:
            return True
    return False
