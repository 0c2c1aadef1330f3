from typing import Any

import pytest
from build import HOUR_MS, NOW_MS, Spec, cluster, judge, policy, resize

from autoscaler.decide.guards.memory import eviction_of, guard_backoff, guard_contested
from autoscaler.decide.guards.pace import guard_cooldown
from autoscaler.decide.proposal import Ruling
from autoscaler.decide.tally import Tally
from autoscaler.model.cluster import PastAct, WorkloadRef

REF = WorkloadRef("apps", "Deployment", "team", "web")
OTHER = WorkloadRef("apps", "Deployment", "team", "other")


def ruled(guard: Any, *acts: PastAct, **sections: Any) -> Ruling:
    world, judged = judge(cluster(Spec(), acts=acts), policy(**sections))
    found = guard(world, judged, resize(2, 1), Tally.of(world))
    assert isinstance(found, Ruling)
    return found


@pytest.mark.parametrize(
    ("reversals", "reason"), [((), None), ((1,), None), ((1, 2), "Contested"), ((7,), "Contested")]
)
def test_who_puts_it_back_twice_has_the_last_word(reversals: tuple[int, ...], reason: str | None) -> None:
    acts = [PastAct(REF, NOW_MS - HOUR_MS, reversals=count) for count in reversals]

    assert reason == ruled(guard_contested, *acts).reason
    assert ruled(guard_contested, *acts, PastAct(OTHER, 0, reversals=9)).reason == reason
    assert ruled(guard_contested, *acts, guards={"maxReversals": 8}).reason is None


@pytest.mark.parametrize(
    ("acts", "reason", "detail"),
    [
        ((), None, "no back-off is running"),
        ((PastAct(REF, 0, not_before_ms=NOW_MS),), None, "no back-off is running"),
        (
            (PastAct(REF, 0, not_before_ms=NOW_MS + HOUR_MS, why="put back by a person"),),
            "Cooldown",
            "put back by a person: another 1h to go",
        ),
        (
            (PastAct(REF, 5, method="make-room", not_before_ms=NOW_MS + 1, why="evicted 1 times in a day"),),
            "EvictionMemory",
            "evicted 1 times in a day: another 1ms to go",
        ),
        (
            (
                PastAct(REF, 9, method="right-size", not_before_ms=NOW_MS + 1),
                PastAct(REF, 5, method="make-room", not_before_ms=NOW_MS + 1),
            ),
            "Cooldown",
            "it was left alone: another 1ms to go",
        ),
        (
            (
                PastAct(REF, 0, not_before_ms=NOW_MS + HOUR_MS, why="it was refused several times"),
                PastAct(REF, 5, method="make-room", not_before_ms=NOW_MS + 1, why="evicted"),
            ),
            "Cooldown",
            "it was refused several times: another 1h to go",
        ),
        ((PastAct(OTHER, 5, not_before_ms=NOW_MS + 1),), None, "no back-off is running"),
    ],
)
def test_a_back_off_says_why_and_how_long(acts: tuple[PastAct, ...], reason: str | None, detail: str) -> None:
    found = ruled(guard_backoff, *acts)

    assert (reason, detail) == (found.reason, found.detail)


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        (PastAct(REF, 0, not_before_ms=NOW_MS + 1), None),
        (PastAct(REF, NOW_MS - 1, method=""), "Cooldown"),
        (PastAct(REF, NOW_MS - 9 * HOUR_MS, verified=False), "Cooldown"),
        (PastAct(REF, 0, verified=False), None),
    ],
)
def test_what_counts_for_the_cool_down(act: PastAct, reason: str | None) -> None:
    assert reason == ruled(guard_cooldown, act, guards={"cooldown": "1h"}).reason


def test_a_row_without_a_time_is_no_change_whatever_the_cool_down() -> None:
    act = PastAct(REF, 0, not_before_ms=NOW_MS + 1)

    assert ruled(guard_cooldown, act, guards={"cooldown": "99999d"}).reason is None


def test_an_eviction_is_forgotten_when_its_back_off_ends() -> None:
    def remembered(act: PastAct) -> PastAct | None:
        return eviction_of(judge(cluster(Spec(), acts=(act,)), policy(guards={"backoff": "1h"}))[0], REF)

    just, over = NOW_MS - HOUR_MS + 1, NOW_MS - HOUR_MS
    assert remembered(PastAct(REF, just, method="make-room"))
    assert remembered(PastAct(REF, over, method="make-room")) is None
    assert remembered(PastAct(REF, over, method="make-room", not_before_ms=NOW_MS + 1))
    assert remembered(PastAct(REF, over, method="make-room", not_before_ms=NOW_MS)) is None


def test_the_latest_eviction_is_the_one_that_is_remembered() -> None:
    acts = (PastAct(REF, NOW_MS - 2, method="make-room"), PastAct(REF, NOW_MS - 1, method="make-room"))
    world, _ = judge(cluster(Spec(), acts=acts))

    assert eviction_of(world, REF) == acts[1]
    assert eviction_of(world, OTHER) is None
