from typing import Any

import pytest
from build import NOW_MS, Spec, boards, burst, cluster, judge, node, policy, rescale, resize, waiting

from autoscaler.decide import plan
from autoscaler.decide.guards.freeze import guard_freeze
from autoscaler.decide.proposal import Proposal
from autoscaler.decide.tally import Tally

ALWAYS = {"schedule": "* * * * *", "duration": "1h", "reason": "release"}
LONGER = {"schedule": "* * * * *", "duration": "2h", "reason": "audit"}
NEVER = {"schedule": "0 0 29 2 *", "duration": "1h"}


def asked(change: Proposal, *windows: dict[str, Any]) -> str | None:
    world, judged = judge(cluster(Spec()), policy(freeze={"windows": list(windows)}))
    return guard_freeze(world, judged, change, Tally.of(world)).reason


@pytest.mark.parametrize(
    ("window", "template", "scale"),
    [
        (ALWAYS, "FreezeWindow", "FreezeWindow"),
        (NEVER, None, None),
        (ALWAYS | {"methods": ["right-size"]}, "FreezeWindow", None),
        (ALWAYS | {"namespaces": ["team"]}, "FreezeWindow", "FreezeWindow"),
        (ALWAYS | {"namespaces": ["other"]}, None, None),
    ],
)
def test_a_window_holds_its_kinds_of_action_in_its_namespaces(
    window: dict[str, Any], template: str | None, scale: str | None
) -> None:
    assert (asked(resize(2, 1), window), asked(rescale(2, 1), window)) == (template, scale)


def test_the_window_that_is_open_longest_is_told() -> None:
    world, judged = judge(cluster(Spec()), policy(freeze={"windows": [ALWAYS, LONGER, NEVER]}))

    # 1,800,000,000 s is 2027-01-15 08:00 UTC.
    assert guard_freeze(world, judged, resize(2, 1), Tally.of(world)).detail == (
        "frozen until 2027-01-15 10:00 UTC: audit"
    )


def test_without_an_open_window_the_guard_says_so() -> None:
    def told(*windows: dict[str, Any]) -> str:
        world, judged = judge(cluster(Spec()), policy(freeze={"windows": list(windows)}))
        return guard_freeze(world, judged, resize(2, 1), Tally.of(world)).detail

    assert (told(), told(NEVER)) == ("no freeze window", "no freeze window is open")


def test_nothing_is_planned_in_a_window() -> None:
    half_used = cluster(Spec(gpus=2, seen=(boards(0.0, 0.2),)))
    (row,) = plan(half_used, policy(freeze={"windows": [ALWAYS]}), NOW_MS).rows

    assert (row.action, row.reason) == (None, "FreezeWindow")
    assert plan(half_used, policy(freeze={"windows": [NEVER]}), NOW_MS).actions


@pytest.mark.parametrize(("spaces", "count"), [(["team"], 0), (["research"], 0), (["other"], 1)])
def test_nobody_leaves_for_work_of_a_namespace_that_is_frozen(spaces: list[str], count: int) -> None:
    asking = cluster(burst(), waiting(namespace="research"), nodes=(node(gpus=1),))
    rules = policy(freeze={"windows": [ALWAYS | {"namespaces": spaces}]})

    assert len(plan(asking, rules, NOW_MS).actions) == count
