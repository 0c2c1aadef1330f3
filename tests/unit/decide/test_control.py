"""An operator's pause and a ledger that cannot be read hold back every action, and take none out of the plan."""

import pytest
from build import NOW_MS, Spec, boards, burst, cluster, node, policy, waiting

from autoscaler.decide import plan
from autoscaler.model.cluster import Control
from autoscaler.model.plan import PodRef

HALF = Spec(gpus=2, seen=(boards(0.5, 0.0),))


@pytest.mark.parametrize(
    ("control", "mode", "held_by"),
    [
        (Control(), "apply", ()),
        (Control(), "recommend", ("ModeRecommend",)),
        (Control(paused="me: looking"), "apply", ("Paused",)),
        (Control(paused="me: looking"), "recommend", ("ModeRecommend", "Paused")),
        (Control(ledger_fault="version 9"), "apply", ("LedgerUnreadable",)),
        (Control(paused="x", ledger_fault="y"), "recommend", ("ModeRecommend", "Paused", "LedgerUnreadable")),
        (Control(quiet_until_ms=NOW_MS + 1), "apply", ("QuietPeriod",)),
        (Control(quiet_until_ms=NOW_MS), "apply", ()),
    ],
)
def test_the_plan_shows_what_would_be_done_and_what_holds_it(
    control: Control, mode: str, held_by: tuple[str, ...]
) -> None:
    rules = policy(modes={"default": mode})
    (change,) = plan(cluster(HALF, control=control), rules, NOW_MS).actions
    full = cluster(burst(), waiting(), nodes=(node(gpus=1),), control=control)
    (eviction,) = plan(full, rules, NOW_MS).actions

    assert held_by == change.held_by
    assert held_by == eviction.held_by


def test_a_smaller_deployment_names_the_pods_that_it_should_lose() -> None:
    three = Spec(seen=(boards(0.05), boards(0.01), boards(0.05)))
    (scale,) = plan(cluster(three), policy(), NOW_MS).actions
    (ordered,) = plan(
        cluster(Spec(kind="StatefulSet", seen=(boards(0.05), boards(0.0)))), policy(), NOW_MS
    ).actions

    assert scale.leaving == (PodRef("team", "web-1", "uid-team-web-1"),)
    assert scale.ready_within_ms == policy().guards.ready_deadline
    assert ordered.leaving == ()
