import pytest
from build import HOUR_MS, NOW_MS, Spec, cluster, policy

from autoscaler.decide.tally import Tally
from autoscaler.decide.world import World
from autoscaler.model.cluster import PastAct, WorkloadRef

REF = WorkloadRef("apps", "Deployment", "team", "web")


@pytest.mark.parametrize(
    ("boards_milli", "spent"), [(-5000, 0), (0, 0), (1, 1), (1001, 2), (2**63 - 1, -(-(2**63 - 1) // 1000))]
)
def test_an_act_never_gives_budget_back(boards_milli: int, spent: int) -> None:
    acts = (PastAct(REF, NOW_MS, boards_milli), PastAct(REF, NOW_MS, 1000))

    assert spent + 1 == Tally.of(World(cluster(Spec(), acts=acts), policy(), NOW_MS)).boards_hour


def test_an_act_from_the_future_counts() -> None:
    acts = (PastAct(REF, NOW_MS + 99 * HOUR_MS, 1000),)

    assert Tally.of(World(cluster(Spec(), acts=acts), policy(), NOW_MS)).boards_day == 1


def test_a_world_without_nodes_has_no_room() -> None:
    assert Tally.of(World(cluster(Spec(), nodes=()), policy(), NOW_MS)).free == {}
