from typing import Any

import pytest
from build import NOW_MS, Spec, cluster

from autoscaler.service.doctor.gathered import StoreFacts, StoreFault, Targets
from tests.unit.service.doctor.examined import (
    JOB,
    board,
    finding,
    policy,
    published,
    rows,
    seen,
    states,
    store,
)

pytestmark = pytest.mark.unit


def test_a_healthy_world_passes_every_check_that_has_something_to_look_at() -> None:
    skipped = {"D8"}

    assert states(seen()) == {f"D{n}": "skipped" if f"D{n}" in skipped else "ok" for n in range(1, 13)}


@pytest.mark.parametrize(
    ("kind", "named", "mended"),
    [
        ("unset", "is not set", "AUTOSCALER_PROMETHEUS_URL=http"),
        ("setup", "no certificate", "AUTOSCALER_PROMETHEUS_CA_FILE"),
        ("dns", "does not resolve", "no such host"),
        ("refused", "was refused", "nothing listens"),
        ("tls", "TLS failed", "AUTOSCALER_PROMETHEUS_CA_FILE"),
        ("timeout", "no answer in time", "NetworkPolicy"),
        ("cut", "was cut", "http where https is meant"),
        ("auth", "not accepted", "AUTOSCALER_PROMETHEUS_TOKEN_FILE"),
        ("not-prometheus", "not the query API", "without /api/v1"),
        ("throttled", "throttled", "query limits"),
        ("server-error", "the store fails", "own log"),
        ("query", "does not evaluate", "query API"),
    ],
)
def test_every_way_not_to_answer_has_its_own_name_and_mend(kind: Any, named: str, mended: str) -> None:
    details = {"unset": "AUTOSCALER_PROMETHEUS_URL is not set", "setup": "no certificate in it"}
    fault = StoreFault(kind=kind, detail=details.get(kind, "words of the store"))
    found = finding(seen(store=StoreFacts(fault=fault)), "D1")

    assert found.state == "failed"
    assert named in found.found
    assert mended in found.fix


def test_a_store_that_fails_stops_no_check_of_the_cluster() -> None:
    broken = seen(store=StoreFacts(fault=StoreFault(kind="refused", detail="10.0.0.1:9090")))

    assert {n: state for n, state in states(broken).items() if state == "failed"} == {"D1": "failed"}
    assert [n for n, state in states(broken).items() if state == "ok"] == [
        "D6",
        "D7",
        "D9",
        "D10",
        "D11",
        "D12",
    ]


def test_an_address_that_answers_is_proposed() -> None:
    fault = StoreFault(kind="not-prometheus", detail="HTML", working_url="http://host/prometheus")

    assert (
        finding(seen(store=StoreFacts(fault=fault)), "D1").fix
        == "AUTOSCALER_PROMETHEUS_URL=http://host/prometheus"
    )


@pytest.mark.parametrize("suffix", ["/api/v1", "/api/v1/query", "/graph", "/targets"])
def test_a_page_of_the_store_in_the_address_is_cut_off(suffix: str) -> None:
    fault = StoreFault(kind="not-prometheus", detail="HTML")
    environ = {"AUTOSCALER_PROMETHEUS_URL": f"http://host:9090/p{suffix}"}

    assert (
        finding(seen(store=StoreFacts(fault=fault), environ=environ), "D1").fix
        == "AUTOSCALER_PROMETHEUS_URL=http://host:9090/p"
    )


def test_warnings_of_the_store_are_told() -> None:
    found = finding(seen(store=store(warnings=("partial response", "too slow"))), "D1")

    assert (found.state, found.found) == ("warning", "answers, with 2 warnings: partial response and 1 more")


def test_series_are_named_with_profile_variant_job_age_and_interval() -> None:
    slices = rows(board(GPU_I_ID="7"))
    found = finding(seen(store=store(rows=slices)), "D2")

    assert found.found == (
        "dcgm (mig): 8 series of DCGM_FI_DEV_GPU_UTIL from job dcgm-exporter, newest 5s old, a sample every 15s"
    )


def test_old_series_are_no_series() -> None:
    found = finding(seen(store=store(published=(published(newest_ms=NOW_MS - 600_000),))), "D2")

    assert found.state == "failed"
    assert "the newest sample is too old (10m, at most 5m30s)" in found.found
    assert f'up{{job="{JOB}"}}' in found.fix


def test_a_pinned_job_that_publishes_nothing_is_told_with_those_that_do() -> None:
    found = finding(seen(policy=policy(evidence={"sourceJob": "dcgm"})), "D2")

    assert found.state == "failed"
    assert "'dcgm' matches none of them" in found.found
    assert found.fix == "AUTOSCALER_EVIDENCE_SOURCE_JOB=dcgm-exporter"


def test_several_jobs_that_nobody_chose_between_are_told() -> None:
    telemetry = {"untrusted": ("dcgm: dcgm-exporter, tenant",)}
    two = store(published=(published(), published("tenant", series=1)))
    found = finding(seen(snapshot=cluster(Spec(), telemetry=telemetry), store=two), "D2")

    assert found.state == "failed"
    assert "none is believed (dcgm: dcgm-exporter, tenant)" in found.found
    assert found.fix == "AUTOSCALER_EVIDENCE_SOURCE_JOB=dcgm-exporter"


@pytest.mark.parametrize(
    ("changes", "named", "mended"),
    [
        ({"targets": (Targets(job=JOB, up=0, down=3),)}, "are down: dcgm-exporter 3 of 3", "up{job="),
        (
            {"foreign": {"rocm_gpu_busy": 4}},
            "look like a GPU exporter's: rocm_gpu_busy (4)",
            "AUTOSCALER_PROFILES_DIR",
        ),
        ({"targets": ()}, "shows us nothing", "X-Scope-OrgID"),
        ({}, "dcgm-exporter (2 up) looks like a GPU exporter's job", "look at its page"),
        (
            {"targets": (Targets(job="kubelet", up=5, down=1),)},
            "5 targets of 1 jobs are up, 1 down, none of them a GPU exporter's",
            "ServiceMonitor",
        ),
        (
            {"targets": (Targets(job="gpu-autoscaler", up=1),)},
            "none of them a GPU exporter's",
            "ServiceMonitor",
        ),
    ],
)
def test_without_series_the_nearest_cause_is_named(changes: Any, named: str, mended: str) -> None:
    nothing = seen(store=store(published=(), rows=(), **changes))
    found = finding(nothing, "D2")

    assert found.state == "failed"
    assert "no series of profile dcgm" in found.found
    assert named in found.found
    assert mended in found.fix
    assert [states(nothing)[n] for n in ("D3", "D4", "D5")] == ["skipped"] * 3
