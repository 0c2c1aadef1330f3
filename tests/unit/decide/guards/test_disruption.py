import pytest
from build import Spec, boards, cluster, judge, rescale, resize
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.decide.guards.disruption import budgets_of, guard_disruption_budgets
from autoscaler.decide.proposal import Proposal, Ruling
from autoscaler.decide.tally import Effect, Tally
from autoscaler.model.cluster import Budget
from autoscaler.model.selectors import LabelSelector

ALL = LabelSelector()


def budget(name: str = "pdb", **changes: object) -> Budget:
    fields = {"namespace": "team", "name": name, "selector": ALL, "unavailable": "1", "allowed": 1}
    return Budget(**{**fields, **changes})  # type: ignore[arg-type]


def rule(change: Proposal, *budgets: Budget, spent: int = 0, **spec: object) -> Ruling:
    replicas = change.before if change.lever == "scale" else 4
    found = Spec(**{"gpus": 1, "seen": (boards(0.0),) * replicas, **spec})  # type: ignore[arg-type]
    world, judged = judge(cluster(found, budgets=budgets))
    tally = Tally.of(world).after(Effect("team", disruptions=(("pdb", spent),)))
    return guard_disruption_budgets(world, judged, change, tally)


@pytest.mark.parametrize(
    ("change", "found", "reason"),
    [
        (rescale(3, 2), budget(), None),
        (rescale(3, 2), budget(allowed=0), "DisruptionBudget"),
        (rescale(3, 1), budget(unavailable="2", allowed=2), None),
        (rescale(3, 1), budget(allowed=1), "DisruptionBudget"),
        (rescale(3, 2), budget(observed=False), "DisruptionBudget"),
        (rescale(3, 2), budget(unavailable="", minimum="2"), None),
        (rescale(3, 2), budget(unavailable="", minimum="3", allowed=3), "DisruptionBudget"),
        (rescale(3, 2), budget(unavailable="", minimum="100%"), None),
        (rescale(1, 0), budget(unavailable="", minimum="1"), "DisruptionBudget"),
        (rescale(1, 0), budget(unavailable="", minimum="50%"), None),
        (rescale(1, 0), budget(), None),
        (rescale(3, 2), budget(namespace="lab", allowed=0), None),
        (rescale(3, 2), budget(selector=LabelSelector({"app": "web"}), allowed=0), "DisruptionBudget"),
        (rescale(3, 2), budget(selector=LabelSelector({"app": "other"}), allowed=0), None),
    ],
)
def test_a_scale_in_keeps_to_the_budget(change: Proposal, found: Budget, reason: str | None) -> None:
    assert reason == rule(change, found).reason


@pytest.mark.parametrize(
    ("kind", "rollout", "allowed", "reason"),
    [
        ("Deployment", {"max_unavailable": "0", "max_surge": "1"}, 0, None),
        ("Deployment", {}, 1, None),
        ("Deployment", {}, 0, "DisruptionBudget"),
        ("Deployment", {"recreate": True}, 3, "DisruptionBudget"),
        ("Deployment", {"recreate": True}, 4, None),
        ("StatefulSet", {}, 0, "DisruptionBudget"),
        ("StatefulSet", {}, 1, None),
    ],
)
def test_a_rollout_takes_away_what_its_strategy_says(
    kind: str, rollout: dict[str, object], allowed: int, reason: str | None
) -> None:
    assert reason == rule(resize(2, 1), budget(allowed=allowed), kind=kind, rollout=rollout).reason


def test_a_rollout_that_takes_no_ready_pod_asks_no_budget() -> None:
    surges = {"max_surge": "1", "max_unavailable": "0"}

    assert rule(resize(2, 1), budget(allowed=0, observed=False), rollout=surges).reason is None


def test_only_fewer_replicas_are_held_against_what_would_be_left() -> None:
    full = budget(unavailable="", minimum="4", allowed=1)

    assert rule(resize(2, 1), full, rollout={"max_surge": "0", "max_unavailable": "1"}).reason is None


def test_what_the_plan_has_taken_already_counts() -> None:
    assert "2 would go, 1 allowed" in rule(rescale(4, 2), budget(allowed=2), spent=1).detail
    assert rule(rescale(4, 2), budget(unavailable="2", allowed=3), spent=1).reason is None


def test_every_budget_that_selects_a_pod_must_agree() -> None:
    assert rule(rescale(3, 2), budget("a"), budget("b", allowed=0)).reason == "DisruptionBudget"


def test_budgets_are_told_in_the_order_of_their_names() -> None:
    _, judged = judge(snapshot := cluster(Spec(), budgets=(budget("z"), budget("a"))))
    world, _ = judge(snapshot)

    assert [found.name for found in budgets_of(world, judged)] == ["a", "z"]
    assert rule(rescale(2, 1), budget("z"), budget("a")).detail == "1 within a, z"
    assert rule(rescale(2, 1)).detail == "no budget selects it"


@given(st.integers(1, 8), st.integers(1, 8), st.integers(-1, 9), st.integers(0, 3))
def test_less_headroom_never_allows_more(before: int, going: int, allowed: int, spent: int) -> None:
    change = rescale(before, max(0, before - going))
    passed = rule(change, budget(unavailable="9", allowed=allowed), spent=spent).reason is None

    assert passed == (change.before - change.after + spent <= allowed)
    assert rule(change, budget(unavailable="9", allowed=allowed - 1), spent=spent).reason or passed
