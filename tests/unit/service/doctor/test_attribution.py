from typing import Any

import msgspec
import pytest
from build import Spec, boards, cluster

from autoscaler.model.findings import Finding
from autoscaler.service.doctor.gathered import Monitor, MonitorFacts
from autoscaler.service.doctor.owner_labels import LabelMapping, candidates
from tests.unit.service.doctor.examined import (
    DCGM,
    blinded,
    board,
    finding,
    policy,
    rows,
    seen,
    server,
    store,
)

pytestmark = pytest.mark.unit

BLIND = Spec(name="web", seen=(None, None))


def found_with(*series: dict[str, str], **changes: Any) -> Finding:
    """D3 of two pods, team/web-0 and team/web-1, that no row could be given to."""
    return finding(seen(BLIND, store=store(rows=rows(*series)), **changes), "D3")


def test_the_share_of_pods_with_series_is_told() -> None:
    found = finding(seen(Spec(name="web", seen=(boards(0.5), None))), "D3")

    assert found.state == "failed"  # under the coverage below which nothing is taken away
    assert found.found.startswith("1 of 2 pods with accelerators have a series (50%); without: team/web-1")


def test_a_few_without_series_are_a_warning() -> None:
    spec = Spec(name="web", seen=(*[boards(0.5)] * 9, None))

    assert finding(seen(spec), "D3").state == "warning"


@pytest.mark.parametrize(
    ("labels", "line"),
    [
        (
            {"exported_pod": "web-0", "exported_namespace": "team", "exported_container": "main"},
            "  - {pod: exported_pod, namespace: exported_namespace, container: exported_container}",
        ),
        ({"pod_name": "web-0", "pod_namespace": "team"}, "  - {pod: pod_name, namespace: pod_namespace}"),
        ({"kube_pod": "web-0", "kube_namespace": "team"}, "  - {pod: kube_pod, namespace: kube_namespace}"),
        (
            {"podname": "web-0", "podnamespace": "team", "ctrname": "main"},
            "  - {pod: podname, namespace: podnamespace, container: ctrname}",
        ),
        ({"podName": "web-0", "cntrName": "m"}, "  - {pod: podName, container: cntrName}"),
        ({"k8s_pod": "web-0", "k8s_ns": "team"}, "  - {pod: k8s_pod, namespace: k8s_ns}"),
    ],
)
def test_the_labels_that_do_name_the_pods_are_proposed(labels: dict[str, str], line: str) -> None:
    exporter = {"pod": "dcgm-exporter-x", "namespace": "monitoring", "container": "exporter"}
    found = found_with(board(0, **{**exporter, **labels}), board(1, **exporter))

    assert found.state == "failed"
    assert "names 1 of them, and profile dcgm does not read it" in found.found
    assert found.fix.split("\n")[1:3] == ["owners:", line]


def test_exported_labels_can_also_be_avoided_where_they_arise() -> None:
    monitor = Monitor(kind="ServiceMonitor", namespace="gpu", name="dcgm", labels={}, about="dcgm")
    found = found_with(
        board(pod="x", namespace="gpu", exported_pod="web-0", exported_namespace="team"),
        server=server(monitors=MonitorFacts(monitors=(monitor,))),
    )

    assert found.fix.endswith(
        "or kubectl -n gpu patch servicemonitor dcgm --type=json -p "
        """'[{"op":"add","path":"/spec/endpoints/0/honorLabels","value":true}]'"""
    )


def test_labels_of_the_scrape_target_are_recognised() -> None:
    found = found_with(board(0, pod="dcgm-exporter-x", namespace="monitoring"))

    assert (
        "name monitoring/dcgm-exporter-x, which holds no accelerator: the scrape target itself" in found.found
    )
    assert found.fix.startswith("honorLabels: true")


def test_empty_owners_are_no_owners() -> None:
    found = found_with(board(0, pod="", namespace=""), board(1))

    assert f"all 2 series of {DCGM.signals[0].metric} have an empty owner" in found.found
    assert "DCGM_EXPORTER_KUBERNETES=true" in found.fix


def test_series_of_several_clusters_are_told() -> None:
    series = [
        board(i, pod=f"job-{i}", namespace="lab", cluster=name) for i, name in enumerate(("east", "west"))
    ]
    found = found_with(*series, board(2, pod="job-0", namespace="lab", cluster="west"), board(3, pod="web-7"))

    assert "the series are of 2 clusters (east, west)" in found.found
    assert found.fix.endswith("match: {cluster: east}")


def test_other_gaps_are_told_in_numbers() -> None:
    found = found_with(board(0, pod="web-0", namespace="team"), board(1))

    assert found.found.endswith("2 devices, 1 named owners, 1 series without owner")


def test_series_of_other_jobs_explain_nothing() -> None:
    found = found_with(
        board(0, exported_pod="web-0", exported_namespace="team") | {"job": "tenant"},
        policy=policy(evidence={"sourceJob": "dcgm-exporter"}),
    )

    assert found.found.endswith("no series of a trusted job")


def test_nothing_is_said_of_what_could_not_be_read() -> None:
    pending = Spec(name="web", seen=(None,), pod={"phase": "Pending", "started_ms": -1}, node="")

    assert finding(blinded(seen()), "D3").found == "the cluster could not be read: 403 Forbidden: pods"
    assert finding(seen(pending), "D3").state == "skipped"
    assert finding(seen(BLIND, store=store(rows=())), "D3").found.endswith(
        "none of 2 pods with accelerators has any"
    )


def test_labels_that_only_look_alike_are_no_owners() -> None:
    names = ["pod", "namespace", "pod_uid", "pod_ip", "pod_template_hash", "container_image", "hostname"]

    assert candidates(names) == (LabelMapping("pod", "namespace"), LabelMapping("pod"))


def test_the_namespace_that_is_spelled_like_the_pod_comes_first() -> None:
    names = ["exported_pod", "exported_namespace", "namespace", "pod"]

    assert candidates(names)[0] == LabelMapping("exported_pod", "exported_namespace")
    assert candidates(names)[3] == LabelMapping("pod", "namespace")


OTHER = {"job": "gpu-operator", "instance": "10.0.0.9:9400"}


@pytest.mark.parametrize(
    ("second", "mended"),
    [
        (board() | OTHER, "AUTOSCALER_EVIDENCE_SOURCE_JOB=dcgm-exporter (or remove one"),
        (board() | {"instance": "10.0.0.9:9400"}, "two targets of one job publish it"),
        (board(prometheus_replica="b"), "--query.replica-label=prometheus_replica"),
    ],
)
def test_a_device_from_two_places_is_counted_twice(second: dict[str, str], mended: str) -> None:
    first = board(prometheus_replica="a") if "prometheus_replica" in second else board()
    found = finding(seen(store=store(rows=rows(first, second, board(1)))), "D4")

    assert found.state == "warning"
    assert found.found.startswith("1 of 2 devices are counted more than once, e.g. 0000: ")
    assert mended in found.fix


def test_two_profiles_that_show_one_device_are_told() -> None:
    other = msgspec.structs.replace(DCGM, name="smi")
    both = (*rows(board()), *rows(board() | {"UUID": "0000"}, profile=other))
    found = finding(seen(store=store(rows=both)), "D4")

    assert "dcgm from job dcgm-exporter" in found.found
    assert found.fix == "AUTOSCALER_EVIDENCE_PROFILES=dcgm (one of dcgm, smi)"


def test_pods_and_slices_of_one_board_are_no_double() -> None:
    shared = [board(pod="a"), board(pod="b"), board(1, GPU_I_ID="1"), board(1, GPU_I_ID="2")]
    found = finding(seen(store=store(rows=rows(*shared))), "D4")

    assert (found.state, found.found) == ("ok", "3 devices, each from one place")


def test_series_without_device_names_are_not_counted() -> None:
    nameless = {key: value for key, value in board().items() if key != "UUID"}

    assert finding(seen(store=store(rows=rows(nameless))), "D4").found == "no series names a device"


def test_snapshot_rows_decide_who_has_a_series() -> None:
    assert (
        finding(seen(snapshot=cluster(Spec())), "D3").found
        == "1 of 1 pods with accelerators have a series (100%)"
    )
