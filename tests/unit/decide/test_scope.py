"""Who is in the plan at all, and that nobody drops out of it silently."""

import pytest
from build import NOW_MS, Spec, boards, cluster, policy

from autoscaler.decide import plan
from autoscaler.model.cluster import NamespaceRow


def names(*specs: Spec, namespaces: tuple[NamespaceRow, ...] = (), **resources: object) -> list[str]:
    found = plan(cluster(*specs, namespaces=namespaces), policy(resources=resources), NOW_MS)
    return [str(row.workload) for row in found.rows]


def test_a_workload_whose_accelerator_amount_is_unreadable_stays_in_the_plan() -> None:
    spec = Spec(
        seen=(None,), shape={"containers": (), "demand": {}, "faults": ("main: limits nvidia.com/gpu: x",)}
    )
    (row,) = plan(cluster(spec), policy(), NOW_MS).rows

    assert row.reason == "NoLever"
    assert "unreadable: main: limits nvidia.com/gpu: x" in row.detail


def test_the_pod_selector_narrows_the_fleet() -> None:
    marked = Spec(name="marked", labels={"gpu": "true"})

    assert names(marked, Spec(name="other"), podSelector="gpu=true") == ["team/marked"]


@pytest.mark.parametrize(("selector", "expected"), [("", ["a/web", "b/web"]), ("team=ml", ["a/web"])])
def test_the_namespace_selector_narrows_the_fleet(selector: str, expected: list[str]) -> None:
    rows = (NamespaceRow("a", labels={"team": "ml"}), NamespaceRow("b"))
    specs = (Spec(namespace="a"), Spec(namespace="b"))

    assert names(*specs, namespaces=rows, namespaceSelector=selector) == expected


def test_a_namespace_that_is_not_known_is_not_in_a_selection() -> None:
    assert names(Spec(namespace="a"), namespaceSelector="team=ml") == []


def test_a_pending_replica_is_not_ready_rather_than_without_evidence() -> None:
    spec = Spec(
        seen=(boards(0.1), None), pod={"phase": "Pending", "unschedulable": "0/4 nodes are available"}
    )
    (row,) = plan(cluster(spec), policy(methods={"startGrace": "0s"}), NOW_MS).rows

    assert row.reason == "NotReady"
    assert "0/4 nodes are available" in row.detail


def test_a_method_that_does_not_apply_is_no_failed_check_beside_an_action() -> None:
    (row,) = plan(cluster(Spec(gpus=2, seen=(boards(0.5, 0.0),))), policy(), NOW_MS).rows

    assert row.action is not None
    assert [check.rule for check in row.checks if not check.passed] == []
