"""The time that a change is given to prove itself, before it counts as failed and is put back."""

from itertools import pairwise
from typing import Final

from autoscaler.decide.guards.rollout import surge_of, unavailable_of, waits_for_next_run
from autoscaler.decide.proposal import Judged, Proposal
from autoscaler.decide.world import World
from autoscaler.model.policy import DAY_MS, MINUTE_MS

SEAT_WITHIN_MS: Final = 10 * MINUTE_MS
"""For one eviction: two minutes for scheduler and kubelet, and eight for the pod's own grace period, which is not read."""
CANARY_WITHIN_MS: Final = 4 * DAY_MS
"""The next run of a CronJob may be a long weekend away, whatever the gaps between the few runs that are remembered."""


def ready_within_ms(world: World, judged: Judged, proposal: Proposal) -> int:
    """Until all new pods should be ready, or until a CronJob's next run should have begun.

    Twice the longest start, for each batch of a rollout, never under the policy's deadline. Ready's time is that of its
    latest change, so a pod that wavered seems to have started for days: no start counts for more than the owner's
    progress deadline, or the policy's.
    """
    deadline_ms = int(world.policy.guards.ready_deadline)
    if waits_for_next_run(judged):
        return _canary_within_ms(judged, deadline_ms)
    if proposal.lever != "template":
        return deadline_ms
    workload = judged.case.workload
    starts = [
        u.pod.ready_ms - u.pod.started_ms
        for u in judged.case.units
        if min(u.pod.ready_ms, u.pod.started_ms) >= 0
    ]
    most_ms = max(deadline_ms, workload.rollout.progress_deadline_s * 1000)
    start_ms = min(max(starts, default=0), most_ms)
    at_once = max(1, surge_of(judged, proposal) + unavailable_of(judged, proposal))
    batches = -(-max(workload.replicas, 1) // at_once)
    return max(deadline_ms, 2 * start_ms * batches)


def _canary_within_ms(judged: Judged, deadline_ms: int) -> int:
    """Twice the longest gap between the runs that are remembered."""
    began = sorted(run.created_ms for run in judged.case.workload.runs)
    gaps = [later - earlier for earlier, later in pairwise(began)]
    return max(deadline_ms, CANARY_WITHIN_MS, 2 * max(gaps, default=0))
