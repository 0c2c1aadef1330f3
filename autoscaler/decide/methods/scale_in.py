"""Scale in: fewer replicas where fewer carry the load, its seen peak included."""

from autoscaler.decide import marks
from autoscaler.decide.guards.budgets import step_limit
from autoscaler.decide.need import boards_for, confident, usual_activity
from autoscaler.decide.proposal import Judged, Proposal, Ruling
from autoscaler.decide.world import World
from autoscaler.model.evidence import ACTIVITY_SCALE, Measured
from autoscaler.model.reasons import Reason

GUARD = "scale-in"
SCALABLE = frozenset({"Deployment", "StatefulSet"})


def floor_of(judged: Judged) -> tuple[int, str]:
    """The least replicas the owner allows, never under one here, and a fault of the statement if there is one."""
    statement = marks.minimum_replicas(judged.case.workload.annotations)
    if statement is None:
        return 1, ""
    return max(1, statement.values[0] if statement.values else 1), statement.fault


def leaving(judged: Judged, going: int) -> tuple[str, ...]:
    """The pods of a Deployment that should go, the least used first; what else decides is their name."""
    pairs = zip(judged.case.units, judged.assessment.measured, strict=True)
    used = sorted((sum(board.mean for board in measured.boards), unit.pod.name) for unit, measured in pairs)
    return tuple(name for _, name in used[:going])


def consent_to_fewer(judged: Judged) -> Ruling | None:
    """Why fewer replicas need the owner's word: the count may be part of the application; None where they do not."""
    if marks.minimum_replicas(judged.case.workload.annotations) is not None:
        return None
    remedy = f"set annotation {marks.MIN_REPLICAS} on the workload"
    if judged.assessment.role == "training":
        cause = judged.assessment.role_cause
        return Ruling(
            GUARD, f"training ({cause}): its replicas are part of the run", Reason.NEEDS_CONSENT, remedy
        )
    hints = judged.case.parallelism
    if hints:
        detail = f"a count is part of the command line or environment ({', '.join(hints[:3])})"
        return Ruling(GUARD, detail, Reason.NEEDS_CONSENT, remedy)
    return None


def propose_scale_in(world: World, judged: Judged) -> Proposal | Ruling:
    """The replicas that hold the load, at most one step of the workload's budget down, or why not fewer."""
    case = judged.case
    before = case.workload.replicas
    floor, fault = floor_of(judged)
    if case.workload.ref.kind not in SCALABLE:
        return Ruling(GUARD, f"kind {case.workload.ref.kind} has no replicas to lower", Reason.NO_LEVER)
    if fault:
        return Ruling(GUARD, fault, Reason.NEEDS_CONSENT)
    if before <= floor:
        return Ruling(GUARD, f"{before} replicas, the floor is {floor}", Reason.LADDER_END)
    if judged.assessment.role == "training":
        cause = judged.assessment.role_cause
        return Ruling(GUARD, f"training ({cause}): its replicas are part of the run", Reason.NEEDS_CONSENT)
    consent = consent_to_fewer(judged)
    if consent:
        return consent
    needed, why = _replicas_needed(world, judged)
    after = max(needed, floor, before - step_limit(world, before))
    if after >= before:
        return Ruling(GUARD, why, _reason_to_stay(world, judged, floor))
    if case.workload.ref.kind == "StatefulSet" and not _highest_idle(world, judged, before - after):
        return Ruling(GUARD, "the highest ordinal goes first and it is not idle", Reason.NO_LEVER)
    return Proposal(
        method="scale-in",
        reason=Reason.SCALED_IN,
        lever="scale",
        before=before,
        after=after,
        saved_boards=(before - after) * case.held,
        because=f"{why}; at most {step_limit(world, before)} at once",
    )


def _replicas_needed(world: World, judged: Judged) -> tuple[int, str]:
    """Replicas for the summed upper load, and enough for all seen peaks together."""
    units, held = judged.assessment.measured, judged.case.held
    need = judged.assessment.need
    load = _activity_milli(world, units)
    upper = confident(load, need.confidence if need else 0.0)
    needed = max(-(-boards_for(upper) // held), _for_peaks(units, held))
    text = f"{load / 1000:.2f} boards of load" if need and need.confidence > 0 else "unknown load"
    return needed, f"{text} (upper bound and peaks) need {needed} of {judged.case.workload.replicas} replicas"


def _for_peaks(units: tuple[Measured, ...], held: int) -> int:
    """Replicas that would hold every peak ever seen, should all come at once."""
    peak = sum(board.history_peak for unit in units for board in unit.boards)
    return max(1, -(-peak // (ACTIVITY_SCALE * held)))


def _activity_milli(world: World, units: tuple[Measured, ...]) -> float:
    need = world.policy.need
    usual = sum(usual_activity(board) for unit in units for board in unit.boards)
    return usual * 1000 / ACTIVITY_SCALE / need.target_utilization * (1 + need.margin)


def _reason_to_stay(world: World, judged: Judged, floor: int) -> Reason:
    """Thin history if only the confidence stands in the way, else there is nothing to save."""
    units, held = judged.assessment.measured, judged.case.held
    load = round(_activity_milli(world, units))
    sure = max(floor, -(-boards_for(load) // held), _for_peaks(units, held))
    return Reason.THIN_HISTORY if sure < judged.case.workload.replicas else Reason.BELOW_SAVINGS_FLOOR


def _highest_idle(world: World, judged: Judged, going: int) -> bool:
    ceiling = world.policy.evidence.idle_ceiling * ACTIVITY_SCALE
    pairs = zip(judged.case.units, judged.assessment.measured, strict=True)
    ordered = sorted(pairs, key=lambda pair: _ordinal(pair[0].pod.name), reverse=True)
    return all(board.peak <= ceiling for _, measured in ordered[:going] for board in measured.boards)


def _ordinal(pod_name: str) -> int:
    tail = pod_name.rpartition("-")[2]
    return int(tail) if tail.isdecimal() else -1
