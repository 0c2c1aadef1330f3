from typing import Any

import pytest
from build import GPU, Spec, boards, cluster, node, waiting

from autoscaler.model.cluster import Budget
from autoscaler.model.findings import Finding
from autoscaler.model.selectors import LabelSelector
from autoscaler.model.snapshot import KindAccess
from tests.unit.service.doctor.examined import blinded, finding, policy, seen

WEB = Spec(name="web", seen=(boards(0.5), boards(0.5)))


def budget(name: str = "web", *, app: str = "web", **changes: Any) -> Budget:
    known = {"allowed": 0, "current_healthy": 2, "desired_healthy": 2, "expected_pods": 2}
    return Budget("team", name, LabelSelector({"app": app}), **{**known, **changes})


def with_budgets(*budgets: Budget) -> Finding:
    return finding(seen(snapshot=cluster(WEB, budgets=budgets)), "D11")


def test_a_budget_that_can_never_allow_anything_is_named_with_its_mend() -> None:
    found = with_budgets(budget(), budget("other", app="other"))

    assert (found.state, found.found) == (
        "warning",
        (
            "1 of 1 budgets allow nothing and cover 2 pods with accelerators: "
            "team/web (2 of 2 healthy, 2 wanted; it can never allow one)"
        ),
    )
    patch = '{"spec":{"maxUnavailable":1,"minAvailable":null}}'
    assert found.fix == f"kubectl -n team patch pdb web --type=merge -p '{patch}'"


def test_a_budget_that_is_short_of_healthy_pods_only_waits() -> None:
    found = with_budgets(budget(desired_healthy=1, current_healthy=1))

    assert found.found.endswith("team/web (1 of 2 healthy, 1 wanted)")
    assert found.fix == "kubectl -n team get pods: those it covers are not ready"


def test_a_budget_that_its_controller_has_not_seen_is_told() -> None:
    assert "its controller has not seen" in with_budgets(budget(observed=False)).found


def test_open_budgets_are_in_nobodys_way() -> None:
    assert with_budgets(budget(allowed=1)).state == "ok"
    assert with_budgets().found == "none of 0 budgets covers a pod with accelerators"


def test_budgets_that_may_not_be_read_are_not_taken_for_none() -> None:
    unread = cluster(WEB, access=(KindAccess("PodDisruptionBudget", "forbidden", "403"),))

    assert finding(seen(snapshot=unread), "D11").state == "skipped"
    assert finding(blinded(seen()), "D11").state == "skipped"


def reach(*specs: Spec, **changes: Any) -> Finding:
    return finding(seen(*specs, **changes), "D12")


@pytest.mark.parametrize(
    ("spec", "cause"),
    [
        (Spec(name="x", kind="Pod", group=""), "bare pods"),
        (Spec(name="x", kind="Job", group="batch"), "no lever for kind Job"),
        (Spec(name="x", kind="DaemonSet"), "system pods and DaemonSets"),
        (Spec(name="x", namespace="kube-system"), "system pods and DaemonSets"),
        (Spec(name="x", annotations={"karpenter.sh/do-not-disrupt": "true"}), "do-not-disrupt marks"),
        (Spec(name="x", labels={"kueue.x-k8s.io/queue-name": "q"}), "managed by Kueue"),
        (Spec(name="x", kind="StatefulSet", rollout={"on_delete": True}), "update strategy OnDelete"),
        (
            Spec(
                name="x",
                labels={"gpu-autoscaler.io/role": "serving"},
                rollout={"max_surge": "0", "max_unavailable": "1"},
            ),
            "the only replica of a server, no surge",
        ),
        (
            Spec(name="x", resource="nvidia.com/mig-1g.10gb"),
            "slices, shares or claims: reported only",
        ),
        (
            Spec(name="x", shape={"faults": ("limits of container main: junk",)}),
            "unreadable fields",
        ),
    ],
)
def test_each_cause_is_counted(spec: Spec, cause: str) -> None:
    found = reach(WEB, spec)

    assert found.state == "warning"
    assert (
        found.found
        == f"1 of 2 workloads with accelerators are out of reach: {cause} 1; e.g. {spec.namespace}/x"
    )


def test_the_priority_floor_is_a_cause() -> None:
    high = Spec(name="x", shape={"priority": 1_000})
    found = reach(WEB, high, policy=policy(guards={"priorityFloor": 1000}))

    assert "over the priority floor 1" in found.found
    assert found.fix == "over the priority floor: guards.priorityFloor"


def test_workloads_outside_of_the_selectors_are_counted() -> None:
    found = reach(WEB, WEB.but(namespace="lab"), policy=policy(resources={"namespaces": ["team"]}))

    assert "outside of resources.namespaces, namespaceSelector or podSelector 1; e.g. lab/web" in found.found


def test_waiting_for_evidence_is_not_out_of_reach() -> None:
    blind = Spec(name="blind", seen=(None,))

    assert reach(WEB, blind).found == "2 workloads with accelerators, all within reach"


def test_a_pending_bare_pod_counts_too() -> None:
    assert "bare pods 1" in reach(waiting()).found


@pytest.mark.parametrize(
    ("allocatable", "state", "words"),
    [
        ({GPU: 8}, "ok", "nodes offer nvidia.com/gpu 8"),
        ({"cpu": 4}, "warning", "no node offers any"),
        ({"example.com/gpu": 4, "cpu": 1}, "warning", "nodes also offer example.com/gpu 4"),
    ],
)
def test_an_empty_cluster_explains_itself(allocatable: dict[str, int], state: str, words: str) -> None:
    snapshot = cluster(nodes=[node(allocatable=allocatable)])
    found = finding(seen(snapshot=snapshot), "D12")

    assert found.state == state
    assert words in found.found
    assert ("example.com/gpu" in found.fix) == ("example.com/gpu" in allocatable)
