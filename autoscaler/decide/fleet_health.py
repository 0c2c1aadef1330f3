"""The fleet's evidence as a whole: how many units are measured, and whether it is the monitoring that fails.

Coverage and attribution are compared over the same units, now and before. So workloads that end, start or scale, and
pods that are replaced, are no fall: who was not judged before has lost nothing, and who is gone is asked nothing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from autoscaler.decide.assess import Assessment
from autoscaler.decide.world import Case, Unit, World, is_board
from autoscaler.model.breaker import FleetHealth, FleetWatch, Sight
from autoscaler.model.duration import LATEST_MS, format_duration
from autoscaler.model.evidence import POD_SCOPE, Measured, Observation

_UNKNOWN = Sight()


@dataclass(slots=True)
class _Count:
    """The judged units by what is known of them; `known` ones were judged before, `lost` ones were measured then.

    Of the known units whose boards have samples at all (`named`), `unnamed` ones were seen before and no longer are.
    """

    units: int = 0
    measured: int = 0
    seen: int = 0
    unattributed: int = 0
    known: int = 0
    lost: int = 0
    named: int = 0
    unnamed: int = 0
    sights: dict[str, Sight] = field(default_factory=dict)


def fleet_health(world: World, assessed: Iterable[tuple[Case, Assessment]]) -> tuple[FleetHealth, FleetWatch]:
    """How the evidence of the fleet stands, and what the next cycle has to know of it."""
    count, now_ms = _count(world, assessed), world.now_ms
    before, window_ms = world.snapshot.watch, int(world.policy.evidence.window)
    failing = _incident(world, count)
    incident_ms, incident = (now_ms, failing) if failing else (before.incident_ms, before.incident)
    is_recent = incident_ms >= 0 and now_ms - incident_ms < window_ms
    frozen = failing or _too_few(world, count)
    if is_recent and not frozen:
        frozen = _recovering(now_ms, before, window_ms)
    since_ms = (before.since_ms if before.since_ms >= 0 else now_ms) if frozen else -1
    health = FleetHealth(
        units=count.units,
        measured=count.measured,
        seen=count.seen,
        unattributed=count.unattributed,
        frozen=frozen,
        since_ms=since_ms,
        until_ms=min(incident_ms + window_ms, LATEST_MS) if is_recent else -1,
    )
    return health, FleetWatch(
        units=count.sights,
        incident=incident if is_recent else "",
        incident_ms=incident_ms if is_recent else -1,
        since_ms=since_ms,
    )


def _incident(world: World, count: _Count) -> str:
    """What fails right now, in words; empty where nothing does."""
    telemetry, evidence = world.snapshot.telemetry, world.policy.evidence
    if telemetry.fault or telemetry.store_ms < 0:
        return f"the metrics store did not answer: {telemetry.fault or 'it never has'}"
    if telemetry.warnings:
        return f"the metrics store answered in part: {telemetry.warnings[0]}"
    within = format_duration(evidence.fleet_fall_within)
    if _falls(count.unnamed, count.named, evidence.fleet_fall):
        points = f"attribution fell by {count.unnamed / count.named:.0%} within {within}"
        return f"{points}: {count.unnamed} of {count.named} units have boards whose samples name nobody now"
    if _falls(count.lost, count.known, evidence.fleet_fall):
        points = f"coverage fell by {count.lost / count.known:.0%} within {within}"
        return f"{points}: {count.lost} of {count.known} units are measured no longer"
    if count.units and count.seen / count.units < evidence.fleet_coverage:
        return _too_few(world, count)
    return ""


def _falls(lost: int, of: int, share: float) -> bool:
    return lost > 0 and lost / of >= share


def _too_few(world: World, count: _Count) -> str:
    least = world.policy.evidence.fleet_coverage
    if count.units and count.measured / count.units < least:
        return f"{count.measured} of {count.units} units measured, {least:.0%} needed"
    return ""


def _recovering(now_ms: int, watch: FleetWatch, window_ms: int) -> str:
    """Samples of the incident's time are still in the window: less of them than there should be, or whoever's they are."""
    ago_ms = max(0, now_ms - watch.incident_ms)
    ago, left = (format_duration(ms // 1000 * 1000) for ms in (ago_ms, window_ms - ago_ms + 999))
    needed = f"a full window of {format_duration(window_ms)} is needed after an incident"
    return f"{needed}, which was seen {ago} ago ({watch.incident}): {left} to go"


def is_judged(world: World, unit: Unit, resource: str) -> bool:
    """Whether it runs, is old enough and holds something; a younger unit is not blind, it is new, and who leaves is gone."""
    pod, needed_ms = unit.pod, max(world.policy.methods.start_grace, world.policy.evidence.window)
    is_old = pod.started_ms >= 0 and world.now_ms - pod.started_ms >= needed_ms
    return pod.phase == "Running" and is_old and not pod.deleting and unit.shape.demand.get(resource, 0) > 0


def _judged(
    world: World, assessed: Iterable[tuple[Case, Assessment]]
) -> Iterator[tuple[Case, Unit, Observation]]:
    for case, assessment in assessed:
        if is_board(case.resource, world.policy.resources):
            for unit, observation in zip(case.units, assessment.observations, strict=True):
                if is_judged(world, unit, case.resource):
                    yield case, unit, observation


def _count(world: World, assessed: Iterable[tuple[Case, Assessment]]) -> _Count:
    count, before = _Count(), world.snapshot.watch.units
    now_ms, within_ms = world.now_ms, int(world.policy.evidence.fleet_fall_within)
    spare: dict[str, int] = {}
    sights: dict[Sight, Sight] = {}
    for case, unit, observation in _judged(world, assessed):
        past = before.get(unit.pod.uid)
        is_measured = isinstance(observation, Measured)
        is_seen = is_measured or _is_seen(world, unit, case.resource)
        is_nameless = not is_seen and _spare_boards(world, unit.pod.node, spare) > 0
        count.units += 1
        count.measured += is_measured
        count.seen += is_seen
        count.unattributed += is_nameless
        was = past or _UNKNOWN
        was_measured, was_seen = (
            then >= 0 and now_ms - then <= within_ms for then in (was.measured_ms, was.seen_ms)
        )
        count.known += past is not None
        count.lost += was_measured and not is_measured
        count.named += past is not None and (is_seen or is_nameless)
        count.unnamed += was_seen and is_nameless
        sight = Sight(
            now_ms if is_measured else was.measured_ms if was_measured else -1,
            now_ms if is_seen else was.seen_ms if was_seen else -1,
        )
        count.sights[unit.pod.uid] = sights.setdefault(sight, sight)
    return count


def _is_seen(world: World, unit: Unit, resource: str) -> bool:
    """Whether every board that the unit holds has a sample of its own that is not too old."""
    holders, telemetry = world.snapshot.holders, world.snapshot.telemetry
    lag_ms = min(max(telemetry.lag_ms, 0), world.policy.evidence.max_lag)
    taken_ms = telemetry.store_ms + max(telemetry.read_ms, 0)
    fresh: set[str] = set()
    for row in world.holder_rows.get(unit.index, ()):
        interval_ms = telemetry.sources[int(holders.source[row])].interval_ms
        if taken_ms - int(holders.last_ms[row]) > 2 * interval_ms + lag_ms:
            continue
        if int(holders.flags[row]) & POD_SCOPE:
            return True
        fresh.add(holders.device[row])
    return len(fresh) >= unit.shape.demand.get(resource, 0)


def _spare_boards(world: World, node: str, known: dict[str, int]) -> int:
    """Boards of a node that have samples without an owner, beyond those that nobody holds."""
    if node not in known:
        boards = world.policy.resources.boards
        free = sum(max(0, amount) for name, amount in world.free.get(node, {}).items() if name in boards)
        known[node] = max(0, len(world.unowned.get(node, ())) - free)
    return known[node]
