"""Rules of a cluster as rows: units, defaults, and what cannot be read."""

import pytest
from unit.observe.observed import GPU, make, node, pod, snapshot

from autoscaler.kube import wire
from autoscaler.model.cluster import Limit
from autoscaler.model.selectors import LabelRequirement, LabelSelector
from autoscaler.model.shapes import Requirement

pytestmark = pytest.mark.unit


def test_what_plain_pods_take_is_counted_whether_the_node_or_the_pod_came_first() -> None:
    web = pod("web", gpus=0, cpu="500m")
    before, after = snapshot(web, node("node-1")), snapshot(node("node-1"), web)

    assert before == after
    assert (before.nodes[0].taken, before.nodes[0].taken_pods) == ({"cpu": 500}, 1)
    assert before.nodes[0].allocatable == {"cpu": 64_000, GPU: 8}


def test_a_node_keeps_its_age_its_marks_and_its_true_conditions() -> None:
    conditions = [
        {"type": "Ready", "status": "True"},
        {"type": "PreemptScheduled", "status": "True"},
        {"type": "MemoryPressure", "status": "False"},
    ]
    marks = {"karpenter.sh/nodepool-hash": "1", "secret": "x"}
    row = snapshot(
        make(
            wire.Node,
            "n",
            namespace="",
            metadata={"annotations": marks, "creationTimestamp": "1970-01-01T00:00:07Z"},
            status={"conditions": conditions},
        )
    ).nodes[0]

    assert (row.ready, row.conditions, row.created_ms) == (True, ("PreemptScheduled",), 7000)
    assert row.annotations == {"karpenter.sh/nodepool-hash": "1"}


def test_an_ordered_node_offers_what_it_said_or_what_it_was_ordered_for() -> None:
    spec = {
        "requirements": [{"key": "zone", "operator": "In", "values": ["a", "b"]}],
        "taints": [{"key": "gpu", "effect": "NoSchedule"}],
        "startupTaints": [{"key": "agent", "effect": "NoSchedule"}],
        "resources": {"requests": {GPU: "2", "cpu": "1"}},
    }
    ordered = make(wire.NodeClaim, "a", namespace="", metadata={"labels": {"pool": "x"}}, spec=spec)
    given = {"nodeName": "node-1", "allocatable": {GPU: "8"}}
    launched = make(wire.NodeClaim, "b", namespace="", spec=spec, status=given)
    first, second = snapshot(launched, ordered).node_claims

    assert (first.node, first.room, first.labels) == ("", {GPU: 2, "cpu": 1000}, {"pool": "x"})
    assert first.requirements == (Requirement("zone", "In", ("a", "b")),)
    assert [taint.key for taint in first.taints] == ["gpu"]
    assert (second.node, second.room, second.deleting) == ("node-1", {GPU: 8}, False)


def test_a_node_whose_order_is_withdrawn_is_being_deleted() -> None:
    gone = {"deletionTimestamp": "2027-01-01T00:00:00Z"}
    order = make(wire.NodeClaim, "a", namespace="", metadata=gone, status={"nodeName": "node-1"})

    assert [row.deleting for row in snapshot(node("node-1"), node("node-2"), order).nodes] == [True, False]


def test_a_node_without_a_ready_condition_is_not_ready() -> None:
    assert not snapshot(make(wire.Node, "n", namespace="")).nodes[0].ready


def test_a_quota_has_our_units_and_names_what_it_cannot_read() -> None:
    quota = make(
        wire.ResourceQuota,
        "q",
        spec={
            "hard": {"requests.cpu": "2", f"requests.{GPU}": "8", "pods": "many"},
            "scopes": ["NotTerminating"],
            "scopeSelector": {
                "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]
            },
        },
        status={"used": {f"requests.{GPU}": "3"}},
    )
    row = snapshot(quota).quotas[0]

    assert row.hard == {"requests.cpu": 2000, f"requests.{GPU}": 8}
    assert row.used == {f"requests.{GPU}": 3}
    assert row.scopes == (
        Requirement("NotTerminating", "Exists"),
        Requirement("PriorityClass", "In", ("high",)),
    )
    assert [fault.split(":")[0] for fault in row.unreadable] == ["hard pods"]


def test_a_limit_range_keeps_its_items() -> None:
    item = {"type": "Container", "max": {GPU: "4"}, "default": {GPU: "1"}, "defaultRequest": {GPU: "1"}}
    ratios = {"maxLimitRequestRatio": {"cpu": "1500m", "memory": "2", GPU: "one"}}
    row = snapshot(make(wire.LimitRange, "l", spec={"limits": [item | ratios]})).limit_ranges[0]

    assert row.limits == (
        Limit("Container", {GPU: 4}, {}, {GPU: 1}, {GPU: 1}, {"cpu": 1500, "memory": 2000}),
    )
    assert [fault.split(":")[0] for fault in row.unreadable] == [f"maxLimitRequestRatio {GPU}"]


def test_a_budget_without_selector_selects_nothing_and_an_empty_one_everything() -> None:
    none = make(wire.PodDisruptionBudget, "none", spec={"minAvailable": 1})
    everything = make(wire.PodDisruptionBudget, "all", spec={"selector": {}, "maxUnavailable": "25%"})
    rows = snapshot(none, everything).budgets

    assert [(row.name, row.selector, row.minimum, row.unavailable) for row in rows] == [
        ("all", LabelSelector(), "", "25%")
    ]


def test_a_budget_keeps_its_expressions() -> None:
    selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a"]}]}
    row = snapshot(
        make(wire.PodDisruptionBudget, "b", spec={"selector": selector, "minAvailable": 2})
    ).budgets[0]

    assert row.selector.expressions == (LabelRequirement("app", "In", ("a",)),)
    assert row.minimum == "2"


def test_an_autoscaler_without_minimum_has_one() -> None:
    target = {"kind": "Deployment", "name": "serve"}
    row = snapshot(
        make(wire.HorizontalPodAutoscaler, "h", spec={"scaleTargetRef": target, "maxReplicas": 5})
    ).autoscalers[0]

    assert (row.target_kind, row.target_name, row.minimum, row.maximum) == ("Deployment", "serve", 1, 5)


def test_an_autoscaler_tells_who_keeps_it_and_whether_it_goes_down() -> None:
    target = {"kind": "Deployment", "name": "serve"}
    plain = snapshot(make(wire.HorizontalPodAutoscaler, "h", spec={"scaleTargetRef": target})).autoscalers[0]
    kept = make(
        wire.HorizontalPodAutoscaler,
        "h",
        spec={
            "scaleTargetRef": target,
            "behavior": {"scaleDown": {"selectPolicy": "Disabled", "stabilizationWindowSeconds": 60}},
        },
        status={
            "conditions": [
                {"type": "AbleToScale", "status": "True"},
                {"type": "ScalingLimited", "status": "False"},
                {"type": "ScalingActive", "status": "False", "reason": "FailedGetResourceMetric"},
            ]
        },
        metadata={
            "ownerReferences": [{"kind": "ScaledObject", "name": "queue", "controller": True}],
            "managedFields": [
                {"manager": "keda", "fieldsV1": {"f:spec": {"f:minReplicas": {}}}},
                {"manager": "kube-controller-manager", "fieldsV1": {"f:status": {}}},
            ],
        },
    )
    row = snapshot(kept).autoscalers[0]

    assert (plain.controller, plain.minimum_owners, plain.scales_in, plain.calm_ms, plain.blind) == (
        "",
        (),
        True,
        300_000,
        "",
    )
    assert (row.controller, row.minimum_owners) == ("ScaledObject queue", ("keda",))
    assert (row.scales_in, row.calm_ms) == (False, 60_000)
    assert row.blind == "ScalingActive is False: FailedGetResourceMetric"


def test_managers_of_fields_we_might_change_are_merged_by_name() -> None:
    fields = {"f:spec": {"f:replicas": {}}}
    template = {
        "f:spec": {
            "f:template": {
                "f:spec": {"f:containers": {'k:{"name":"c"}': {"f:resources": {"f:limits": {"x": {}}}}}}
            }
        }
    }
    managed = [
        {"manager": "argocd-controller", "operation": "Apply", "fieldsV1": fields},
        {"manager": "argocd-controller", "operation": "Update", "fieldsV1": template},
        {"manager": "kubelet", "operation": "Update", "fieldsV1": {"f:status": {}}},
    ]
    container = {"name": "c", "resources": {"limits": {GPU: "1"}}}
    row = snapshot(
        make(
            wire.Deployment,
            "serve",
            metadata={"managedFields": managed},
            spec={"template": {"spec": {"containers": [container]}}},
        )
    ).workloads[0]

    assert [(o.manager, o.replicas, o.template_resources) for o in row.field_owners] == [
        ("argocd-controller", True, True)
    ]
