"""A lower minimum is one field of the autoscaler, verified once the replicas have followed, and can be put back."""

from typing import Any

import msgspec
import pytest
from act_worlds import NOW_MS, ActWorld, change_action, entry_of, record_of, uid_of
from build import MINUTE_MS, Spec, boards, cluster, policy

from autoscaler.act.contract import Outcome
from autoscaler.act.history import past_acts
from autoscaler.act.live import LiveWorkload
from autoscaler.act.repair import settle
from autoscaler.act.requests import Request, change_request, workload_path
from autoscaler.act.undo import undo_all
from autoscaler.act.verify import Finding, drifted, judge
from autoscaler.model.cluster import Autoscaler, WorkloadRef
from autoscaler.model.ledger import Change, Entry, Record
from autoscaler.model.plan import Action, ThroughRef
from autoscaler.model.reasons import Reason
from autoscaler.model.snapshot import Snapshot

WEB = WorkloadRef("apps", "StatefulSet", "team", "web")
ROW = WorkloadRef("autoscaling", "HorizontalPodAutoscaler", "team", "hpa")
THROUGH = ThroughRef("hpa", "uid-hpa", "HorizontalPodAutoscaler")
OURS = Change("bounds", original=4, current=2, through=THROUGH)
PATH = "/apis/autoscaling/v2/namespaces/team/horizontalpodautoscalers/hpa"


def lowering(before: int = 4, after: int = 2, **more: Any) -> Action:
    fields = {"lever": "bounds", "method": "scale-in", "reason": Reason.SCALED_IN, "ref": WEB}
    return change_action(before, after, **(fields | {"container": "", "through": THROUGH} | more))


def world_of(minimum: int | None = 4, *, uid: str = THROUGH.uid, traces: int = 0) -> ActWorld:
    world = ActWorld()
    meta = {"name": ROW.name, "namespace": "team", "uid": uid}
    spec: dict[str, Any] = {"maxReplicas": 9} | ({} if minimum is None else {"minReplicas": minimum})
    world.server.put(
        PATH, {"metadata": meta | {"managedFields": [{"manager": "gpu-autoscaler"}] * traces}, "spec": spec}
    )
    return world


def minimum(world: ActWorld) -> int:
    return int(world.server.objects[PATH]["spec"]["minReplicas"])


async def done(world: ActWorld) -> Outcome:
    async def as_planned(action: Action) -> Action:
        return action

    return await world.executor.execute(lowering(), world.writer, actor="service", recheck=as_planned)


async def stored(world: ActWorld) -> Entry:
    await world.ledger.load(world.server)
    return world.ledger.entries[uid_of(WEB)]


def test_the_request_names_version_and_uid_and_changes_the_one_field() -> None:
    live = LiveWorkload(ref=ROW, uid=THROUGH.uid, resource_version="7")

    assert workload_path(ROW) == PATH
    assert change_request(lowering(), live) == Request(
        "PATCH",
        PATH,
        {"metadata": {"uid": THROUGH.uid, "resourceVersion": "7"}, "spec": {"minReplicas": 2}},
        "application/merge-patch+json",
        {"fieldManager": "gpu-autoscaler"},
    )


async def test_an_act_is_written_down_for_the_workload_and_sent_to_its_autoscaler() -> None:
    world = world_of()
    outcome = await done(world)
    entry = await stored(world)

    assert outcome.kind == "done"
    assert minimum(world) == 2
    assert world.traces(ROW) == []
    assert (entry.ref, entry.changes) == (WEB, (OURS,))
    assert entry.written(OURS) == (ROW, THROUGH.uid)


@pytest.mark.parametrize(
    ("now", "uid", "kind"),
    [(3, THROUGH.uid, "conflict"), (None, THROUGH.uid, "conflict"), (4, "another", "gone")],
)
async def test_another_value_or_another_object_is_not_touched(now: int | None, uid: str, kind: str) -> None:
    world = world_of(now, uid=uid)

    assert (await done(world)).kind == kind
    assert not [sent for sent in world.server.sent if PATH in sent]


@pytest.mark.parametrize(
    ("now", "traces", "settled_as"), [(2, 1, "acted"), (2, 0, "superseded"), (4, 0, "dropped")]
)
async def test_a_crash_is_repaired_from_the_autoscaler(now: int, traces: int, settled_as: str) -> None:
    world = world_of()
    record = await world.ledger.intend(world.writer, lowering(), actor="service", settle_ms=NOW_MS + 15_000)
    world.server.objects[PATH] = world_of(now, traces=traces).server.objects[PATH]
    found = await settle(record, world.ledger, world.executor, world.writer, now_ms=NOW_MS + 10 * MINUTE_MS)

    assert found.settled == settled_as


async def test_undo_raises_it_again_and_says_which_field() -> None:
    world = world_of()
    outcome = await done(world)
    await world.ledger.advance(world.writer, outcome.record, "verified")  # type: ignore[arg-type]
    (restored,) = await undo_all(world.ledger, world.executor, world.person)

    assert restored.outcome.kind == "done"
    assert restored.outcome.record is not None
    assert restored.outcome.record.action.because == (
        "minReplicas of HorizontalPodAutoscaler hpa: 4 was there before we set 2"
    )
    assert minimum(world) == 4
    assert (await stored(world)).changes == ()


def test_budgets_count_the_pods_that_are_to_go() -> None:
    (act,) = past_acts([entry_of(record_of(lowering(), "verified"), ref=WEB)], now_ms=NOW_MS)

    assert act.pods == 2


def acted(before: int = 4, after: int = 2, *, ago_ms: int = MINUTE_MS, **more: Any) -> Record:
    action = msgspec.structs.replace(
        lowering(before, after), target=WorkloadRef("apps", "Deployment", "team", "web"), uid="uid-team-web"
    )
    return record_of(action, "acted", acted_ms=NOW_MS - ago_ms, **more)


def seen(minimum: int | None, replicas: int) -> Snapshot:
    rows = [] if minimum is None else [Autoscaler("team", "hpa", "Deployment", "web", minimum, uid="uid-hpa")]
    return cluster(Spec(seen=(boards(0.5),) * replicas), autoscalers=tuple(rows))


def found(snapshot: Snapshot, record: Record) -> Finding:
    rules = policy(guards={"readyDeadline": "30m"})
    return judge(record, snapshot, verdict=None, policy=rules, now_ms=NOW_MS)


KEEPS = "its autoscaler keeps 4 replicas by its own metric"


@pytest.mark.parametrize(
    ("snapshot", "record", "finding"),
    [
        (seen(2, 4), acted(), Finding("waiting", KEEPS)),
        (seen(2, 4), acted(ago_ms=31 * MINUTE_MS), Finding("failed", f"{KEEPS} after 31m")),
        (seen(2, 2), acted(), Finding("ready", "2 pods are ready")),
        (seen(4, 4), acted(), Finding("reversed", "it is at 4 again, we had set 2")),
        (seen(3, 4), acted(), Finding("superseded", "it is at 3, we had set 2")),
        (seen(None, 4), acted(), Finding("gone", "no HorizontalPodAutoscaler hpa of uid uid-hpa")),
        (
            seen(4, 2),
            acted(2, 4),
            Finding("waiting", "its autoscaler keeps 2 replicas by its own metric"),
        ),
        (seen(4, 5), acted(2, 4), Finding("ready", "5 pods are ready")),
    ],
)
def test_a_saving_is_claimed_only_once_the_replicas_have_followed(
    snapshot: Snapshot, record: Record, finding: Finding
) -> None:
    assert found(snapshot, record) == finding


def test_more_load_on_probation_may_bring_replicas_back() -> None:
    assert found(seen(2, 3), acted(ready_ms=NOW_MS - MINUTE_MS)).judgement == "waiting"


def test_a_value_of_ours_is_looked_for_in_the_autoscaler() -> None:
    entry = entry_of(ref=WEB)

    assert drifted(entry, OURS, seen(2, 2)) is None
    assert drifted(entry, OURS, seen(4, 4)) == Finding("reversed", "it is at 4 again, we had set 2")
    assert drifted(entry, OURS, seen(None, 4)) == Finding(
        "gone", "no HorizontalPodAutoscaler hpa of uid uid-hpa"
    )
