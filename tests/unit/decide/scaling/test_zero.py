import pytest

from autoscaler.decide.scaling.rules import ScalingRules
from autoscaler.decide.scaling.zero import Wake, obstacle_to_zero, reason_to_wake

MINUTE = 60_000
NOW = 100 * MINUTE
RULES = ScalingRules()
HEARD = Wake(requests=0, heard_ms=NOW, cold_starts_ms=(90_000, 60_000))


@pytest.mark.parametrize(
    ("wake", "idle_since", "expected"),
    [
        (None, 0, "at 0 replicas nothing would tell of demand: there is no wake signal"),
        (Wake(requests=0, heard_ms=NOW - 2 * MINUTE), 0, "the wake signal was last heard 2m ago"),
        (Wake(requests=3, heard_ms=NOW, cold_starts_ms=(1,)), 0, "3 requests wait"),
        (
            Wake(requests=0, heard_ms=NOW),
            0,
            "no cold start was measured: how long a wake-up takes is not known",
        ),
        (HEARD, NOW - 29 * MINUTE, "without demand for 29m of 30m"),
        (HEARD, None, "without demand for 0s of 30m"),
        (HEARD, NOW - 30 * MINUTE, None),
    ],
)
def test_the_last_replica_stays_until_all_is_known(
    wake: Wake | None, idle_since: int | None, expected: str | None
) -> None:
    assert expected == obstacle_to_zero(wake, now_ms=NOW, idle_since_ms=idle_since, rules=RULES)


@pytest.mark.parametrize(
    ("wake", "expected"),
    [
        (None, "there is no wake signal any more"),
        (Wake(requests=0, heard_ms=NOW - 3 * MINUTE), "the wake signal was last heard 3m ago"),
        (Wake(requests=1, heard_ms=NOW), "1 requests wait"),
        (
            Wake(requests=2, heard_ms=NOW, cold_starts_ms=(90_000,)),
            "2 requests wait, ready within 1m30s as measured",
        ),
        (HEARD, None),
    ],
)
def test_demand_and_silence_wake(wake: Wake | None, expected: str | None) -> None:
    assert expected == reason_to_wake(wake, now_ms=NOW, rules=RULES)
