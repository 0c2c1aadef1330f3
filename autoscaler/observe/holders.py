"""Series and owners become the holder table: who used which device how much, in integers.

What is not a number, infinite, negative or out of the profile's range is dropped here and counted by its reason; it
leaves a row without activity, never a zero.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from autoscaler.model.evidence import (
    ACTIVITY_SCALE,
    CLAMPED,
    CONTRADICTORY,
    CROWDED,
    DROPPED,
    FROZEN,
    MISSING_ACTIVITY,
    MISSING_MIB,
    POD_SCOPE,
    SHARED,
    UNPROVEN,
    HolderTable,
)
from autoscaler.observe.attribution import Ints, Owners, Roster
from autoscaler.observe.profiles import Memory, Profile
from autoscaler.observe.queries import covered_part_ms
from autoscaler.observe.series import (
    BoardColumns,
    Column,
    Floats,
    Identity,
    ProfileSeries,
    SeriesReading,
    SignalSeries,
    WindowColumns,
)

_TOLERANCE: Final = 1e-6
_QUIET: Final = ACTIVITY_SCALE // 100
"""Peak activity up to which much power is a contradiction: 1 % is the gauges' rounding."""
_MAX_MIB: Final = 16 * 1024 * 1024
_MAX_WATTS: Final = 100_000.0
_MAX_AGE_S: Final = 10 * 365 * 86_400.0

NOT_A_NUMBER: Final = "not-a-number"
INFINITE: Final = "infinite"
NEGATIVE: Final = "negative"
OUT_OF_RANGE: Final = "out-of-range"
CLAMPED_VALUES: Final = "clamped"
_CLAMPED_UP_TO: Final = 100.0
"""Times the full value up to which a clamped signal is believed to be over it; blank markers are far beyond."""

Flags: TypeAlias = npt.NDArray[np.bool_]


class Judged(msgspec.Struct, frozen=True):
    """Values that can be used: `good` marks them, all others are 0; `bad` marks those that were seen and dropped."""

    values: Floats
    good: Flags
    bad: Flags


def judge(columns: Sequence[Column], *, limit: float, dropped: Counter[str]) -> Judged:
    """The first column's values where all columns of a position are finite and within 0..limit.

    Each dropped position is counted once, by the first reason that applies.
    """
    seen = columns[0].seen
    nan, infinite, negative, beyond = (np.zeros(len(seen), dtype=np.bool_) for _ in range(4))
    for column in columns:
        present, values = column.seen, column.values
        nan |= present & np.isnan(values)
        infinite |= present & np.isinf(values)
        negative |= present & (values < 0)
        beyond |= present & (values > limit)
    reasons = {NOT_A_NUMBER: nan, INFINITE: infinite, NEGATIVE: negative, OUT_OF_RANGE: beyond}
    bad = np.zeros(len(seen), dtype=np.bool_)
    for reason, marks in reasons.items():
        fresh = marks & ~bad
        bad |= marks
        if fresh.any():
            dropped[reason] += int(fresh.sum())
    good = seen & ~bad
    return Judged(np.where(good, columns[0].values, 0.0), good, bad)


class Activity(msgspec.Struct, frozen=True):
    """One signal by position, activity in 1/10,000 (`MISSING_ACTIVITY` where unreadable)."""

    mean: Ints
    peak: Ints
    good: Flags
    bad: Flags
    clamped: Flags


def read_activity(signal: SignalSeries, *, dropped: Counter[str]) -> Activity:
    """The signal's window. A sum shows samples that were no numbers, which max and min over the window hide."""
    window = signal.window
    limit = _limit(signal)
    sums = judge((window.total,), limit=np.inf, dropped=Counter())
    extremes = judge((window.maximum, window.minimum), limit=limit, dropped=Counter())
    # Counted over all three columns, so that a position counts once; a sum has no upper limit of its own.
    finite = Column(np.where(np.isfinite(window.total.values), 0.0, window.total.values), window.total.seen)
    judge((window.maximum, window.minimum, finite), limit=limit, dropped=dropped)
    means = judge((window.mean,), limit=limit, dropped=Counter())
    good = extremes.good & sums.good & means.good & window.count.seen
    clamped = good & (extremes.values > signal.full * (1 + _TOLERANCE))
    if clamped.any():
        dropped[CLAMPED_VALUES] += int(clamped.sum())
    return Activity(
        mean=_scaled(means.values / signal.full, good),
        peak=_scaled(extremes.values / signal.full, good),
        good=good,
        bad=extremes.bad | sums.bad | means.bad,
        clamped=clamped,
    )


def _limit(signal: SignalSeries) -> float:
    """The highest value that is believed."""
    return signal.full * (_CLAMPED_UP_TO if signal.signal.over == "clamp" else 1 + _TOLERANCE)


class Boards(msgspec.Struct, frozen=True):
    """What is known beside activity, by position.

    A profile's memory in MiB (`MISSING_MIB`: unknown); the peak is of the window and the history, unknown where either's
    cannot be read. `powered` and `moved` say that a board works: by its power, by memory or bus traffic. `frozen` marks
    counters that stood still. `last_active_s` is since the owner's last kernel, -1 where unknown.
    """

    peak_mib: Ints
    total_mib: Ints
    powered: Flags
    moved: Flags
    frozen: Flags
    last_active_s: Floats
    bad: Flags


def read_boards(profile: Profile, boards: BoardColumns, *, dropped: Counter[str]) -> Boards:
    """Memory, power, traffic and counters; a bad value of the last three is only counted: it proves nothing either way."""
    per_mib = profile.memory.per_mib if profile.memory else 1
    limit = float(_MAX_MIB * per_mib)
    used = judge((boards.used,), limit=limit, dropped=dropped)
    past = judge((boards.past_used,), limit=limit, dropped=Counter())
    peak = np.maximum(used.values, past.values)
    total, bad_size = _size(profile.memory, boards, limit, dropped)
    age = judge((boards.last_active,), limit=_MAX_AGE_S, dropped=dropped)
    return Boards(
        peak_mib=np.where(used.good & ~past.bad, np.ceil(peak / per_mib), MISSING_MIB).astype(np.int64),
        total_mib=np.where(total.good, np.floor(total.values / per_mib), MISSING_MIB).astype(np.int64),
        powered=_powered(profile, boards, dropped),
        moved=_moved(profile, boards, dropped),
        frozen=_frozen(boards),
        last_active_s=np.where(age.good, age.values, -1.0),
        bad=used.bad | bad_size,
    )


def _powered(profile: Profile, boards: BoardColumns, dropped: Counter[str]) -> Flags:
    per_watt = profile.power.per_watt if profile.power else 1
    power = judge((boards.power,), limit=_MAX_WATTS * per_watt, dropped=dropped)
    idle_max = profile.power.idle_max_watts * per_watt if profile.power else np.inf
    return power.good & (power.values > idle_max)


def _moved(profile: Profile, boards: BoardColumns, dropped: Counter[str]) -> Flags:
    moved = np.zeros(len(boards.used.seen), dtype=np.bool_)
    for traffic, column in zip(profile.traffic, boards.traffic, strict=True):
        read = judge((column,), limit=np.inf, dropped=dropped)
        moved |= read.good & (read.values > traffic.quiet_max)
    return moved


def _frozen(boards: BoardColumns) -> Flags:
    """A counter of energy that stood still, lately or in any part of the window: even an idle board draws power."""
    frozen = np.zeros(len(boards.used.seen), dtype=np.bool_)
    for column in (boards.energy, boards.energy_least):
        frozen |= column.seen & (column.values == 0.0)
    return frozen


def _size(
    memory: Memory | None, boards: BoardColumns, limit: float, dropped: Counter[str]
) -> tuple[Judged, Flags]:
    """The board's size: as stated, or least used + most free (true at one instant, so no more than there is)."""
    if memory is None or memory.total is not None:
        total = judge((boards.total,), limit=limit, dropped=dropped)
        return total, total.bad
    least = judge((boards.least_used,), limit=limit, dropped=Counter())
    free = judge((boards.most_free,), limit=limit, dropped=dropped)
    kept = judge((boards.reserved,), limit=limit, dropped=dropped)
    good = least.good & free.good
    size = np.where(good, least.values + free.values + kept.values, 0.0)
    return Judged(size, good, least.bad | free.bad), free.bad


class HolderRows:
    """Collects the rows of all sources: by source, then pod, device and container."""

    def __init__(self, *, reading: SeriesReading, dropped: Counter[str]) -> None:
        self._reading = reading
        self._dropped = dropped
        self._device: list[str] = []
        self._container: list[str] = []
        self._columns: dict[str, list[npt.NDArray[Any]]] = {}
        self._sources = 0

    def add_profile(self, series: ProfileSeries, owners: Owners, roster: Roster) -> list[Activity]:
        """Adds the rows of a profile, each signal a source of its own in order; returns what was read of each."""
        boards = read_boards(series.profile, series.boards, dropped=self._dropped)
        order = _order(series, owners)
        read = []
        for signal in series.signals:
            activity = read_activity(signal, dropped=self._dropped)
            self._add_signal(series, signal, owners, roster, (order, activity, boards))
            self._sources += 1
            read.append(activity)
        return read

    def table(self) -> HolderTable:
        """The finished table."""
        joined = {name: np.concatenate(parts) for name, parts in self._columns.items()}
        return HolderTable(device=tuple(self._device), container=tuple(self._container), **joined)

    def _add_signal(
        self,
        series: ProfileSeries,
        signal: SignalSeries,
        owners: Owners,
        roster: Roster,
        parts: tuple[Ints, Activity, Boards],
    ) -> None:
        order, activity, boards = parts
        window, past = signal.window, signal.history
        void = np.array([signal.is_void(identity) for identity in series.identities], dtype=np.bool_)
        present = window.count.seen & ~void
        take = order[present[order]]
        starts_ms = np.zeros(len(void), dtype=np.int64)
        held = owners.codes >= 0
        starts_ms[held] = roster.starts_ms[owners.codes[held]]
        age_ms = np.maximum(self._reading.store_ms - starts_ms, 0)
        interval_ms = signal.source.interval_ms
        window_ms = np.minimum(age_ms, self._reading.window_ms)
        samples = np.where(
            activity.good,
            _samples(_distinct(window, self._reading.window_ms, interval_ms), window_ms, interval_ms),
            0,
        )
        past_ms = np.minimum(age_ms, self._reading.history_window_ms)
        # The history's parts do not reach up to now; the window's samples are part of it.
        history_samples = np.maximum(_samples(past.count.values, past_ms, interval_ms), samples)
        history = judge((past.p95, past.maximum, past.busiest), limit=_limit(signal), dropped=Counter())
        whole = history.good & ~judge((past.total,), limit=np.inf, dropped=Counter()).bad
        first_ms = np.where(past.first.seen, np.maximum(past.first.values * 1000.0, starts_ms), -1.0)
        columns: dict[str, npt.NDArray[Any]] = {
            "pod": owners.codes,
            "source": np.full(len(void), self._sources),
            "samples": samples,
            "mean": activity.mean,
            "peak": activity.peak,
            "last_ms": _times_ms(window.newest),
            "history_samples": history_samples,
            "history_p95": _scaled(past.p95.values / signal.full, whole),
            "history_peak": _scaled(past.maximum.values / signal.full, whole),
            # Without a mean of its own the history is no longer than the window.
            "history_busiest": np.where(
                past.busiest.seen | ~whole, _scaled(past.busiest.values / signal.full, whole), activity.mean
            ),
            "history_first_ms": first_ms.astype(np.int64),
            "memory_peak_mib": boards.peak_mib,
            "memory_total_mib": boards.total_mib,
            "shares": shares_of(series.identities),
            "flags": _flags(series, owners, activity, boards, window_ms=self._reading.window_ms),
        }
        for name, column in columns.items():
            self._columns.setdefault(name, []).append(column[take])
        self._device.extend(series.identities[i].device for i in take.tolist())
        self._container.extend(series.identities[i].container for i in take.tolist())


def shares_of(identities: Sequence[Identity]) -> Ints:
    """Into how many shares each position's board is divided: those that have series, 1 for a whole board or a slice."""
    found: dict[str, set[str]] = {}
    for identity in identities:
        if identity.share:
            found.setdefault(identity.board, set()).add(
                f"{identity.device} {identity.namespace}/{identity.pod}"
            )
    return np.array([len(found[i.board]) if i.share else 1 for i in identities], dtype=np.int64)


def _flags(
    series: ProfileSeries, owners: Owners, activity: Activity, boards: Boards, *, window_ms: int
) -> Ints:
    identities = series.identities
    share = np.array([identity.share for identity in identities], dtype=np.bool_)
    quiet = activity.good & (activity.peak <= _QUIET)
    lately = (boards.last_active_s >= 0) & (boards.last_active_s * 1000.0 < window_ms)
    board_busy = _board_peaks(series, activity) * ACTIVITY_SCALE > _QUIET
    long_ago = (boards.last_active_s >= 0) & ~lately
    alone = share & (shares_of(identities) == 1)
    at_work = _powered_at_rest(identities, activity, boards) | (boards.moved & ~share)
    proven = long_ago | (boards.peak_mib == 0) | ~board_busy
    frozen = _boards_with(identities, boards.frozen)
    flags = (
        owners.shared * SHARED
        + (quiet & (at_work | lately | (alone & board_busy))) * CONTRADICTORY
        + (activity.bad | boards.bad) * DROPPED
        + (series.profile.scope == "pod") * POD_SCOPE
        + np.array([i.board in frozen for i in identities], dtype=np.bool_) * FROZEN
        + (quiet & share & ~proven) * UNPROVEN
        + activity.clamped * CLAMPED
        + owners.crowded * CROWDED
    )
    return np.asarray(flags, dtype=np.int64)


def _boards_with(identities: Sequence[Identity], marks: Flags) -> frozenset[str]:
    """Boards of which any series is marked: what is read of a board holds for its slices and shares."""
    return frozenset(identities[i].board for i in np.flatnonzero(marks).tolist() if identities[i].board)


def _powered_at_rest(identities: Sequence[Identity], activity: Activity, boards: Boards) -> Flags:
    """Boards that draw power while everything on them is said to rest.

    Power is a board's: it cannot be charged to one of several slices or shares, but to all of them at once.
    """
    powered = _boards_with(identities, boards.powered)
    awake = _boards_with(identities, activity.good & (activity.peak > _QUIET))
    whole = np.array([not (i.sliced or i.share) for i in identities], dtype=np.bool_)
    at_rest = np.array([i.board in powered and i.board not in awake for i in identities], dtype=np.bool_)
    return np.asarray((boards.powered & whole) | at_rest, dtype=np.bool_)


def _board_peaks(series: ProfileSeries, activity: Activity) -> Floats:
    """The peak of each position's whole board as a share of 1: by the board's own series, else by a row without owner.

    A board of which nothing is known counts as busy: its shares' zeros are not proven by it.
    """
    peaks: dict[str, float] = dict(series.board_peaks)
    for i, identity in enumerate(series.identities):
        if not identity.pod and not identity.share and not identity.sliced and activity.good[i]:
            peaks[identity.board] = max(
                peaks.get(identity.board, 0.0), float(activity.peak[i]) / ACTIVITY_SCALE
            )
    return np.array([peaks.get(identity.board, 1.0) for identity in series.identities])


def _order(series: ProfileSeries, owners: Owners) -> Ints:
    """Positions that have a pod, in the order of the table: the same for equal input in any order."""
    identities, codes = series.identities, owners.codes.tolist()
    owned = [i for i, code in enumerate(codes) if code >= 0]
    owned.sort(key=lambda i: (codes[i], identities[i].device, identities[i].container, identities[i].uid))
    return np.array(owned, dtype=np.int64)


def _scaled(share: Floats, good: Flags) -> Ints:
    """Shares of 1 as integers in 1/10,000."""
    usable = np.where(good, share, 0.0)
    scaled = np.clip(np.rint(usable * ACTIVITY_SCALE), 0, ACTIVITY_SCALE)
    return np.where(good, scaled, MISSING_ACTIVITY).astype(np.int64)


def _times_ms(column: Column) -> Ints:
    usable = column.seen & np.isfinite(column.values)
    return np.where(usable, np.rint(np.where(usable, column.values, 0.0) * 1000.0), -1).astype(np.int64)


def _distinct(window: WindowColumns, window_ms: int, interval_ms: int) -> Floats:
    """Samples of the window, copies of one sample counted once; never more than there are.

    A position without a covered part has samples only after the newest part's end: no more than one part holds.
    """
    one_part = covered_part_ms(window_ms) // interval_ms + 1 if interval_ms > 0 else 0
    return np.minimum(window.count.values, np.where(window.covered.seen, window.covered.values, one_part))


def _samples(counted: Floats, span_ms: Ints, interval_ms: int) -> Ints:
    """The samples that can be the pod's: no more than fit into the window and the time since its start.

    An earlier pod of the same name may have left the others.
    """
    fitting = np.minimum(counted, span_ms // interval_ms + 1) if interval_ms > 0 else counted
    return np.floor(fitting).astype(np.int64)
