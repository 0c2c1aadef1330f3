import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.model.policy import Resources
from autoscaler.observe.object_files import Objects, ObjectsError, fill_stores, read_objects
from autoscaler.observe.pods import PlainPod, PodEntry
from autoscaler.observe.stores import Stores
from tests.fixtures.objects import NVIDIA, listed, node, pod

pytestmark = pytest.mark.unit

STARTED = "2025-01-01T00:00:00Z"
STARTED_MS = 1_735_689_600_000
POD, NODE = pod("dev/app-0", node="n1", count=2), node("n1", nvidia_com__gpu=8)


_LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False)
_KEYS = st.sampled_from(
    ["name", "namespace", "uid", "nodeName", "containers", "resources", "limits", "requests", "phase", NVIDIA]
)
ANYTHING = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4)
)


def named(namespace: str, name: str) -> str:
    return f"uid of {namespace}/{name}"


def filled(objects: Objects) -> tuple[Stores, tuple[str, ...]]:
    stores = Stores(Resources())
    return stores, fill_stores(stores, objects, started=STARTED, uid_of=named)


def only_pod(*objects: dict[str, Any]) -> PodEntry:
    stores, faults = filled(read_objects(listed(*objects)))
    (entry,) = stores.pods.freeze().pods.values()

    assert faults == ()
    assert isinstance(entry, PodEntry)
    return entry


def counted(text: str) -> dict[str, int]:
    return {kind: len(rows) for kind, rows in read_objects(text).by_kind.items()}


@pytest.mark.parametrize(
    "text",
    [
        listed(POD, NODE),
        json.dumps([POD, NODE]),
        f"{json.dumps(POD)}\n{json.dumps(NODE)}",
        f"{listed(POD)}\n{listed(NODE)}",
        json.dumps({"kind": "List", "items": [{"kind": "PodList", "items": [POD]}, NODE]}),
        json.dumps({"kind": "PodList", "items": [{k: v for k, v in POD.items() if k != "kind"}]})
        + json.dumps(NODE),
        yaml.safe_dump({"kind": "List", "items": [POD, NODE]}),
        f"---\n{yaml.safe_dump(POD)}--- # the node\n{yaml.safe_dump(NODE)}---\n",
        "{kind: List, items: [{kind: Pod, metadata: {name: a}}, {kind: Node, metadata: {name: b}}]}",
    ],
)
def test_lists_documents_and_bare_objects_are_read_as_json_or_yaml(text: str) -> None:
    assert counted(text) == {"Pod": 1, "Node": 1}


def test_kinds_that_nobody_reads_are_counted() -> None:
    objects = read_objects(listed(POD, {"kind": "ConfigMap"}, {"kind": "ConfigMap"}, {"kind": "Secret"}))

    assert objects.unread == {"ConfigMap": 2, "Secret": 1}


def test_a_kind_of_another_group_is_not_ours() -> None:
    volcano = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "a"}}

    assert read_objects(listed(POD, volcano)).unread == {"Job": 1}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no object"),
        ("[]", "no object"),
        ("pods", "no object: pods"),
        ("{a: [", "neither JSON nor YAML"),
        ('{"kind": "Pod"', "neither JSON nor YAML"),
        ('{"metadata": {"name": "x"}}', "without kind: x"),
        ("[" * 100_000, "neither JSON nor YAML"),
        ("a: 1\na: 2", "repeated"),
    ],
)
def test_what_holds_no_object_is_a_fault_with_one_sentence(text: str, told: str) -> None:
    with pytest.raises(ObjectsError, match=told) as caught:
        read_objects(text)

    assert "\n" not in str(caught.value)


def test_things_that_are_no_objects_are_named_beside_those_that_are() -> None:
    objects = read_objects(json.dumps({"kind": "List", "items": [POD, 7, None, {"metadata": {"name": "x"}}]}))

    assert objects.faults == ("no object: 7", "an object without kind: x")


def test_a_pod_is_stored_as_a_live_one() -> None:
    entry = only_pod(POD, NODE)

    assert (entry.namespace, entry.name, entry.uid, entry.node) == ("dev", "app-0", "uid-app-0", "n1")
    assert (entry.phase, entry.shape.demand[NVIDIA]) == ("Running", 2)


def test_every_pod_counts_as_old() -> None:
    entry = only_pod(POD)

    assert (entry.created_ms, entry.started_ms) == (STARTED_MS, STARTED_MS)


def test_a_pod_in_a_few_lines_is_a_running_pod_of_the_default_namespace() -> None:
    container = {"name": "a", "resources": {"limits": {NVIDIA: 1, "cpu": 0.5}}}
    entry = only_pod({"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}})

    assert (entry.namespace, entry.uid, entry.phase) == ("default", "uid of default/p", "Running")
    assert entry.shape.demand == {NVIDIA: 1, "cpu": 500}
    assert entry.started_ms == STARTED_MS


def test_a_pending_pod_without_node_has_not_started() -> None:
    waiting = {**POD, "spec": {**POD["spec"], "nodeName": ""}, "status": {"phase": "Pending"}}

    assert only_pod(waiting).started_ms == -1


def test_nodes_of_pods_that_are_not_in_the_file_are_made_up_empty() -> None:
    stores, _ = filled(read_objects(listed(POD, pod("dev/app-1", node="n2"), NODE)))
    rows = {row.name: row.allocatable for row in stores.nodes.freeze().values()}

    assert rows["n1"][NVIDIA] == 8
    assert rows["n2"] == {}


def test_an_object_that_does_not_decode_is_named_and_the_others_are_read() -> None:
    broken = {"kind": "Pod", "metadata": {"namespace": "dev", "name": "bad"}, "spec": {"containers": "none"}}
    nameless = {"kind": "Node", "metadata": {}}
    odd = {"kind": "Pod", "metadata": "x", "spec": {"containers": [5]}}

    stores, faults = filled(read_objects(listed(broken, POD, nameless, odd)))

    assert list(stores.pods.freeze().pods) == ["dev/app-0"]
    assert [fault.partition(":")[0] for fault in faults] == ["Pod dev/bad", "Pod default", "Node (no name)"]


def test_pods_without_accelerators_are_known_too() -> None:
    plain = {
        "kind": "Pod",
        "metadata": {"namespace": "a", "name": "b"},
        "spec": {"nodeName": "n1", "containers": []},
    }
    stores, _ = filled(read_objects(listed(plain)))

    assert stores.pods.freeze().pods["a/b"] == PlainPod("n1", {})


def test_yaml_times_without_quotes_are_times() -> None:
    text = f"kind: Pod\nmetadata: {{name: p, namespace: d, deletionTimestamp: {STARTED}}}\n"
    stores, faults = filled(read_objects(text))

    assert (list(stores.pods.freeze().pods), faults) == (["d/p"], ())


@given(kind=st.sampled_from(["Pod", "Node", "Deployment"]), parts=st.lists(ANYTHING, min_size=3, max_size=3))
def test_an_object_of_any_shape_is_stored_or_named(kind: str, parts: list[Any]) -> None:
    made = {"kind": kind, **dict(zip(("metadata", "spec", "status"), parts, strict=True))}

    stores, faults = filled(read_objects(json.dumps([POD, made])))

    assert "dev/app-0" in stores.pods.freeze().pods
    assert len(faults) <= 1
