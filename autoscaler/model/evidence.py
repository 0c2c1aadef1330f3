"""What was seen of the devices: columns in a snapshot, and the typed observation of a unit."""

from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from autoscaler.model.duration import Instant, Span

ACTIVITY_SCALE: Final = 10_000
MISSING_ACTIVITY: Final = 65_535
MISSING_MIB: Final = 4_294_967_295

SHARED: Final = 1
"""Several pods were seen on this device inside the window."""
CONTRADICTORY: Final = 2
"""Activity is zero while power or traffic says otherwise."""
DROPPED: Final = 4
"""Samples of this device were dropped: not a number, infinite or out of the profile's range."""
POD_SCOPE: Final = 8
"""One value for the whole pod; it names no device."""
FROZEN: Final = 16
"""A counter that always rises has not moved in the window: the exporter serves old values."""
UNPROVEN: Final = 32
"""Zero activity of a share of a board, which no second sign confirms."""
CLAMPED: Final = 64
"""Samples were over the full value and count as full; they cannot show a demand."""
CROWDED: Final = 128
"""The pods of the node hold more boards than are seen there: a unit may be a share of one."""

UNATTRIBUTED: Final = (
    "unowned",
    "unknown_node",
    "exporter",
    "ghost",
    "finished",
    "ambiguous",
    "mistaken",
    "other",
)
"""Why a series is given to no pod: no owner is named (on a node that is known, or not), only a pod that holds nothing is
(the exporter itself, as a rule), its pod is not known, has ended, is one of several of that name, or cannot be meant: the
series names a neighbour's container or comes from another node."""

Column: TypeAlias = npt.NDArray[Any]

_DTYPES: Final[dict[str, type[np.generic]]] = {
    "pod": np.int32,
    "source": np.int16,
    "samples": np.uint32,
    "mean": np.uint16,
    "peak": np.uint16,
    "last_ms": np.int64,
    "history_samples": np.uint32,
    "history_p95": np.uint16,
    "history_peak": np.uint16,
    "history_busiest": np.uint16,
    "history_first_ms": np.int64,
    "memory_peak_mib": np.uint32,
    "memory_total_mib": np.uint32,
    "shares": np.uint16,
    "flags": np.uint8,
}


def _exact(name: str, values: Column, dtype: type[np.generic]) -> Column:
    """The values in the column's type; raises `ValueError` for one that the type cannot hold, which would wrap."""
    if not values.size:
        return values.astype(dtype)
    if values.dtype.kind not in "iu":
        raise ValueError(f"column {name} holds {values.dtype}, expected whole numbers")
    limits = np.iinfo(dtype)  # type: ignore[type-var]  # every column is of an integer type
    if int(values.min()) < limits.min or int(values.max()) > limits.max:
        raise ValueError(f"column {name} holds a value outside {limits.min} to {limits.max}")
    return values.astype(dtype)


def _empty() -> Column:
    return np.empty(0, dtype=np.int64)


class HolderTable(msgspec.Struct, frozen=True, eq=False):
    """One row for each (pod, container, device) that was seen, as read-only columns of equal length.

    Activity columns are in 1/10,000 (`MISSING_ACTIVITY` where nothing was seen), memory in MiB (`MISSING_MIB`),
    times in ms. `pod` indexes `Snapshot.pods`, `source` indexes `Telemetry.sources`.
    `samples`, `mean` and `peak` cover the evidence window, `history_*` the longer history window;
    `history_busiest` is the highest mean of any evidence window in the history, a peak that lasted.
    Memory peaks cover both windows. `shares` is into how many shares the board is divided, 1 for a whole board or a slice.
    """

    device: tuple[str, ...] = ()
    container: tuple[str, ...] = ()
    pod: Column = msgspec.field(default_factory=_empty)
    source: Column = msgspec.field(default_factory=_empty)
    samples: Column = msgspec.field(default_factory=_empty)
    mean: Column = msgspec.field(default_factory=_empty)
    peak: Column = msgspec.field(default_factory=_empty)
    last_ms: Column = msgspec.field(default_factory=_empty)
    history_samples: Column = msgspec.field(default_factory=_empty)
    history_p95: Column = msgspec.field(default_factory=_empty)
    history_peak: Column = msgspec.field(default_factory=_empty)
    history_busiest: Column = msgspec.field(default_factory=_empty)
    history_first_ms: Column = msgspec.field(default_factory=_empty)
    memory_peak_mib: Column = msgspec.field(default_factory=_empty)
    memory_total_mib: Column = msgspec.field(default_factory=_empty)
    flags: Column = msgspec.field(default_factory=_empty)
    shares: Column = msgspec.field(default_factory=_empty)

    def __post_init__(self) -> None:
        if not len(self.shares):  # tables of before there were shares
            msgspec.structs.force_setattr(self, "shares", np.ones(len(self.device), dtype=np.uint16))
        for name, dtype in _DTYPES.items():
            column = _exact(name, np.array(getattr(self, name)), dtype)
            if column.shape != (len(self.device),):
                raise ValueError(f"column {name} has shape {column.shape}, expected ({len(self.device)},)")
            column.flags.writeable = False
            msgspec.structs.force_setattr(self, name, column)
        if len(self.container) != len(self.device):
            raise ValueError("column container has another length than column device")

    def __len__(self) -> int:
        return len(self.device)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HolderTable):
            return NotImplemented
        return (
            self.device == other.device
            and self.container == other.container
            and all(np.array_equal(getattr(self, n), getattr(other, n)) for n in _DTYPES)
        )

    __hash__ = None  # type: ignore[assignment]  # columns are compared, never hashed


class Source(msgspec.Struct, frozen=True):
    """A live exporter profile: which signal was read, by which queries, at which sample interval.

    `query_names` says of each query what it asks for, in the words of the reader's columns; empty where it is not known.
    """

    profile: str
    signal: str
    interval_ms: Span
    interval_measured: bool
    queries: tuple[str, ...] = ()
    series: int = 0
    query_names: tuple[str, ...] = ()


_FULL_CACHE: Final = 8_000


class ServingUse(msgspec.Struct, frozen=True):
    """What an inference server says of its demand over the evidence window; `pod` indexes `Snapshot.pods`.

    Peaks of requests that wait and run, of the cache in 1/10,000, and in how many samples a counter of requests or tokens
    changed (a restart counts as a change); None where the server has no such series. `samples` are those of the gauge
    seen least, out of `expected`.
    """

    pod: int
    server: str
    samples: int
    expected: int
    queue_peak: float | None = None
    running_peak: float | None = None
    cache_peak: int | None = None
    counter_moves: int | None = None

    @property
    def is_active(self) -> bool:
        """Any positive sign of use."""
        in_cache = self.cache_peak is not None and self.cache_peak > ACTIVITY_SCALE // 100
        return in_cache or any((self.queue_peak, self.running_peak, self.counter_moves))

    @property
    def wants_all(self) -> bool:
        """Requests had to wait or the cache was all but full: whatever the boards' activity, nothing can be spared."""
        return bool(self.queue_peak) or (self.cache_peak or 0) >= _FULL_CACHE

    @property
    def proves_idle(self) -> bool:
        """Requests in hand and a counter are known for the whole window, and all of them are still."""
        gauge = self.running_peak if self.running_peak is not None else self.queue_peak
        known = gauge is not None and self.counter_moves is not None
        return known and not self.is_active and self.samples >= self.expected > 0


class UnownedDevice(msgspec.Struct, frozen=True):
    """A device with samples and no owner: its node (empty where unknown) and its peak activity in 1/10,000."""

    device: str
    node: str
    peak: int


class Telemetry(msgspec.Struct, frozen=True):
    """What the metrics store said for this snapshot.

    `fault` is empty when every query was answered; `warnings` are the store's own and make everything partial.
    `store_ms` is the store's clock at the queries, -1 where it never answered; `skew_ms` is store minus API server.
    `read_ms` is how long the whole reading took: the evidence is that much older when the snapshot is taken.
    `source_job` is the pattern that pins the trusted scrape jobs (empty: unpinned) and `jobs` are those seen; `untrusted`
    names each profile that several jobs publish and that was not read for it, with its jobs.
    `unowned` are devices whose series name no pod; `ghosts` counts series of pods that the API server does not know.
    `unattributed` counts the series with samples in the window that are no live pod's, by one of `UNATTRIBUTED`.
    """

    fault: str = ""
    warnings: tuple[str, ...] = ()
    store_ms: Instant = -1
    skew_ms: Span = 0
    window_ms: Span = 0
    history_window_ms: Span = 0
    lag_ms: Span = 0
    read_ms: Span = 0
    source_job: str = ""
    jobs: tuple[str, ...] = ()
    untrusted: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    serving: tuple[ServingUse, ...] = ()
    unowned: tuple[UnownedDevice, ...] = ()
    dropped: dict[str, int] = {}
    ghosts: int = 0
    unattributed: dict[str, int] = {}


class BoardUse(msgspec.Struct, frozen=True):
    """Use of one board: activity in 1/10,000 over the window and the history, memory in MiB (None: unknown)."""

    device: str
    mean: int
    peak: int
    history_p95: int
    history_peak: int
    history_busiest: int
    memory_peak_mib: int | None = None
    memory_total_mib: int | None = None
    shares: int = 1
    clamped: bool = False


class Measured(msgspec.Struct, frozen=True, tag=True):
    """Enough fresh samples of every board held: the only observation that can lead to less."""

    boards: tuple[BoardUse, ...]
    coverage: float
    age_ms: int
    history_ms: int
    signal: str


class Partial(msgspec.Struct, frozen=True, tag=True):
    """Samples exist, but too few or not of every board held."""

    why: str
    coverage: float = 0.0


class Stale(msgspec.Struct, frozen=True, tag=True):
    """The newest sample is too old."""

    why: str
    age_ms: int


class Absent(msgspec.Struct, frozen=True, tag=True):
    """No sample at all."""

    why: str


class Unattributed(msgspec.Struct, frozen=True, tag=True):
    """Series exist that cannot be tied to the unit."""

    why: str


class Contradictory(msgspec.Struct, frozen=True, tag=True):
    """Signals disagree with each other."""

    why: str


class Shared(msgspec.Struct, frozen=True, tag=True):
    """The board is shared, so its figures are no single unit's use."""

    why: str


Observation: TypeAlias = Measured | Partial | Stale | Absent | Unattributed | Contradictory | Shared
