"""Right-size: fewer boards per pod where the upper bound of the need fits a smaller step of the ladder."""

from dataclasses import dataclass

from autoscaler.decide import marks
from autoscaler.decide.guards.rollout import waits_for_next_run
from autoscaler.decide.need import boards_for
from autoscaler.decide.proposal import Judged, Proposal, Ruling
from autoscaler.decide.world import World
from autoscaler.model.plan import Need
from autoscaler.model.reasons import Reason

GUARD = "right-size"


@dataclass(frozen=True, slots=True)
class _Consent:
    """Counts the owner allows (None: every count) and whether the ever-active floor still binds."""

    counts: tuple[int, ...] | None
    stated: bool


def propose_right_size(world: World, judged: Judged) -> Proposal | Ruling:
    """The smallest step that holds the upper bound of the need, or why there is none."""
    case, need = judged.case, judged.assessment.need
    obstacle = _obstacle(world, judged)
    if obstacle or need is None:
        return obstacle or Ruling(GUARD, "the need is not known", Reason.EVIDENCE_ABSENT)
    statement = case.stated.allowed
    fault = next((s.fault for s in (statement, case.stated.least) if s and s.fault), "")
    if fault:
        return Ruling(GUARD, fault, Reason.NEEDS_CONSENT)
    consent = _Consent(statement.values if statement else None, stated=statement is not None)
    after = _step(world, judged, need.upper, need.active_peak, consent)
    if after >= case.held:
        return _why_not(world, judged, need, consent)
    refusal = _consent_ruling(judged, after, consent)
    if refusal:
        return refusal
    return Proposal(
        method="right-size",
        reason=Reason.RIGHT_SIZED,
        lever="template",
        before=case.held,
        after=after,
        saved_boards=(case.held - after) * case.workload.replicas,
        because=f"needs at most {need.upper / 1000:.2f} boards, holds {case.held}",
    )


def _obstacle(world: World, judged: Judged) -> Ruling | None:
    case = judged.case
    if case.workload.ref.kind == "Job":
        return Ruling(GUARD, "the template of a Job that runs cannot be changed", Reason.NO_LEVER)
    if case.containers > 1:
        what = f"{case.containers} containers ask for boards"
        return Ruling(GUARD, f"{what}: advice only", Reason.NO_LEVER)
    if case.container is None:
        return Ruling(GUARD, "the template does not state the boards that the pod holds", Reason.NO_LEVER)
    if case.container.role == "init":
        return Ruling(GUARD, "only an init container asks for boards", Reason.NO_LEVER)
    stated = {**case.container.requests, **case.container.limits}.get(case.resource, 0)
    if stated != case.held:
        detail = f"the template states {stated}, live pods hold {case.held}"
        if world.limit_ranges.get(case.workload.ref.namespace) and stated < case.held:
            remedy = "state the boards of every container; a LimitRange default gives them to those that state none"
            return Ruling(
                GUARD, f"{detail}: a LimitRange default may add the rest", Reason.LIMIT_RANGE, remedy
            )
        return Ruling(GUARD, detail, Reason.ROLLOUT_IN_PROGRESS)
    return None


def _steps(world: World, judged: Judged, consent: _Consent) -> tuple[int, ...]:
    held, least = judged.case.held, judged.case.stated.least
    ladder = world.policy.resources.steps or tuple(range(1, held + 1))
    return tuple(
        s
        for s in sorted(set(ladder))
        if (least.values[0] if least else 0) <= s <= held and (consent.counts is None or s in consent.counts)
    )


def _step(world: World, judged: Judged, milli: int, active_peak: int, consent: _Consent) -> int:
    """The smallest allowed step for a load; what is held where no smaller one will do."""
    floor = 1 if consent.stated else active_peak
    least = max(boards_for(milli), floor)
    return next((s for s in _steps(world, judged, consent) if s >= least), judged.case.held)


def _why_not(world: World, judged: Judged, need: Need, consent: _Consent) -> Ruling:
    """Which of the need's parts keeps the unit at what it holds."""
    held = judged.case.held

    def smaller(milli: int, active_peak: int) -> bool:
        return _step(world, judged, milli, active_peak, consent) < held

    margin = round(need.activity * (1 + world.policy.need.margin))
    if held == 1 or not any(s < held for s in _steps(world, judged, consent)):
        return Ruling(GUARD, f"{held} is the smallest allowed step", Reason.LADDER_END)
    if smaller(need.target, need.active_peak):
        upper = f"{need.upper / 1000:.2f}" if need.confidence > 0 else "unbounded"
        detail = f"target {need.target / 1000:.2f} would fit less, the upper bound {upper} does not yet"
        return Ruling(GUARD, f"{detail} (confidence {need.confidence:.2f})", Reason.THIN_HISTORY)
    if smaller(margin, need.active_peak):
        return Ruling(
            GUARD, f"memory held needs {need.memory / 1000:.2f} boards of {held}", Reason.MEMORY_GATE
        )
    if smaller(need.target, 1):
        detail = f"{need.active_peak} of {held} boards were active: fewer changes the application"
        return Ruling(GUARD, detail, Reason.NEEDS_CONSENT, _consent_remedy(held))
    return Ruling(GUARD, f"needs {need.target / 1000:.2f} of {held} boards", Reason.BELOW_SAVINGS_FLOOR)


def _consent_ruling(judged: Judged, after: int, consent: _Consent) -> Ruling | None:
    if consent.stated:
        return None
    case, role = judged.case, judged.assessment.role
    if role == "training" or waits_for_next_run(judged):
        cause = judged.assessment.role_cause
        detail = f"{role} ({cause}): {case.held} -> {after} changes the run"
        return Ruling(GUARD, detail, Reason.NEEDS_CONSENT)
    hints = case.parallelism
    if hints:
        detail = f"the count is part of the command line or environment ({', '.join(hints[:3])})"
        return Ruling(GUARD, detail, Reason.NEEDS_CONSENT, _consent_remedy(case.held))
    return None


def _consent_remedy(held: int) -> str:
    counts = ",".join(str(count) for count in sorted({1, *(2**i for i in range(1, 8) if 2**i < held), held}))
    return f'set annotation {marks.ALLOWED_GPUS}: "{counts}" on the workload'
