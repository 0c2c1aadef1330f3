"""A release through Kueue changes one field of the Workload that stands for a Job, and can be put back."""

from typing import Any

import msgspec
import pytest
from act_worlds import NOW_MS, ActWorld, change_action, entry_of, fail_once, record_of, uid_of
from build import MINUTE_MS, cluster, policy
from hypothesis import given
from hypothesis import strategies as st
from kueue_worlds import DOOR, admitted, job, queue, queued

from autoscaler.act import transitions
from autoscaler.act.contract import Outcome
from autoscaler.act.history import past_acts
from autoscaler.act.live import LiveWorkload
from autoscaler.act.repair import settle
from autoscaler.act.requests import Request, change_request, workload_path
from autoscaler.act.undo import revert, undo_all
from autoscaler.act.verify import Finding, drifted, judge
from autoscaler.kube.errors import KubeError, ServerError, Unreachable
from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.kueue import KueueWorkload
from autoscaler.model.ledger import Change, Entry, Record
from autoscaler.model.plan import Action, ThroughRef
from autoscaler.model.policy import Guards
from autoscaler.model.reasons import Reason
from autoscaler.model.snapshot import Snapshot

TRAINER = WorkloadRef("batch", "Job", "team", "trainer")
ROW = WorkloadRef("kueue.x-k8s.io", "Workload", "team", "job-trainer")
THROUGH = ThroughRef("job-trainer", "uid-job-trainer")
OURS = Change("deactivate", original=1, current=0, through=THROUGH)
PATH = "/apis/kueue.x-k8s.io/v1beta2/namespaces/team/workloads/job-trainer"


def deactivation(**more: Any) -> Action:
    fields = {"lever": "deactivate", "method": "deactivate", "reason": Reason.RELEASED, "ref": TRAINER}
    return change_action(1, 0, **(fields | {"container": "", "through": THROUGH, "pods": 2} | more))


def world_of(*, active: bool | None = True) -> ActWorld:
    world = ActWorld()
    set_active(world, active)
    return world


def set_active(world: ActWorld, active: bool | None, *, uid: str = THROUGH.uid, traces: int = 0) -> None:
    """The Workload as somebody else writes it; None leaves the field out."""
    meta = {"name": ROW.name, "namespace": "team", "uid": uid}
    spec: dict[str, Any] = {"queueName": "main"} | ({} if active is None else {"active": active})
    fields = [{"manager": "gpu-autoscaler"}] * traces
    world.server.put(PATH, {"metadata": meta | {"managedFields": fields}, "spec": spec})


def active(world: ActWorld) -> bool:
    return bool(world.server.objects[PATH]["spec"].get("active", True))


async def done(world: ActWorld, **more: Any) -> Outcome:
    async def as_planned(action: Action) -> Action:
        return action

    return await world.executor.execute(
        deactivation(**more), world.writer, actor="service", recheck=as_planned
    )


async def stored(world: ActWorld) -> Entry:
    await world.ledger.load(world.server)
    return world.ledger.entries[uid_of(TRAINER)]


def test_the_request_names_version_and_uid_and_changes_the_one_field() -> None:
    live = LiveWorkload(ref=ROW, uid=THROUGH.uid, resource_version="7")

    assert workload_path(ROW) == PATH
    assert change_request(deactivation(), live) == Request(
        "PATCH",
        PATH,
        {"metadata": {"uid": THROUGH.uid, "resourceVersion": "7"}, "spec": {"active": False}},
        "application/merge-patch+json",
        {"fieldManager": "gpu-autoscaler"},
    )


@pytest.mark.parametrize("before", [True, None])
async def test_an_act_is_written_down_for_the_job_and_sent_to_its_workload(before: bool | None) -> None:
    world = world_of(active=before)
    outcome = await done(world)

    assert outcome.kind == "done"
    assert not active(world)
    assert world.traces(ROW) == []
    entry = await stored(world)
    assert (entry.ref, entry.changes) == (TRAINER, (OURS,))
    assert entry.written(OURS) == (ROW, THROUGH.uid)
    assert all("/jobs/" not in sent for sent in world.server.sent)


@pytest.mark.parametrize(
    ("now", "kind"),
    [
        ({"active": False}, "conflict"),
        ({"active": True, "uid": "another"}, "gone"),
    ],
)
async def test_another_state_or_another_object_is_not_touched(now: dict[str, Any], kind: str) -> None:
    world = world_of()
    set_active(world, **now)

    assert (await done(world)).kind == kind
    assert not [sent for sent in world.server.sent if PATH in sent]


async def test_a_workload_that_is_gone_is_told_by_its_own_name() -> None:
    outcome = await done(ActWorld())

    assert outcome == Outcome("gone", "Workload team/job-trainer of uid uid-job-trainer is no longer there")


async def test_an_admission_that_makes_something_else_of_it_is_an_owner() -> None:
    world = world_of()
    world.server._answer = lambda *_a, **_k: {"metadata": {"name": "x"}, "spec": {"active": True}}  # type: ignore[method-assign]

    assert (await done(world)).reason == "OtherOwner"


async def test_what_was_judged_through_another_workload_is_another_change() -> None:
    world = world_of()

    async def elsewhere(action: Action) -> Action:
        return msgspec.structs.replace(action, through=ThroughRef("job-trainer", "newer"))

    outcome = await world.executor.execute(deactivation(), world.writer, actor="service", recheck=elsewhere)

    assert outcome.kind == "conflict"
    assert active(world)


@pytest.mark.parametrize(
    ("error", "after"),
    [
        (ServerError(500, "InternalError", "etcd"), False),
        (ServerError(500, "InternalError", "etcd"), True),
        (Unreachable("timeout", "no answer"), True),
    ],
)
async def test_an_unanswered_act_is_settled_by_what_the_workload_shows(error: KubeError, after: bool) -> None:
    world = world_of()
    fail_once(error, on=PATH, after=after)(world.server)
    outcome = await done(world)
    assert outcome.kind == "unknown"
    assert outcome.record is not None

    found = await settle(
        outcome.record, world.ledger, world.executor, world.writer, now_ms=NOW_MS + 10 * MINUTE_MS
    )

    assert (found.settled, active(world)) == (("acted", False) if after else ("dropped", True))
    assert world.traces(ROW) == []
    assert (await stored(world)).changes == ((OURS,) if after else ())


@pytest.mark.parametrize(
    ("active_now", "traces", "uid", "settled_as"),
    [
        (False, 0, THROUGH.uid, "superseded"),
        (False, 1, THROUGH.uid, "acted"),
        (True, 0, THROUGH.uid, "dropped"),
        (False, 1, "another", "gone"),
    ],
)
async def test_a_crash_is_repaired_from_the_workload(
    active_now: bool, traces: int, uid: str, settled_as: str
) -> None:
    world = world_of()
    record = await world.ledger.intend(
        world.writer, deactivation(), actor="service", settle_ms=NOW_MS + 15_000
    )
    set_active(world, active_now, uid=uid, traces=traces)
    found = await settle(record, world.ledger, world.executor, world.writer, now_ms=NOW_MS + 10 * MINUTE_MS)

    assert found.settled == settled_as


async def test_undo_activates_it_again_and_leaves_no_trace() -> None:
    world = world_of()
    outcome = await done(world)
    await world.ledger.advance(world.writer, outcome.record, "verified")  # type: ignore[arg-type]
    (restored,) = await undo_all(world.ledger, world.executor, world.person)

    assert restored.outcome.kind == "done"
    assert restored.outcome.record is not None
    assert restored.outcome.record.action.because == (
        "active of Workload job-trainer: 1 was there before we set 0"
    )
    assert active(world)
    assert world.traces(ROW) == []
    entry = await stored(world)
    assert (entry.changes, entry.why) == ((), "put back by a person")


@pytest.mark.parametrize(
    ("now", "kind"), [({"active": True}, "refused"), ({"active": True, "uid": "x"}, "gone")]
)
async def test_undo_leaves_alone_what_is_not_ours_any_more(now: dict[str, Any], kind: str) -> None:
    world = world_of()
    outcome = await done(world)
    await world.ledger.advance(world.writer, outcome.record, "verified")  # type: ignore[arg-type]
    set_active(world, **now)
    sent = len([one for one in world.server.sent if PATH in one])
    (restored,) = await undo_all(world.ledger, world.executor, world.person)

    assert restored.outcome.kind == kind
    assert len([one for one in world.server.sent if PATH in one]) == sent
    assert (await stored(world)).changes == ()


async def test_a_release_that_failed_is_put_back() -> None:
    world = world_of()
    outcome = await done(world)
    record = await world.ledger.advance(world.writer, outcome.record, "failed", detail="pods stay")  # type: ignore[arg-type]
    reverted = await revert(record, world.ledger, world.executor, world.writer)

    assert reverted is not None
    assert reverted.kind == "done"
    assert active(world)


def test_a_newer_workload_of_the_same_job_is_another_field() -> None:
    newer = ThroughRef("job-trainer", "uid-newer")
    entry = entry_of(
        record_of(deactivation(through=newer), "acted"),
        changes=(OURS, Change("deactivate", 1, 0, through=newer)),
        ref=TRAINER,
    )
    (record,) = entry.records
    after = transitions.advance(entry, record.id, "gone", at_ms=NOW_MS, guards=Guards())

    assert after.changes == (OURS,)


def test_budgets_count_the_boards_and_pods_that_it_ended() -> None:
    entry = entry_of(record_of(deactivation(saved_milli_boards=4000), "verified"), ref=TRAINER)
    (act,) = past_acts([entry], now_ms=NOW_MS)

    assert (act.method, act.boards_milli, act.pods) == ("deactivate", 4000, 2)


ACTED_MS = NOW_MS - MINUTE_MS
TEAM = deactivation(target=WorkloadRef("batch", "Job", "team", "web"), uid="uid-team-web")


def acted(ago_ms: int = MINUTE_MS, **more: Any) -> Record:
    action = msgspec.structs.replace(TEAM, through=ThroughRef("job-web", "uid-job-web"))
    return record_of(action, "acted", acted_ms=NOW_MS - ago_ms, **more)


def seen(*rows: KueueWorkload, pods: int = 0, **tables: Any) -> Snapshot:
    spec = job(seen=(None,) * pods)
    return cluster(spec, kueue_workloads=rows, **tables)


def found(snapshot: Snapshot, record: Record | None = None) -> Finding:
    rules = policy(guards={"readyDeadline": "30m"})
    return judge(record or acted(), snapshot, verdict=None, policy=rules, now_ms=NOW_MS)


STOPPED = queued(active=False)


def test_it_is_verified_once_no_pod_runs_and_the_quota_is_free() -> None:
    assert found(seen(STOPPED)) == Finding("verified", "no pod of it runs and its quota is free")
    assert found(seen(STOPPED), acted(ready_ms=NOW_MS)).judgement == "verified"


def test_who_had_quota_of_the_same_queue_or_cohort_since_is_told() -> None:
    later, before = {"reserved_ms": ACTED_MS}, {"reserved_ms": ACTED_MS - MINUTE_MS}
    rows = (
        STOPPED,
        admitted("next", **later),
        admitted("mate", cluster_queue="mates", **later),
        admitted("far", cluster_queue="far", **later),
        admitted("old", **before),
    )
    queues = (queue("gpus", cohort="all"), queue("mates", cohort="all"), queue("far"))
    told = found(seen(*rows, cluster_queues=queues, local_queues=(DOOR,)))
    alone = found(seen(*rows, cluster_queues=(queue("gpus"), queue("far")), local_queues=(DOOR,)))

    assert told.detail.endswith("; since then quota there was given to team/job-mate, team/job-next")
    assert alone.detail.endswith("; since then quota there was given to team/job-next")


@pytest.mark.parametrize(
    ("snapshot", "ago_ms", "finding"),
    [
        (seen(STOPPED, pods=1), MINUTE_MS, Finding("waiting", "1 pod is still there")),
        (seen(STOPPED, pods=2), 31 * MINUTE_MS, Finding("failed", "2 pods are still there after 31m")),
        (
            seen(admitted(active=False)),
            MINUTE_MS,
            Finding("waiting", "ClusterQueue gpus still holds its quota"),
        ),
        (
            seen(admitted(active=False)),
            31 * MINUTE_MS,
            Finding("failed", "ClusterQueue gpus still holds its quota after 31m"),
        ),
        (seen(admitted()), MINUTE_MS, Finding("reversed", "it is at 1 again, we had set 0")),
        (
            seen(admitted(active=False, finished=True), pods=1),
            31 * MINUTE_MS,
            Finding("verified", "it has ended meanwhile"),
        ),
        (seen(), MINUTE_MS, Finding("gone", "no Workload team/job-web of uid uid-job-web")),
    ],
)
def test_what_is_not_stopped_in_time_has_failed(snapshot: Snapshot, ago_ms: int, finding: Finding) -> None:
    assert found(snapshot, acted(ago_ms)) == finding


def test_a_kind_that_is_known_by_its_pods_alone_is_not_taken_for_gone() -> None:
    """A JobSet's pods are all that shows it: once they are gone there is no row of it, and its Workload still tells."""
    snapshot = msgspec.structs.replace(seen(STOPPED), workloads=(), pods=())

    assert found(snapshot).judgement == "verified"


def test_a_value_of_ours_is_looked_for_in_the_workload() -> None:
    entry = entry_of(ref=TRAINER)
    ours = Change("deactivate", 1, 0, through=ThroughRef("job-web", "uid-job-web"))

    assert drifted(entry, ours, seen(STOPPED)) is None
    assert drifted(entry, ours, seen(admitted())) == Finding("reversed", "it is at 1 again, we had set 0")
    assert drifted(entry, ours, seen()) == Finding("gone", "no Workload job-web of uid uid-job-web")


@given(
    st.builds(admitted, active=st.booleans(), reserved=st.booleans(), finished=st.booleans()),
    st.integers(0, 2),
    st.integers(0, 120),
)
def test_nothing_is_called_verified_that_still_runs_or_holds_quota(
    row: KueueWorkload, pods: int, minutes: int
) -> None:
    judgement = found(seen(row, pods=pods), acted(minutes * MINUTE_MS)).judgement

    if judgement == "verified":
        assert not row.active
        assert row.finished or (pods == 0 and not row.reserved)
