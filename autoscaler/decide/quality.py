"""How good the figures are that a workload's verdict rests on: which source, how much of the window, how old."""

from autoscaler.decide.evidence import coverage_of, reason_of
from autoscaler.decide.fleet_health import is_judged
from autoscaler.decide.proposal import Judged
from autoscaler.decide.world import World
from autoscaler.model.evidence import Measured
from autoscaler.model.quality import Quality


def quality_of(world: World, judged: Judged) -> Quality:
    """The data quality of one workload; of a unit that is not measured, what was seen of it all the same."""
    case, observations = judged.case, judged.assessment.observations
    pairs = [
        (unit, observation)
        for unit, observation in zip(case.units, observations, strict=True)
        if is_judged(world, unit, case.resource)
    ]
    rows = _rows(world, judged)
    source = world.snapshot.telemetry.sources[int(world.snapshot.holders.source[rows[0]])] if rows else None
    return Quality(
        judged=len(pairs),
        measured=sum(isinstance(observation, Measured) for _, observation in pairs),
        profile=source.profile if source else "",
        signal=source.signal if source else "",
        interval_ms=source.interval_ms if source else 0,
        interval_measured=source.interval_measured if source else False,
        coverage=round(coverage_of(world, rows), 4) if rows else None,
        age_ms=_age_ms(world, rows) if rows else None,
        doubt=doubt_of(judged),
    )


def doubt_of(judged: Judged) -> str:
    """The first unit that is not measured and why; empty where all are."""
    for unit, observation in zip(judged.case.units, judged.assessment.observations, strict=True):
        if not isinstance(observation, Measured):
            return f"pod {unit.pod.name}: {reason_of(observation)}: {observation.why}"
    return ""


def _rows(world: World, judged: Judged) -> tuple[int, ...]:
    """All units' rows of one source: the one that the verdict rests on, else the one that says most."""
    holders, sources = world.snapshot.holders, world.snapshot.telemetry.sources
    found: dict[int, list[int]] = {}
    for unit in judged.case.units:
        for row in world.holder_rows.get(unit.index, ()):
            found.setdefault(int(holders.source[row]), []).append(row)
    measured = judged.assessment.measured
    used = measured[0].signal if measured else ""
    best = min(
        found, key=lambda source: (sources[source].signal != used, -len(found[source]), source), default=-1
    )
    return tuple(found.get(best, ()))


def _age_ms(world: World, rows: tuple[int, ...]) -> int:
    """Of the board whose newest sample is the oldest; none is younger than no time at all."""
    telemetry, holders = world.snapshot.telemetry, world.snapshot.holders
    oldest_ms = min(int(holders.last_ms[row]) for row in rows)
    return max(0, telemetry.store_ms - oldest_ms + max(telemetry.read_ms, 0))
