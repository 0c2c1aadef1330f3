import pytest
from build import NOW_MS, Spec, cluster, policy

from autoscaler.decide import plan


@pytest.mark.parametrize(
    "spec",
    [
        Spec(seen=()),
        Spec(seen=(), workload={"template": -1}, replicas=0),
        Spec(seen=(None,), replicas=-1),
        Spec(name="\u202e<script>", namespace="", annotations={"gpu-autoscaler.io/role": "\x00" * 99}),
    ],
)
def test_a_workload_of_which_little_is_known_has_a_row_or_holds_nothing(spec: Spec) -> None:
    for row in plan(cluster(spec), policy(), NOW_MS).rows:
        assert row.detail
        assert row.action is None


def test_rows_that_share_a_name_are_told_apart_by_kind() -> None:
    rows = plan(cluster(Spec(), Spec(kind="StatefulSet")), policy(), NOW_MS).rows

    assert [row.workload.kind for row in rows] == ["Deployment", "StatefulSet"]
