import pytest
from build import DAY_MS, HOUR_MS, NOW_MS
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.decide.marks import DO_NOT_DISRUPT, protection

KARPENTER = "karpenter.sh/do-not-disrupt"


def protects(annotations: dict[str, str], *, age_ms: int = HOUR_MS) -> str:
    return protection(annotations, since_ms=NOW_MS - age_ms, now_ms=NOW_MS)


@pytest.mark.parametrize(
    ("annotations", "mark"),
    [
        ({}, ""),
        ({"team": "x"}, ""),
        ({DO_NOT_DISRUPT: "true"}, f"{DO_NOT_DISRUPT}=true"),
        ({DO_NOT_DISRUPT: "True "}, f"{DO_NOT_DISRUPT}=true"),
        ({DO_NOT_DISRUPT: "false"}, ""),
        ({DO_NOT_DISRUPT: "90m"}, f"{DO_NOT_DISRUPT}=90m for another 30m"),
        ({DO_NOT_DISRUPT: "30m"}, ""),
        ({KARPENTER: "true"}, f"{KARPENTER}=true"),
        ({KARPENTER: "false"}, ""),
        ({KARPENTER: "2h"}, f"{KARPENTER}=2h for another 1h"),
        ({KARPENTER: "soon"}, ""),
        ({"karpenter.sh/do-not-evict": "true"}, "karpenter.sh/do-not-evict=true"),
        ({"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}, "cluster-autoscaler.kubernetes.io/safe-to-evict=false"),
        ({"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}, ""),
        ({"descheduler.alpha.kubernetes.io/prefer-no-eviction": "true"}, "descheduler.alpha.kubernetes.io/prefer-no-eviction=true"),
        ({"koordinator.sh/eviction-disabled": "true"}, "koordinator.sh/eviction-disabled=true"),
        ({"scheduling.koordinator.sh/eviction-cost": "2147483647"}, "scheduling.koordinator.sh/eviction-cost=2147483647"),
        ({"scheduling.koordinator.sh/eviction-cost": "100"}, ""),
        ({"volcano.sh/preemptable": "false"}, "volcano.sh/preemptable=false"),
    ],
)  # fmt: skip
def test_marks_of_all_projects_are_honoured(annotations: dict[str, str], mark: str) -> None:
    assert mark == protects(annotations)


def test_a_protection_can_end_at_a_stated_time() -> None:
    assert protects({DO_NOT_DISRUPT: "2027-01-15T08:00:00Z"}) == ""
    assert protects({DO_NOT_DISRUPT: "2027-01-15T09:00:00+00:00"}).endswith("for another 1h")
    assert NOW_MS == 1_800_000_000_000


def test_a_timed_protection_holds_for_a_unit_that_has_not_started() -> None:
    found = protection({DO_NOT_DISRUPT: "1m"}, since_ms=-1, now_ms=NOW_MS)

    assert found == f"{DO_NOT_DISRUPT}=1m and the unit has not started"


@given(st.integers(0, 30 * DAY_MS), st.integers(0, 30 * DAY_MS), st.integers(1, 40))
def test_a_timed_protection_only_ever_runs_out(age_ms: int, more_ms: int, hours: int) -> None:
    marks = {DO_NOT_DISRUPT: f"{hours}h"}

    assert bool(protects(marks, age_ms=age_ms)) == (age_ms < hours * HOUR_MS)
    assert not (protects(marks, age_ms=age_ms + more_ms) and not protects(marks, age_ms=age_ms))
