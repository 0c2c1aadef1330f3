import pytest
from build import Spec, boards, cluster, judge, rescale

from autoscaler.decide.guards.disruption import guard_disruption_budgets
from autoscaler.decide.proposal import Ruling
from autoscaler.decide.tally import Tally
from autoscaler.model.cluster import Budget
from autoscaler.model.selectors import LabelRequirement, LabelSelector


def rule(before: int, after: int, **changes: object) -> Ruling:
    fields = {"namespace": "team", "name": "pdb", "selector": LabelSelector(), "allowed": 99}
    budget = Budget(**{**fields, **changes})  # type: ignore[arg-type]
    world, judged = judge(cluster(Spec(seen=(boards(0.0),) * before), budgets=(budget,)))
    return guard_disruption_budgets(world, judged, rescale(before, after), Tally.of(world))


@pytest.mark.parametrize("amount", ["junk", "-1", "1.5", "%", " 1", "50 %", "٣", "9999999999", "0x1", "5%%"])
@pytest.mark.parametrize("field", ["minimum", "unavailable"])
def test_an_amount_that_cannot_be_read_is_no_amount_of_zero(field: str, amount: str) -> None:
    found = rule(3, 2, **{field: amount})

    assert found.reason == "DisruptionBudget"
    assert "its amount is unreadable" in found.detail


@pytest.mark.parametrize(
    ("before", "after", "reason"), [(2, 1, None), (1, 0, "DisruptionBudget"), (3, 0, "DisruptionBudget")]
)
def test_a_budget_that_states_nothing_keeps_one_pod(before: int, after: int, reason: str | None) -> None:
    assert reason == rule(before, after).reason


def test_of_two_amounts_the_stricter_one_holds() -> None:
    assert rule(3, 2, minimum="2", unavailable="100%").reason is None
    assert rule(3, 1, minimum="2", unavailable="100%").reason == "DisruptionBudget"
    assert rule(3, 1, minimum="0", unavailable="0").reason is None


@pytest.mark.parametrize(("amount", "before", "after", "reason"), [
    ("34%", 3, 1, None),
    ("67%", 3, 1, None),
    ("100%", 3, 0, None),
    ("101%", 3, 2, "DisruptionBudget"),
    ("1%", 2, 1, None),
])  # fmt: skip
def test_percentages_are_of_the_pods_that_would_be_left(
    amount: str, before: int, after: int, reason: str | None
) -> None:
    assert reason == rule(before, after, minimum=amount).reason


@pytest.mark.parametrize("allowed", [-(2**63), -1, 0])
def test_no_or_negative_headroom_allows_nothing(allowed: int) -> None:
    assert rule(3, 2, unavailable="1", allowed=allowed).reason == "DisruptionBudget"


def test_a_selector_with_an_operator_of_tomorrow_selects() -> None:
    odd = LabelSelector(expressions=(LabelRequirement("app", "Newer", ("1",)),))

    assert rule(3, 2, selector=odd, unavailable="1", allowed=0).reason == "DisruptionBudget"


def test_expected_pods_that_were_not_counted_yet_do_not_lower_the_bar() -> None:
    assert rule(3, 2, minimum="2", expected_pods=0).reason is None
    assert rule(3, 2, minimum="3", expected_pods=0).reason == "DisruptionBudget"
