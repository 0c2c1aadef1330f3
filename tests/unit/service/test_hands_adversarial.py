"""What the acting half of a leader must not do, whatever it finds: die, forget an original, act on an old plan."""

import asyncio
from typing import Any

import msgspec
import pytest
from act_worlds import GPU, NOW_MS, SET, WEB, ActWorld, change_action, entry_of, eviction, record_of, uid_of
from build import DAY_MS, Spec, boards, cluster, policy
from service_fakes import ManualClock, RecordingLog, settle

from autoscaler.act import shards
from autoscaler.act.shards import TERM
from autoscaler.decide import plan as decide_plan
from autoscaler.kube.errors import Forbidden
from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.ledger import Change, Entry
from autoscaler.model.plan import Action, Plan, PodRef, Seat
from autoscaler.model.reasons import Reason
from autoscaler.model.shapes import ContainerShape
from autoscaler.model.snapshot import Snapshot
from autoscaler.service.cycle import Outcome
from autoscaler.service.hands import Hands
from autoscaler.service.policy_file import LoadedPolicy
from autoscaler.service.telemetry import Metrics

RULES = policy(modes={"default": "apply"}, guards={"quietPeriod": "10m"})
MINUTE_MS = 60_000
JOB = WorkloadRef("batch", "Job", "team", "train")
BARE = WorkloadRef("", "Pod", "team", "alone")
OURS = Change("template", original=4, current=2, resource=GPU, container="main")


class Hand:
    """Hands over a server in memory."""

    def __init__(self, world: ActWorld) -> None:
        self.world, self.log, self.clock = world, RecordingLog(), ManualClock(NOW_MS)
        server: Any = world.server
        log: Any = self.log
        self.hands = Hands(
            session=server,
            namespace="gpu-autoscaler",
            ledger=world.ledger,
            executor=world.executor,
            recheck=_as_planned,
            clock=self.clock,
            now_ms=world.clock,
            metrics=Metrics(clock=self.clock.monotonic_s),
            log=log,
        )

    def remember(self, entry: Entry) -> None:
        self.world.store_text(entry.uid, shards.written(entry))

    def outcome(self, snapshot: Snapshot, *actions: Action) -> Outcome:
        made = decide_plan(snapshot, RULES, snapshot.taken_ms)
        return Outcome(
            sequence=1,
            decision_id="1",
            plan=msgspec.structs.replace(made, actions=actions),
            snapshot=snapshot,
            policy=LoadedPolicy(RULES, "digest", "a test"),
            generated_ms=snapshot.taken_ms,
            generated_s=0.0,
        )

    async def turn(self, *specs: Spec, actions: tuple[Action, ...] = ()) -> None:
        """One plan worked through at the server's present time."""
        snapshot = msgspec.structs.replace(cluster(*specs), taken_ms=self.world.clock.ms)
        await self.world.ledger.load(self.world.server)
        await self.hands.work_through(self.outcome(snapshot, *actions), self.world.writer, asyncio.Event())

    def entry(self, uid: str) -> Entry:
        return self.world.ledger.entries[uid]

    def changes_sent(self) -> list[str]:
        """Changing requests about anything but the ledger."""
        return [line for line in self.world.server.sent if "/configmaps" not in line]


async def _as_planned(action: Action) -> Action:
    return action


async def test_an_evicted_job_that_has_finished_is_forgotten_once_its_back_off_is_over() -> None:
    """A Job whose pods were only evicted is never read: what to do about it must not need a request."""
    for ref in (JOB, BARE):
        hand = Hand(ActWorld())
        pod = PodRef("team", f"{ref.name}-x", "uid-pod")
        done = record_of(eviction(pod, ref=ref), "verified")
        until_ms = NOW_MS + 60 * MINUTE_MS
        hand.remember(entry_of(done, ref=ref, not_before_ms=until_ms, failures=1, why="a pod was evicted"))

        await hand.turn()
        assert hand.entry(f"uid-{ref.name}").not_before_ms == until_ms

        hand.world.clock.pass_ms(60 * MINUTE_MS)
        await hand.turn()
        left = hand.entry(f"uid-{ref.name}")
        assert (left.not_before_ms, left.failures, left.why) == (-1, 0, "")
        assert hand.changes_sent() == []


async def test_a_value_of_a_kind_that_nobody_can_read_stops_nobody_else() -> None:
    hand = Hand(ActWorld())
    hand.world.add()
    strange = WorkloadRef("apps.kruise.io", "CloneSet", "team", "strange")
    hand.remember(entry_of(ref=strange, changes=(OURS,)))
    hand.remember(entry_of(changes=(OURS,)))
    strange_spec = Spec("strange", kind="CloneSet", group="apps.kruise.io", gpus=4)
    shown = strange_spec.but(workload={"uid": "uid-strange"})

    await hand.turn(shown, Spec("web", gpus=4, workload={"uid": "uid-web"}))

    assert hand.entry("uid-web").reversals == 1
    assert "not_settled" in hand.log.events()


async def test_an_original_is_kept_while_the_workload_is_there_and_not_in_view() -> None:
    """An owner that adopts a Deployment takes it out of the snapshot, not out of the cluster."""
    hand = Hand(ActWorld())
    hand.world.add(boards=2)
    acted = record_of(change_action(4, 2), "acted")
    hand.remember(entry_of(acted, changes=(OURS,)))
    hand.world.clock.pass_ms(MINUTE_MS)

    await hand.turn()
    assert (hand.entry("uid-web").changes, hand.entry("uid-web").records[0].state) == ((OURS,), "acted")

    hand.world.clock.pass_ms(24 * 60 * MINUTE_MS)
    await hand.turn()
    assert hand.world.value() == 4
    assert [one.state for one in hand.entry("uid-web").records] == ["failed", "acted"]


async def test_an_act_whose_workload_is_gone_is_closed() -> None:
    hand = Hand(ActWorld())
    hand.remember(entry_of(record_of(change_action(4, 2), "acted"), changes=(OURS,)))
    hand.world.clock.pass_ms(MINUTE_MS)

    await hand.turn()

    assert hand.entry("uid-web").records[0].state == "gone"
    assert hand.entry("uid-web").changes == ()


async def test_an_act_whose_job_has_ended_is_closed_and_not_put_back() -> None:
    hand = Hand(ActWorld())
    path = "/apis/batch/v1/namespaces/team/jobs/train"
    action = change_action(3, 1, lever="scale", ref=JOB)
    ended = {"conditions": [{"type": "Complete", "status": "True"}]}
    meta = {"name": "train", "namespace": "team", "uid": action.uid, "managedFields": []}
    hand.world.server.put(path, {"metadata": meta, "spec": {"parallelism": 1}, "status": ended})
    held = (Change("scale", original=3, current=1),)
    hand.remember(entry_of(record_of(action, "acted"), ref=JOB, changes=held))
    hand.world.clock.pass_ms(24 * 60 * MINUTE_MS)

    await hand.turn()

    (record,) = hand.entry(action.uid).records
    assert (record.state, record.detail) == ("gone", "Job team/train has ended")
    assert hand.entry(action.uid).changes == ()
    assert hand.world.server.objects[path]["spec"] == {"parallelism": 1}


@pytest.mark.parametrize(("condition", "kept"), [("Complete", 0), ("Failed", 0), ("Suspended", 1)])
async def test_a_parallelism_of_ours_is_forgotten_once_its_job_has_ended(condition: str, kept: int) -> None:
    hand = Hand(ActWorld())
    status = {"conditions": [{"type": condition, "status": "True"}]}
    meta = {"name": "train", "namespace": "team", "uid": uid_of(JOB), "managedFields": []}
    path = "/apis/batch/v1/namespaces/team/jobs/train"
    hand.world.server.put(path, {"metadata": meta, "spec": {"parallelism": 1}, "status": status})
    action = change_action(3, 1, lever="scale", ref=JOB)
    held = (Change("scale", original=3, current=1),)
    hand.remember(entry_of(record_of(action, "verified"), ref=JOB, changes=held))

    await hand.turn()

    assert len(hand.entry(uid_of(JOB)).changes) == kept
    assert hand.changes_sent() == []


def hanging(*containers: ContainerShape) -> tuple[Spec, Spec]:
    """A StatefulSet whose template states 4, with a pod that no node takes; the second lends the template its shape."""
    pod = {"phase": "Pending", "ready": False, "uid": "uid-pod"}
    shape = {"containers": containers}
    sized = Spec("set", kind="StatefulSet", gpus=4, seen=(None,), pod=pod, shape=shape, node="")
    return sized.but(workload={"uid": "uid-set", "template": 1}), Spec("lender", gpus=4, seen=())


def put_back(hand: Hand, *, boards: int) -> PodRef:
    """A StatefulSet's template was put back; its pod is pending."""
    hand.world.add(SET, boards=boards)
    pod = PodRef("team", "set-0", "uid-pod")
    hand.world.add_pod(pod, node="", phase="Pending")
    action = change_action(2, boards, ref=SET)
    hand.remember(entry_of(record_of(action, "acted", actor="revert"), ref=SET))
    hand.world.clock.pass_ms(MINUTE_MS)
    return pod


def container(name: str, boards: int, role: Any = "main") -> ContainerShape:
    return ContainerShape(name, role=role, requests={GPU: boards}, limits={GPU: boards})


async def test_a_pending_pod_of_the_size_that_was_put_back_is_left_alone_whatever_else_it_asks_for() -> None:
    hand = Hand(ActWorld())
    put_back(hand, boards=4)

    await hand.turn(*hanging(container("main", 4), container("added", 1, "sidecar")))

    assert hand.changes_sent() == []


async def test_a_pending_pod_of_another_size_is_evicted() -> None:
    hand = Hand(ActWorld())
    put_back(hand, boards=4)
    evicted: list[str] = []
    hand.world.server.after = lambda _verb, path: evicted.append(path)

    await hand.turn(*hanging(container("main", 2)))

    assert "/api/v1/namespaces/team/pods/set-0/eviction" in evicted


async def test_a_putting_back_that_cannot_be_healed_is_closed_when_its_time_is_over() -> None:
    hand = Hand(ActWorld())
    put_back(hand, boards=4)

    def refuse(verb: str, path: str) -> None:
        if path.endswith("/eviction"):
            raise Forbidden(403, "Forbidden", f"may not {verb} {path}")

    hand.world.server.before = refuse
    hand.world.clock.pass_ms(24 * 60 * MINUTE_MS)

    await hand.turn(*hanging(container("main", 2)))

    assert hand.entry("uid-set").records[0].state == "failed"


async def test_a_plan_from_before_the_leadership_is_not_carried_out() -> None:
    """It knows nothing of the quiet period that has just begun, nor of what others did meanwhile."""
    hand, stop = Hand(ActWorld()), asyncio.Event()
    hand.world.add()
    hand.hands.notice(hand.outcome(cluster(), change_action(4, 2)))
    hand.hands.rest(RULES)

    leading = asyncio.create_task(hand.hands.lead(hand.world.writer, stop))
    await settle()
    stop.set()
    await leading

    assert hand.world.server.sent == []


async def test_while_the_first_eviction_of_a_seat_rests_the_next_one_is_not_sent() -> None:
    hand = Hand(ActWorld())
    first, second, waits = (PodRef("team", name, f"uid-{name}") for name in ("a-0", "b-0", "urgent"))
    hand.world.add_pod(first)
    hand.world.add_pod(second)
    hand.world.add_pod(waits, node="", phase="Pending")
    others = [WorkloadRef("apps", "Deployment", "team", name) for name in ("a", "b")]
    evictions = tuple(
        eviction(pod, ref=ref, seat=Seat(waits, "node-1", more=more))
        for pod, ref, more in zip((first, second), others, (1, 0), strict=True)
    )

    def refuse(verb: str, path: str) -> None:
        if path == "/api/v1/namespaces/team/pods/urgent/status":
            raise Forbidden(403, "Forbidden", f"a webhook denies {verb}")

    hand.world.server.before = refuse
    await hand.turn(actions=evictions)
    hand.world.server.before = lambda _verb, _path: None
    hand.world.clock.pass_ms(1000)
    await hand.turn(actions=evictions)

    assert hand.changes_sent() == []
    assert {uid: len(one.records) for uid, one in hand.world.ledger.entries.items()} == {"uid-a": 1}


async def test_a_workload_that_is_refused_again_and_again_gives_its_share_of_the_budget_to_others() -> None:
    hand = Hand(ActWorld())
    await hand.hands.refresh(RULES)
    rules = policy(modes={"default": "apply"}, budgets={"inFlight": 1})
    denied, other = Spec("denied", gpus=8, seen=((),)), Spec("other", gpus=4, seen=((),))
    snapshot = _idle(denied, other)
    planned = _names(decide_plan(snapshot, rules, NOW_MS))
    assert planned == ["denied"]
    (action,) = decide_plan(snapshot, rules, NOW_MS).actions

    for _ in range(4):
        hand.hands._refused.hear(action, "refused", 0.0, "a webhook denies it")
    again = msgspec.structs.replace(snapshot, acts=hand.hands.memory().acts)
    found = decide_plan(again, rules, NOW_MS)

    assert _names(found) == ["other"]
    (row,) = [row for row in found.rows if row.workload.name == "denied"]
    assert (row.reason, row.detail) == (
        Reason.COOLDOWN,
        "it was refused several times: a webhook denies it: another 4m to go",
    )


def _idle(*specs: Spec) -> Snapshot:
    return cluster(*(spec.but(seen=(boards(0.9, *([0.0] * (spec.gpus - 1))),)) for spec in specs))


def _names(made: Plan) -> list[str]:
    return [action.target.name for action in made.actions]


async def test_a_ledger_that_cannot_be_made_ours_is_told_once() -> None:
    hand, stop = Hand(ActWorld()), asyncio.Event()

    def refuse(verb: str, path: str) -> None:
        raise Forbidden(403, "Forbidden", f"may not {verb} {path}")

    hand.world.server.before = refuse
    taking = asyncio.create_task(hand.hands.take_over(hand.world.writer, stop))
    await hand.clock.advance(20)
    stop.set()
    await hand.clock.advance(5)

    assert await taking is False
    assert hand.log.events() == ["ledger_not_ours"]


def _hand_after_a_clean_day() -> Hand:
    hand = Hand(ActWorld(shards=1))
    act = record_of(change_action(4, 2), "verified", intended_ms=NOW_MS - DAY_MS, closed_ms=NOW_MS - DAY_MS)
    hand.remember(entry_of(act))
    return hand


async def test_a_clean_day_of_the_ledger_is_known_to_the_next_plan() -> None:
    hand = _hand_after_a_clean_day()
    await hand.hands.refresh(RULES)

    assert hand.hands.memory().control.clean_days == 1


@pytest.mark.parametrize("fault", ["entry", "term"])
async def test_no_day_counts_as_clean_where_the_ledger_cannot_be_read(fault: str) -> None:
    hand = _hand_after_a_clean_day()
    if fault == "entry":
        hand.world.store_text(uid_of(JOB), '{"version": 99}')
    else:
        hand.world.server.objects[hand.world.shard_path(uid_of(WEB))]["metadata"]["annotations"] = {TERM: "x"}
    await hand.hands.refresh(RULES)

    assert hand.hands.memory().control.clean_days == 0


async def test_where_nothing_may_act_no_day_is_clean() -> None:
    hand = _hand_after_a_clean_day()
    await hand.hands.refresh(policy(modes={"default": "recommend"}))

    assert hand.hands.memory().control.clean_days == 0
