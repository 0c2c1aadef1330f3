"""A CronJob's size is changed for its next run: nothing rolls out, and what runs keeps what it has."""

from typing import Any

import pytest
from build import DAY_MS, GPU, HOUR_MS, MINUTE_MS, NOW_MS, Spec, boards, cluster, policy
from law import broken_laws
from msgspec.structs import replace

from autoscaler.decide import plan
from autoscaler.model.cluster import Budget, Limit, LimitRangeRow, PastAct, Quota, Run
from autoscaler.model.plan import ExplainRow
from autoscaler.model.selectors import LabelSelector

ALLOWED = {"gpu-autoscaler.io/allowed-gpus": "1,2,4"}


def runs(*, took_ms: int = 2 * HOUR_MS) -> tuple[Run, ...]:
    ended = tuple(Run(NOW_MS - n * DAY_MS, "succeeded", took_ms) for n in (3, 2, 1))
    return (*ended, Run(NOW_MS - 2 * HOUR_MS, "running"))


def nightly(**changes: Any) -> Spec:
    """Two hours into a run that uses one of its two boards."""
    known = {"replicas": 1, "completed_runs": 3, "runs": runs(), "schedule": "0 2 * * *"}
    return Spec(
        **{
            "name": "nightly",
            "kind": "CronJob",
            "group": "batch",
            "gpus": 2,
            "seen": (boards(0.3, 0.0, history_ms=2 * HOUR_MS),),
            "age_ms": 2 * HOUR_MS,
            "annotations": ALLOWED,
            "rollout": {"updated": 0, "total": 0},
            **changes,
            "workload": known | changes.get("workload", {}),
        }
    )


def row(spec: Spec, **tables: Any) -> ExplainRow:
    snapshot, rules = cluster(spec, **tables), policy()
    found = plan(snapshot, rules, NOW_MS)
    assert broken_laws(snapshot, found, rules, NOW_MS) == []
    (only,) = found.rows
    return only


def test_the_next_run_is_smaller() -> None:
    action = row(nightly()).action

    assert action is not None
    assert (action.lever, action.method, action.before, action.after) == ("template", "right-size", 2, 1)
    assert action.container == "main"
    assert action.ready_within_ms == 4 * DAY_MS


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (nightly(annotations={}), "NeedsConsent"),
        (nightly(annotations={"gpu-autoscaler.io/role": "serving"}), "NeedsConsent"),
        (nightly(workload={"completed_runs": 2}), "ThinHistory"),
        (nightly(workload={"runs": runs(took_ms=5 * HOUR_MS)}), "ThinHistory"),
        (nightly(workload={"runs": ()}), "ThinHistory"),
        (nightly(workload={"suspended": True}), "NoLever"),
        (nightly(seen=()), "EvidenceAbsent"),
        (nightly(seen=(None,)), "EvidenceAbsent"),
        (nightly(seen=(boards(0.29, 0.29, history_ms=2 * HOUR_MS),)), "ThinHistory"),
        (nightly(age_ms=5 * MINUTE_MS), "ThinHistory"),
    ],
)
def test_it_is_left_alone_without_consent_runs_or_evidence(spec: Spec, reason: str) -> None:
    found = row(spec)

    assert found.action is None
    assert reason in {refusal.reason for refusal in found.refusals}


@pytest.mark.parametrize(
    "spec",
    [
        nightly(pod={"ready": False}),
        nightly(workload={"replicas": 3}),
        nightly(shape={"scheduler": "volcano"}),
        nightly(shape={"unmodelled": ("podAffinity",)}),
        nightly(shape={"volume_claims": True}),
        nightly(ready_after_ms=110 * MINUTE_MS, age_ms=5 * HOUR_MS),
        nightly(rollout={"updated": 0, "max_surge": "junk", "partition": 3}),
    ],
)
def test_what_concerns_a_rollout_does_not_concern_it(spec: Spec) -> None:
    assert row(spec).action is not None


def test_it_takes_no_quota_and_no_disruption_now_but_stays_within_the_limit_range() -> None:
    key = f"requests.{GPU}"
    quota = Quota("team", "q", {key: 1, "pods": 1}, {key: 2, "pods": 5})
    pdb = Budget("team", "pdb", LabelSelector(), minimum="1", allowed=0)
    least = LimitRangeRow("team", "range", (Limit("Container", minimum={GPU: 2}),))

    assert row(nightly(), quotas=(quota,), budgets=(pdb,)).action is not None
    assert row(nightly(), limit_ranges=(least,)).reason == "LimitRange"


def test_until_its_canary_has_run_it_is_not_changed_again() -> None:
    ref = cluster(nightly()).workloads[0].ref
    act = PastAct(ref, NOW_MS - 20 * HOUR_MS, 1000, verified=False, method="right-size")

    assert row(nightly(), acts=(act,)).reason == "Cooldown"


def test_runs_of_two_sizes_wait_for_the_older_one_to_end() -> None:
    snapshot = cluster(nightly(seen=(boards(0.3, 0.0, history_ms=2 * HOUR_MS),) * 2))
    larger = replace(snapshot.shapes[0], demand={**snapshot.shapes[0].demand, GPU: 4})
    first, second = snapshot.pods
    mixed = replace(snapshot, shapes=(*snapshot.shapes, larger), pods=(first, replace(second, shape=1)))

    assert [action.after for action in plan(snapshot, policy(), NOW_MS).actions] == [1]
    assert plan(mixed, policy(), NOW_MS).actions == ()
