import pytest
from build import NOW_MS, Spec, cluster, judge, policy, rescale

from autoscaler.decide.guards.budgets import at_least_one, guard_budgets
from autoscaler.decide.tally import Tally
from autoscaler.model.cluster import PastAct, WorkloadRef

HUGE = 2**63 - 1
REF = WorkloadRef("apps", "Deployment", "team", "web")


@pytest.mark.parametrize("boards", [-HUGE, -1, 0, HUGE])
@pytest.mark.parametrize("share", [0.0, 1e-300, 1.0])
def test_no_fleet_makes_the_budget_less_than_one(share: float, boards: int) -> None:
    assert at_least_one(share, boards) >= 1


@pytest.mark.parametrize("boards_milli", [HUGE, 2**53])
def test_a_huge_past_act_spends_everything(boards_milli: int) -> None:
    world, judged = judge(cluster(Spec(), acts=(PastAct(REF, NOW_MS, boards_milli),)), policy())

    assert guard_budgets(world, judged, rescale(2, 1), Tally.of(world)).reason == "BudgetSpent"


def test_a_fleet_without_nodes_still_has_a_budget_of_one() -> None:
    world, judged = judge(cluster(Spec(), nodes=()), policy())

    assert guard_budgets(world, judged, rescale(2, 1), Tally.of(world)).reason is None
    assert guard_budgets(world, judged, rescale(3, 1), Tally.of(world)).reason == "BudgetSpent"
