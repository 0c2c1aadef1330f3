from typing import Any

from build import Spec, cluster

from autoscaler.model.cluster import NamespaceRow
from autoscaler.model.findings import Finding
from autoscaler.model.selectors import LabelSelector
from autoscaler.service.doctor.gathered import Instance, Monitor, MonitorFacts, Selection
from tests.unit.service.doctor.examined import finding, seen, server, store

EVERYWHERE = LabelSelector()
RELEASE = LabelSelector({"release": "kps"})


def monitor(name: str = "dcgm-exporter", **changes: Any) -> Monitor:
    known: dict[str, Any] = {"kind": "ServiceMonitor", "namespace": "gpu", "labels": {}, "about": name}
    return Monitor(**{**known, "name": name, **changes})


def instance(monitors: LabelSelector | None, namespaces: LabelSelector | None) -> Instance:
    return Instance(
        namespace="monitoring",
        name="k8s",
        selections={"ServiceMonitor": Selection(monitors=monitors, namespaces=namespaces)},
    )


def found_with(*monitors: Monitor, by: Instance | None, **changes: Any) -> Finding:
    facts = MonitorFacts(monitors=monitors, instances=(by,) if by else ())
    snapshot = cluster(Spec(), namespaces=(NamespaceRow("gpu", {"team": "gpu"}),))
    return finding(seen(snapshot=snapshot, server=server(monitors=facts), **changes), "D8")


def test_a_label_that_the_selector_wants_is_proposed() -> None:
    found = found_with(monitor(), by=instance(RELEASE, EVERYWHERE))

    assert found.state == "failed"
    assert found.found == "no Prometheus (monitoring/k8s) selects ServiceMonitor gpu/dcgm-exporter"
    assert found.fix == "kubectl -n gpu label servicemonitor dcgm-exporter release=kps --overwrite"


def test_a_monitor_with_the_label_is_selected() -> None:
    labelled = monitor(labels={"release": "kps"})

    assert found_with(labelled, by=instance(RELEASE, EVERYWHERE)).state == "ok"
    assert found_with(labelled, by=instance(RELEASE, LabelSelector({"team": "gpu"}))).state == "ok"


def test_an_absent_namespace_selector_reaches_only_its_own_namespace() -> None:
    found = found_with(monitor(), by=instance(EVERYWHERE, None))

    assert (found.state, found.fix) == (
        "failed",
        "Prometheus monitoring/k8s: spec.serviceMonitorNamespaceSelector: {}",
    )
    assert found_with(monitor(namespace="monitoring"), by=instance(EVERYWHERE, None)).state == "ok"


def test_a_namespace_without_the_label_is_told() -> None:
    found = found_with(monitor(), by=instance(EVERYWHERE, LabelSelector({"watched": "yes"})))

    assert found.fix == "kubectl label namespace gpu watched=yes --overwrite"


def test_an_absent_selector_takes_no_monitor() -> None:
    found = found_with(monitor(), by=instance(None, EVERYWHERE))

    assert (found.state, found.fix) == (
        "failed",
        "Prometheus monitoring/k8s: spec.serviceMonitorSelector: {}",
    )


def test_monitors_of_other_things_are_none_of_ours() -> None:
    others = (monitor("kubelet"), monitor("gpu-autoscaler"))

    assert found_with(*others, by=instance(RELEASE, EVERYWHERE)).state == "ok"
    silent = found_with(*others, by=instance(RELEASE, EVERYWHERE), store=store(published=(), rows=()))
    assert (silent.state, silent.fix) == ("warning", "a ServiceMonitor for the exporter's Service")


def test_monitors_without_a_prometheus_object_may_be_anothers() -> None:
    assert found_with(monitor(), by=None).state == "ok"
    assert found_with(monitor(), by=None, store=store(published=(), rows=())).state == "warning"


def test_what_may_not_be_read_is_skipped_with_the_reason() -> None:
    denied = MonitorFacts(fault="403 Forbidden: servicemonitors")
    found = finding(seen(server=server(monitors=denied)), "D8")

    assert found.state == "skipped"
    assert "403 Forbidden" in found.found
