"""Everything that is known of one workload: queries with their answers, what would change its verdict, what to type.

Asked for by name, one workload at a time: a plan of a large fleet would not carry it.
"""

import shlex
from collections.abc import Iterable
from typing import Final

import msgspec

from autoscaler.decide.assess import Assessment, assess
from autoscaler.decide.evidence import demand_of, reason_of
from autoscaler.decide.marks import DO_NOT_DISRUPT
from autoscaler.decide.terms import terms_of
from autoscaler.decide.world import Case, World
from autoscaler.model.cluster import WorkloadRef
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
    Source,
)
from autoscaler.model.plan import ExplainRow
from autoscaler.model.policy import Policy
from autoscaler.model.quality import MOST_BOARDS, BoardFigures, Explanation, Query
from autoscaler.model.reasons import CATALOGUE
from autoscaler.model.snapshot import Snapshot

_MARKS: Final = (
    (SHARED, "shared"),
    (CONTRADICTORY, "contradictory"),
    (DROPPED, "samples dropped"),
    (POD_SCOPE, "of the whole pod"),
    (FROZEN, "frozen"),
    (UNPROVEN, "unproven"),
    (CLAMPED, "over full"),
    (CROWDED, "crowded"),
)
_FIGURES: Final[dict[str, tuple[str, ...]]] = {
    "window.maximum": ("peak",),
    "window.mean": ("mean",),
    "window.count": ("samples",),
    "window.covered": ("samples",),
    "window.newest": ("newest_ms",),
    "history.p95": ("history_p95",),
    "history.maximum": ("history_peak",),
    "history.busiest": ("history_busiest",),
    "history.count": ("history_samples",),
    "history.first": ("history_first_ms",),
    "board.used": ("memory_peak_mib",),
    "board.total": ("memory_total_mib",),
    "board.least_used": ("memory_total_mib",),
    "board.most_free": ("memory_total_mib",),
    "board.reserved": ("memory_total_mib",),
}
"""What each query's answer became, by the name that the reader gives it; all others lead to marks or to the interval."""


def explain_fully(
    snapshot: Snapshot, policy: Policy, now_ms: int, rows: Iterable[ExplainRow]
) -> tuple[ExplainRow, ...]:
    """The rows of a plan of this snapshot and policy, each with its explanation."""
    world = World(snapshot, policy, now_ms)
    index = {workload.ref: number for number, workload in enumerate(snapshot.workloads)}
    return tuple(
        msgspec.structs.replace(row, explanation=_explanation(world, world.case(index[row.workload])))
        for row in rows
    )


def _explanation(world: World, case: Case) -> Explanation:
    snapshot, assessment = world.snapshot, assess(world, case)
    rows = [(unit, row) for unit in case.units for row in world.holder_rows.get(unit.index, ())]
    used = sorted({int(snapshot.holders.source[row]) for _, row in rows})
    sources = [snapshot.telemetry.sources[number] for number in used]
    return Explanation(
        queries=tuple(query for source in sources for query in _queries(source)),
        boards=tuple(_figures(world, unit.pod.name, row) for unit, row in rows[:MOST_BOARDS]),
        left_out=max(0, len(rows) - MOST_BOARDS),
        store_ms=snapshot.telemetry.store_ms,
        servers=_servers(world, case),
        terms=terms_of(world, case, assessment),
        verdict_changes=verdict_changes(world, case, assessment),
        commands=_commands(snapshot, case.workload.ref),
    )


def _name(source: Source) -> str:
    return f"{source.profile} {source.signal}"


def _queries(source: Source) -> list[Query]:
    """The source's queries; one whose name is not known has no figures."""
    names = (
        source.query_names if len(source.query_names) == len(source.queries) else ("",) * len(source.queries)
    )
    return [
        Query(source=_name(source), asks=name, text=text, figures=_FIGURES.get(name, ()))
        for name, text in zip(names, source.queries, strict=True)
    ]


def _figures(world: World, pod: str, row: int) -> BoardFigures:
    holders = world.snapshot.holders
    flags = int(holders.flags[row])
    return BoardFigures(
        pod=pod,
        container=holders.container[row],
        device=holders.device[row],
        source=_name(world.snapshot.telemetry.sources[int(holders.source[row])]),
        mean=_share(int(holders.mean[row])),
        peak=_share(int(holders.peak[row])),
        samples=int(holders.samples[row]),
        newest_ms=int(holders.last_ms[row]),
        history_p95=_share(int(holders.history_p95[row])),
        history_peak=_share(int(holders.history_peak[row])),
        history_busiest=_share(int(holders.history_busiest[row])),
        history_samples=int(holders.history_samples[row]),
        history_first_ms=int(holders.history_first_ms[row]),
        memory_peak_mib=_mib(int(holders.memory_peak_mib[row])),
        memory_total_mib=_mib(int(holders.memory_total_mib[row])),
        marks=tuple(word for flag, word in _MARKS if flags & flag),
    )


def _share(activity: int) -> float | None:
    return None if activity == MISSING_ACTIVITY else activity / ACTIVITY_SCALE


def _mib(amount: int) -> int | None:
    return None if amount == MISSING_MIB else amount


def _servers(world: World, case: Case) -> tuple[str, ...]:
    return tuple(
        f"{use.server} on {unit.pod.name}: {demand_of(use) or 'nothing'} ({use.samples} of {use.expected} samples)"
        for unit in case.units
        for use in world.serving.get(unit.index, ())
    )


def verdict_changes(world: World, case: Case, assessment: Assessment) -> tuple[str, ...]:
    """At which figures the verdict would be another one, beside the present figures."""
    rules, measured = world.policy.evidence, assessment.measured
    if not measured:
        return _to_be_known(case, assessment)
    ratio = assessment.use_ratio or 0.0
    peak = max(board.peak for unit in measured for board in unit.boards) / ACTIVITY_SCALE
    fullest = max(
        sum(board.mean for board in unit.boards) / len(unit.boards) / ACTIVITY_SCALE for unit in measured
    )
    idle = f"idle: no board over {rules.idle_ceiling:.0%} at any time of the window (the highest peak is {peak:.2%})"
    low = f"under-used: a mean use under {rules.low_watermark:.0%} (it is {ratio:.2%})"
    busy = f"busy: a mean use of {rules.low_watermark:.0%} or more (it is {ratio:.2%})"
    full = f"saturated: a unit at {rules.saturation:.0%} or more (the fullest is at {fullest:.2%})"
    calm = f"busy: every unit under {rules.saturation:.0%} (the fullest is at {fullest:.2%})"
    awake = f"under-used or busy: any board over {rules.idle_ceiling:.0%} (the highest peak is {peak:.2%})"
    return {
        "idle": (awake,),
        "under-used": (idle, busy),
        "busy": (low, full),
        "saturated": (calm,),
        "unknown": (),
    }[assessment.verdict]


def _to_be_known(case: Case, assessment: Assessment) -> tuple[str, ...]:
    """One line for each thing that keeps units from being measured."""
    pods: dict[str, list[str]] = {}
    for unit, observation in zip(case.units, assessment.observations, strict=True):
        reason = reason_of(observation)
        if reason is not None:
            pods.setdefault(f"{CATALOGUE[reason].remedy} ({reason})", []).append(unit.pod.name)
    if not pods:
        return ("any verdict: a pod that runs",)
    return tuple(f"any verdict: of pod {names[0]}{_more(names)}: {what}" for what, names in pods.items())


def _more(names: list[str]) -> str:
    return f" and {len(names) - 1} more" if len(names) > 1 else ""


def _commands(snapshot: Snapshot, ref: WorkloadRef) -> tuple[str, ...]:
    """What to type; names are quoted, since a snapshot may come from anywhere."""
    kind = f"{ref.kind.lower()}.{ref.group}" if ref.group else ref.kind.lower()
    where = shlex.join(("-n", ref.namespace, kind, ref.name))
    commands = [f"leave it alone: kubectl annotate {where} {DO_NOT_DISRUPT}=true"]
    if any(act.ref == ref for act in snapshot.acts):
        commands.append(f"put it back: gpu-autoscaler undo {shlex.quote(f'{ref.namespace}/{ref.name}')}")
    if snapshot.control.paused:
        commands.append("let acting go on: gpu-autoscaler resume")
    else:
        commands.append("stop all acting: gpu-autoscaler pause")
    return tuple(commands)
