"""The fleet's series as columns: one position for each (device, owner), whatever labels a series carries besides.

Values are kept as they came: not-a-number and infinite ones stay visible here and are dropped by name in `holders`.
Pure: no socket, no clock, no pods.
"""

from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from autoscaler.model.evidence import Source
from autoscaler.observe.answers import UNREADABLE, Answer, AnswerError, Row, vector_rows
from autoscaler.observe.profiles import Profile

Floats: TypeAlias = npt.NDArray[np.float64]
Merge = Literal["max", "min", "sum"]

_DEVICE_PREFIXES: Final = ("gpu-", "mig-")


class Identity(msgspec.Struct, frozen=True, gc=False):
    """What a series is about: a device (normalised, `uuid` or `uuid/slice`; empty in scope pod) and its owner labels."""

    device: str
    sliced: bool
    namespace: str
    pod: str
    container: str
    uid: str


class Column(msgspec.Struct, frozen=True):
    """One query's values by position; `seen` tells a position with a value from one without."""

    values: Floats
    seen: npt.NDArray[np.bool_]


class WindowColumns(msgspec.Struct, frozen=True):
    """A signal over the evidence window.

    `count` has every sample of every copy of a series (two scrapers, say), `covered` each part of the window once.
    """

    maximum: Column
    minimum: Column
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
    """Memory in the profile's unit and power in watts, over the evidence window; `past_used` over the history."""

    used: Column
    least_used: Column
    most_free: Column
    total: Column
    power: Column
    past_used: Column


class SignalSeries(msgspec.Struct, frozen=True):
    """One signal of a profile, as it becomes one `Source` of a snapshot."""

    source: Source
    full: int
    void_on_slices: bool
    window: WindowColumns
    history: HistoryColumns


class ProfileSeries(msgspec.Struct, frozen=True):
    """All series of a live profile. Every column has one value for each of `identities`.

    `nodes` are the values of the node labels by position; `targets` are pods (namespace/name) that are exporters.
    """

    profile: Profile
    identities: tuple[Identity, ...]
    nodes: tuple[frozenset[str], ...]
    targets: frozenset[str]
    boards: BoardColumns
    signals: tuple[SignalSeries, ...]


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
    queries: int = 0


class Sparse(msgspec.Struct, frozen=True):
    """One answer: positions and values, before the number of positions is known."""

    positions: npt.NDArray[np.int64]
    values: Floats


NOTHING: Final = Sparse(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64))


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
        self._device_column = where[profile.device] if profile.device else none
        self._slice_columns = tuple(where[label] for label in profile.slices)
        self._node_columns = tuple(where[label] for label in profile.nodes)
        self._by_text: dict[bytes, int] = {}
        self._by_identity: dict[Identity, int] = {}
        self._identities: list[Identity] = []
        self._nodes: list[frozenset[str]] = []
        self._node_sets: dict[tuple[str, ...], frozenset[str]] = {}
        self._targets: set[str] = set()

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
        return frozenset(self._targets)

    def collect(self, answer: Answer) -> Sparse:
        """The positions and values of a vector, new positions added; raises `AnswerError`."""
        known = self._by_text
        positions: list[int] = []
        values: list[float] = []
        for rows in vector_rows(answer):
            for row in rows:
                text = bytes(row.metric)
                position = known.get(text)
                if position is None:
                    position = known[text] = self._place(text)
                positions.append(position)
                values.append(number(row))
        return Sparse(np.array(positions, dtype=np.int64), np.array(values, dtype=np.float64))

    def _place(self, text: bytes) -> int:
        try:
            labels = (*msgspec.structs.astuple(self._decoder.decode(text)), "")
        except UNREADABLE as error:
            raise AnswerError(f"unreadable labels: {error}") from error
        identity = self._identity(labels)
        names = tuple([labels[i] for i in self._node_columns])
        nodes = self._node_sets.get(names)
        if nodes is None:
            nodes = self._node_sets[names] = frozenset(filter(None, names))
        position = self._by_identity.get(identity)
        if position is None:
            position = self._by_identity[identity] = len(self._identities)
            self._identities.append(identity)
            self._nodes.append(nodes)
        elif self._nodes[position] is not nodes:
            self._nodes[position] |= nodes
        return position

    def _identity(self, labels: tuple[str, ...]) -> Identity:
        pod = namespace = container = uid = ""
        for group in self._owner_columns:
            pod_column, namespace_column, container_column, uid_column = group
            if not labels[pod_column]:
                continue
            if not pod:
                pod, namespace = labels[pod_column], labels[namespace_column]
                container, uid = labels[container_column], labels[uid_column]
            elif (labels[namespace_column], labels[pod_column]) != (namespace, pod):
                self._targets.add(f"{labels[namespace_column]}/{labels[pod_column]}")
        device = normal_device(labels[self._device_column])
        slices = [labels[i] for i in self._slice_columns if labels[i]]
        if slices:
            device = "/".join([device, *slices])
        return Identity(device, bool(slices), namespace, pod, container, uid)


def normal_device(text: str) -> str:
    """A device id in the form in which ids are compared: without its GPU-/MIG- prefix, lower case."""
    lower = text.strip().lower()
    for prefix in _DEVICE_PREFIXES:
        lower = lower.removeprefix(prefix)
    return lower


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
