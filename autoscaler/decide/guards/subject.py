"""Who may be looked at: system and protected pods, kinds without a lever, and units without evidence."""

from collections.abc import Iterator, Mapping

from autoscaler.decide import marks
from autoscaler.decide.evidence import reason_of
from autoscaler.decide.guards.kueue import admitted_by
from autoscaler.decide.jobs import fixed_parallelism, opted_in
from autoscaler.decide.proposal import Judged, Ruling
from autoscaler.decide.world import Case, World, is_board
from autoscaler.model.cluster import Workload
from autoscaler.model.duration import format_duration
from autoscaler.model.reasons import Reason

_NAMESPACE = "namespace "
_NOT_STARTED = -1
SYSTEM_PRIORITY = 2_000_000_000
"""kube-apiserver's HighestUserDefinablePriority is 1e9; system classes start here."""
LEVERS = frozenset({("apps", "Deployment"), ("apps", "StatefulSet"), ("batch", "CronJob")})
"""Other groups have kinds of the same names with other rules (OpenKruise's StatefulSet). Jobs have theirs by opt-in."""


def guard_system(world: World, judged: Judged) -> Ruling:
    """System namespaces and priorities, mirror pods and DaemonSets are never touched."""
    name, case = "system", judged.case
    ref = case.workload.ref
    if ref.namespace in world.policy.guards.system_namespaces:
        return Ruling(name, f"namespace {ref.namespace}", Reason.SYSTEM_POD)
    if ref.kind == "DaemonSet":
        return Ruling(name, "a DaemonSet's pod returns to its node", Reason.SYSTEM_POD)
    if any(unit.pod.mirror for unit in case.units):
        return Ruling(name, "a mirror pod", Reason.SYSTEM_POD)
    top = _top_priority(judged)
    if top is not None and top >= SYSTEM_PRIORITY:
        return Ruling(name, f"priority {top}", Reason.SYSTEM_POD)
    return Ruling(name, "no system pod")


def guard_protection(world: World, judged: Judged) -> Ruling:
    """Do-not-touch marks on a pod, the workload or its namespace.

    Those of a workload and its pods are its tenants' own: where policy bounds them they end with the unit's age.
    """
    name, limit, over = "protection", world.policy.guards.max_protection, ""
    for place, carried, since_ms in _marked_places(world, judged.case):
        # A mark that was set as a label by mistake is meant all the same.
        found = (marks.protection(texts, since_ms=since_ms, now_ms=world.now_ms) for texts in carried)
        mark = next(filter(None, found), "")
        bound = limit > 0 and not place.startswith(_NAMESPACE)
        if mark and bound and since_ms != _NOT_STARTED and world.now_ms - since_ms >= limit:
            over = over or f"{place}: {mark}, for longer than guards.maxProtection ({limit}) allows"
        elif mark:
            return Ruling(name, f"{place}: {mark}", Reason.PROTECTED)
    return Ruling(name, over or "no mark forbids it")


def _marked_places(world: World, case: Case) -> Iterator[tuple[str, tuple[Mapping[str, str], ...], int]]:
    """Where marks may stand: a place in words, its annotations and labels, and since when a mark there counts."""
    starts_ms = [unit.pod.started_ms for unit in case.units] or [_NOT_STARTED]
    # A time limit on the workload holds for its youngest unit, and a unit that has not started is protected.
    since_all_ms = _NOT_STARTED if _NOT_STARTED in starts_ms else max(starts_ms)
    for unit in case.units:
        yield f"pod {unit.pod.name}", (unit.pod.annotations, unit.pod.labels), unit.pod.started_ms
    yield "workload", (case.workload.annotations, case.workload.labels), since_all_ms
    namespace = world.namespaces.get(case.workload.ref.namespace)
    if namespace:
        yield f"{_NAMESPACE}{namespace.name}", (namespace.annotations, namespace.labels), since_all_ms


def guard_priority(world: World, judged: Judged) -> Ruling:
    """The policy's priority floor."""
    name, floor, top = "priority", world.policy.guards.priority_floor, _top_priority(judged)
    if floor is not None and top is not None and top >= floor:
        return Ruling(name, f"priority {top}, the floor is {floor}", Reason.PRIORITY_FLOOR)
    return Ruling(name, f"priority {top if top is not None else 'unknown'}")


def _top_priority(judged: Judged) -> int | None:
    return max((shape.priority for shape in judged.case.shapes), default=None)


def guard_lever(world: World, judged: Judged) -> Ruling:
    """Kinds that have a lawful lever, with an accelerator that is counted in whole boards."""
    name, case = "lever", judged.case
    kind, by_kueue = case.workload.ref.kind, admitted_by(world, judged.case)
    if case.faults:
        return Ruling(name, f"unreadable: {case.faults[0]}", Reason.NO_LEVER, "correct the named field")
    if case.workload.deleting:
        return Ruling(name, "it is being deleted", Reason.NO_LEVER, "nothing to do: its boards come free")
    if kind == "Pod":
        return Ruling(
            name, "a bare pod cannot be changed in place, and nothing would bring it back", Reason.NO_LEVER
        )
    if kind == "CronJob":
        runs, least = case.workload.completed_runs, world.policy.need.min_runs
        if runs < least:
            return Ruling(
                name,
                f"{runs} of {least} completed runs",
                Reason.THIN_HISTORY,
                "wait until it has run often enough",
            )
    missing = _missing_lever(case.workload) if by_kueue is None else ""
    if missing:
        return Ruling(name, missing, Reason.NO_LEVER, "it is reported only")
    if not is_board(case.resource, world.policy.resources):
        return Ruling(
            name, f"{case.resource} is not counted in whole boards", Reason.NO_LEVER, "it is reported only"
        )
    if any(shape.resource_claims for shape in case.distinct_shapes):
        detail = "it holds devices by resource claims, which are read and never changed: advice only"
        return Ruling(name, detail, Reason.NO_LEVER, "it is reported only")
    unseen = unjudged(case)
    if unseen:
        detail = f"beside {case.resource} it holds {', '.join(unseen)}, which is not judged: advice only"
        return Ruling(name, detail, Reason.NO_LEVER, "it is reported only")
    return Ruling(name, f"kind {kind}" if by_kueue is None else f"Workload {by_kueue} of Kueue")


def _missing_lever(workload: Workload) -> str:
    """Why there is no lever for such a workload, in words; empty where there is one."""
    which = workload.ref.group, workload.ref.kind
    if which == ("batch", "Job") and opted_in(workload):
        return fixed_parallelism(workload)
    return "" if which in LEVERS else f"no lever for kind {workload.ref.kind}"


def unjudged(case: Case) -> tuple[str, ...]:
    """What it holds beside the resource that was judged, of which nothing is known."""
    return case.resources[1:] or tuple("a resource claim" for s in case.shapes if s.resource_claims)[:1]


def guard_start_grace(world: World, judged: Judged) -> Ruling:
    """A unit is judged once it has been ready for longer than the start grace and a full window."""
    name = "start grace"
    needed_ms = max(world.policy.methods.start_grace, world.policy.evidence.window)
    ages = [
        world.now_ms - max(u.pod.started_ms, u.pod.ready_ms)
        for u in judged.case.units
        if u.pod.started_ms != _NOT_STARTED
    ]
    if ages and min(ages) < needed_ms:
        up = format_duration(max(0, min(ages)) // 1000 * 1000)
        needed = format_duration(needed_ms)
        detail = f"youngest unit is up for {up}, {needed} needed"
        return Ruling(name, detail, Reason.THIN_HISTORY, f"wait until every unit is {needed} old")
    return Ruling(name, "old enough")


def guard_evidence(world: World, judged: Judged) -> Ruling:
    """Every unit must be measured; the first that is not names the cause."""
    name = "evidence"
    if not judged.case.units:
        pending = "it has no live pod, so nothing is held"
        return Ruling(name, pending, Reason.EVIDENCE_ABSENT, "nothing to do: it holds no board")
    for unit in judged.case.units:
        if unit.pod.phase == "Pending":
            why = unit.pod.unschedulable or "it has not started"
            return Ruling(name, f"pod {unit.pod.name} is pending: {why}", Reason.NOT_READY)
    pairs = zip(judged.case.units, judged.assessment.observations, strict=True)
    for unit, observation in pairs:
        reason = reason_of(observation)
        if reason is not None:
            why = getattr(observation, "why", "")
            return Ruling(name, f"pod {unit.pod.name}: {why}", reason)
    parts = [b for unit in judged.assessment.measured for b in unit.boards if b.shares > 1 or "/" in b.device]
    if parts and is_board(judged.case.resource, world.policy.resources):
        detail = (
            f"{parts[0].device} is a part of a board, although {judged.case.resource} stands for a whole one"
        )
        return Ruling(name, detail, Reason.SHARED_BOARD)
    worst = min(unit.coverage for unit in judged.assessment.measured)
    least = world.policy.evidence.min_coverage
    return Ruling(
        name, f"coverage {worst:.0%} (at least {least:.0%}), signal {judged.assessment.measured[0].signal}"
    )


def guard_use(world: World, judged: Judged) -> Ruling:
    """Only units under the low watermark are looked at."""
    name, assessment = "low watermark", judged.assessment
    if assessment.use_ratio is None:
        return Ruling(name, "use is not known")
    numbers = f"uses {assessment.use_ratio:.0%}, looked at under {world.policy.evidence.low_watermark:.0%}"
    if assessment.verdict in {"busy", "saturated"}:
        return Ruling(name, numbers, Reason.BELOW_SAVINGS_FLOOR, "nothing to do: it uses what it holds")
    return Ruling(name, numbers)
