import pytest
from build import Spec, cluster, judge, policy, resize

from autoscaler.decide.guards.thin_history import guard_history
from autoscaler.decide.tally import Tally


@pytest.mark.parametrize(("least", "reason"), [(0.0, None), (1e-9, "ThinHistory"), (1e300, "ThinHistory")])
def test_a_need_that_is_not_known_has_no_confidence(least: float, reason: str | None) -> None:
    world, judged = judge(cluster(Spec(seen=(None,))), policy(need={"minConfidence": least}))

    assert reason == guard_history(world, judged, resize(2, 1), Tally.of(world)).reason
