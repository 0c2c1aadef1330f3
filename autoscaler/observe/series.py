"""The fleet's series as columns: one position for each (device, owner), whatever labels a series carries besides.

Values are kept as they came: not-a-number and infinite ones stay visible here and are dropped by name in `holders`.
Pure: no socket, no clock, no pods.
"""

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, Final, Literal, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from autoscaler.model.evidence import Source
from autoscaler.observe.answers import UNREADABLE, Answer, AnswerError, Row, vector_rows
from autoscaler.observe.profiles import Profile, Signal

Floats: TypeAlias = npt.NDArray[np.float64]
Merge = Literal["max", "min", "sum"]

_DIGEST_BYTES: Final = 16
_DEVICE_PREFIXES: Final = ("gpu-", "mig-")


class Identity(msgspec.Struct, frozen=True, gc=False):
    """What a series is about: a device and its owner labels.

    `board` is the normalised device label (empty in scope pod), `device` tells slices and shares of it apart: `board`,
    `board/slice` or `board#share`. `marks` are those labels on which a signal of the profile is void.
    """

    device: str
    board: str
    sliced: bool
    share: bool
    namespace: str
    pod: str
    container: str
    uid: str
    marks: tuple[str, ...] = ()


class Column(msgspec.Struct, frozen=True):
    """One query's values by position; `seen` tells a position with a value from one without."""

    values: Floats
    seen: npt.NDArray[np.bool_]


class WindowColumns(msgspec.Struct, frozen=True):
    """A signal over the evidence window; `mean` is the highest of any copy, `total` only shows what is not a number.

    `count` has every sample of every copy of a series (two scrapers, say), `covered` each part of the window once.
    """

    maximum: Column
    minimum: Column
    mean: Column
    total: Column
    count: Column
    newest: Column
    covered: Column


class HistoryColumns(msgspec.Struct, frozen=True):
    """A signal over the history window; `busiest` is the highest mean of any evidence window."""

    p95: Column
    maximum: Column
    busiest: Column
    count: Column
    first: Column
    total: Column


class BoardColumns(msgspec.Struct, frozen=True):
    """Memory and power in the profile's units, over the evidence window; `past_used` over the history.

    `energy` is by how much the energy counter moved lately, `energy_least` where it moved least; `traffic` has the highest
    value of each traffic metric of the profile, in its order; `last_active` is the least of the window, in seconds.
    """

    used: Column
    least_used: Column
    most_free: Column
    reserved: Column
    total: Column
    power: Column
    energy: Column
    energy_least: Column
    last_active: Column
    past_used: Column
    traffic: tuple[Column, ...] = ()


class SignalSeries(msgspec.Struct, frozen=True):
    """One signal of a profile, as it becomes one `Source` of a snapshot."""

    source: Source
    signal: Signal
    window: WindowColumns
    history: HistoryColumns

    @property
    def full(self) -> int:
        """The value of a board that is always active."""
        return self.signal.full

    def is_void(self, identity: Identity) -> bool:
        """Whether the value is another device's: of the whole board on a slice or a share."""
        by_slice = identity.sliced and self.signal.kind == "util"
        return by_slice or any(mark in self.signal.void for mark in identity.marks)


class ProfileSeries(msgspec.Struct, frozen=True):
    """All series of a live profile. Every column has one value for each of `identities`.

    `nodes` are the values of the node labels by position; `targets` are pods (namespace/name) that are exporters;
    `board_peaks` are peaks of the profile's board series by board, as shares of 1; `matcher` is that of the trusted scrape
    job; `beside` has the scrape target that is named beside a position's owner.
    """

    profile: Profile
    identities: tuple[Identity, ...]
    nodes: tuple[frozenset[str], ...]
    targets: frozenset[str]
    boards: BoardColumns
    signals: tuple[SignalSeries, ...]
    board_peaks: Mapping[str, float] = {}
    matcher: str = ""
    beside: Mapping[int, str] = {}


class ServingRow(msgspec.Struct, frozen=True):
    """One pod's demand over the evidence window, by name; see `ServingUse`."""

    namespace: str
    pod: str
    server: str
    samples: int
    expected: int
    queue_peak: float | None = None
    running_peak: float | None = None
    cache_peak: int | None = None
    counter_moves: int | None = None


class SeriesReading(msgspec.Struct, frozen=True):
    """What the metrics store said in one cycle; `fault` names the first query that was not answered.

    `source_job` is the pattern that scrape jobs were pinned by, `jobs` are those seen, `untrusted` names the profiles that
    were not read with their jobs. `read_ms` is how long it took.
    """

    window_ms: int = 0
    history_window_ms: int = 0
    fault: str = ""
    warnings: tuple[str, ...] = ()
    store_ms: int = -1
    skew_ms: int = 0
    read_ms: int = 0
    source_job: str = ""
    jobs: tuple[str, ...] = ()
    untrusted: tuple[str, ...] = ()
    profiles: tuple[ProfileSeries, ...] = ()
    serving: tuple[ServingRow, ...] = ()
    queries: int = 0


class Sparse(msgspec.Struct, frozen=True):
    """One answer: positions and values, before the number of positions is known."""

    positions: npt.NDArray[np.int32]
    values: Floats


NOTHING: Final = Sparse(np.empty(0, dtype=np.int32), np.empty(0, dtype=np.float64))


class Positions:
    """Gives every (device, owner) of one profile its position; the same for all queries that share an instance."""

    def __init__(self, profile: Profile) -> None:
        names = [f"f{i}" for i in range(len(profile.labels))]
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(
            msgspec.defstruct(
                "Labels",
                [(name, str, "") for name in names],
                rename=dict(zip(names, profile.labels, strict=True)),
                gc=False,
            )
        )
        where = {label: i for i, label in enumerate(profile.labels)}
        none = len(where)  # one past the labels: an empty text is put there
        self._owner_columns = tuple(
            tuple(where[label] if label else none for label in (o.pod, o.namespace, o.container, o.uid))
            for o in profile.owners
        )
        self._device_columns = tuple(tuple(where[label] for label in key) for key in profile.device_keys)
        self._slice_columns = tuple(where[label] for label in profile.slices)
        self._share_columns = tuple(where[label] for label in profile.shares)
        self._mark_columns = tuple(
            (label, where[label]) for label in sorted({v for s in profile.signals for v in s.void})
        )
        self._node_columns = tuple(where[label] for label in profile.nodes)
        self._by_text: dict[bytes, int] = {}
        self._by_identity: dict[Identity, int] = {}
        self._identities: list[Identity] = []
        self._nodes: list[frozenset[str]] = []
        self._node_sets: dict[tuple[str, ...], frozenset[str]] = {}
        self._targets: dict[tuple[str, str], str] = {}
        self._beside: dict[int, str] = {}
        self._columns: dict[tuple[bool, ...], _Columns] = {}

    def __len__(self) -> int:
        return len(self._identities)

    @property
    def identities(self) -> tuple[Identity, ...]:
        """By position."""
        return tuple(self._identities)

    @property
    def nodes(self) -> tuple[frozenset[str], ...]:
        """Values of the node labels by position."""
        return tuple(self._nodes)

    @property
    def targets(self) -> frozenset[str]:
        """Pods (namespace/name) whose plain labels stood beside an exported owner: scrape targets, no owners."""
        return frozenset(self._targets.values())

    @property
    def beside(self) -> Mapping[int, str]:
        """The target that stands beside a position's owner, where one does."""
        return dict(self._beside)

    def collect(self, answer: Answer) -> Sparse:
        """The positions and values of a vector, new positions added; raises `AnswerError`."""
        known = self._by_text
        positions: list[int] = []
        values: list[float] = []
        for rows in vector_rows(answer):
            for row in rows:
                text = bytes(row.metric)
                # The text itself is 300 bytes for each of the fleet's series.
                key = blake2b(text, digest_size=_DIGEST_BYTES).digest()
                position = known.get(key)
                if position is None:
                    position = known[key] = self._place(text)
                positions.append(position)
                values.append(number(row))
        return Sparse(np.array(positions, dtype=np.int32), np.array(values, dtype=np.float64))

    def _place(self, text: bytes) -> int:
        try:
            labels = (*msgspec.structs.astuple(self._decoder.decode(text)), "")
        except UNREADABLE as error:
            raise AnswerError(f"unreadable labels: {error}") from error
        identity, beside = self._identity(labels)
        names = tuple([labels[i] for i in self._node_columns])
        nodes = self._node_sets.get(names)
        if nodes is None:
            nodes = self._node_sets[names] = frozenset(filter(None, names))
        position = self._by_identity.setdefault(identity, len(self._identities))
        if position == len(self._identities):
            self._identities.append(identity)
            self._nodes.append(nodes)
            if beside:
                self._beside[position] = beside
        elif self._nodes[position] is not nodes:
            self._nodes[position] |= nodes
        return position

    def _identity(self, labels: tuple[str, ...]) -> tuple[Identity, str]:
        present = tuple([text != "" for text in labels])
        which = self._columns.get(present)
        if which is None:
            which = self._columns[present] = self._columns_of(labels)
        at_namespace, at_pod, at_container, at_uid = which.owner
        namespace, pod = labels[at_namespace], labels[at_pod]
        beside = ""
        for other in which.others:
            target = (labels[other[0]], labels[other[1]])
            if target != (namespace, pod):
                beside = self._targets.setdefault(target, "/".join(target))
        device = board = _board(labels, which.devices)
        if which.slices or which.shares:
            slices, shares = ([labels[i] for i in columns] for columns in (which.slices, which.shares))
            device = "#".join(["/".join([board, *slices]), *shares])
        identity = Identity(
            device,
            board,
            which.slices != (),
            which.shares != (),
            namespace,
            pod,
            labels[at_container],
            labels[at_uid],
            which.marks,
        )
        return identity, beside

    def _columns_of(self, labels: tuple[str, ...]) -> "_Columns":
        """Where to look in series that have the same labels as this one.

        The owner is named by the first group whose pod label is there; among groups that share that label the first with a
        namespace wins: a scrape may have renamed that one label.
        """
        named = [group for group in self._owner_columns if labels[group[0]]]
        same = [group for group in named if group[0] == named[0][0]]
        nobody = (len(labels) - 1,) * 4
        pod, namespace, container, uid = next(
            (g for g in same if labels[g[1]]), named[0] if named else nobody
        )
        return _Columns(
            owner=(namespace, pod, container, uid),
            others=tuple((g[1], g[0]) for g in named if g[0] != pod),
            devices=tuple(key for key in self._device_columns if all(labels[i] for i in key)),
            slices=tuple(i for i in self._slice_columns if labels[i]),
            shares=tuple(i for i in self._share_columns if labels[i]),
            marks=tuple(label for label, i in self._mark_columns if labels[i]),
        )


class _Columns(msgspec.Struct, frozen=True, gc=False):
    """The labels that identify a series: of its owner (namespace, pod, container, uid), of other pods named, of its device."""

    owner: tuple[int, int, int, int]
    others: tuple[tuple[int, int], ...]
    devices: tuple[tuple[int, ...], ...]
    slices: tuple[int, ...]
    shares: tuple[int, ...]
    marks: tuple[str, ...]


def _board(labels: tuple[str, ...], keys: tuple[tuple[int, ...], ...]) -> str:
    """The normal form of the device that labels name together, by the first key that gives one."""
    for key in keys:
        found = "+".join([normal_device(labels[i]) for i in key])
        if found:
            return found
    return ""


def normal_device(text: str) -> str:
    """A device id in the form in which ids are compared: without its GPU-/MIG- prefix, lower case."""
    lower = text.strip().lower()
    for prefix in _DEVICE_PREFIXES:
        lower = lower.removeprefix(prefix)
    return lower


def board_peaks(found: "Positions", sparse: "Sparse", *, full: int) -> dict[str, float]:
    """The highest usable value for each board, as a share of 1; values over `full` are a full board."""
    peaks: dict[str, float] = {}
    for position, value in zip(sparse.positions.tolist(), sparse.values.tolist(), strict=True):
        board = found.identities[position].board
        if board and 0 <= value < np.inf:
            peaks[board] = max(peaks.get(board, 0.0), min(1.0, value / full))
    return peaks


def number(row: Row) -> float:
    """A row's value; text that is no number at all reads as not-a-number, which is dropped by name later."""
    try:
        return float(row.value[1])
    except ValueError:
        return float("nan")


def dense(sparse: Sparse, length: int, merge: Merge) -> Column:
    """A column of `length`; several values of one position are merged, and not-a-number wins over any number."""
    start: dict[str, tuple[float, Callable[..., Any]]] = {
        "max": (-np.inf, np.maximum.at),
        "min": (np.inf, np.minimum.at),
        "sum": (0.0, np.add.at),
    }
    initial, ufunc_at = start[merge]
    values = np.full(length, initial, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        ufunc_at(values, sparse.positions, sparse.values)
    seen = np.zeros(length, dtype=np.bool_)
    seen[sparse.positions] = True
    values[~seen] = 0.0
    return Column(values, seen)


def largest(sparse: Sparse, *, limit: float) -> float:
    """The largest value of an answer up to the limit, 0 if there is none."""
    usable = sparse.values[(sparse.values >= 0) & (sparse.values <= limit)]
    return float(usable.max()) if usable.size else 0.0
