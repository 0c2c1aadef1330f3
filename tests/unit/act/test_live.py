"""What is read of an object right before it is changed, and what is not guessed."""

from typing import Any

import msgspec
import pytest

from autoscaler.act.live import LiveWorkload, live_pod, live_workload, pod_decoder, workload_decoder
from autoscaler.model.cluster import WorkloadRef

GPU = "nvidia.com/gpu"
REF = WorkloadRef("apps", "Deployment", "team", "web")


def read(item: dict[str, Any]) -> LiveWorkload:
    return live_workload(REF, workload_decoder.decode(msgspec.json.encode(item)))


def template(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"template": {"spec": {"containers": list(containers), **spec}}}


def stating(**resources: Any) -> dict[str, Any]:
    return {"name": "main", "resources": resources}


@pytest.mark.parametrize(
    ("resources", "value", "stated"),
    [
        ({"limits": {GPU: "2"}}, 2, ("limits",)),
        ({"requests": {GPU: "2"}}, 2, ("requests",)),
        ({"limits": {GPU: "2"}, "requests": {GPU: "2"}}, 2, ("limits", "requests")),
        ({"limits": {GPU: 2}}, 2, ("limits",)),
        ({"limits": {GPU: "2k"}}, 2000, ("limits",)),
        ({"limits": {GPU: "2"}, "requests": {GPU: "1"}}, None, ("limits", "requests")),
        ({"limits": {GPU: "500m"}}, None, ("limits",)),
        ({"limits": {GPU: "junk"}}, None, ("limits",)),
        ({"limits": {"cpu": "2"}}, None, ()),
        ({}, None, ()),
    ],
)
def test_the_amount_is_what_the_template_states_and_never_guessed(
    resources: dict[str, Any], value: int | None, stated: tuple[str, ...]
) -> None:
    live = read({"spec": template(stating(**resources))})

    assert live.value("template", resource=GPU, container="main") == value
    assert live.stated("main", GPU) == stated


def test_init_containers_are_not_seen() -> None:
    spec = template(initContainers=[stating(limits={GPU: "4"})])
    live = read({"spec": spec})

    assert live.value("template", resource=GPU, container="main") is None


def test_a_cron_jobs_template_is_that_of_its_jobs() -> None:
    live = read({"spec": {"jobTemplate": {"spec": template(stating(limits={GPU: "3"}))}}})

    assert live.value("template", resource=GPU, container="main") == 3


def test_replicas_that_are_not_stated_are_one_as_the_api_has_it() -> None:
    assert read({"spec": {}}).value("scale") == 1
    assert read({"spec": {"replicas": 0}}).value("scale") == 0


def test_the_object_is_told_by_uid_version_and_whether_it_is_on_its_way_out() -> None:
    meta = {"uid": "u", "resourceVersion": "5", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    live = read({"metadata": meta})

    assert (live.uid, live.resource_version, live.deleting) == ("u", "5", True)
    assert not read({"metadata": {"uid": "u"}}).deleting


def test_our_entries_are_found_by_their_manager_whatever_the_subresource() -> None:
    entries = [
        {"manager": "kubectl"},
        {"manager": "gpu-autoscaler", "operation": "Update"},
        {"manager": "gpu-autoscaler-x"},
        {"manager": "gpu-autoscaler", "operation": "Update", "subresource": "scale"},
    ]

    assert read({"metadata": {"managedFields": entries}}).own_entries == (1, 3)
    assert read({"metadata": {"managedFields": None}}).own_entries == ()


def test_nulls_of_the_api_are_read_as_nothing() -> None:
    live = read({"metadata": {"uid": "u"}, "spec": {"template": {"spec": {"containers": None}}}})

    assert live.amounts == {}


@pytest.mark.parametrize(
    ("entries", "ours"),
    [
        ([{"manager": "gpu-autoscaler", "subresource": "status"}], True),
        ([{"manager": "gpu-autoscaler"}], False),
        ([{"manager": "kube-scheduler", "subresource": "status"}], False),
        (None, False),
    ],
)
def test_a_nomination_is_ours_where_we_wrote_the_pods_status(entries: Any, ours: bool) -> None:
    item = {
        "metadata": {"uid": "u", "managedFields": entries, "annotations": {"own": "x"}},
        "spec": {},
        "status": {"phase": "Pending", "nominatedNodeName": "node-1"},
    }
    live = live_pod(pod_decoder.decode(msgspec.json.encode(item)))

    assert (live.nominated, live.nominated_by_us) == ("node-1", ours)
    assert (live.node, live.phase, live.annotations) == ("", "Pending", {"own": "x"})


def test_a_scale_that_states_no_replicas_has_none_and_a_workload_has_one() -> None:
    silent = workload_decoder.decode(b'{"spec": {}}')

    assert live_workload(REF, silent, of_scale=True).value("scale") == 0
    assert live_workload(REF, silent).value("scale") == 1


def test_the_replicas_of_a_job_are_its_parallelism() -> None:
    ref = WorkloadRef("batch", "Job", "team", "web")
    stated = workload_decoder.decode(b'{"spec": {"parallelism": 3, "completions": 9}}')
    paused = workload_decoder.decode(b'{"spec": {"parallelism": 0}}')
    silent = workload_decoder.decode(b'{"spec": {}}')

    assert [live_workload(ref, one).value("scale") for one in (stated, paused, silent)] == [3, 0, 1]


@pytest.mark.parametrize(
    ("kind", "conditions", "ended"),
    [
        ("Job", [{"type": "Complete", "status": "True"}], True),
        ("Job", [{"type": "Suspended", "status": "False"}, {"type": "Failed", "status": "True"}], True),
        ("Job", [{"type": "Failed", "status": "False"}], False),
        ("Job", [{"type": "Suspended", "status": "True"}], False),
        ("Job", None, False),
        ("Deployment", [{"type": "Complete", "status": "True"}], False),
    ],
)
def test_a_job_has_ended_once_it_says_so(kind: str, conditions: Any, ended: bool) -> None:
    item = workload_decoder.decode(msgspec.json.encode({"status": {"conditions": conditions}}))

    assert live_workload(WorkloadRef("batch", kind, "team", "web"), item).ended is ended
