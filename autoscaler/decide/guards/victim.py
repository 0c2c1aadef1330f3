"""Who may be asked to leave its node for waiting work: one unit by itself, since its peers stay.

These guards judge a case of one unit (`seats.alone`), so that a pending or unmeasured peer says nothing about it.
"""

from typing import Final

from autoscaler.decide.gangs import gang_of
from autoscaler.decide.guards.fleet import guard_access, guard_clock_skew, guard_fleet_coverage
from autoscaler.decide.guards.kueue import guard_unmanaged
from autoscaler.decide.guards.memory import guard_backoff, guard_contested
from autoscaler.decide.guards.pace import guard_cooldown
from autoscaler.decide.guards.subject import (
    guard_evidence,
    guard_priority,
    guard_protection,
    guard_start_grace,
    guard_system,
    unjudged,
)
from autoscaler.decide.marks import EVICTABLE
from autoscaler.decide.placement import admits, holds_any
from autoscaler.decide.proposal import Judged, Proposal, Ruling
from autoscaler.decide.tally import Tally
from autoscaler.decide.world import World, is_board
from autoscaler.model.reasons import Reason

_MADE_ANEW: Final = frozenset(
    {
        ("apps", "Deployment"),
        ("apps", "StatefulSet"),
        ("apps", "ReplicaSet"),
        ("", "ReplicationController"),
        ("batch", "Job"),
    }
)
"""Owners that are known to replace an evicted pod."""


def guard_evictable(world: World, judged: Judged) -> Ruling:
    """Its owner makes it anew, or the owner of a bare pod has agreed; and all that it holds was judged."""
    name, case, (unit,) = "evictable", judged.case, judged.case.units
    ref, unseen = case.workload.ref, unjudged(case)
    if case.faults:
        return Ruling(name, f"unreadable: {case.faults[0]}", Reason.NO_LEVER, "correct the named field")
    if not is_board(case.resource, world.policy.resources) or case.held < 1:
        return Ruling(name, f"{case.resource} is not counted in whole boards", Reason.NO_LEVER)
    if unseen:
        detail = f"beside {case.resource} it holds {', '.join(unseen)}, which is not judged"
        return Ruling(name, detail, Reason.NO_LEVER)
    if ref.kind == "Pod" and not ref.group:
        if unit.pod.annotations.get(EVICTABLE, "").strip().lower() == "true":
            return Ruling(name, f"a bare pod with {EVICTABLE}=true")
        remedy = f'set annotation {EVICTABLE}: "true" on the pod'
        return Ruling(name, "nothing would bring a bare pod back", Reason.NEEDS_CONSENT, remedy)
    if ref.kind == "CronJob" and ref.group == "batch":
        detail = "how often the run under way has failed is not known"
        return Ruling(name, detail, Reason.WOULD_FAIL_JOB)
    if (ref.group, ref.kind) not in _MADE_ANEW:
        return Ruling(name, f"what kind {ref.kind} does about an evicted pod is not known", Reason.NO_LEVER)
    return Ruling(name, f"kind {ref.kind} makes it anew")


def guard_gang(world: World, judged: Judged) -> Ruling:
    """One member of a gang is never evicted: all of them would lose their work."""
    del world
    why = gang_of(judged)
    return Ruling("gang", why, Reason.GANG_MEMBER) if why else Ruling("gang", "it works by itself")


def guard_job(world: World, judged: Judged) -> Ruling:
    """One more failed pod must not fail the Job for good."""
    del world
    name, workload = "job", judged.case.workload
    if workload.ref.kind != "Job":
        return Ruling(name, "no Job")
    restarts = sum(unit.pod.restarts for unit in judged.case.units)
    failures = workload.failed_pods + restarts + 1
    numbers = f"{workload.failed_pods} failed pods + {restarts} restarts + 1 of {workload.backoff_limit}"
    return Ruling(name, numbers, Reason.WOULD_FAIL_JOB if failures > workload.backoff_limit else None)


def guard_settled(world: World, judged: Judged) -> Ruling:
    """Only a unit that runs and is ready gives anything up; one that is leaving gives it up anyway."""
    del world
    name, workload, (unit,) = "settled", judged.case.workload, judged.case.units
    if unit.pod.deleting or workload.deleting:
        return Ruling(name, "it is on its way out", Reason.NOT_READY)
    if unit.pod.phase != "Running" or not unit.pod.ready:
        return Ruling(name, "it is not ready", Reason.NOT_READY)
    return Ruling(name, "it is ready")


def guard_last_replica(world: World, judged: Judged) -> Ruling:
    """The only ready replica of a server stays, unless its class is there to yield."""
    name, workload, (unit,) = "last replica", judged.case.workload, judged.case.units
    if judged.assessment.role != "serving" or unit.shape.priority_class in world.policy.yields.classes:
        return Ruling(name, "no server, or of a class that yields")
    peers = [peer.pod for peer in world.units_of[unit.pod.workload] if not peer.pod.deleting]
    ready = min(workload.replicas, sum(pod.ready for pod in peers))
    if ready <= 1:
        detail = "the only ready replica of a server would be away until its successor is ready"
        return Ruling(name, detail, Reason.NO_SURGE, "run two replicas, or put it into a class that yields")
    return Ruling(name, f"{ready} replicas are ready")


def guard_own_scheduler(world: World, judged: Judged) -> Ruling:
    """Pods of a scheduler whose rules are not known here stay where it put them."""
    name, (unit,) = "scheduler", judged.case.units
    known = unit.shape.scheduler in world.policy.guards.schedulers
    return Ruling(name, f"placed by {unit.shape.scheduler}", None if known else Reason.FOREIGN_SCHEDULER)


def guard_bound_volumes(world: World, judged: Judged) -> Ruling:
    """A pod whose volumes can be mounted on its own node alone would wait there for as long as its seat is taken."""
    name, (unit,) = "volumes", judged.case.units
    terms = unit.pod.volume_terms
    if not terms:
        return Ruling(name, "no volume is tied to a place")
    places = [
        row.name
        for row in world.snapshot.nodes
        if row.name != unit.pod.node
        and all(holds_any(row, places) for places in terms)
        and admits(row, unit.shape)
    ]
    if not places:
        detail = f"no node but {unit.pod.node} can mount its volumes, as far as is known"
        return Ruling(name, detail, Reason.VOLUME_BOUND)
    return Ruling(name, f"{len(places)} other nodes can mount its volumes")


_SUBJECT: Final = (
    guard_system,
    guard_protection,
    guard_priority,
    guard_unmanaged,
    guard_evictable,
    guard_gang,
    guard_job,
    guard_settled,
    guard_own_scheduler,
    guard_bound_volumes,
    guard_last_replica,
    guard_clock_skew,
    guard_start_grace,
    guard_evidence,
    guard_fleet_coverage,
)
_PACE: Final = (guard_access, guard_cooldown, guard_contested, guard_backoff)


def judge_victim(world: World, judged: Judged, proposal: Proposal, tally: Tally) -> tuple[Ruling, ...]:
    """The rulings of all guards that do not depend on who else is to go, the first refusal last."""
    rulings: list[Ruling] = []
    for subject_guard in _SUBJECT:
        rulings.append(subject_guard(world, judged))
        if rulings[-1].reason:
            return tuple(rulings)
    for guard in _PACE:
        rulings.append(guard(world, judged, proposal, tally))
        if rulings[-1].reason:
            return tuple(rulings)
    return tuple(rulings)
