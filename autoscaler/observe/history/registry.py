"""Which device, unit and workload each series counts for, as small integers.

A week is asked for in many pieces, each with the labels of the whole fleet. What labels mean is worked out once and kept as
numbers by a hash of their text: tens of bytes a series where identities and texts take hundreds.
"""

from array import array
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from autoscaler.model.cluster import WorkloadRef
from autoscaler.observe.answers import Answer
from autoscaler.observe.history.hashes import HashIndex, hashed
from autoscaler.observe.history.past import PastOwners
from autoscaler.observe.history.workloads import Key
from autoscaler.observe.profiles import Profile, Signal
from autoscaler.observe.series import Identity, Positions

Numbers: TypeAlias = npt.NDArray[Any]

NOBODY: Final = -1
"""The row of a series that no workload's history has."""


class Registry:
    """All that is known of one view of the cluster. Rows are added as labels come and never change.

    `unit_of` gives the unit of each device, `whole` marks devices that are no slice and no share, `key_of` gives the
    workload and container of each unit as an index of `keys`; `names` are hashes of the units' names, which stay the same
    in a later registry. `left_out` counts series that are nobody's, by why.
    """

    def __init__(self, owners: PastOwners) -> None:
        self._owners = owners
        self._unit_of = array("i")
        self._whole = array("b")
        self._key_of = array("i")
        self._names = array("q")
        self._devices = HashIndex()
        self._units = HashIndex()
        self._keys: dict[Key, int] = {}
        self._columns: dict[str, _Columns] = {}
        self.left_out: Counter[str] = Counter()

    @property
    def workloads(self) -> frozenset[WorkloadRef]:
        """Every workload that history is kept of."""
        return self._owners.workloads

    @property
    def keys(self) -> tuple[Key, ...]:
        """By number."""
        return tuple(self._keys)

    @property
    def unit_of(self) -> Numbers:
        """The unit of each device."""
        return np.array(self._unit_of, dtype=np.int64)

    @property
    def whole(self) -> Numbers:
        """Whether a device is a whole board."""
        return np.array(self._whole, dtype=np.bool_)

    @property
    def key_of(self) -> Numbers:
        """The workload and container of each unit."""
        return np.array(self._key_of, dtype=np.int64)

    @property
    def names(self) -> Numbers:
        """Hashes of the units' names."""
        return np.array(self._names, dtype=np.int64)

    def rows(self, profile: Profile, signal: Signal | None, labels: Sequence[bytes]) -> Numbers:
        """The device of each series, `NOBODY` where it counts for none; raises `AnswerError`.

        Without a signal what is read is memory, which is a device's own wherever it is told.
        """
        columns = self._columns.get(profile.name)
        if columns is None:
            columns = self._columns[profile.name] = _Columns(profile)
        hashes = hashed(labels)
        fresh = columns.known.unknown(hashes)
        if len(fresh):
            self._add(columns, [labels[at] for at in fresh.tolist()])
        return columns.devices(signal)[columns.known.number(hashes)]

    def _add(self, columns: "_Columns", labels: Sequence[bytes]) -> None:
        """Further rows of a profile, in the order in which they are numbered."""
        positions = Positions(columns.profile)
        rows = b",".join(b'{"metric":%b,"value":[0,"0"]}' % text for text in labels)
        found = positions.collect(Answer(kind="vector", result=b"[%b]" % rows)).positions.tolist()
        columns.targets |= positions.targets
        known = positions.identities
        identities = [known[position] for position in found]
        refs = [self._owners.of_series(one, targets=columns.targets) for one in identities]
        self.left_out.update(ref for ref in refs if not isinstance(ref, WorkloadRef))
        owned = [
            (one, ref) for one, ref in zip(identities, refs, strict=True) if isinstance(ref, WorkloadRef)
        ]
        devices = iter(self._numbered(columns.profile, owned).tolist())
        for one, ref in zip(identities, refs, strict=True):
            columns.add(next(devices) if isinstance(ref, WorkloadRef) else NOBODY, one)

    def _numbered(self, profile: Profile, owned: Sequence[tuple[Identity, WorkloadRef]]) -> Numbers:
        """The devices of a profile's series, with the units and workloads that they belong to."""
        names = hashed([(ref.namespace, one.pod, one.container) for one, ref in owned])
        for at in self._units.unknown(names).tolist():
            one, ref = owned[at]
            self._key_of.append(self._keys.setdefault((ref, one.container), len(self._keys)))
            self._names.append(int(names[at]))
        units = self._units.number(names)
        described = [
            (profile.name, unit, one.device) for unit, (one, _) in zip(units.tolist(), owned, strict=True)
        ]
        hashes = hashed(described)
        for at in self._devices.unknown(hashes).tolist():
            one = owned[at][0]
            self._unit_of.append(int(units[at]))
            self._whole.append(not (one.sliced or one.share))
        return self._devices.number(hashes)


class _Columns:
    """One profile's series: their rows by hash, and the device of each row for each signal."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.known = HashIndex()
        self.targets: set[str] = set()
        self._all = array("i")
        self._by_signal = {signal.metric: array("i") for signal in profile.signals}

    def add(self, device: int, identity: Identity) -> None:
        """A further row."""
        self._all.append(device)
        for signal in self.profile.signals:
            void = is_void(signal, identity)
            self._by_signal[signal.metric].append(NOBODY if void else device)

    def devices(self, signal: Signal | None) -> Numbers:
        """The device of each row."""
        return np.array(self._all if signal is None else self._by_signal[signal.metric], dtype=np.int64)


def is_void(signal: Signal, identity: Identity) -> bool:
    """Whether the value is another device's: of the whole board on a slice, or marked so by its labels."""
    by_slice = identity.sliced and signal.kind == "util"
    return by_slice or any(mark in signal.void for mark in identity.marks)
