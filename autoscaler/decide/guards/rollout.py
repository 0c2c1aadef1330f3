"""How a change replaces pods, and whether the workload is in a state to take one."""

import re

from autoscaler.decide.proposal import Judged, Proposal, Ruling
from autoscaler.decide.tally import Tally
from autoscaler.decide.world import World
from autoscaler.model.cluster import Rollout
from autoscaler.model.reasons import Reason


def rounded(value: str, replicas: int, *, up: bool) -> int:
    """An int-or-percent of the replicas, rounded as apps/v1 does; 0 for a value that is not `readable`."""
    if not readable(value):
        return 0
    amount = int(value.removesuffix("%"))
    if not value.endswith("%"):
        return amount
    return -(-amount * replicas // 100) if up else amount * replicas // 100


def readable(value: str) -> bool:
    """Whether the text is an int-or-percent."""
    return re.fullmatch(r"[0-9]{1,9}%?", value) is not None


def surge_and_unavailable(rollout: Rollout, replicas: int) -> tuple[int, int]:
    """Rounded (maxSurge, maxUnavailable) of a Deployment; both 0 means one may be unavailable."""
    if rollout.recreate:
        return 0, replicas
    surge = rounded(rollout.max_surge, replicas, up=True)
    unavailable = rounded(rollout.max_unavailable, replicas, up=False)
    return (surge, unavailable) if surge or unavailable else (0, 1)


def waits_for_next_run(judged: Judged) -> bool:
    """Whether a new template is for the next run alone: live pods are of runs that keep what they have."""
    return judged.case.workload.ref.kind == "CronJob"


def surge_of(judged: Judged, proposal: Proposal) -> int:
    """Pods that a proposal creates before old ones go."""
    workload = judged.case.workload
    if proposal.lever != "template" or workload.ref.kind != "Deployment":
        return 0
    return min(surge_and_unavailable(workload.rollout, workload.replicas)[0], workload.replicas)


def unavailable_of(judged: Judged, proposal: Proposal) -> int:
    """Ready pods that a proposal takes away at once."""
    workload = judged.case.workload
    if proposal.takes_replicas:
        return proposal.before - proposal.after
    if proposal.lever == "evict":
        return 1
    if proposal.lever == "deactivate":
        return len(judged.case.units)
    if waits_for_next_run(judged):
        return 0
    if workload.ref.kind != "Deployment":
        # The API documents rounding up for a StatefulSet, and never under one (apps/v1 RollingUpdateStatefulSetStrategy).
        away = rounded(workload.rollout.max_unavailable, workload.replicas, up=True)
        return max(1, min(away, workload.replicas))
    return min(surge_and_unavailable(workload.rollout, workload.replicas)[1], workload.replicas)


def guard_rollout(world: World, judged: Judged, proposal: Proposal, tally: Tally) -> Ruling:
    """No change while another one is under way or the owner has paused the rollout."""
    del world, tally
    name, workload = "rollout", judged.case.workload
    if proposal.lever == "deactivate":
        return Ruling(name, "nothing rolls out: Kueue stops all of it")
    rollout, reason = workload.rollout, Reason.ROLLOUT_IN_PROGRESS
    revisions = sorted({unit.pod.revision for unit in judged.case.units if unit.pod.revision})
    if rollout.paused:
        return Ruling(name, "the rollout is paused by its owner", reason)
    held = sorted({unit.shape.demand.get(judged.case.resource, 0) for unit in judged.case.units})
    if len(held) > 1:
        return Ruling(name, f"its pods hold {held[0]} to {held[-1]} boards each", reason)
    if waits_for_next_run(judged):
        return _next_run(judged)
    obstacle = _no_rollout(judged) if proposal.lever == "template" else None
    if obstacle:
        return obstacle
    if not rollout.observed:
        return Ruling(name, "its controller has not seen the latest change", reason)
    if rollout.updated < workload.replicas or rollout.total > max(rollout.updated, workload.replicas):
        detail = f"{rollout.updated} of {workload.replicas} replicas updated, {rollout.total} exist"
        return Ruling(name, detail, reason)
    if len(revisions) > 1:
        return Ruling(name, f"{len(revisions)} revisions are live", reason)
    return Ruling(name, "no rollout under way")


def _no_rollout(judged: Judged) -> Ruling | None:
    """Why a new template would not roll out, or nobody knows how; None where it would."""
    name, workload, rollout = "rollout", judged.case.workload, judged.case.workload.rollout
    stated = (rollout.max_surge, rollout.max_unavailable)
    # Only a Deployment surges.
    junk = [v for v in stated[workload.ref.kind != "Deployment" :] if not readable(v)]
    if junk:
        return Ruling(name, f"maxSurge or maxUnavailable is unreadable: {junk[0][:40]!r}", Reason.NO_LEVER)
    if rollout.on_delete:
        return Ruling(name, "update strategy OnDelete: a new template would not roll out", Reason.NO_LEVER)
    if rollout.partition > 0:
        detail = f"partition {rollout.partition} holds back the rollout"
        return Ruling(name, detail, Reason.ROLLOUT_IN_PROGRESS)
    return None


def _next_run(judged: Judged) -> Ruling:
    name, workload = "rollout", judged.case.workload
    if workload.suspended:
        return Ruling(name, "it is suspended: no next run would prove the change", Reason.NO_LEVER)
    return Ruling(name, "nothing rolls out: the next run has the new size")


def guard_peers_ready(world: World, judged: Judged, proposal: Proposal, tally: Tally) -> Ruling:
    """Every replica is running, ready and not on its way out, and their number is the stated one."""
    del world, tally
    name, case = "peers", judged.case
    if waits_for_next_run(judged):
        return Ruling(name, "pods of the run under way keep what they have")
    for unit in case.units:
        pod = unit.pod
        state = "terminating" if pod.deleting else "" if pod.phase == "Running" else pod.phase.lower()
        if state or not pod.ready:
            return Ruling(name, f"pod {pod.name} is {state or 'not ready'}", Reason.NOT_READY)
    if proposal.lever == "deactivate":
        return Ruling(name, f"all {len(case.units)} units ready")
    if len(case.units) != case.workload.replicas:
        return Ruling(name, f"{len(case.units)} of {case.workload.replicas} replicas exist", Reason.NOT_READY)
    return Ruling(name, f"{len(case.units)} of {case.workload.replicas} replicas ready")
