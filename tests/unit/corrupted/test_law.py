"""The law over corrupted worlds tells harm from what is right: a law that never speaks proves nothing."""

from collections.abc import Sequence

import msgspec
import pytest
from corrupted.law import found, harms
from corrupted.worlds import END_MS, Device, Unit, Work, World

from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.plan import Action, ExplainRow, Fleet, Plan, PodRef, Seat
from autoscaler.model.reasons import Reason

pytestmark = pytest.mark.unit

GPU = "nvidia.com/gpu"
REF = WorkloadRef("apps", "StatefulSet", "ml", "app")


def unit(ordinal: int, use: str, *, boards: int = 1, known: bool = True) -> Unit:
    devices = tuple(Device(f"GPU-{ordinal}-{n}", n, "node-1") for n in range(boards))
    active = boards if use in {"busy", "half"} else 0
    level = {"busy": 0.8, "half": 0.45}.get(use, 0.0)
    return Unit(
        f"app-{ordinal}", f"uid-{ordinal}", use, devices, 0, (0, 60_000, 600_000), active, level, known=known
    )


def world(*units: Unit, serving: bool = False) -> World:
    work = Work("app", "ml", "StatefulSet", "main", "image", GPU, units, serving=serving)
    return World(0, "w", 30_000, 0, "current", frozenset({"engine"}), (), (work,))


def action(lever: str, before: int, after: int, *, pod: str = "") -> Action:
    seat = Seat(PodRef("ml", "urgent", "u"), "node-1") if pod else None
    return Action(
        id="1",
        method="make-room" if pod else "idle",
        reason=Reason.RELEASED,
        lever=lever,
        target=REF,
        uid="uid-app",
        resource_version="1",
        resource=GPU,
        container="main",
        before=before,
        after=after,
        saved_milli_boards=1000,
        because="a test says so",
        pod=PodRef("ml", "app-0", pod) if pod else None,
        seat=seat,
    )


def plan(verdict: str, *actions: Action) -> Plan:
    row = ExplainRow(REF, GPU, 1, 1, verdict, Reason.RELEASED, "", "training", "kind")
    return Plan(END_MS, "apply", Fleet(8, 1, 0, 0, 1, 1, 1.0, 1), actions=actions, rows=(row,))


def told(units: Sequence[Unit], verdict: str, *actions: Action) -> list[str]:
    return harms(world(*units), plan(verdict, *actions))


@pytest.mark.parametrize("use", ["busy", "half", "bursty", "surplus", "whisper"])
def test_idle_is_harm_unless_the_unit_is_idle(use: str) -> None:
    assert told([unit(0, use)], "idle") == [f"app: idle, but app-0 is {use}"]
    assert told([unit(0, "idle")], "idle") == []


def test_idle_is_harm_where_nobody_can_know() -> None:
    assert told([unit(0, "idle", known=False)], "idle") == [
        "app: idle, but app-0 is idle, and cannot be known"
    ]


def test_a_server_may_call_itself_idle_but_nothing_is_taken_for_that() -> None:
    server = world(unit(0, "idle", known=False), serving=True)

    assert harms(server, plan("idle")) == []
    assert harms(server, plan("idle", action("scale", 1, 0))) == [
        "idle scale app: 1 to 0 replicas takes app-0, which is idle, and cannot be known"
    ]


def test_replicas_that_go_must_be_idle_and_of_a_stateful_set_the_last_ones_go() -> None:
    busy_first, busy_last = [unit(0, "busy"), unit(1, "idle")], [unit(0, "idle"), unit(1, "busy")]

    assert told(busy_first, "under-used", action("scale", 2, 1)) == []
    assert told(busy_last, "under-used", action("scale", 2, 1)) == [
        "idle scale app: 2 to 1 replicas takes app-1, which is busy"
    ]


def test_boards_that_are_needed_stay() -> None:
    half = [unit(0, "half", boards=4)]

    assert told(half, "under-used", action("template", 4, 3)) == []
    assert told(half, "under-used", action("template", 4, 2)) == [
        "idle template app: 2 boards for app-0, which needs 3"
    ]


def test_only_what_is_used_less_than_the_watermark_is_evicted() -> None:
    assert told([unit(0, "bursty")], "under-used", action("evict", 1, 0, pod="uid-0")) == []
    assert told([unit(0, "half")], "under-used", action("evict", 1, 0, pod="uid-0")) == [
        "make-room evict app: evicts app-0, which is half"
    ]
    assert told([unit(0, "idle", known=False)], "unknown", action("evict", 1, 0, pod="uid-0")) == [
        "make-room evict app: evicts app-0, which cannot be known"
    ]


def test_an_act_on_a_stranger_is_harm() -> None:
    stranger = msgspec.structs.replace(
        action("scale", 1, 0), target=WorkloadRef("apps", "Deployment", "x", "y")
    )

    assert told([unit(0, "idle")], "idle", stranger) == ["x/y: an act on what nobody drew"]


def test_idle_units_are_counted_by_what_is_seen_and_by_what_is_acted_on() -> None:
    one = world(unit(0, "idle"))

    seen, unseen = found(one, plan("idle", action("scale", 1, 0))), found(one, plan("unknown"))
    assert (seen.idle, seen.seen, seen.acted, seen.share) == (1, 1, 1, 1.0)
    assert (unseen.idle, unseen.seen, unseen.acted, unseen.share) == (1, 0, 0, 0.0)


def test_units_that_nobody_can_know_are_not_asked_for() -> None:
    assert found(world(unit(0, "idle", known=False)), plan("unknown")).idle == 0
