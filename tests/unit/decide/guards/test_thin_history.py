from dataclasses import replace

import pytest
from build import DAY_MS, HOUR_MS, NOW_MS, Spec, boards, cluster, judge, policy, rescale, resize
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.decide.guards.thin_history import guard_history
from autoscaler.decide.proposal import Proposal
from autoscaler.decide.tally import Tally
from autoscaler.model.cluster import Run
from autoscaler.model.reasons import Reason

RELEASE = Proposal("idle", Reason.RELEASED, "scale", 2, 1, 1, "")
AGREED = replace(RELEASE, agreed=True)


def ask(history_ms: int, change: Proposal, **need: object) -> str | None:
    world, judged = judge(cluster(Spec(seen=(boards(0.0, history_ms=history_ms),))), policy(need=need))
    return guard_history(world, judged, change, Tally.of(world)).reason


@pytest.mark.parametrize(
    ("days", "need", "reason"),
    [
        (3, {}, None),
        (2.99, {}, "ThinHistory"),
        (1.5, {"confidenceUnit": "12h"}, None),
        (3, {"minConfidence": 4}, "ThinHistory"),
        (1, {"minConfidence": 1}, None),
    ],
)
def test_sizing_needs_the_policy_s_confidence(
    days: float, need: dict[str, object], reason: str | None
) -> None:
    assert reason == ask(round(days * DAY_MS), resize(2, 1), **need)
    assert reason == ask(round(days * DAY_MS), rescale(2, 1), **need)
    assert reason == ask(round(days * DAY_MS), RELEASE, **need)


def test_only_a_floor_that_was_agreed_to_rests_on_proven_idleness_alone() -> None:
    assert ask(0, AGREED) is None
    assert ask(0, RELEASE) == "ThinHistory"


@given(st.integers(0, 40 * DAY_MS), st.integers(0, 9 * DAY_MS), st.sampled_from([0.5, 1, 20]))
def test_more_history_never_refuses_more(history_ms: int, more_ms: int, least: float) -> None:
    assert ask(history_ms, resize(2, 1), minConfidence=least) or not ask(
        history_ms + more_ms, resize(2, 1), minConfidence=least
    )


@pytest.mark.parametrize(
    ("took_ms", "reason"),
    [(0, None), (4 * HOUR_MS, None), (4 * HOUR_MS + 1, "ThinHistory"), (-1, "ThinHistory")],
)
def test_half_of_the_longest_run_must_be_seen(took_ms: int, reason: str | None) -> None:
    known = {"completed_runs": 3, "runs": (Run(NOW_MS - DAY_MS, "succeeded", took_ms),)}
    spec = Spec(kind="CronJob", group="batch", seen=(boards(0.0, history_ms=2 * HOUR_MS),), workload=known)
    world, judged = judge(cluster(spec))

    assert reason == guard_history(world, judged, resize(2, 1), Tally.of(world)).reason
