"""From an accepted proposal to the action of the plan: plain data that says all that its execution needs."""

import hashlib
from typing import Any, Final

from autoscaler.decide.deadlines import SEAT_WITHIN_MS, ready_within_ms
from autoscaler.decide.guards.kueue import admitted_by
from autoscaler.decide.methods.bounds import sole_autoscaler
from autoscaler.decide.methods.replicas import leaving
from autoscaler.decide.proposal import Judged, Proposal
from autoscaler.decide.world import World
from autoscaler.model.plan import Action, Method, PodRef, Seat, ThroughRef
from autoscaler.model.policy import Mode, Policy
from autoscaler.model.policy_sections import strictest
from autoscaler.model.reasons import Reason

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"


def mode_for(policy: Policy, judged: Judged, method: Method) -> Mode:
    """What may be done of this kind to a workload: what policy says of its namespace, and never more than its owner says.

    Interactive work is never more than recommended: its state in memory is lost for good.
    """
    stated = judged.case.stated.mode
    modes = [policy.modes.of(method, judged.case.workload.ref.namespace)]
    modes += [stated.mode] if stated else []
    modes += ["recommend"] if judged.assessment.role == "interactive" else []
    return strictest(modes)


def held_by(world: World, mode: Mode) -> tuple[Reason, ...]:
    """What keeps a planned action from being carried out."""
    control = world.snapshot.control
    held = {
        Reason.MODE_RECOMMEND: mode != "apply",
        Reason.PAUSED: bool(control.paused),
        Reason.LEDGER_UNREADABLE: bool(control.ledger_fault),
        Reason.QUIET_PERIOD: world.now_ms < control.quiet_until_ms,
    }
    return tuple(reason for reason, holds in held.items() if holds)


def change_of(world: World, judged: Judged, proposal: Proposal) -> Action:
    """The change of a template, of replicas or of an autoscaler's minimum, or the release of what Kueue has admitted."""
    case, workload = judged.case, judged.case.workload
    if proposal.lever == "deactivate":
        return _deactivation_of(world, judged, proposal)
    if proposal.lever == "bounds":
        return _lower_bound_of(world, judged, proposal)
    container = case.container.name if case.container and proposal.lever == "template" else ""
    field = f"{case.resource} of container {container}" if container else "replicas"
    preconditions = [*_same_object(judged), f"{field} is {proposal.before}"]
    going: tuple[PodRef, ...] = ()
    if proposal.lever == "scale" and workload.ref.kind == "Deployment":
        going = leaving(judged, proposal.before - proposal.after)
        preconditions.append(f"{DELETION_COST} is lowest on {', '.join(pod.name for pod in going)}")
    return _action(
        judged,
        proposal,
        container=container,
        preconditions=tuple(preconditions),
        held_by=held_by(world, mode_for(world.policy, judged, proposal.method)),
        leaving=going,
        ready_within_ms=ready_within_ms(world, judged, proposal),
    )


def _action(judged: Judged, proposal: Proposal, *objects: str, **own: Any) -> Action:
    """What every action says of its workload and its change, and its own fields; `objects` are uids that it is about too."""
    workload = judged.case.workload
    usual: dict[str, Any] = {
        "resource_version": workload.resource_version,
        "container": "",
        "saved_milli_boards": proposal.saved_boards * 1000,
    }
    return Action(
        id=_identity(judged, proposal, *objects),
        method=proposal.method,
        reason=proposal.reason,
        lever=proposal.lever,
        target=workload.ref,
        uid=workload.uid,
        resource=judged.case.resource,
        before=proposal.before,
        after=proposal.after,
        because=proposal.because,
        **(usual | own),
    )


def _deactivation_of(world: World, judged: Judged, proposal: Proposal) -> Action:
    """The release through Kueue: the workload is the target, what is written is the Workload that stands for it."""
    case, workload, row = judged.case, judged.case.workload, admitted_by(world, judged.case)
    if row is None:
        raise ValueError(f"{workload.ref} was not admitted by Kueue")
    return _action(
        judged,
        proposal,
        row.uid,
        resource_version=row.resource_version,
        preconditions=(
            f"uid of Workload {row} is {row.uid}",
            f"resourceVersion of Workload {row} is {row.resource_version}",
            f"Workload {row} is active",
        ),
        held_by=held_by(world, mode_for(world.policy, judged, proposal.method)),
        ready_within_ms=ready_within_ms(world, judged, proposal),
        through=ThroughRef(row.name, row.uid),
        pods=len(case.units),
    )


def _lower_bound_of(world: World, judged: Judged, proposal: Proposal) -> Action:
    """The lower minimum of an autoscaler, which then takes the replicas itself; the idle ones are to go first."""
    workload, row = judged.case.workload, sole_autoscaler(world, judged.case)
    if row is None:
        raise ValueError(f"no autoscaler holds {workload.ref}")
    going: tuple[PodRef, ...] = ()
    if workload.ref.kind == "Deployment":
        going = leaving(judged, proposal.before - proposal.after)
    return _action(
        judged,
        proposal,
        row.uid,
        resource_version=row.resource_version,
        preconditions=(
            f"uid of HorizontalPodAutoscaler {row} is {row.uid}",
            f"resourceVersion of HorizontalPodAutoscaler {row} is {row.resource_version}",
            f"minReplicas of HorizontalPodAutoscaler {row} is {proposal.before}",
            *(f"{DELETION_COST} is lowest on {pod.name}" for pod in going),
        ),
        held_by=held_by(world, mode_for(world.policy, judged, proposal.method)),
        leaving=going,
        ready_within_ms=ready_within_ms(world, judged, proposal) + row.calm_ms,
        through=ThroughRef(row.name, row.uid, "HorizontalPodAutoscaler"),
    )


def eviction_of(judged: Judged, proposal: Proposal, seat: Seat, *, held: tuple[Reason, ...]) -> Action:
    """The eviction of the one unit that is judged. Nothing is saved: its boards are given to the waiting pod."""
    (unit,) = judged.case.units
    pod = PodRef(unit.pod.namespace, unit.pod.name, unit.pod.uid)
    return _action(
        judged,
        proposal,
        pod.uid,
        seat.pod.uid,
        saved_milli_boards=0,
        preconditions=(
            *_same_object(judged)[:1],
            f"pod {pod.name} is {pod.uid}",
            f"pod {seat.pod} has no node",
        ),
        held_by=held,
        pod=pod,
        seat=seat,
        ready_within_ms=(seat.more + 1) * SEAT_WITHIN_MS,
    )


def _same_object(judged: Judged) -> list[str]:
    workload = judged.case.workload
    version = [f"resourceVersion is {workload.resource_version}"] if workload.resource_version else []
    return [f"uid is {workload.uid}", *version]


def _identity(judged: Judged, proposal: Proposal, *pods: str) -> str:
    """The same change of the same object has the same name in every plan."""
    before, after = str(proposal.before), str(proposal.after)
    uid, resource = judged.case.workload.uid, judged.case.resource
    parts = (uid, proposal.method, proposal.lever, resource, before, after, *pods)
    return hashlib.sha256("|".join(parts).encode()).hexdigest()[:12]
