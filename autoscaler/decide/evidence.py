"""From columns to a typed observation of one unit: missing, stale, partial and zero are different things."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, assert_never

from autoscaler.decide.world import Unit, World, accelerators, is_board
from autoscaler.model.duration import format_duration
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
    Absent,
    BoardUse,
    Contradictory,
    Measured,
    Observation,
    Partial,
    ServingUse,
    Shared,
    Source,
    Stale,
    Unattributed,
)
from autoscaler.model.reasons import Reason

_PRODUCT: Final = "nvidia.com/gpu.product"
_REPLICAS: Final = "nvidia.com/gpu.replicas"
_PART: Final = re.compile("[/#]")
"""Devices that are slices or shares are named `board/slice` and `board#share`."""


def observe_unit(world: World, unit: Unit, *, held: int) -> Observation:
    """What is known of a unit that holds `held` boards; `Measured` only if every rule of the evidence holds."""
    telemetry = world.snapshot.telemetry
    if telemetry.fault or telemetry.store_ms < 0:
        return Absent(f"the metrics store: {telemetry.fault or 'it never answered'}")
    rows = world.holder_rows.get(unit.index, ())
    if not rows:
        return _nothing_seen(world, unit)
    chosen = _primary_rows(world, rows, held)
    return (
        _shared(world, unit, rows)
        or _not_its_own(world, unit, rows)
        or _doubt(world, unit, rows, chosen)
        or _incomplete(world, chosen, held)
        or _incoherent(world, chosen)
        or _too_old(world, chosen)
        or _thin(world, unit, chosen)
        or _denied(world, unit, chosen)
        or _measured(world, unit, chosen)
    )


def reason_of(observation: Observation) -> Reason | None:
    """The refusal that an observation leads to; None for `Measured`."""
    match observation:
        case Measured():
            return None
        case Partial():
            return Reason.EVIDENCE_PARTIAL
        case Stale():
            return Reason.EVIDENCE_STALE
        case Absent():
            return Reason.EVIDENCE_ABSENT
        case Unattributed():
            return Reason.EVIDENCE_UNATTRIBUTED
        case Contradictory():
            return Reason.EVIDENCE_CONTRADICTORY
        case Shared():
            return Reason.SHARED_BOARD
        case _:
            assert_never(observation)


def _nothing_seen(world: World, unit: Unit) -> Observation:
    if untrusted := world.snapshot.telemetry.untrusted:
        return Unattributed(
            f"several scrape jobs publish GPU series ({'; '.join(untrusted)}): set evidence.sourceJob"
        )
    node, boards = unit.pod.node, world.policy.resources.boards
    unowned = len(world.unowned.get(node, ()))
    free = sum(max(0, amount) for name, amount in world.free.get(node, {}).items() if name in boards)
    if unowned > free:
        return Unattributed(f"{unowned} boards on {node} have samples without owner, {free} are free")
    lost = len(world.unowned.get("", ()))
    if lost:
        return Unattributed(f"{lost} boards have samples that name neither a pod nor a node that is known")
    # Where nothing at all is attributed, series of others are the likeliest cause; else they say nothing of this unit.
    told = world.snapshot.telemetry.unattributed if not len(world.snapshot.holders) else {}
    others = sum(told.get(why, 0) for why in ("exporter", "mistaken", "ghost"))
    if others:
        return Unattributed(
            f"{others} series name pods that cannot be their boards' owners, such as the exporter's own"
        )
    return Absent(f"no sample in {format_duration(world.snapshot.telemetry.window_ms)}")


def _primary_rows(world: World, rows: tuple[int, ...], held: int) -> tuple[int, ...]:
    """The rows of the best source: the first that names every board held, else the one that names most."""
    by_source: dict[int, list[int]] = {}
    for row in rows:
        by_source.setdefault(int(world.snapshot.holders.source[row]), []).append(row)

    def rank(item: tuple[int, list[int]]) -> tuple[bool, bool, int, int]:
        source, found = item
        pod_scope = _flagged(world, found, POD_SCOPE) > 0
        return (len(found) != held, pod_scope, -len(found), source)

    return tuple(min(by_source.items(), key=rank)[1])


def _flagged(world: World, rows: Iterable[int], flag: int) -> int:
    return sum(1 for row in rows if int(world.snapshot.holders.flags[row]) & flag)


def _shared(world: World, unit: Unit, rows: tuple[int, ...]) -> Observation | None:
    if _flagged(world, rows, SHARED):
        return Shared("several pods were seen on one of its boards inside the window")
    if any((unit.pod.node, world.snapshot.holders.device[row]) in world.crowded for row in rows):
        return Shared("another pod is seen on one of its boards")
    if _flagged(world, rows, CROWDED):
        return Shared(
            f"the pods on {unit.pod.node} hold more boards than have samples there, and the node does not say "
            f"whether a unit is a whole board ({_REPLICAS})"
        )
    node = world.nodes.get(unit.pod.node)
    meaning = divided_boards(node.labels) if node else ""
    if all(int(world.snapshot.holders.shares[row]) > 1 for row in rows) or _sliced(world, rows):
        # Every figure is of its own share or slice: how the node divides its boards takes nothing from it.
        return None
    return Shared(f"on {unit.pod.node} a unit is no whole board: {meaning}") if meaning else None


def _not_its_own(world: World, unit: Unit, rows: tuple[int, ...]) -> Observation | None:
    """A whole board's figure is no figure of a slice or share of it, not even where it is 0: some exporters cannot tell."""
    held = accelerators(unit.shape.demand, world.policy.resources)
    parts = [name for name in held if not is_board(name, world.policy.resources)]
    if not parts or len(parts) < len(held) or _flagged(world, rows, POD_SCOPE):
        return None
    whole = [row for row in rows if not _PART.search(world.snapshot.holders.device[row])]
    return Shared(f"it holds {parts[0]}, and the samples are of a whole board") if whole else None


def _sliced(world: World, rows: Iterable[int]) -> bool:
    """Whether every row is of a hardware partition of its own."""
    return all("/" in world.snapshot.holders.device[row] for row in rows)


def divided_boards(labels: Mapping[str, str]) -> str:
    """The node label that says that what is counted are shares or slices of boards; empty where none does.

    Source: NVIDIA gpu-feature-discovery, which describes time-slicing and `mig.strategy: single` this way.
    """
    product, replicas = labels.get(_PRODUCT, ""), labels.get(_REPLICAS, "1")
    if product.endswith("-SHARED") or "-MIG-" in product:
        return f"{_PRODUCT}={product}"
    return f"{_REPLICAS}={replicas}" if replicas not in {"0", "1"} else ""


def _doubt(world: World, unit: Unit, rows: tuple[int, ...], chosen: tuple[int, ...]) -> Observation | None:
    if _flagged(world, rows, CONTRADICTORY):
        return Contradictory(
            "activity is 0 while power, memory traffic, a kernel of late or the whole board says otherwise"
        )
    if _flagged(world, rows, FROZEN):
        window = format_duration(world.snapshot.telemetry.window_ms)
        return Stale(
            f"the energy counter has not moved in {window}: the exporter serves old values",
            age_ms=world.snapshot.telemetry.window_ms,
        )
    evidence, holders = world.policy.evidence, world.snapshot.holders
    floor = evidence.active_floor * ACTIVITY_SCALE
    others = [
        int(holders.peak[r]) for r in rows if r not in chosen and int(holders.peak[r]) != MISSING_ACTIVITY
    ]
    seen, told = max(int(holders.peak[r]) for r in chosen), max(others, default=0)
    if told >= floor > seen or told > evidence.idle_ceiling * ACTIVITY_SCALE >= seen:
        return Contradictory("one exporter says idle, another says active")
    for device in world.unowned.get("", ()) if world.hides_boards(unit.pod.node) else ():
        if device.peak >= floor:
            return Contradictory(f"a busy board without owner on a node that is not known: {device.device}")
    for device in world.unowned.get(unit.pod.node, ()):
        if device.peak >= floor:
            return Contradictory(f"a busy board without owner on {device.node}: {device.device}")
    return None


def _incomplete(world: World, rows: tuple[int, ...], held: int) -> Observation | None:
    if world.snapshot.telemetry.warnings:
        return Partial(f"the metrics store warned: {world.snapshot.telemetry.warnings[0]}")
    if _flagged(world, rows, POD_SCOPE) and held > 1:
        return Partial(f"one value for {held} boards says nothing about each")
    if len(rows) > held:
        return Contradictory(f"{len(rows)} boards seen, {held} held")
    if len(rows) < held:
        return Partial(f"{len(rows)} of {held} boards seen", coverage=len(rows) / held)
    holders = world.snapshot.holders
    if len({holders.device[row] for row in rows}) < len(rows):
        return Contradictory("one board is reported twice")
    if _flagged(world, rows, DROPPED):
        return Partial("samples of a board were no numbers or out of range")
    if _flagged(world, rows, UNPROVEN):
        return Partial("a share's activity is 0, and neither an empty memory nor its last kernel confirms it")
    if any(int(holders.samples[row]) == 0 for row in rows):
        return Partial("a board has no sample in the window")
    columns = (holders.mean, holders.peak, holders.history_p95, holders.history_peak, holders.history_busiest)
    if any(int(column[row]) == MISSING_ACTIVITY for row in rows for column in columns):
        return Partial("a board has no readable activity")
    return None


def _incoherent(world: World, rows: tuple[int, ...]) -> Observation | None:
    """Figures that no series can have; one step of rounding is forgiven."""
    holders = world.snapshot.holders
    for row in rows:
        mean, peak, p95 = int(holders.mean[row]), int(holders.peak[row]), int(holders.history_p95[row])
        if mean > peak + 1:
            return Contradictory(f"{holders.device[row]}: the mean is over the peak")
        if p95 > max(peak, int(holders.history_peak[row])) + 1:
            return Contradictory(f"{holders.device[row]}: the percentile is over the peak")
    return None


def _source(world: World, rows: tuple[int, ...]) -> Source:
    return world.snapshot.telemetry.sources[int(world.snapshot.holders.source[rows[0]])]


def _ages_ms(world: World, rows: tuple[int, ...]) -> list[int]:
    """Of each board's newest sample by the store's clock, which it may be ahead of."""
    return [world.snapshot.telemetry.store_ms - int(world.snapshot.holders.last_ms[row]) for row in rows]


def _age_ms(world: World, rows: tuple[int, ...]) -> int:
    """Of the oldest of them when the snapshot was taken: reading them took its time."""
    return max(_ages_ms(world, rows)) + max(world.snapshot.telemetry.read_ms, 0)


def _too_old(world: World, rows: tuple[int, ...]) -> Observation | None:
    telemetry, evidence = world.snapshot.telemetry, world.policy.evidence
    allowed_ms = 2 * _source(world, rows).interval_ms + min(max(telemetry.lag_ms, 0), evidence.max_lag)
    age_ms = _age_ms(world, rows)
    if age_ms > allowed_ms:
        limit = format_duration(allowed_ms)
        return Stale(f"newest sample is {format_duration(age_ms)} old, {limit} allowed", age_ms=age_ms)
    ahead_ms = -min(_ages_ms(world, rows))
    if ahead_ms > allowed_ms:
        return Contradictory(f"newest sample is {format_duration(ahead_ms)} ahead of the store's clock")
    return None


def coverage_of(world: World, rows: tuple[int, ...]) -> float:
    """Samples seen / expected of the worst board over the evidence window, at most 1."""
    interval_ms = _source(world, rows).interval_ms
    expected = world.snapshot.telemetry.window_ms / interval_ms if interval_ms > 0 else 0.0
    if expected <= 0:
        return 0.0
    return min(1.0, min(int(world.snapshot.holders.samples[row]) for row in rows) / expected)


def _thin(world: World, unit: Unit, rows: tuple[int, ...]) -> Observation | None:
    coverage, least = coverage_of(world, rows), world.policy.evidence.min_coverage
    window_ms = world.snapshot.telemetry.window_ms
    if window_ms < world.policy.evidence.window:
        asked = format_duration(world.policy.evidence.window)
        return Partial(
            f"the snapshot covers {format_duration(window_ms)}, the policy asks for {asked}", coverage
        )
    interval_ms = _source(world, rows).interval_ms
    if 2 * interval_ms > window_ms:
        return Partial(
            f"a window of {format_duration(window_ms)} cannot be covered by samples every "
            f"{format_duration(interval_ms)}",
            coverage,
        )
    if coverage < least:
        return Partial(
            f"{coverage:.0%} of the samples of {format_duration(window_ms)}, {least:.0%} needed", coverage
        )
    if unit.pod.started_ms < 0:
        return Partial("the pod has no start time", coverage)
    return None


def _denied(world: World, unit: Unit, rows: tuple[int, ...]) -> Observation | None:
    """Boards at rest while the unit's inference server is at work, or not known to be idle as well."""
    ceiling = world.policy.evidence.idle_ceiling * ACTIVITY_SCALE
    if any(int(world.snapshot.holders.peak[row]) > ceiling for row in rows):
        return None
    for use in world.serving.get(unit.index, ()):
        if use.is_active:
            return Contradictory(f"activity is 0 while {use.server} says otherwise: {demand_of(use)}")
        if use.samples < use.expected or not use.expected:
            return Partial(
                f"{use.server} was seen in {use.samples} of {use.expected} samples: its idleness is not known",
                coverage_of(world, rows),
            )
    return None


def demand_of(use: ServingUse) -> str:
    """The signs of demand that a server gives, in words."""
    signs = (("waiting", use.queue_peak), ("running", use.running_peak), ("counter moves", use.counter_moves))
    return ", ".join(f"{name} {value:g}" for name, value in signs if value is not None)


def _known_mib(value: int) -> int | None:
    return None if value == MISSING_MIB else value


def _clamped(activity: Any) -> int:
    """An activity of at most one whole board."""
    return min(int(activity), ACTIVITY_SCALE)


def _measured(world: World, unit: Unit, rows: tuple[int, ...]) -> Measured:
    holders, source = world.snapshot.holders, _source(world, rows)
    boards = tuple(
        BoardUse(
            device=holders.device[row],
            mean=_clamped(holders.mean[row]),
            peak=_clamped(holders.peak[row]),
            history_p95=_clamped(holders.history_p95[row]),
            history_peak=_clamped(max(holders.history_peak[row], holders.peak[row])),
            history_busiest=_clamped(max(holders.history_busiest[row], holders.mean[row])),
            memory_peak_mib=_known_mib(int(holders.memory_peak_mib[row])),
            memory_total_mib=_known_mib(int(holders.memory_total_mib[row])),
            shares=max(1, int(holders.shares[row])),
            clamped=bool(int(holders.flags[row]) & CLAMPED),
        )
        for row in sorted(rows, key=lambda r: holders.device[r])
    )
    # Gaps do not count as history: it is the time that samples stand for, and never more than the span they lie in.
    sampled_ms = min(int(holders.history_samples[row]) * source.interval_ms for row in rows)
    store_ms = world.snapshot.telemetry.store_ms
    span_ms = store_ms - max(int(holders.history_first_ms[row]) for row in rows) + source.interval_ms
    alive_ms = store_ms - unit.pod.started_ms
    return Measured(
        boards=boards,
        coverage=coverage_of(world, rows),
        age_ms=_age_ms(world, rows),
        history_ms=max(0, min(sampled_ms, alive_ms, span_ms)),
        signal=source.signal,
    )
