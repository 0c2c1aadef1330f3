"""Which pod each series belongs to: by namespace and name, uid where the exporter says it, and time.

A wrong owner is worse than none, so every doubt ends in "nobody": names that match two pods, exporters' own labels,
pods that hold nothing, series that ended before the pod began.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from autoscaler.model.cluster import PodRow
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

Ints: TypeAlias = npt.NDArray[np.int64]


class Roster(msgspec.Struct, frozen=True):
    """The pods of a snapshot, as series are looked up in them. `starts_ms` is start, or creation before it."""

    pods: tuple[PodRow, ...]
    index: Mapping[str, int]
    by_name: Mapping[str, tuple[int, ...]]
    everyone: Mapping[str, Entry]
    starts_ms: Ints

    @classmethod
    def of(cls, pods: tuple[PodRow, ...], everyone: Mapping[str, Entry]) -> "Roster":
        """The roster of sorted rows and the store's table of all pods."""
        by_name: dict[str, tuple[int, ...]] = {}
        for i, pod in enumerate(pods):
            by_name[pod.name] = (*by_name.get(pod.name, ()), i)
        starts = [pod.started_ms if pod.started_ms >= 0 else pod.created_ms for pod in pods]
        return cls(
            pods=pods,
            index={f"{pod.namespace}/{pod.name}": i for i, pod in enumerate(pods)},
            by_name=by_name,
            everyone=everyone,
            starts_ms=np.array(starts, dtype=np.int64),
        )


class Owners(msgspec.Struct, frozen=True):
    """The result for one profile, by position: a pod's index or one of the codes above, and the newest sample's time."""

    codes: Ints
    newest_ms: Ints
    shared: npt.NDArray[np.bool_]
    ghosts: int


def attribute(series: ProfileSeries, roster: Roster, *, handover_ms: int) -> Owners:
    """Owners of every position; `handover_ms` is how long a gone pod's series may outlast its hold of a device."""
    newest_ms = newest_of(series)
    codes = np.array(
        [_code(identity, roster, series.targets) for identity in series.identities], dtype=np.int64
    )
    held = codes >= 0
    starts = np.zeros(len(codes), dtype=np.int64)
    starts[held] = roster.starts_ms[codes[held]]
    codes[held & (newest_ms >= 0) & (newest_ms < starts)] = GHOST
    return Owners(
        codes=codes,
        newest_ms=newest_ms,
        shared=_shared(series.identities, codes, newest_ms, roster, handover_ms),
        ghosts=int(((codes == GHOST) & (newest_ms >= 0)).sum()),
    )


def newest_of(series: ProfileSeries) -> Ints:
    """Time of the newest sample of any signal by position, -1 where none was seen."""
    newest: Floats = np.full(len(series.identities), -1.0)
    for signal in series.signals:
        column = signal.window.newest
        usable = column.seen & np.isfinite(column.values)
        newest = np.where(usable, np.maximum(newest, column.values * 1000.0), newest)
    return np.rint(newest).astype(np.int64)


def _code(identity: Identity, roster: Roster, targets: frozenset[str]) -> int:
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
        device = identities[i].device
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
