from typing import Any

import pytest
from build import NOW_MS

from autoscaler.service.doctor.gathered import LeaseFacts, StoreFacts, StoreFault
from tests.unit.service.doctor.examined import finding, seen, server, store


@pytest.mark.parametrize(
    ("api_ms", "store_ms", "state", "words"),
    [
        (0, 400, "ok", "API server minus this machine: +0.0s; metrics store minus this machine: +0.4s"),
        (0, 31_000, "warning", "metrics store minus this machine: +31.0s"),
        (40_000, 40_000, "warning", "API server minus this machine: +40.0s"),
        (0, 32_000, "failed", "metrics store minus API server: +32.0s, allowed 30s"),
        (600_000, 0, "failed", "metrics store minus API server: -600.0s, allowed 30s"),
    ],
)
def test_only_what_decisions_rest_on_fails(api_ms: int, store_ms: int, state: str, words: str) -> None:
    found = finding(seen(server=server(minus_own_ms=api_ms), store=store(minus_own_ms=store_ms)), "D9")

    assert found.state == state
    assert words in found.found


def test_clocks_that_are_not_told_are_skipped() -> None:
    silent = StoreFacts(fault=StoreFault(kind="dns", detail="x"))

    assert finding(seen(server=server(minus_own_ms=None), store=silent), "D9").state == "skipped"


@pytest.mark.parametrize(
    ("lease", "state", "words"),
    [
        ({"exists": False}, "warning", "no service has ever led here"),
        ({"holder": ""}, "warning", "nobody leads now"),
        ({"renewed_ms": -1}, "warning", "is not readable"),
        (
            {"renewed_ms": NOW_MS - 90_000},
            "failed",
            "renewed 1m30s ago (lasts 15s), 3 changes of leader: it has run out",
        ),
        (
            {},
            "ok",
            "a_1 holds Lease gpu-autoscaler/gpu-autoscaler, renewed 2s ago (lasts 15s), 3 changes of leader",
        ),
    ],
)
def test_the_lease_is_told_with_holder_and_age(lease: dict[str, Any], state: str, words: str) -> None:
    known = {"exists": True, "holder": "a_1", "renewed_ms": NOW_MS - 2_000, "transitions": 3, **lease}
    found = finding(seen(server=server(lease=LeaseFacts(**known))), "D10")

    assert found.state == state
    assert words in found.found


def test_a_lease_that_may_not_be_read_is_skipped() -> None:
    assert finding(seen(server=server(lease=None, lease_fault="403")), "D10").state == "skipped"
