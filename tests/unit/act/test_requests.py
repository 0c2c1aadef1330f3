"""A request changes one amount, says of which object, and never reaches another one."""

import copy
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.act.live import LivePod, LiveWorkload
from autoscaler.act.requests import (
    DELETION_COST,
    LOWERED_COST,
    NoRequestError,
    change_request,
    cost_request,
    disown_request,
    evict_request,
    nominate_request,
    pod_path,
    uncost_request,
    unnominate_request,
    workload_path,
)
from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.plan import Action, PodRef
from autoscaler.model.reasons import Reason

GPU = "nvidia.com/gpu"
POD = PodRef("team", "web-1", "uid-web-1")
PLURALS = {"Deployment": "deployments", "StatefulSet": "statefulsets", "CronJob": "cronjobs"}
NASTY = st.text(
    alphabet=st.sampled_from("a0-./~%?#&=+ \\\"'{}ä漢\u202e\n"), min_size=1, max_size=8
) | st.text(min_size=1, max_size=8)
NAMES = NASTY.filter(lambda name: name not in {".", ".."})


def action(*, kind: str = "Deployment", lever: Any = "template", **changes: Any) -> Action:
    group = "batch" if kind in {"CronJob", "Job"} else "apps"
    return Action(
        **{
            "id": "a",
            "method": "right-size",
            "reason": Reason.RIGHT_SIZED,
            "lever": lever,
            "target": WorkloadRef(group, kind, "team", "web"),
            "uid": "uid-web",
            "resource_version": "7",
            "resource": GPU,
            "container": "main",
            "before": 2,
            "after": 1,
            "saved_milli_boards": 1000,
            "because": "it uses one",
            **changes,
        }
    )


def live(amounts: Any = None, **changes: Any) -> LiveWorkload:
    found = action().target
    stated = {"main": {"limits": {GPU: "2"}}} if amounts is None else amounts
    return LiveWorkload(
        **{"ref": found, "uid": "uid-web", "resource_version": "9", "amounts": stated, **changes}
    )


def leaves(value: Any, path: tuple[Any, ...] = ()) -> dict[tuple[Any, ...], Any]:
    """Every scalar of a document by its path."""
    if isinstance(value, dict):
        return {k: v for key, one in value.items() for k, v in leaves(one, (*path, key)).items()}
    if isinstance(value, list):
        return {k: v for index, one in enumerate(value) for k, v in leaves(one, (*path, index)).items()}
    return {path: value}


@given(
    kind=st.sampled_from(sorted(PLURALS)),
    name=NAMES,
    container=st.text(max_size=8),
    resource=st.text(max_size=8),
    after=st.integers(0, 2**31),
    parts=st.lists(st.sampled_from(["limits", "requests"]), min_size=1, max_size=2, unique=True),
)
def test_a_template_patch_states_the_one_amount_where_the_owner_stated_it_and_nothing_else(
    kind: str, name: str, container: str, resource: str, after: int, parts: list[str]
) -> None:
    group = "batch" if kind == "CronJob" else "apps"
    wanted = action(
        kind=kind,
        target=WorkloadRef(group, kind, "team", name),
        container=container,
        resource=resource,
        after=after,
    )
    amounts = {
        container: {part: {resource: "2", f"{resource}x": "5"} for part in parts},
        f"{container}x": {"limits": {resource: "2"}, "requests": {resource: "2"}},
    }
    request = change_request(wanted, live(amounts))
    outer = ("spec", "jobTemplate", "spec") if kind == "CronJob" else ("spec",)
    one = (*outer, "template", "spec", "containers", 0)

    assert request.verb == "PATCH"
    assert request.content_type == "application/strategic-merge-patch+json"
    assert request.params == {"fieldManager": "gpu-autoscaler"}
    assert leaves(request.body) == {
        ("metadata", "uid"): "uid-web",
        ("metadata", "resourceVersion"): "9",
        (*one, "name"): container,
        **{(*one, "resources", part, resource): str(after) for part in parts},
    }


@given(kind=st.sampled_from(sorted(PLURALS)), namespace=NAMES, name=NAMES)
def test_whatever_its_name_a_workload_is_one_segment_of_its_own_path(
    kind: str, namespace: str, name: str
) -> None:
    group = "batch" if kind == "CronJob" else "apps"
    path = workload_path(WorkloadRef(group, kind, namespace, name))
    segments = path.split("/")

    assert path.isascii()
    assert not set(path) & set("?#& \n")
    assert segments[:5] == ["", "apis", group, "v1", "namespaces"]
    assert [unquote(segments[5]), segments[6], unquote(segments[7])] == [namespace, PLURALS[kind], name]
    assert len(segments) == 8


@given(namespace=NAMES, name=NAMES)
def test_whatever_its_name_a_pod_is_one_segment_of_its_own_path(namespace: str, name: str) -> None:
    segments = pod_path(PodRef(namespace, name, "u")).split("/")

    assert segments[:4] == ["", "api", "v1", "namespaces"]
    assert [unquote(segments[4]), segments[5], unquote(segments[6])] == [namespace, "pods", name]
    assert len(segments) == 7


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_that_would_be_folded_into_another_path_names_no_object(name: str) -> None:
    with pytest.raises(NoRequestError):
        pod_path(PodRef("team", name, "u"))
    with pytest.raises(NoRequestError):
        workload_path(WorkloadRef("apps", "Deployment", name, "web"))


@pytest.mark.parametrize(
    ("group", "kind"), [("apps", "Job"), ("", "Deployment"), ("apps", "CronJob"), ("", "Pod")]
)
def test_other_kinds_have_no_path(group: str, kind: str) -> None:
    with pytest.raises(NoRequestError, match="no request changes"):
        workload_path(WorkloadRef(group, kind, "team", "web"))


@pytest.mark.parametrize(
    "amounts",
    [
        {},
        {"other": {"limits": {GPU: "2"}}},
        {"main": {"limits": {"cpu": "2"}, "requests": {}}},
    ],
    ids=["no container", "another container", "another resource"],
)
def test_what_the_template_does_not_state_is_not_added(amounts: Any) -> None:
    with pytest.raises(NoRequestError, match="states no"):
        change_request(action(), live(amounts))


def test_an_eviction_changes_no_workload() -> None:
    with pytest.raises(NoRequestError):
        change_request(action(lever="evict"), live())


@pytest.mark.parametrize(("kind", "plural"), [("Deployment", "deployments"), ("StatefulSet", "statefulsets")])
def test_replicas_change_through_the_scale_subresource_only(kind: str, plural: str) -> None:
    request = change_request(action(kind=kind, lever="scale", after=0), live())

    assert request.path == f"/apis/apps/v1/namespaces/team/{plural}/web/scale"
    assert request.body == {
        "metadata": {"uid": "uid-web", "resourceVersion": "9"},
        "spec": {"replicas": 0},
    }
    assert request.params == {"fieldManager": "gpu-autoscaler"}


def test_a_job_takes_another_parallelism_and_no_other_template() -> None:
    request = change_request(action(kind="Job", lever="scale", after=1), live())

    assert (request.verb, request.path) == ("PATCH", "/apis/batch/v1/namespaces/team/jobs/web")
    assert request.body == {
        "metadata": {"uid": "uid-web", "resourceVersion": "9"},
        "spec": {"parallelism": 1},
    }
    assert request.content_type == "application/merge-patch+json"
    with pytest.raises(NoRequestError, match="takes no other template"):
        change_request(action(kind="Job"), live({"main": {"limits": {GPU: "2"}}}))


def test_a_rehearsal_is_the_same_request_as_a_dry_run() -> None:
    request = change_request(action(), live())
    before = copy.deepcopy(request)
    rehearsed = request.rehearsed()

    assert request == before
    assert rehearsed.params == {"fieldManager": "gpu-autoscaler", "dryRun": "All"}
    assert (rehearsed.verb, rehearsed.path, rehearsed.body) == (request.verb, request.path, request.body)


def test_only_our_own_entries_are_disowned_the_last_one_first() -> None:
    request = disown_request(action(), live(own_entries=(1, 3)))

    assert request is not None
    assert request.content_type == "application/json-patch+json"
    assert request.body == [
        {"op": "test", "path": "/metadata/uid", "value": "uid-web"},
        {"op": "test", "path": "/metadata/managedFields/3/manager", "value": "gpu-autoscaler"},
        {"op": "remove", "path": "/metadata/managedFields/3"},
        {"op": "test", "path": "/metadata/managedFields/1/manager", "value": "gpu-autoscaler"},
        {"op": "remove", "path": "/metadata/managedFields/1"},
    ]


def test_without_entries_of_ours_there_is_nothing_to_disown() -> None:
    assert disown_request(action(), live()) is None


def test_a_mark_is_put_on_the_very_pod_that_was_read_and_touches_no_other_annotation() -> None:
    request = cost_request(POD, LivePod("uid-web-1", resource_version="4", annotations={"own": "x"}))

    assert request.path == "/api/v1/namespaces/team/pods/web-1"
    assert request.content_type == "application/merge-patch+json"
    assert request.body == {
        "metadata": {
            "uid": "uid-web-1",
            "resourceVersion": "4",
            "annotations": {DELETION_COST: LOWERED_COST},
        }
    }
    assert int(LOWERED_COST) < 0


def test_only_our_own_mark_is_taken_away() -> None:
    field = "/metadata/annotations/controller.kubernetes.io~1pod-deletion-cost"

    assert uncost_request(POD).body == [
        {"op": "test", "path": "/metadata/uid", "value": "uid-web-1"},
        {"op": "test", "path": field, "value": LOWERED_COST},
        {"op": "remove", "path": field},
    ]


def test_a_seat_is_kept_and_given_up_through_the_pods_status() -> None:
    kept, given_up = nominate_request(POD, "node-1"), unnominate_request(POD, "node-1")

    assert kept.path == given_up.path == "/api/v1/namespaces/team/pods/web-1/status"
    assert kept.body == {"metadata": {"uid": "uid-web-1"}, "status": {"nominatedNodeName": "node-1"}}
    assert given_up.body == [
        {"op": "test", "path": "/metadata/uid", "value": "uid-web-1"},
        {"op": "test", "path": "/status/nominatedNodeName", "value": "node-1"},
        {"op": "remove", "path": "/status/nominatedNodeName"},
    ]


@given(namespace=NAMES, name=NAMES, uid=st.text(max_size=8))
def test_an_eviction_is_of_one_uid_and_shortens_nobodys_grace(namespace: str, name: str, uid: str) -> None:
    request = evict_request(PodRef(namespace, name, uid))

    assert request.verb == "POST"
    assert request.path == f"{pod_path(PodRef(namespace, name, uid))}/eviction"
    assert leaves(request.body) == {
        ("apiVersion",): "policy/v1",
        ("kind",): "Eviction",
        ("metadata", "name"): name,
        ("metadata", "namespace"): namespace,
        ("deleteOptions", "preconditions", "uid"): uid,
    }
