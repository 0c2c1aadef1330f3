"""A change has proved itself only when every pod is there, of the new size, ready, and stays so."""

from typing import Any

import msgspec
import pytest
from act_worlds import GPU, change_action, entry_of, eviction, record_of
from build import HOUR_MS, MINUTE_MS, NOW_MS, Spec, boards, cluster, policy

from autoscaler.act.verify import Finding, drift, drifted, judge
from autoscaler.model.cluster import Run, WorkloadRef
from autoscaler.model.ledger import Change, Record
from autoscaler.model.plan import PodRef, Seat
from autoscaler.model.snapshot import Snapshot

POLICY = policy(guards={"probation": "10m", "readyDeadline": "30m"})
ACTED_MS = NOW_MS - MINUTE_MS
TWO = Spec(gpus=2, seen=(boards(0.5, 0.5), boards(0.5, 0.5)), age_ms=30_000, ready_after_ms=20_000)
DONE = cluster(TWO)
UID = "uid-team-web"
VICTIM = PodRef("team", "web-0", "uid-team-web-0")
WAITING = PodRef("team", "hungry-0", "uid-team-hungry-0")
SEAT = Seat(WAITING, "node-1")


def acted(
    before: int = 4, after: int = 2, *, ago_ms: int = MINUTE_MS, ready_ms: int = -1, **more: Any
) -> Record:
    action = change_action(before, after, uid=UID, **more)
    return record_of(action, "acted", acted_ms=NOW_MS - ago_ms, ready_ms=ready_ms)


def found(record: Record, snapshot: Snapshot = DONE, *, verdict: Any = "busy") -> Finding:
    return judge(record, snapshot, verdict=verdict, policy=POLICY, now_ms=NOW_MS)


def with_pod(snapshot: Snapshot, number: int = 0, **changes: Any) -> Snapshot:
    pods = list(snapshot.pods)
    pods[number] = msgspec.structs.replace(pods[number], **changes)
    return msgspec.structs.replace(snapshot, pods=tuple(pods))


def without_pod(snapshot: Snapshot, number: int = 0) -> Snapshot:
    pods = snapshot.pods[:number] + snapshot.pods[number + 1 :]
    return msgspec.structs.replace(snapshot, pods=pods)


def test_all_pods_ready_at_the_new_size_begin_the_probation() -> None:
    assert found(acted()) == Finding("ready", "2 pods are ready")


@pytest.mark.parametrize(
    ("snapshot", "words"),
    [
        (cluster(TWO.but(rollout={"observed": False})), "its controller has not seen the change"),
        (with_pod(DONE, phase="Pending", ready=False), "1 of 2 pods ready: pod web-0 is pending"),
        (
            with_pod(DONE, phase="Pending", ready=False, unschedulable="0/3 nodes are available"),
            "1 of 2 pods ready: pod web-0 is pending: 0/3 nodes are available",
        ),
        (with_pod(DONE, 1, ready=False), "1 of 2 pods ready: pod web-1 is not ready"),
        (cluster(TWO.but(replicas=3)), "2 of 3 pods are there"),
        (without_pod(DONE), "1 of 2 pods are there"),
        (with_pod(DONE, phase="Failed"), "1 of 2 pods are there"),
        (with_pod(DONE, deleting=True), "1 of 2 pods are there"),
    ],
)
def test_what_is_missing_is_waited_for_and_then_a_failure(snapshot: Snapshot, words: str) -> None:
    assert found(acted(), snapshot) == Finding("waiting", words)
    assert found(acted(ago_ms=30 * MINUTE_MS), snapshot) == Finding("waiting", words)
    late = acted(ago_ms=30 * MINUTE_MS + 1_500)
    assert found(late, snapshot) == Finding("failed", f"{words} after 30m1s")


def test_a_pod_of_the_former_size_is_not_the_change() -> None:
    snapshot = cluster(TWO, TWO.but(name="former", gpus=4))
    former = next(i for i, pod in enumerate(snapshot.pods) if pod.name == "former-0")
    shape = snapshot.pods[former].shape
    assert found(acted(), with_pod(snapshot, shape=shape)).detail == "1 of 2 pods still have the former size"


def test_slow_models_are_given_the_time_that_their_action_states() -> None:
    slow = acted(ago_ms=50 * MINUTE_MS, ready_within_ms=HOUR_MS)
    assert found(slow, without_pod(DONE)).judgement == "waiting"
    assert (
        found(acted(ago_ms=61 * MINUTE_MS, ready_within_ms=HOUR_MS), without_pod(DONE)).judgement == "failed"
    )


def test_the_size_is_the_containers_own_whatever_else_the_pod_counts() -> None:
    demand = {"demand": {GPU: 4, "cpu": 1000}}
    assert found(acted(), cluster(TWO.but(shape=demand))).judgement == "ready"


def test_a_pod_that_takes_long_to_go_is_waited_for_and_no_failure() -> None:
    three = cluster(TWO.but(seen=(boards(0.5, 0.5),) * 3, replicas=2))
    leaving = with_pod(three, 2, deleting=True)
    assert found(acted(), leaving) == Finding("waiting", "1 pod is still leaving")
    assert found(acted(ago_ms=HOUR_MS), leaving).judgement == "ready"


@pytest.mark.parametrize(
    ("ready_ago_ms", "judgement", "words"),
    [
        (MINUTE_MS, "waiting", "on probation for another 9m"),
        (10 * MINUTE_MS - 1, "waiting", "on probation for another 1s"),
        (10 * MINUTE_MS, "verified", "healthy for 10m"),
    ],
)
def test_healthy_through_its_probation_is_verified(ready_ago_ms: int, judgement: str, words: str) -> None:
    old = cluster(TWO.but(age_ms=HOUR_MS))
    record = acted(ago_ms=HOUR_MS, ready_ms=NOW_MS - ready_ago_ms)
    assert found(record, old) == Finding(judgement, words)  # type: ignore[arg-type]


def test_a_pod_that_was_not_ready_in_between_begins_its_probation_again() -> None:
    old = cluster(TWO.but(age_ms=HOUR_MS))
    record = acted(ago_ms=HOUR_MS, ready_ms=NOW_MS - 20 * MINUTE_MS)
    flapped = with_pod(old, ready_ms=NOW_MS - 4 * MINUTE_MS)
    assert found(record, flapped) == Finding("waiting", "on probation for another 6m")


def test_saturation_or_a_restart_on_probation_is_a_failure() -> None:
    record = acted(ready_ms=NOW_MS)
    assert found(record, verdict="saturated") == Finding("failed", "it is saturated since the change")
    restarted = with_pod(DONE, 1, restarts=1)
    assert found(record, restarted) == Finding("failed", "pod web-1 restarted since the change")


def test_restarts_from_before_the_change_say_nothing() -> None:
    fewer = acted(3, 2, lever="scale", ready_ms=NOW_MS)
    older = cluster(TWO.but(age_ms=HOUR_MS, pod={"restarts": 3}))
    assert found(fewer, older).judgement == "waiting"


@pytest.mark.parametrize("verdict", ["busy", "idle", "under-used", "unknown", None])
def test_no_other_verdict_is_a_failure(verdict: Any) -> None:
    assert found(acted(ready_ms=NOW_MS), verdict=verdict).judgement == "waiting"


@pytest.mark.parametrize(
    ("live", "judgement"), [(2, "ready"), (4, "reversed"), (3, "superseded"), (8, "superseded")]
)
def test_a_template_that_somebody_else_set_is_theirs(live: int, judgement: str) -> None:
    snapshot = cluster(TWO.but(gpus=live))
    assert found(acted(), snapshot).judgement == judgement


@pytest.mark.parametrize(("live", "judgement"), [(2, "ready"), (3, "reversed"), (5, "superseded")])
def test_replicas_that_somebody_else_set_are_theirs(live: int, judgement: str) -> None:
    snapshot = cluster(TWO.but(seen=(boards(0.5, 0.5),) * live))
    assert found(acted(3, 2, lever="scale"), snapshot).judgement == judgement


def test_a_workload_at_zero_is_verified_once_no_pod_runs() -> None:
    record = acted(2, 0, lever="scale")
    running = cluster(TWO.but(replicas=0))
    assert found(record, running).judgement == "waiting"
    leaving = with_pod(with_pod(running, 0, deleting=True), 1, deleting=True)
    assert found(record, leaving) == Finding("waiting", "2 pods are still leaving")
    assert found(record, cluster(TWO.but(seen=()))) == Finding("verified", "no pod of it runs any more")
    assert found(acted(2, 0, lever="scale", ago_ms=HOUR_MS), leaving).judgement == "verified"


@pytest.mark.parametrize(
    "change", [{"uid": "another"}, {"ref": WorkloadRef("apps", "Deployment", "team", "x")}]
)
def test_another_object_of_that_name_is_not_the_workload(change: dict[str, Any]) -> None:
    snapshot = msgspec.structs.replace(
        DONE, workloads=(msgspec.structs.replace(DONE.workloads[0], **change),)
    )
    assert found(acted(), snapshot) == Finding("gone", "no Deployment team/web of uid uid-team-web")


def test_a_template_that_cannot_be_read_is_no_drift() -> None:
    unknown = msgspec.structs.replace(
        DONE, workloads=(msgspec.structs.replace(DONE.workloads[0], template=-1),)
    )
    assert found(acted(), unknown).judgement == "ready"
    renamed = acted(container="other")
    assert found(renamed, DONE).judgement == "waiting"


def nightly(*runs: Run) -> Snapshot:
    spec = Spec(kind="CronJob", group="batch", gpus=2, seen=(), workload={"runs": runs})
    return cluster(spec)


def run(begun_ago_ms: int, state: Any, took_ms: int = -1) -> Run:
    return Run(NOW_MS - begun_ago_ms, state, took_ms)


BEFORE = (run(9 * HOUR_MS, "succeeded", 20 * MINUTE_MS), run(8 * HOUR_MS, "failed", HOUR_MS))


@pytest.mark.parametrize(
    ("runs", "judgement", "words"),
    [
        ((), "waiting", "the next run is the canary"),
        (BEFORE, "waiting", "the next run is the canary"),
        ((*BEFORE, run(5 * MINUTE_MS, "running")), "waiting", "is under way"),
        ((run(5 * HOUR_MS, "running"),), "waiting", "is under way"),
        ((*BEFORE, run(5 * HOUR_MS, "succeeded", 30 * MINUTE_MS)), "verified", "completed"),
        (
            (*BEFORE, run(5 * HOUR_MS, "succeeded", 31 * MINUTE_MS)),
            "failed",
            "takes 31m, the longest before took 20m",
        ),
        ((*BEFORE, run(31 * MINUTE_MS, "running")), "failed", "takes 31m"),
        ((*BEFORE, run(MINUTE_MS, "failed", MINUTE_MS)), "failed", "the first run after the change failed"),
        (
            (*BEFORE, run(5 * HOUR_MS, "succeeded", 20 * MINUTE_MS), run(HOUR_MS, "failed")),
            "verified",
            "completed",
        ),
    ],
)
def test_the_first_run_after_the_change_is_the_canary(runs: Any, judgement: str, words: str) -> None:
    target = WorkloadRef("batch", "CronJob", "team", "web")
    record = acted(4, 2, ago_ms=6 * HOUR_MS, ref=target)
    finding = found(record, nightly(*runs))
    assert finding.judgement == judgement
    assert words in finding.detail


def test_a_canary_that_never_comes_is_a_failure_where_its_time_is_stated() -> None:
    target = WorkloadRef("batch", "CronJob", "team", "web")
    stated = acted(4, 2, ago_ms=6 * HOUR_MS, ref=target, ready_within_ms=5 * HOUR_MS)
    assert found(stated, nightly()) == Finding("failed", "no run began within 6h")


def evicted(*, seat: Seat | None = SEAT, ago_ms: int = MINUTE_MS, **more: Any) -> Record:
    action = eviction(VICTIM, seat=seat, uid=UID, **more)
    return record_of(action, "acted", acted_ms=NOW_MS - ago_ms)


HUNGRY = Spec(name="hungry", seen=(boards(0.0),), node="", pod={"phase": "Pending", "ready": False})
FREED = cluster(TWO.but(name="other"), HUNGRY)


@pytest.mark.parametrize(
    ("record", "snapshot", "judgement", "words"),
    [
        (evicted(), cluster(TWO, HUNGRY), "waiting", "pod web-0 has not gone"),
        (evicted(), FREED, "waiting", "pod team/hungry-0 still waits for node-1"),
        (evicted(), with_pod(FREED, 2, node="node-1"), "verified", "has its seat on node-1"),
        (evicted(), with_pod(FREED, 2, node="node-7"), "verified", "found another seat on node-7"),
        (evicted(), without_pod(FREED, 2), "verified", "pod team/hungry-0 no longer exists"),
        (evicted(seat=None), FREED, "verified", "the pod has gone"),
        (evicted(seat=None), with_pod(DONE, phase="Succeeded"), "verified", "the pod has gone"),
        (evicted(seat=Seat(WAITING, "node-1", more=2)), FREED, "verified", "the seat needs 2 more"),
    ],
)
def test_an_eviction_is_verified_by_the_seat_that_it_freed(
    record: Record, snapshot: Snapshot, judgement: str, words: str
) -> None:
    finding = found(record, snapshot)
    assert finding.judgement == judgement
    assert words in finding.detail


@pytest.mark.parametrize(
    ("within_ms", "ago_ms", "judgement"),
    [
        (0, 30 * MINUTE_MS, "waiting"),
        (0, 31 * MINUTE_MS, "failed"),
        (5 * MINUTE_MS, 5 * MINUTE_MS, "waiting"),
        (5 * MINUTE_MS, 6 * MINUTE_MS, "failed"),
    ],
)
def test_a_seat_that_is_not_taken_in_time_is_a_failure(within_ms: int, ago_ms: int, judgement: str) -> None:
    record = evicted(ago_ms=ago_ms, ready_within_ms=within_ms)
    assert found(record, FREED).judgement == judgement
    assert found(record, cluster(TWO, HUNGRY)).judgement == judgement


def test_a_value_of_ours_is_looked_after_long_after_it_was_verified() -> None:
    change = Change("template", original=4, current=2, resource=GPU, container="main")
    entry = msgspec.structs.replace(entry_of(changes=(change,)), ref=DONE.workloads[0].ref, uid=UID)
    assert drifted(entry, change, DONE) is None
    assert drifted(entry, change, cluster(TWO.but(gpus=4))) == Finding(
        "reversed", "it is at 4 again, we had set 2"
    )
    assert drifted(entry, change, cluster(TWO.but(gpus=3))) == Finding(
        "superseded", "it is at 3, we had set 2"
    )
    assert drifted(entry, change, cluster(TWO.but(name="x"))) is None
    fewer = Change("scale", original=3, current=1)
    assert drifted(entry, fewer, DONE) == Finding("superseded", "it is at 2, we had set 1")


def test_what_cannot_be_read_is_no_drift() -> None:
    assert drift(4, 2, None) is None


def test_a_job_runs_fewer_than_its_parallelism_once_so_few_completions_are_left_and_never_more() -> None:
    job = TWO.but(kind="Job", group="batch")
    target = WorkloadRef("batch", "Job", "team", "web")
    record = acted(lever="scale", ref=target)

    assert found(record, without_pod(cluster(job))) == Finding("ready", "1 pod is ready")
    assert found(record, cluster(job.but(replicas=2, seen=(*TWO.seen, TWO.seen[0])))) == Finding(
        "waiting", "3 of 2 pods are there"
    )
