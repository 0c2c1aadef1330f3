"""Putting back restores what was there before our first act, and nothing that somebody else has set since."""

from typing import Any

import msgspec
import pytest
from act_worlds import (
    GPU,
    NIGHTLY,
    NOW_MS,
    SET,
    WEB,
    ActWorld,
    change_action,
    entry_of,
    fail_once,
    record_of,
    uid_of,
)
from build import DAY_MS, HOUR_MS

from autoscaler.act.contract import AuthorityLostError
from autoscaler.act.requests import DELETION_COST, LOWERED_COST, pod_path
from autoscaler.act.undo import evict_stuck, owed_revert, reverse_action, revert, undo_all, undo_entry
from autoscaler.kube.errors import Conflict, Forbidden, ServerError, TooManyRequests, Unreachable
from autoscaler.model.ledger import Change, Entry, Record
from autoscaler.model.plan import PodRef
from autoscaler.model.reasons import Reason

OURS = Change("template", original=4, current=2, resource=GPU, container="main")
LATE_MS = HOUR_MS


async def verified(world: ActWorld, after: int, lever: Any = "template", ref: Any = WEB) -> Record:
    outcome = await world.act(after, lever, ref)
    assert outcome.kind == "done", outcome
    return await world.ledger.advance(world.writer, outcome.record, "verified")


async def failed(world: ActWorld, after: int) -> Record:
    outcome = await world.act(after)
    return await world.ledger.advance(world.writer, outcome.record, "failed", detail="no room")


async def undone(world: ActWorld) -> list[tuple[str, Reason | None]]:
    """How everything ended that a person put back."""
    found = await undo_all(world.ledger, world.executor, world.person)
    return [(one.outcome.kind, one.outcome.reason) for one in found]


async def entry(world: ActWorld) -> Entry:
    found = await world.reload()
    assert found is not None
    return found


def state_of(found: Entry) -> list[tuple[str, str]]:
    return [(record.actor, record.state) for record in found.records]


async def test_undo_of_everything_restores_every_workload() -> None:
    world = ActWorld()
    for ref in (WEB, SET, NIGHTLY):
        world.add(ref, boards=4, replicas=3)
        await verified(world, 2, ref=ref)
    await verified(world, 1)
    await verified(world, 1, "scale")

    assert {kind for kind, _ in await undone(world)} == {"done"}
    assert [
        world.value(),
        world.value("scale"),
        world.value(ref=SET),
        world.value(ref=NIGHTLY),
    ] == [4, 3, 4, 4]
    assert [world.traces(ref) for ref in (WEB, SET, NIGHTLY)] == [[], [], []]
    assert await undone(world) == [], "nothing is left to put back"


async def test_what_a_person_put_back_is_remembered_and_left_alone() -> None:
    world = ActWorld()
    world.add()
    first = await verified(world, 2)
    assert await undone(world) == [("done", None)]

    found = await entry(world)
    assert state_of(found) == [("service", "verified"), ("undo", "verified")]
    assert (found.records[1].undoes, found.records[1].term, found.changes) == (first.id, 0, ())
    assert (found.not_before_ms, found.why) == (NOW_MS + DAY_MS, "put back by a person")


async def test_an_act_that_is_not_verified_yet_is_closed_by_putting_it_back() -> None:
    world = ActWorld()
    world.add()
    await world.act(2)
    assert await undone(world) == [("done", None)]
    assert state_of(await entry(world)) == [("service", "undone"), ("undo", "verified")]
    assert world.value() == 4


async def test_an_undo_that_is_refused_leaves_the_act_as_it_was() -> None:
    world = ActWorld()
    world.add()
    await world.act(2)
    world.person.authority.lost = True  # type: ignore[attr-defined]
    with pytest.raises(AuthorityLostError):
        await undone(world)
    assert state_of(await entry(world)) == [("service", "acted")]


async def test_an_undo_that_meets_a_conflict_leaves_the_act_as_it_was() -> None:
    world = ActWorld()
    world.add()
    await world.act(2)
    fail_once(Conflict(409, "Conflict", "modified"), on="PATCH /apis")(world.server)
    assert await undone(world) == [("conflict", None)]
    assert state_of(await entry(world)) == [("service", "acted"), ("undo", "dropped")]
    assert await undone(world) == [("done", None)]
    assert state_of(await entry(world)) == [("service", "undone"), ("undo", "dropped"), ("undo", "verified")]


async def test_marks_of_an_act_that_was_put_back_are_taken_off() -> None:
    world = ActWorld()
    world.add()
    pod = PodRef("team", "web-1", "uid-web-1")
    world.add_pod(pod)
    action = change_action(3, 2, lever="scale", leaving=(pod,))
    await world.executor.execute(action, world.writer, actor="service", recheck=as_planned)
    assert world.server.objects[pod_path(pod)]["metadata"]["annotations"] == {DELETION_COST: LOWERED_COST}

    assert await undone(world) == [("done", None)]
    assert world.server.objects[pod_path(pod)]["metadata"]["annotations"] == {}


async def test_marks_that_could_not_be_taken_off_are_told_of() -> None:
    world = ActWorld()
    world.add()
    pod = PodRef("team", "web-1", "uid-web-1")
    world.add_pod(pod)
    action = change_action(3, 2, lever="scale", leaving=(pod,))
    await world.executor.execute(action, world.writer, actor="service", recheck=as_planned)
    fail_once(ServerError(500, "", "down"), on=pod_path(pod))(world.server)
    (found,) = await undo_all(world.ledger, world.executor, world.person)
    assert (found.outcome.kind, found.outcome.detail) == ("done", "not followed up: 500: down")


async def as_planned(action: Any) -> Any:
    return action


@pytest.mark.parametrize("is_open", [False, True])
async def test_what_somebody_else_has_set_stays_and_is_no_longer_ours(is_open: bool) -> None:
    world = ActWorld()
    world.add()
    if is_open:
        await world.act(2)
    else:
        await verified(world, 2)
    world.set_value(3)

    assert await undone(world) == [("refused", Reason.SUPERSEDED)]
    assert world.value() == 3
    found = await entry(world)
    assert (found.changes, found.open_record) == ((), None)
    assert state_of(found) == [("service", "superseded" if is_open else "verified")]
    assert await undone(world) == []


async def test_a_value_that_an_owner_set_before_our_next_act_is_the_original() -> None:
    world = ActWorld()
    world.add()
    await verified(world, 2)
    world.set_value(3)
    await verified(world, 1)
    await undone(world)
    assert world.value() == 3


@pytest.mark.parametrize("is_open", [False, True])
async def test_a_workload_that_is_gone_is_forgotten(is_open: bool) -> None:
    world = ActWorld()
    world.add()
    if is_open:
        await world.act(2)
    else:
        await verified(world, 2)
    world.remove()
    world.add(boards=2, uid="another")

    assert await undone(world) == [("gone", None)]
    assert world.value() == 2
    found = await entry(world)
    assert (found.changes, found.open_record) == ((), None)


async def test_what_a_crash_left_open_is_settled_before_everything_is_put_back() -> None:
    world = ActWorld()
    world.add()
    fail_once(Unreachable("timeout", "no answer"), on="PATCH", after=True)(world.server)
    assert (await world.act(2)).kind == "unknown"

    assert await undone(world) == [("done", None)]
    assert world.value() == 4
    assert state_of(await entry(world)) == [("service", "undone"), ("undo", "verified")]


async def test_an_act_that_may_be_under_way_is_waited_for() -> None:
    world = ActWorld()
    world.add()
    fail_once(Unreachable("timeout", "no answer"), on="PATCH")(world.server)
    await world.act(2)

    assert await undone(world) == [("refused", Reason.COOLDOWN)]
    world.clock.pass_ms(LATE_MS)
    assert await undone(world) == []
    assert state_of(await entry(world)) == [("service", "dropped")]


async def test_nothing_of_a_workload_is_put_back_or_let_go_while_its_act_is_only_intended() -> None:
    world = ActWorld()
    world.add()
    await verified(world, 2)
    fail_once(Unreachable("timeout", "no answer"), on="PATCH", after=True)(world.server)
    await world.act(1)
    found = await undo_entry(await entry(world), world.ledger, world.executor, world.person)

    assert [(one.outcome.kind, one.outcome.reason) for one in found] == [("refused", Reason.COOLDOWN)]
    assert ((await entry(world)).changes, world.value()) == ((OURS,), 1)
    assert await undone(world) == [("done", None)]
    assert world.value() == 4


async def test_an_act_that_begins_while_a_value_is_let_go_keeps_the_original() -> None:
    world = ActWorld()
    world.add()
    await verified(world, 2)
    hers = world.new_ledger()
    found = await world.reload(hers)
    assert found is not None
    fail_once(Unreachable("timeout", "no answer"), on="PATCH", after=True)(world.server)
    await world.act(1)
    (restored,) = await undo_entry(found, hers, world.new_executor(hers), world.person)

    assert restored.outcome.reason is Reason.SUPERSEDED
    assert (await entry(world)).changes == (OURS,)
    assert await undone(world) == [("done", None)]
    assert world.value() == 4


async def test_one_workload_that_cannot_be_written_down_stops_no_other() -> None:
    world = ActWorld(shards=2)
    for ref in (WEB, SET):
        world.add(ref)
        await verified(world, 2, ref=ref)
    world.set_value(3)
    fail_once(Forbidden(403, "Forbidden", "may not"), on=f"PUT {world.shard_path(uid_of(WEB))}")(world.server)

    assert sorted(await undone(world), key=str) == [("done", None), ("refused", None)]
    assert (world.value(), world.value(ref=SET)) == (3, 4)


async def test_a_stateful_sets_template_comes_last_and_stays_open_for_its_pods() -> None:
    world = ActWorld()
    world.add(SET)
    await verified(world, 2, ref=SET)
    await verified(world, 1, "scale", ref=SET)
    found = await undo_all(world.ledger, world.executor, world.person)
    assert [(one.change.lever, one.outcome.kind) for one in found] == [
        ("scale", "done"),
        ("template", "done"),
    ]
    assert (world.value(ref=SET), world.value("scale", ref=SET)) == (4, 3)
    opened = world.ledger.entries[uid_of(SET)].open_record
    assert opened is not None
    assert (opened.actor, opened.state) == ("undo", "acted")


async def test_sizes_are_put_back_before_counts() -> None:
    world = ActWorld()
    world.add()
    await verified(world, 1, "scale")
    await verified(world, 2)
    found = await undo_all(world.ledger, world.executor, world.person)
    assert [one.change.lever for one in found] == ["template", "scale"]


async def test_a_failed_act_is_put_back_to_the_value_before_it() -> None:
    world = ActWorld()
    world.add()
    await verified(world, 2)
    record = await failed(world, 1)
    outcome = await revert(record, world.ledger, world.executor, world.writer)

    assert outcome is not None
    assert (outcome.kind, world.value()) == ("done", 2)
    found = await entry(world)
    assert found.changes == (OURS,)
    assert (found.records[-1].actor, found.records[-1].undoes) == ("revert", record.id)
    assert found.records[-1].action.reason == Reason.REVERTED


async def test_a_failed_act_that_somebody_else_changed_is_let_go() -> None:
    world = ActWorld()
    world.add()
    record = await failed(world, 2)
    world.set_value(3)
    outcome = await revert(record, world.ledger, world.executor, world.writer)
    assert outcome is not None
    assert (outcome.reason, world.value()) == (Reason.SUPERSEDED, 3)
    assert (await entry(world)).changes == ()
    assert await revert(record, world.ledger, world.executor, world.writer) is None


async def test_a_revert_that_a_crash_prevented_is_still_owed() -> None:
    world = ActWorld()
    world.add()
    record = await failed(world, 2)
    owed = owed_revert(await entry(world))
    assert owed == record
    await revert(record, world.ledger, world.executor, world.writer)
    found = await entry(world)
    assert (owed_revert(found), world.value()) == (None, 4)
    closed = await world.ledger.advance(world.writer, found.records[-1], "verified")
    assert owed_revert(await entry(world)) is None
    assert closed.state == "verified"


@pytest.mark.parametrize(
    ("records", "changes"),
    [
        ((), ()),
        ((record_of(change_action(4, 2), "verified"),), (OURS,)),
        ((record_of(change_action(4, 2), "failed"),), ()),
        ((record_of(change_action(4, 2), "failed", actor="revert"),), (OURS,)),
        ((record_of(change_action(4, 2), "failed"), record_of(change_action(2, 1), id="b")), (OURS,)),
    ],
)
def test_nothing_is_owed_where_nothing_failed_last(records: Any, changes: Any) -> None:
    assert owed_revert(entry_of(*records, changes=changes)) is None


def test_a_putting_back_that_was_never_sent_is_still_owed() -> None:
    first = record_of(change_action(4, 2), "failed")
    never = record_of(change_action(2, 4), "dropped", id="b", actor="revert")
    assert owed_revert(entry_of(first, never, changes=(OURS,))) == first


def test_the_same_putting_back_has_the_same_id() -> None:
    found = entry_of(record_of(change_action(4, 2, method="idle"), "verified"), changes=(OURS,))
    action = reverse_action(found, OURS, actor="undo")
    assert action == reverse_action(found, OURS, actor="undo")
    assert action.id != reverse_action(found, OURS, actor="revert").id
    assert (action.before, action.after, action.method, action.reason) == (2, 4, "idle", Reason.UNDONE)
    assert (action.saved_milli_boards, action.resource, action.container) == (0, GPU, "main")
    assert action.because == f"{GPU} of container main: 4 was there before we set 2"


async def test_only_pods_that_are_pending_still_are_evicted() -> None:
    world = ActWorld()
    stuck, running, leaving, gone = (PodRef("team", f"set-{n}", f"uid-{n}") for n in range(4))
    world.add_pod(stuck, phase="Pending")
    world.add_pod(running)
    world.add_pod(leaving, phase="Pending")
    world.server.objects[pod_path(leaving)]["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:00Z"
    another = msgspec.structs.replace(stuck, uid="another")

    assert await evict_stuck((another, running, leaving, gone, stuck), world.writer) == []
    assert pod_path(stuck) not in world.server.objects
    assert {pod_path(running), pod_path(leaving)} <= set(world.server.objects)


async def test_a_stuck_pod_that_cannot_be_evicted_is_told_of() -> None:
    world = ActWorld()
    stuck = PodRef("team", "set-0", "uid-0")
    world.add_pod(stuck, phase="Pending")
    world.server.before = lambda _verb, _path: refuse()
    assert await evict_stuck((stuck,), world.writer) == ["pod team/set-0: 429: later"]


def refuse() -> None:
    raise TooManyRequests(429, "", "later")


async def test_an_entry_that_cannot_be_read_is_neither_put_back_nor_lost() -> None:
    world = ActWorld(shards=1)
    world.add()
    await verified(world, 2)
    world.store_text("uid-other", '{"version": 7}')
    await world.ledger.load(world.server)
    assert await undone(world) == [("done", None)]
    assert world.text("uid-other") == '{"version": 7}'
