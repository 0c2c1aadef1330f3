"""The pod store keeps what matters, shares what is equal, and its sums are right after any history."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.observe.claimed import claimant
from unit.observe.observed import GPU, NOW_MS, pod, snapshot, stores, time_text

from autoscaler.model.policy import Resources
from autoscaler.model.selectors import LabelSelector
from autoscaler.observe.pods import FINISHED, PlainPod, PodClaims, PodEntry, PodStore
from autoscaler.observe.shapes import ShapeTable

pytestmark = pytest.mark.unit


def store() -> PodStore:
    return PodStore(ShapeTable(Resources()))


def test_pods_of_one_template_share_one_shape_and_their_labels() -> None:
    filled = store()
    for i in range(3):
        filled.apply(pod(f"p-{i}", labels={"app": "a"}))
    first, *others = filled.freeze().pods.values()

    assert isinstance(first, PodEntry)
    assert all(
        isinstance(e, PodEntry) and e.shape is first.shape and e.labels is first.labels for e in others
    )


def test_pods_that_differ_only_in_environment_share_one_shape() -> None:
    def ranked(rank: int) -> Any:
        container = {"name": "main", "env": [{"name": "RANK", "value": str(rank)}]}
        limits = {"resources": {"limits": {GPU: "1"}}}
        return pod(f"p-{rank}", spec={"containers": [{**container, **limits}]})

    filled = store()
    filled.apply(ranked(0))
    filled.apply(ranked(1))
    shapes = {id(e.shape) for e in filled.freeze().pods.values() if isinstance(e, PodEntry)}

    assert len(shapes) == 1


def test_a_pod_without_accelerators_keeps_its_node_and_demand_only() -> None:
    filled = store()
    filled.apply(pod("web", gpus=0, cpu="250m"))
    view = filled.freeze()

    assert view.pods["ml/web"] == PlainPod("node-1", {"cpu": 250})
    assert (view.taken["node-1"].taken, view.taken["node-1"].pods) == ({"cpu": 250}, 1)


def test_an_explicit_zero_of_an_accelerator_is_no_wish_for_one() -> None:
    filled = store()
    filled.apply(pod("p", spec={"containers": [{"name": "c", "resources": {"limits": {GPU: "0"}}}]}))

    assert isinstance(filled.freeze().pods["ml/p"], PlainPod)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_holds_nothing_but_is_known(phase: str) -> None:
    filled = store()
    filled.apply(pod("job", phase="Running", gpus=0))
    filled.apply(pod("job", phase=phase, gpus=0))
    filled.apply(pod("trainer", phase=phase))
    view = filled.freeze()

    assert view.pods == {"ml/job": FINISHED, "ml/trainer": FINISHED}
    assert view.taken == {}


def test_a_frozen_view_never_changes() -> None:
    filled = store()
    filled.apply(pod("a", gpus=0))
    view = filled.freeze()
    filled.apply(pod("b", gpus=0))
    filled.delete(pod("a", gpus=0))

    assert set(view.pods) == {"ml/a"}
    assert (view.taken["node-1"].taken, view.taken["node-1"].pods) == ({"cpu": 1000}, 1)


def test_readers_see_a_relist_only_when_it_is_complete() -> None:
    filled = store()
    filled.apply(pod("old"))
    filled.begin_relist()
    filled.relist_page([pod("new")])
    during = set(filled.freeze().pods)
    filled.commit_relist("7")

    assert during == {"ml/old"}
    assert set(filled.freeze().pods) == {"ml/new"}


def test_a_relist_begun_again_forgets_the_first_attempt() -> None:
    filled = store()
    filled.begin_relist()
    filled.relist_page([pod("half")])
    filled.begin_relist()
    filled.relist_page([pod("whole")])
    filled.commit_relist("7")

    assert set(filled.freeze().pods) == {"ml/whole"}


def test_a_pod_that_a_relist_finds_unchanged_keeps_its_row() -> None:
    filled = store()
    filled.apply(pod("p"))
    before = filled.freeze().pods["ml/p"]
    filled.begin_relist()
    filled.relist_page([pod("p")])
    filled.commit_relist("7")

    assert filled.freeze().pods["ml/p"] is before


NAMES = st.sampled_from(["a", "b", "c", "d"])
PODS = st.builds(
    lambda name, gpus, cpu, node, phase: pod(name, gpus=gpus, cpu=cpu, node=node, phase=phase),
    NAMES,
    st.sampled_from([0, 0, 1]),
    st.sampled_from(["100m", "1", "0"]),
    st.sampled_from(["", "n1", "n2"]),
    st.sampled_from(["Pending", "Running", "Running", "Succeeded"]),
)
STEPS = st.one_of(
    st.tuples(st.just("apply"), PODS),
    st.tuples(st.just("delete"), PODS),
    st.tuples(st.just("relist"), st.lists(PODS, max_size=4)),
    st.tuples(st.just("freeze"), st.none()),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, max_size=25))
def test_the_sums_of_a_node_are_those_of_its_present_plain_pods(steps: list[tuple[str, Any]]) -> None:
    """Any history leaves the store equal to a fresh one that only ever saw the pods that are left."""
    filled, left = store(), {}
    views = []
    for action, value in steps:
        if action == "apply":
            filled.apply(value)
            left[value.metadata.name] = value
        elif action == "delete":
            filled.delete(value)
            left.pop(value.metadata.name, None)
        elif action == "relist":
            filled.begin_relist()
            filled.relist_page(value)
            filled.commit_relist("1")
            left = {item.metadata.name: item for item in value}
        else:
            view = filled.freeze()
            views.append((view, {node: (dict(use.taken), use.pods) for node, use in view.taken.items()}))
    fresh = store()
    for item in left.values():
        fresh.apply(item)

    assert filled.freeze() == fresh.freeze()
    assert all({n: (u.taken, u.pods) for n, u in view.taken.items()} == kept for view, kept in views)


def test_a_pod_row_tells_readiness_reason_revision_and_mirror() -> None:
    ready_ms = NOW_MS - 60_000
    conditions = [
        {"type": "Ready", "status": "True", "lastTransitionTime": time_text(ready_ms)},
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"},
    ]
    seen = snapshot(
        pod(
            "p",
            conditions=conditions,
            labels={"pod-template-hash": "abc"},
            annotations={
                "kubernetes.io/config.mirror": "x",
                "secret.example/token": "y",
                "karpenter.sh/do-not-disrupt": "true",
            },
        )
    )
    row = seen.pods[0]

    assert (row.ready, row.ready_ms, row.unschedulable, row.revision) == (True, ready_ms, "0/3 nodes", "abc")
    assert row.mirror
    assert row.annotations == {"karpenter.sh/do-not-disrupt": "true"}


def test_an_unreadable_time_is_unknown_not_an_error() -> None:
    filled = stores(pod("p"))
    broken = pod("p")
    broken.status.start_time = "yesterday"
    filled.pods.apply(broken)
    entry = filled.freeze().pods.pods["ml/p"]

    assert isinstance(entry, PodEntry)
    assert entry.started_ms == -1


def test_pods_with_claims_are_known_until_they_have_ended_or_gone() -> None:
    filled = store()
    for name in ("a", "b", "c"):
        filled.apply(claimant(name, f"claim-{name}"))
    filled.apply(pod("other"))
    before = filled.freeze()
    filled.apply(claimant("a", "claim-a", phase="Failed"))
    filled.delete(claimant("b"))

    assert before.claimants == {"ml/a", "ml/b", "ml/c"}
    assert filled.freeze().claimants == {"ml/c"}


def test_a_pods_claims_are_those_that_it_names_and_the_one_made_for_it() -> None:
    filled = store()
    filled.apply(claimant("p", "z", "a", gpus=1, backed_by="p-x"))

    assert filled.freeze().pods["ml/p"].claims == PodClaims(("a", "z"), "p-x", (GPU,))  # type: ignore[union-attr]


def anti(app: str, **term: Any) -> dict[str, Any]:
    chosen = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}, **term}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [chosen]}}}


def test_plain_pods_that_keep_others_out_are_rows_by_namespace_and_terms() -> None:
    pods = [
        pod("a-0", gpus=0, node="node-2", spec=anti("a")),
        pod("a-1", gpus=0, node="node-1", spec=anti("a")),
        pod("b-0", gpus=0, spec=anti("b")),
        pod("lab", namespace="lab", gpus=0, spec=anti("a")),
        pod("soft", gpus=0, spec={"affinity": {}}),
        pod("waiting", gpus=0, node="", spec=anti("a")),
        pod("done", gpus=0, node="node-9", phase="Succeeded", spec=anti("a")),
        pod("boards", spec=anti("a")),
    ]
    rows = snapshot(*pods).repellers

    assert rows == snapshot(*reversed(pods)).repellers
    assert [(row.namespace, row.nodes, row.repels[0].selector) for row in rows] == [
        ("lab", ("node-1",), LabelSelector({"app": "a"})),
        ("ml", ("node-1", "node-2"), LabelSelector({"app": "a"})),
        ("ml", ("node-1",), LabelSelector({"app": "b"})),
    ]


def test_equal_terms_of_plain_pods_are_one_object_and_go_with_their_pods() -> None:
    filled = store()
    pods = [pod(f"a-{i}", gpus=0, spec=anti("a")) for i in range(2)]
    for one in pods:
        filled.apply(one)
    first, second = filled.freeze().pods.values()
    filled.delete(pods[0])
    filled.apply(pod("a-1", gpus=0))

    assert isinstance(first, PlainPod)
    assert isinstance(second, PlainPod)
    assert first.repels is second.repels
    assert filled.freeze().repelling == frozenset()
