from typing import Any

import pytest
from build import DAY_MS, HOUR_MS, MINUTE_MS, NOW_MS, Spec, cluster

from autoscaler.model.evidence import Source
from autoscaler.service.doctor.store_reading import parse_retention
from tests.unit.service.doctor.examined import finding, policy, published, seen, store


def test_numbers_of_a_store_that_reaches_far_enough_are_told() -> None:
    found = finding(seen(), "D5")

    assert (found.state, found.found) == (
        "ok",
        "a sample every 15s; window 30m = 120 samples; oldest sample 30d old; history 7d; retention 30d",
    )


@pytest.mark.parametrize(
    ("changes", "state", "words", "fix"),
    [
        (
            {"retention_ms": DAY_MS},
            "failed",
            "samples are kept for 1d, and 3d are needed before anything shrinks",
            "--storage.tsdb.retention.time (operator: spec.retention)=7d",
        ),
        (
            {"retention_ms": 5 * DAY_MS},
            "warning",
            "samples are kept for 5d of the 7d that peaks are looked for in",
            "--storage.tsdb.retention.time (operator: spec.retention)=7d",
        ),
        (
            {"published": (published(oldest_ms=NOW_MS - DAY_MS),)},
            "warning",
            "history is 1d long: nothing shrinks for another 2d",
            "wait, or lower need.minConfidence (3)",
        ),
    ],
)
def test_what_is_too_short_is_told_with_its_mend(
    changes: dict[str, Any], state: str, words: str, fix: str
) -> None:
    found = finding(seen(store=store(**changes)), "D5")

    assert (found.state, found.fix) == (state, fix)
    assert found.found.startswith(words)


def test_a_history_window_under_the_confidence_asked_for_never_lets_anything_shrink() -> None:
    found = finding(seen(policy=policy(need={"historyWindow": "2d"})), "D5")

    assert (found.state, found.fix) == ("failed", "AUTOSCALER_NEED_HISTORY_WINDOW=3d")


@pytest.mark.parametrize(
    ("interval_ms", "state"),
    [
        (15_000, "ok"),
        (90_000, "ok"),
        (2 * MINUTE_MS, "warning"),
        (6 * MINUTE_MS, "failed"),
        (HOUR_MS, "failed"),
    ],
)
def test_samples_must_be_close_enough_for_the_window(interval_ms: int, state: str) -> None:
    sources = (Source("dcgm", "engine", interval_ms, interval_measured=True),)

    assert finding(seen(snapshot=cluster(Spec(), sources=sources)), "D5").state == state


def test_what_the_store_does_not_tell_is_said_to_be_unknown() -> None:
    silent = store(retention_ms=-1, published=(published(oldest_ms=-1),))
    found = finding(seen(store=silent), "D5")

    assert found.state == "ok"
    assert found.found.endswith("the oldest sample is not known; history 7d; retention not told")


@pytest.mark.parametrize(
    ("text", "kept_ms"),
    [("15d", 15 * DAY_MS), ("15d or 10GiB", 15 * DAY_MS), ("10GiB", -1), ("", -1), ("1w3d", 10 * DAY_MS)],
)
def test_a_retention_is_read_in_any_of_its_forms(text: str, kept_ms: int) -> None:
    assert parse_retention(text) == kept_ms
