"""Whatever a crash or a lost answer left open is settled by what the object shows, once nothing can be under way."""

from typing import Any

import msgspec
import pytest
from act_worlds import NOW_MS, WEB, ActWorld, change_action, eviction, fail_once, uid_of

from autoscaler.act.repair import MARGIN_MS, settle
from autoscaler.act.requests import DELETION_COST, LOWERED_COST, pod_path
from autoscaler.kube.errors import Conflict, ServerError, Unreachable
from autoscaler.model.ledger import Change, Record
from autoscaler.model.plan import PodRef, Seat

POD = PodRef("team", "web-1", "uid-web-1")
WAITING = PodRef("team", "hungry", "uid-hungry")
LATER_MS = NOW_MS + 10 * 60_000


async def intended(world: ActWorld, action: Any) -> Record:
    return await world.ledger.intend(world.writer, action, actor="service", settle_ms=NOW_MS + 15_000)


async def settled(world: ActWorld, record: Record, *, now_ms: int = LATER_MS) -> tuple[str, str]:
    """What was found, and what the record is then."""
    found = await settle(record, world.ledger, world.executor, world.writer, now_ms=now_ms)
    entry = await world.reload()
    assert entry is not None
    return found.settled, entry.records[-1].state


@pytest.mark.parametrize(
    ("live", "settled_as"), [(2, "acted"), (4, "dropped"), (3, "superseded"), (None, "gone")]
)
@pytest.mark.parametrize("lever", ["template", "scale"])
async def test_an_intent_is_settled_by_the_live_value(lever: Any, live: int | None, settled_as: str) -> None:
    world = ActWorld()
    world.add(boards=4, replicas=4)
    record = await intended(world, change_action(4, 2, lever=lever))
    if live is None:
        world.remove()
    else:
        world.set_value(live, lever)
    if live == 2:
        world.leave_trace()

    assert await settled(world, record) == (settled_as, settled_as)
    changes = (await world.reload()).changes  # type: ignore[union-attr]
    assert [(4, 2)] * (settled_as == "acted") == [(one.original, one.current) for one in changes]


async def test_the_wanted_value_without_our_trace_was_set_by_somebody_else() -> None:
    world = ActWorld()
    world.add(boards=4)
    record = await intended(world, change_action(4, 2))
    world.set_value(2)

    assert await settled(world, record) == ("superseded", "superseded")
    assert (await world.reload()).changes == ()  # type: ignore[union-attr]


async def test_another_object_of_that_name_is_not_the_workload() -> None:
    world = ActWorld()
    world.add(boards=2, uid="another")
    record = await intended(world, change_action(4, 2))
    assert await settled(world, record) == ("gone", "gone")


@pytest.mark.parametrize(
    ("now_ms", "state"),
    [
        (NOW_MS, "intended"),
        (NOW_MS + 15_000 + MARGIN_MS, "intended"),
        (NOW_MS + 15_001 + MARGIN_MS, "dropped"),
    ],
)
async def test_what_may_still_be_under_way_is_not_dropped(now_ms: int, state: str) -> None:
    world = ActWorld()
    world.add()
    record = await intended(world, change_action(4, 2))
    found, written = await settled(world, record, now_ms=now_ms)
    assert written == state
    assert found == ("waiting" if state == "intended" else "dropped")


async def test_what_happened_is_settled_at_once_and_leaves_no_trace() -> None:
    world = ActWorld()
    world.add()
    fail_once(Unreachable("timeout", "no answer"), on="PATCH", after=True)(world.server)
    outcome = await world.act(2)
    assert (outcome.kind, world.value(), world.traces()) == ("unknown", 2, ["gpu-autoscaler"])

    assert await settled(world, outcome.record, now_ms=NOW_MS) == ("acted", "acted")
    assert world.traces() == []
    assert (await world.reload()).changes == (  # type: ignore[union-attr]
        Change("template", original=4, current=2, resource="nvidia.com/gpu", container="main"),
    )


async def test_what_follows_an_accepted_act_is_repeated_until_it_is_done() -> None:
    world = ActWorld()
    world.add()
    outcome = await world.act(2)
    world.server.objects["/apis/apps/v1/namespaces/team/deployments/web"]["metadata"]["managedFields"] = [
        {"manager": "kubectl"},
        {"manager": "gpu-autoscaler"},
    ]
    for _ in range(2):
        assert await settled(world, outcome.record) == ("acted", "acted")
        assert world.traces() == ["kubectl"]


@pytest.mark.parametrize(("there", "settled_as"), [(True, "dropped"), (False, "acted")])
async def test_an_eviction_is_settled_by_its_pod(there: bool, settled_as: str) -> None:
    world = ActWorld()
    world.add()
    if there:
        world.add_pod(POD)
    record = await intended(world, eviction(POD))
    assert await settled(world, record) == (settled_as, settled_as)


async def test_a_pod_that_is_terminating_was_evicted() -> None:
    world = ActWorld()
    world.add()
    world.add_pod(POD)
    world.server.objects[pod_path(POD)]["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:00Z"
    assert await settled(world, await intended(world, eviction(POD))) == ("acted", "acted")


async def test_an_eviction_that_names_no_pod_was_never_sent() -> None:
    world = ActWorld()
    world.add()
    record = await intended(world, msgspec.structs.replace(eviction(POD), pod=None))
    assert await settled(world, record) == ("dropped", "dropped")


async def test_the_seat_of_an_eviction_that_did_not_happen_is_given_up() -> None:
    world = ActWorld()
    world.add()
    world.add_pod(POD)
    world.add_pod(WAITING, node="", phase="Pending")
    waiting = world.server.objects[pod_path(WAITING)]
    waiting["status"]["nominatedNodeName"] = "node-1"
    waiting["metadata"]["managedFields"] = [{"manager": "gpu-autoscaler", "subresource": "status"}]
    record = await intended(world, eviction(POD, seat=Seat(WAITING, "node-1")))

    assert await settled(world, record) == ("dropped", "dropped")
    assert "nominatedNodeName" not in world.server.objects[pod_path(WAITING)]["status"]


async def test_marks_are_taken_back_before_the_record_is_closed() -> None:
    world = ActWorld()
    world.add()
    world.add_pod(POD)
    world.server.objects[pod_path(POD)]["metadata"]["annotations"] = {DELETION_COST: LOWERED_COST}
    record = await intended(world, change_action(3, 2, lever="scale", leaving=(POD,)))
    fail_once(ServerError(500, "", "down"), on=pod_path(POD))(world.server)
    with pytest.raises(ServerError):
        await settled(world, record)
    entry = await world.reload()
    assert entry is not None
    assert entry.open_record is not None, "a closed record is not looked at again"

    assert await settled(world, record) == ("dropped", "dropped")
    assert world.server.objects[pod_path(POD)]["metadata"]["annotations"] == {}


async def test_a_ledger_that_cannot_be_written_leaves_the_record_open() -> None:
    world = ActWorld()
    world.add()
    record = await intended(world, change_action(4, 2))

    def always(verb: str, path: str) -> None:
        raise Conflict(409, "Conflict", f"{verb} {path}")

    world.server.before = always
    with pytest.raises(Exception, match="3 times in a row"):
        await settle(record, world.ledger, world.executor, world.writer, now_ms=LATER_MS)
    entry = await world.reload()
    assert entry is not None
    assert entry.uid == uid_of(WEB)
    assert entry.open_record == record
