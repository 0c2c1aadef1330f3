import pytest
from build import Spec, cluster, judge, policy, rescale

from autoscaler.decide.guards.ownership import guard_field_owner
from autoscaler.decide.tally import Tally
from autoscaler.model.cluster import Autoscaler, FieldOwner


@pytest.mark.parametrize(("owners", "reason"), [([], None), ([""], "OtherOwner")])
def test_an_empty_list_knows_nobody_and_an_empty_prefix_everybody(
    owners: list[str], reason: str | None
) -> None:
    spec = Spec(workload={"field_owners": (FieldOwner("anyone", replicas=True),)})
    world, judged = judge(cluster(spec), policy(guards={"fieldOwners": owners}))

    assert reason == guard_field_owner(world, judged, rescale(2, 1), Tally.of(world)).reason


def test_bounds_that_make_no_sense_own_all_the_same() -> None:
    world, judged = judge(cluster(Spec(), autoscalers=(Autoscaler("team", "", "Deployment", "web", -1, -9),)))

    assert guard_field_owner(world, judged, rescale(2, 1), Tally.of(world)).reason == "OtherOwner"
