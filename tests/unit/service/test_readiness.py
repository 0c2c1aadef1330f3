import pytest

from autoscaler.model.cluster import PodRow
from autoscaler.model.evidence import Source, Telemetry
from autoscaler.model.snapshot import Snapshot
from autoscaler.service.readiness import (
    CheckResult,
    CycleState,
    KindState,
    all_ready,
    cycle_check,
    kind_checks,
    metrics_checks,
    policy_check,
    server_check,
)

POD = PodRow("team", "web-0", "uid", 0, 0)
DCGM = Source("dcgm", "engine", 15_000, interval_measured=True, series=8)


def by_name(checks: list[CheckResult]) -> dict[str, CheckResult]:
    return {check.name: check for check in checks}


@pytest.mark.parametrize(
    ("state", "usable", "ready", "told"),
    [
        (KindState(kind="Pod", access="available", synced=True, objects=3), True, True, ""),
        (KindState(kind="Pod", access="available"), False, False, "the first full list is not complete"),
        (KindState(kind="Pod", access="unknown"), False, False, "the first full list is not complete"),
        (
            KindState(kind="Pod", access="forbidden", detail="may not list pods"),
            False,
            False,
            "forbidden: may not list pods",
        ),
        (
            KindState(kind="Node", access="forbidden", detail="may not watch"),
            False,
            False,
            "forbidden: may not watch",
        ),
        (
            KindState(kind="ResourceQuota", access="forbidden", detail="may not list"),
            True,
            True,
            "forbidden: may not list",
        ),
        (KindState(kind="CronJob", access="absent"), True, True, ""),
        (KindState(kind="Pod", access="absent"), False, False, "absent"),
        (
            KindState(kind="Job", access="available", synced=True, lost_for_s=119.0),
            True,
            True,
            "",
        ),
        (
            KindState(kind="Job", access="available", synced=True, lost_for_s=120.0, detail="cut"),
            False,
            False,
            "not read for 2m: cut",
        ),
    ],
)
def test_a_kind_is_read_in_full_or_known_to_be_unreadable_before_anything_is_decided(
    state: KindState, usable: bool, ready: bool, told: str
) -> None:
    checks = kind_checks([state])

    assert state.usable is usable
    assert all_ready(checks) is ready
    assert any(told in check.detail for check in checks if not check.ok) or (
        not told and all(c.ok for c in checks)
    )


def test_a_guard_kind_that_is_forbidden_is_named_but_does_not_stop_the_service() -> None:
    checks = by_name(kind_checks([KindState(kind="ResourceQuota", access="forbidden", detail="no")]))

    assert not checks["access/ResourceQuota"].ok
    assert not checks["access/ResourceQuota"].required


@pytest.mark.parametrize(
    ("snapshot", "failed", "ready"),
    [
        (None, {"prometheus", "series"}, False),
        (Snapshot(0), set(), True),
        (Snapshot(0, pods=(POD,), telemetry=Telemetry(sources=(DCGM,))), set(), True),
        (Snapshot(0, pods=(POD,)), {"series"}, True),
        (
            Snapshot(0, pods=(POD,), telemetry=Telemetry(fault="refused: 401")),
            {"prometheus", "series"},
            False,
        ),
        (Snapshot(0, telemetry=Telemetry(skew_ms=-30_001)), {"clock"}, False),
        (Snapshot(0, telemetry=Telemetry(skew_ms=30_000)), set(), True),
    ],
)
def test_the_metrics_store_is_judged_by_the_newest_snapshot(
    snapshot: Snapshot | None, failed: set[str], ready: bool
) -> None:
    checks = metrics_checks(snapshot, max_skew_ms=30_000)

    assert {check.name for check in checks if not check.ok} == failed
    assert all_ready(checks) is ready


def test_the_stores_own_words_are_shown() -> None:
    checks = by_name(metrics_checks(Snapshot(0, telemetry=Telemetry(fault="refused: 401 no")), max_skew_ms=1))

    assert checks["prometheus"].detail == "refused: 401 no"


@pytest.mark.parametrize(
    ("state", "ok"),
    [
        (CycleState(), False),
        (CycleState(age_s=10, every_s=60), True),
        (CycleState(age_s=241, every_s=60), False),
        (CycleState(age_s=10, every_s=60, waiting_for="watch/Pod: cut"), False),
    ],
)
def test_the_cycle_is_ready_while_plans_are_made(state: CycleState, ok: bool) -> None:
    assert cycle_check(state).ok is ok


def test_a_refused_policy_file_degrades_and_names_the_fault() -> None:
    check = policy_check("policy.yaml: bad", "abc")

    assert (check.ok, check.required) == (False, False)
    assert "the former one stays: policy.yaml: bad" in check.detail


def test_the_api_server_is_not_ready_before_it_answered() -> None:
    assert not server_check("", known=False).ok
    assert not server_check("refused", known=True).ok
    assert server_check("", known=True).ok


def test_a_kind_that_is_not_read_just_now_says_so_before_it_fails() -> None:
    state = KindState(kind="Job", access="available", synced=True, objects=3, lost_for_s=20.0, detail="cut")

    assert by_name(kind_checks([state]))["watch/Job"].detail == "3 objects, not read for 20s: cut"


@pytest.mark.parametrize(
    ("told", "ok", "detail"),
    [
        ({"sources": (DCGM,), "jobs": ("gpu",)}, True, "series: dcgm 8; unpinned, the only scrape job: gpu"),
        (
            {"sources": (DCGM,), "jobs": ("a", "b"), "source_job": "a|b"},
            True,
            "series: dcgm 8; scrape jobs pinned by a|b: a, b",
        ),
        (
            {"jobs": ("a", "b"), "untrusted": ("dcgm: a, b",)},
            False,
            "several scrape jobs publish GPU series, so none is trusted (dcgm: a, b): set evidence.sourceJob",
        ),
        (
            {"source_job": "typo"},
            False,
            "no accelerator series of any profile from scrape job typo: unknown is not idle",
        ),
    ],
)
def test_series_say_whose_they_are(told: dict[str, object], ok: bool, detail: str) -> None:
    snapshot = Snapshot(taken_ms=1, pods=(POD,), telemetry=Telemetry(**told))  # type: ignore[arg-type]
    check = by_name(metrics_checks(snapshot, max_skew_ms=30_000))["series"]

    assert (check.ok, check.required, check.detail) == (ok, False, detail)
