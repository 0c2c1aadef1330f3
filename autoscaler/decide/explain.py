"""One row for each workload: what it holds, how it is used, what is planned or why not, rule by rule."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain

from autoscaler.decide.proposal import Judged, Ruling
from autoscaler.decide.quality import quality_of
from autoscaler.decide.world import World
from autoscaler.model.plan import Action, Check, ExplainRow, Refusal
from autoscaler.model.reasons import CATALOGUE, Reason

_UNINFORMATIVE = frozenset({Reason.LADDER_END, Reason.NO_LEVER, Reason.BELOW_SAVINGS_FLOOR})
_SHARED = 4096
"""Of a dozen checks for each of 10,000 workloads most are word for word the same, and rows of one source ask the same."""


@dataclass(slots=True)
class Trail:
    """What was found on the way to one workload's outcome."""

    judged: Judged
    rulings: list[Ruling] = field(default_factory=list)
    method_rulings: list[Ruling] = field(default_factory=list)
    subject_refusals: list[Refusal] = field(default_factory=list)
    method_refusals: list[Refusal] = field(default_factory=list)
    change_refusals: list[Refusal] = field(default_factory=list)
    seat_refusals: list[Refusal] = field(default_factory=list)
    action: Action | None = None

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """All refusals, the one that gives the row its reason first."""
        rest = [*self.seat_refusals, *self.subject_refusals, *self.change_refusals, *self.method_refusals]
        leading = leading_refusal(rest)
        if leading is None:
            return ()
        return (leading, *(refusal for refusal in rest if refusal is not leading))


def leading_refusal(refusals: Sequence[Refusal]) -> Refusal | None:
    """The refusal that tells the most: the first, but a method's end of the road only if there is nothing else."""
    if not refusals:
        return None
    if refusals[0].method is not None:
        return refusals[0]
    return next((r for r in refusals if r.reason not in _UNINFORMATIVE or _is_subject(r)), refusals[0])


def _is_subject(refusal: Refusal) -> bool:
    return refusal.guard in {"lever", "low watermark", "system"}


def explain_row(world: World, trail: Trail) -> ExplainRow:
    """The row of one workload."""
    judged, action, refusals = trail.judged, trail.action, trail.refusals
    case, assessment = judged.case, judged.assessment
    leading = refusals[0] if refusals else None
    reason = action.reason if action else leading.reason if leading else Reason.BELOW_SAVINGS_FLOOR
    detail = action.because if action else leading.evidence if leading else "no method is switched on"
    remedy = "" if action else leading.remedy if leading else CATALOGUE[reason].remedy
    measured = assessment.measured
    return ExplainRow(
        workload=case.workload.ref,
        resource=case.resource,
        units=len(case.units),
        held=case.total_held,
        verdict=assessment.verdict,
        reason=reason,
        detail=detail,
        role=assessment.role,
        role_cause=assessment.role_cause,
        use_ratio=assessment.use_ratio,
        coverage=round(min(unit.coverage for unit in measured), 4) if measured else None,
        quality=quality_of(world, judged),
        need=assessment.need,
        signal=measured[0].signal if measured else "",
        queries=_queries(world, judged),
        action=action,
        refusals=() if action else refusals,
        checks=_checks(trail),
        remedy=remedy,
    )


def _checks(trail: Trail) -> tuple[Check, ...]:
    """Every rule with its numbers; a method that had nothing to propose is no failure where another one had."""
    rulings = trail.rulings if trail.action else [*trail.rulings, *trail.method_rulings]
    return tuple(_check(ruling.guard, ruling.detail, passed=ruling.reason is None) for ruling in rulings)


@lru_cache(maxsize=_SHARED)
def _check(guard: str, detail: str, *, passed: bool) -> Check:
    return Check(guard, passed, detail)


def _queries(world: World, judged: Judged) -> tuple[str, ...]:
    """The queries whose answers this row rests on."""
    holders, sources = world.snapshot.holders, world.snapshot.telemetry.sources
    used = {
        int(holders.source[row])
        for unit in judged.case.units
        for row in world.holder_rows.get(unit.index, ())
    }
    return _joined(tuple([sources[source].queries for source in sorted(used)]))


@lru_cache(maxsize=_SHARED)
def _joined(queries: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    return tuple(chain.from_iterable(queries))
