"""Whether a change has proved itself: pure, over the snapshot of a cycle and the verdict of its plan."""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from autoscaler.model.cluster import TERMINAL, PodRow, Workload
from autoscaler.model.duration import format_duration
from autoscaler.model.kueue import KueueWorkload
from autoscaler.model.ledger import Change, Entry, Record
from autoscaler.model.plan import Action, ThroughRef, Verdict
from autoscaler.model.policy import MINUTE_MS, Policy
from autoscaler.model.shapes import PodShape
from autoscaler.model.snapshot import Snapshot

End = Literal["verified", "failed", "superseded", "gone"]
Judgement = Literal["waiting", "ready", "reversed"] | End
SLOWER: Final = 1.5
"""Times the longest former run that a canary may take."""
_SECOND_MS: Final = 1000
"""Times of the API are whole seconds."""


class Finding(msgspec.Struct, frozen=True):
    """A judgement with its numbers.

    `ready`: the new pods are ready, the probation begins; `reversed`: the value from before is there again;
    `superseded`: a third value is.
    """

    judgement: Judgement
    detail: str = ""


def judge(
    record: Record, snapshot: Snapshot, *, verdict: Verdict | None, policy: Policy, now_ms: int
) -> Finding:
    """How an accepted act stands; `now_ms` is the API server's time."""
    action = record.action
    if action.lever == "evict":
        return _judge_eviction(record, snapshot, policy, now_ms)
    if action.lever == "deactivate":
        return _judge_deactivation(record, snapshot, policy, now_ms)
    workload = _workload(snapshot, action.target, action.uid)
    if workload is None:
        return Finding("gone", f"no {action.target.kind} {action.target} of uid {action.uid}")
    elsewhere = _elsewhere(action, snapshot, workload)
    if elsewhere is not None:
        return elsewhere
    if action.target.kind == "CronJob":
        return _judge_canary(record, workload, now_ms)
    pods = _live_pods(snapshot, action)
    staying = [(pod, shape) for pod, shape in pods if not pod.deleting]
    unfit = _not_there_yet(record, workload, staying)
    if unfit:
        return _in_time(record, policy, now_ms, unfit)
    leaving = len(pods) - len(staying)
    if leaving and now_ms - record.acted_ms <= _within_ms(record, policy):
        # What it frees is not free yet. A pod that takes its time to go is no fault of the change.
        return Finding("waiting", f"{_pods(leaving)} still leaving")
    if not staying:
        return Finding("verified", "no pod of it runs any more")
    if record.ready_ms < 0:
        return Finding("ready", f"{_pods(len(staying))} ready")
    return _on_probation(record, staying, verdict=verdict, policy=policy, now_ms=now_ms)


def _elsewhere(action: Action, snapshot: Snapshot, workload: Workload) -> Finding | None:
    """What it means that the value is not what the act made of it; None where it is, or cannot be read."""
    if action.through is None:
        return drift(action.before, action.after, live_value(snapshot, workload, action))
    value = _value_through(snapshot, action.through)
    return _gone(action.through) if value is None else drift(action.before, action.after, value)


def unseen(record: Record, *, policy: Policy, now_ms: int) -> Finding:
    """How an act stands whose workload is there and is not shown: what nothing can prove is not left for good."""
    return _in_time(record, policy, now_ms, "its workload is there and not in view")


def drifted(entry: Entry, change: Change, snapshot: Snapshot) -> Finding | None:
    """Whether a value of ours is no longer there, long after it was verified; None while it is or nobody can tell."""
    if change.through is not None:
        there = _value_through(snapshot, change.through)
        return _gone(change.through) if there is None else drift(change.original, change.current, there)
    workload = _workload(snapshot, entry.ref, entry.uid)
    if workload is None:
        return None
    live = _amount(snapshot, workload, change.resource, change.container, scale=change.lever == "scale")
    return drift(change.original, change.current, live)


def drift(former: int, ours: int, live: int | None) -> Finding | None:
    """What the live value means; None while it is ours or cannot be read."""
    if live is None or live == ours:
        return None
    if live == former:
        return Finding("reversed", f"it is at {live} again, we had set {ours}")
    return Finding("superseded", f"it is at {live}, we had set {ours}")


def live_value(snapshot: Snapshot, workload: Workload, action: Action) -> int | None:
    """The value of the field that an action is about, as the snapshot has it."""
    return _amount(snapshot, workload, action.resource, action.container, scale=action.lever == "scale")


def _amount(
    snapshot: Snapshot, workload: Workload, resource: str, container: str, *, scale: bool
) -> int | None:
    if scale:
        return workload.replicas
    if workload.template < 0:
        return None
    shape = snapshot.shapes[workload.template]
    return amount_in(shape, resource, container)


def amount_in(shape: PodShape, resource: str, container: str) -> int | None:
    """What a container states; the pod as a whole may count more, for an init container or a sidecar."""
    found = next((one for one in shape.containers if one.name == container and one.role != "init"), None)
    return None if found is None else {**found.requests, **found.limits}.get(resource)


def _workload(snapshot: Snapshot, ref: object, uid: str) -> Workload | None:
    return next((row for row in snapshot.workloads if row.ref == ref and row.uid == uid), None)


def _has_followed(action: Action, workload: Workload) -> bool:
    """Whether an autoscaler has used its new minimum: it may have had its own reasons for more than the former one."""
    if action.after < action.before:
        return workload.replicas <= action.after
    return workload.replicas >= action.after


def _gone(through: ThroughRef) -> Finding:
    return Finding("gone", f"no {through.kind} {through.name} of uid {through.uid}")


def _value_through(snapshot: Snapshot, through: ThroughRef) -> int | None:
    """The value in another controller's object; None where that very object is not there."""
    if through.kind == "HorizontalPodAutoscaler":
        return next((row.minimum for row in snapshot.autoscalers if row.uid == through.uid), None)
    row = _kueue_workload(snapshot, through)
    return None if row is None else int(row.active)


def _kueue_workload(snapshot: Snapshot, through: ThroughRef | None) -> KueueWorkload | None:
    return next((row for row in snapshot.kueue_workloads if through and row.uid == through.uid), None)


def _live_pods(snapshot: Snapshot, action: Action) -> list[tuple[PodRow, PodShape]]:
    index = next(
        (i for i, row in enumerate(snapshot.workloads) if row.ref == action.target and row.uid == action.uid),
        -1,
    )
    return [
        (pod, snapshot.shapes[pod.shape])
        for pod in snapshot.pods
        if pod.workload == index and pod.phase not in TERMINAL
    ]


def _not_there_yet(record: Record, workload: Workload, staying: Sequence[tuple[PodRow, PodShape]]) -> str:
    """What keeps the change from being complete; empty when every pod is there, of the new size, and ready."""
    action = record.action
    if action.lever == "bounds" and record.ready_ms < 0 and not _has_followed(action, workload):
        return f"its autoscaler keeps {workload.replicas} replicas by its own metric"
    if not workload.rollout.observed:
        return "its controller has not seen the change"
    ready = [pod for pod, _ in staying if _is_ready(pod)]
    if len(ready) < len(staying):
        pod = next(pod for pod, _ in staying if not _is_ready(pod))
        state = "not ready" if pod.phase == "Running" else pod.phase.lower()
        why = f": {pod.unschedulable}" if pod.unschedulable else ""
        return f"{len(ready)} of {workload.replicas} pods ready: pod {pod.name} is {state}{why}"
    if action.lever == "template":
        sizes = [amount_in(shape, action.resource, action.container) for _, shape in staying]
        old = sum(size != action.after for size in sizes)
        if old:
            return f"{old} of {len(staying)} pods still have the former size"
    # A Job runs fewer than its parallelism once so few completions are left.
    if len(staying) > workload.replicas or (len(staying) < workload.replicas and workload.ref.kind != "Job"):
        return f"{len(staying)} of {workload.replicas} pods are there"
    return ""


def _is_ready(pod: PodRow) -> bool:
    return pod.phase == "Running" and pod.ready


def _pods(count: int) -> str:
    return "1 pod is" if count == 1 else f"{count} pods are"


def _within_ms(record: Record, policy: Policy) -> int:
    return max(record.action.ready_within_ms, int(policy.guards.ready_deadline))


def _in_time(record: Record, policy: Policy, now_ms: int, unfit: str) -> Finding:
    waited_ms = now_ms - record.acted_ms
    if waited_ms <= _within_ms(record, policy):
        return Finding("waiting", unfit)
    return Finding("failed", f"{unfit} after {format_duration(waited_ms // 1000 * 1000)}")


def _on_probation(
    record: Record,
    pods: Sequence[tuple[PodRow, PodShape]],
    *,
    verdict: Verdict | None,
    policy: Policy,
    now_ms: int,
) -> Finding:
    if verdict == "saturated":
        return Finding("failed", "it is saturated since the change")
    restarted = [pod.name for pod, _ in pods if _is_new(pod, record) and pod.restarts]
    if restarted:
        return Finding("failed", f"pod {restarted[0]} restarted since the change")
    # A pod that was not ready for a while begins again.
    since_ms = max(record.ready_ms, *(pod.ready_ms for pod, _ in pods))
    left_ms = since_ms + int(policy.guards.probation) - now_ms
    if left_ms > 0:
        return Finding(
            "waiting", f"on probation for another {format_duration(max(1000, left_ms // 1000 * 1000))}"
        )
    return Finding("verified", f"healthy for {policy.guards.probation}")


def _is_new(pod: PodRow, record: Record) -> bool:
    """Made after the change; restarts of older pods say nothing about it. Creation times are whole seconds."""
    return pod.created_ms + _SECOND_MS > record.acted_ms


def _judge_canary(record: Record, workload: Workload, now_ms: int) -> Finding:
    """The first run after the change decides: it fails, or takes much longer than any before, or it is good."""
    # Creation times are whole seconds: a run of the very second of the change is not taken for one after it.
    after = [run for run in workload.runs if run.created_ms > record.acted_ms]
    if not after:
        waited_ms = now_ms - record.acted_ms
        if waited_ms > record.action.ready_within_ms > 0:
            return Finding("failed", f"no run began within {format_duration(waited_ms // 1000 * 1000)}")
        return Finding("waiting", "the next run is the canary")
    canary = min(after)
    longest_ms = max((r.took_ms for r in workload.runs if r < canary and r.state == "succeeded"), default=-1)
    limit_ms = round(SLOWER * longest_ms)
    took_ms = now_ms - canary.created_ms if canary.state == "running" else canary.took_ms
    if canary.state == "failed":
        return Finding("failed", "the first run after the change failed")
    if longest_ms >= 0 and took_ms > max(limit_ms, longest_ms + MINUTE_MS):
        took, longest = format_duration(took_ms // 1000 * 1000), format_duration(longest_ms // 1000 * 1000)
        return Finding(
            "failed", f"the first run after the change takes {took}, the longest before took {longest}"
        )
    if canary.state == "succeeded":
        return Finding("verified", "the first run after the change completed")
    return Finding("waiting", "the first run after the change is under way")


def _judge_deactivation(record: Record, snapshot: Snapshot, policy: Policy, now_ms: int) -> Finding:
    """Kueue has stopped all of it and taken its quota back; who had it since is told."""
    action = record.action
    row = _kueue_workload(snapshot, action.through)
    if row is None:
        ref, uid = action.written
        return Finding("gone", f"no {ref.kind} {ref} of uid {uid}")
    elsewhere = drift(action.before, action.after, int(row.active))
    if elsewhere is not None:
        return elsewhere
    if row.finished:
        return Finding("verified", "it has ended meanwhile")
    left = len(_live_pods(snapshot, action))
    if left:
        return _in_time(record, policy, now_ms, f"{_pods(left)} still there")
    if row.reserved:
        return _in_time(record, policy, now_ms, f"ClusterQueue {row.cluster_queue} still holds its quota")
    since = _reserved_since(snapshot, row, record.acted_ms)
    used = f"; since then quota there was given to {', '.join(since[:3])}" if since else ""
    return Finding("verified", f"no pod of it runs and its quota is free{used}")


def _reserved_since(snapshot: Snapshot, row: KueueWorkload, since_ms: int) -> list[str]:
    """Who was given quota of the same queue or cohort since; Kueue does not say whose it was before."""
    doors = {(one.namespace, one.name): one.cluster_queue for one in snapshot.local_queues}
    own = doors.get((row.namespace, row.queue), "")
    cohort = next((one.cohort for one in snapshot.cluster_queues if one.name == own), "")
    shared = {
        one.name for one in snapshot.cluster_queues if one.name == own or (cohort and one.cohort == cohort)
    }
    return sorted(
        str(one)
        for one in snapshot.kueue_workloads
        if one.reserved and one.cluster_queue in shared and one.reserved_ms + _SECOND_MS > since_ms
    )


def _judge_eviction(record: Record, snapshot: Snapshot, policy: Policy, now_ms: int) -> Finding:
    action = record.action
    pod, seat = action.pod, action.seat
    victim = next((row for row in snapshot.pods if pod is not None and row.uid == pod.uid), None)
    within_ms = action.ready_within_ms or int(policy.guards.ready_deadline)
    late = now_ms - record.acted_ms > within_ms
    if victim is not None and victim.phase not in TERMINAL:
        state = f"pod {victim.name} has not gone"
        return Finding("failed", f"{state} in time") if late else Finding("waiting", state)
    if seat is None:
        return Finding("verified", "the pod has gone")
    waiting = next((row for row in snapshot.pods if row.uid == seat.pod.uid), None)
    if waiting is not None and not waiting.node and seat.more:
        return Finding("verified", f"the pod has gone, the seat needs {seat.more} more")
    if waiting is None:
        return Finding("verified", f"pod {seat.pod} no longer exists")
    if waiting.node:
        seated = "has its seat" if waiting.node == seat.node else "found another seat"
        return Finding("verified", f"pod {seat.pod} {seated} on {waiting.node}")
    state = f"pod {seat.pod} still waits for {seat.node}"
    return Finding("failed", f"{state}: the seat was not taken") if late else Finding("waiting", state)
