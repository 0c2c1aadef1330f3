"""What became of the boards that an act freed."""

from typing import Any

import msgspec
from act_worlds import change_action, entry_of, eviction, record_of
from build import GPU, HOUR_MS, NOW_MS, Spec, boards, cluster, node

from autoscaler.act.freed import NODES_FOLLOWED, boards_by_fate, follow, held_before, noted
from autoscaler.model.cluster import NodeRow, WorkloadRef
from autoscaler.model.ledger import Entry, Freed, Record
from autoscaler.model.plan import PodRef
from autoscaler.model.snapshot import Snapshot

DAY_MS = 24 * HOUR_MS
CLOSED_MS = NOW_MS - HOUR_MS
LEFT = Freed("node-1", 2, "waiting", kept=2, at_ms=CLOSED_MS)
WEB = Spec("web", gpus=2, seen=(boards(0.5, 0.5),), age_ms=DAY_MS)
"""It holds two of the four boards that it had."""
NEW = Spec("new", gpus=1, seen=(boards(0.9),), age_ms=HOUR_MS // 2)
NEW_REF = WorkloadRef("apps", "Deployment", "team", "new")
WEB_REF = WorkloadRef("apps", "Deployment", "team", "web")


def act(*freed: Freed, name: str = "web", closed_ms: int = CLOSED_MS, **more: Any) -> Entry:
    ref = WorkloadRef("apps", "Deployment", "team", name)
    action = change_action(4, 2, ref=ref, uid=f"uid-team-{name}")
    record = record_of(
        action,
        more.pop("state", "verified"),
        **{"acted_ms": closed_ms, "closed_ms": closed_ms, "freed": freed, "id": f"act-{name}"} | more,
    )
    return msgspec.structs.replace(entry_of(record, ref=ref), uid=f"uid-team-{name}")


def found(*entries: Entry, seen: Snapshot) -> list[tuple[Freed, ...]]:
    return [row.freed for row in follow(entries, seen, within_ms=DAY_MS)]


def world(*specs: Spec, nodes: tuple[NodeRow, ...] = (node(),)) -> Snapshot:
    return cluster(*(specs or (WEB,)), nodes=nodes)


def test_what_is_held_just_before_an_act_is_counted_by_node_and_only_for_the_workload() -> None:
    before = world(WEB.but(gpus=4, seen=(boards(0.1, 0.1, 0.1, 0.1),)), NEW)

    held = held_before(change_action(4, 2, uid="uid-team-web"), before)

    assert held == (Freed("node-1", 4, "held"),)


def test_an_eviction_frees_only_where_its_pod_is() -> None:
    two = world(WEB.but(seen=(boards(0.5, 0.5), boards(0.5, 0.5))), nodes=(node(), node("node-2")))
    moved = msgspec.structs.replace(two.pods[1], node="node-2")
    two = msgspec.structs.replace(two, pods=(two.pods[0], moved))
    pod = PodRef("team", moved.name, moved.uid)

    assert held_before(eviction(pod, uid="uid-team-web"), two) == (Freed("node-2", 2, "held"),)


def test_of_one_act_only_the_nodes_with_the_most_boards_are_followed() -> None:
    many = world(WEB.but(seen=(boards(0.5, 0.5),) * (NODES_FOLLOWED + 3)))
    spread = tuple(
        msgspec.structs.replace(pod, node=f"node-{number:02}") for number, pod in enumerate(many.pods)
    )
    many = msgspec.structs.replace(many, pods=spread)

    held = held_before(change_action(2, 1, uid="uid-team-web"), many)

    assert [row.node for row in held] == [f"node-{number:02}" for number in range(NODES_FOLLOWED)]


def test_once_verified_what_the_workload_no_longer_holds_waits() -> None:
    entry = act(Freed("node-1", 4, "held"))

    assert found(entry, seen=world()) == [(Freed("node-1", 2, "waiting", kept=2, at_ms=NOW_MS),)]


def test_a_node_on_which_nothing_was_freed_is_not_followed() -> None:
    assert found(act(Freed("node-1", 2, "held")), seen=world()) == [()]


def test_boards_that_nobody_took_go_on_waiting_and_nothing_is_written() -> None:
    assert found(act(LEFT), seen=world()) == []


def test_who_came_to_the_node_since_the_act_uses_them_and_the_rest_waits() -> None:
    used = Freed("node-1", 1, "used", by=NEW_REF, at_ms=NOW_MS)
    rest = msgspec.structs.replace(LEFT, boards=1)

    assert found(act(LEFT), seen=world(WEB, NEW)) == [(used, rest)]
    assert found(act(used, rest), seen=world(WEB, NEW)) == []


def test_who_was_there_before_the_act_does_not_use_them() -> None:
    assert found(act(LEFT), seen=world(WEB, NEW.but(age_ms=DAY_MS))) == []


def test_what_has_ended_uses_nothing() -> None:
    assert found(act(LEFT), seen=world(WEB, NEW.but(pod={"phase": "Succeeded"}))) == []


def test_another_resource_on_the_node_does_not_use_them() -> None:
    assert found(act(LEFT), seen=world(WEB, NEW.but(resource="amd.com/gpu"))) == []


def test_a_board_is_not_counted_for_two_acts_and_the_earlier_one_has_it() -> None:
    one = msgspec.structs.replace(LEFT, boards=1)
    late = act(Freed("node-1", 1, "waiting", at_ms=CLOSED_MS), name="old", closed_ms=CLOSED_MS + 1)

    assert found(late, act(one), seen=world(WEB, NEW)) == [
        (Freed("node-1", 1, "used", by=NEW_REF, at_ms=NOW_MS),)
    ]


def test_what_the_workload_holds_again_is_taken_back() -> None:
    grown = world(WEB.but(gpus=4, seen=(boards(0.9, 0.9, 0.9, 0.9),)))

    assert found(act(LEFT), seen=grown) == [(Freed("node-1", 2, "taken-back", by=WEB_REF, at_ms=NOW_MS),)]


def test_boards_of_a_node_that_is_gone_or_going_are_removed_with_it() -> None:
    removed = msgspec.structs.replace(LEFT, fate="node-removed", at_ms=NOW_MS)

    assert found(act(LEFT), seen=world(nodes=(node("node-2"),))) == [(removed,)]
    assert found(act(LEFT), seen=world(nodes=(node(deleting=True),))) == [(removed,)]
    assert found(act(removed), seen=world()) == []


def test_a_cordoned_node_offers_its_boards_again_once_it_is_uncordoned() -> None:
    cordoned = msgspec.structs.replace(LEFT, fate="cordoned", at_ms=NOW_MS)

    assert found(act(LEFT), seen=world(nodes=(node(unschedulable=True),))) == [(cordoned,)]
    assert found(act(cordoned), seen=world()) == [(msgspec.structs.replace(LEFT, at_ms=NOW_MS),)]


def test_only_verified_acts_that_put_nothing_back_are_followed_and_only_for_the_stated_time() -> None:
    seen = world(WEB, NEW)

    assert found(act(LEFT, state="failed"), seen=seen) == []
    assert found(act(LEFT, actor="undo"), seen=seen) == []
    assert found(act(LEFT, closed_ms=NOW_MS - DAY_MS - 1), seen=seen) == []
    assert found(act(LEFT, closed_ms=NOW_MS), seen=seen) == []
    assert found(act(), seen=seen) == []


def test_it_is_noted_with_its_act_and_counted_by_fate() -> None:
    entry = act(Freed("node-1", 4, "held"))
    other = record_of(change_action(2, 1), "failed", freed=(LEFT,))
    entry = msgspec.structs.replace(entry, records=(other, *entry.records))

    after = noted(entry, "act-web", (LEFT, Freed("node-2", 1, "used", by=NEW_REF)))

    assert boards_by_fate([entry]) == {}
    assert boards_by_fate([after]) == {"waiting": 2, "used": 1}
    assert after.records[0] == other


def test_a_ledger_written_before_boards_were_followed_is_still_read() -> None:
    text = msgspec.to_builtins(record_of(change_action(4, 2), "verified"))
    del text["freed"]

    assert msgspec.convert(text, Record).freed == ()
    assert record_of(change_action(4, 2)).action.resource == GPU
