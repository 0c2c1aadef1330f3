"""An idle admitted workload is released through Kueue as a whole, where its owner agreed, and by no other lever."""

from typing import Any

import msgspec
import pytest
from build import DAY_MS, MINUTE_MS, NOW_MS, Spec, boards, cluster, judge, policy
from hypothesis import given
from hypothesis import strategies as st
from kueue_worlds import CONSENT, QUIET, admitted, job, queued

from autoscaler.decide import plan
from autoscaler.decide.actions import change_of
from autoscaler.decide.marks import MIN_REPLICAS, ROLE
from autoscaler.decide.methods.deactivate import propose_deactivation
from autoscaler.decide.proposal import Proposal, Ruling
from autoscaler.model.cluster import Budget, NamespaceRow, PastAct, WorkloadRef
from autoscaler.model.kueue import KueueWorkload
from autoscaler.model.plan import ExplainRow, Plan, ThroughRef
from autoscaler.model.reasons import Reason
from autoscaler.model.selectors import LabelSelector
from autoscaler.model.snapshot import KindAccess

APPLY = {"default": "apply"}
REF = WorkloadRef("batch", "Job", "team", "web")


def propose(spec: Spec, **sections: Any) -> Proposal | Ruling:
    return propose_deactivation(*judge(cluster(spec, kueue_workloads=(admitted(),)), policy(**sections)))


def planned(spec: Spec, *rows: KueueWorkload, tables: dict[str, Any] | None = None, **sections: Any) -> Plan:
    snapshot = cluster(spec, kueue_workloads=rows or (admitted(),), **(tables or {}))
    return plan(snapshot, policy(**({"modes": APPLY} | sections)), NOW_MS)


def row_of(made: Plan) -> ExplainRow:
    (row,) = made.rows
    return row


def test_the_action_names_the_job_and_writes_its_workload() -> None:
    (action,) = planned(job(gpus=2, seen=(boards(0.0, 0.0),) * 3)).actions

    assert action == msgspec.structs.replace(
        action,
        method="deactivate",
        reason=Reason.RELEASED,
        lever="deactivate",
        target=REF,
        uid="uid-team-web",
        resource_version="7",
        container="",
        before=1,
        after=0,
        saved_milli_boards=6000,
        because="no activity on any board for 30d",
        held_by=(),
        through=ThroughRef("job-web", "uid-job-web"),
        pods=3,
        ready_within_ms=30 * MINUTE_MS,
        leaving=(),
    )
    assert action.written == (WorkloadRef("kueue.x-k8s.io", "Workload", "team", "job-web"), "uid-job-web")
    assert action.preconditions == (
        "uid of Workload team/job-web is uid-job-web",
        "resourceVersion of Workload team/job-web is 7",
        "Workload team/job-web is active",
    )


@pytest.mark.parametrize(
    ("spec", "sections", "reason", "words"),
    [
        (job(seen=(boards(0.2),)), {}, "Kueue", "it is under-used: only what is idle is given back"),
        (
            job(seen=(boards(0.0, history_ms=29 * MINUTE_MS),)),
            {},
            "ThinHistory",
            "idle for 29m, the floor is 30m",
        ),
        (job(annotations={}), {}, "NeedsConsent", "idle, and nobody agreed to its being stopped"),
        (job(annotations={MIN_REPLICAS: "1"}), {}, "LadderEnd", "the owner's floor is 1"),
        (
            job(annotations={}),
            {"methods": {"allowZeroReplicas": True}},
            "NeedsConsent",
            "idle, and nobody agreed to its being stopped",
        ),
        (job(annotations={MIN_REPLICAS: "none"}), {}, "NeedsConsent", "is not a whole number"),
        (
            job(annotations=CONSENT | {ROLE: "serving"}),
            {},
            "NeedsConsent",
            "once stopped nothing here would wake it",
        ),
    ],
)
def test_what_is_not_proven_idle_or_not_agreed_to_stays(
    spec: Spec, sections: dict[str, Any], reason: str, words: str
) -> None:
    found = propose(spec, **sections)

    assert isinstance(found, Ruling)
    assert found.reason == reason
    assert words in found.detail


def test_the_word_may_stand_on_the_namespace() -> None:
    namespace = NamespaceRow("team", annotations=CONSENT)
    (action,) = planned(job(annotations={}), tables={"namespaces": (namespace,)}).actions

    assert action.lever == "deactivate"


def test_only_the_owner_s_word_is_missing_and_the_remedy_says_it() -> None:
    row = row_of(planned(job(annotations={})))

    assert (row.reason, row.remedy) == ("NeedsConsent", f'set annotation {MIN_REPLICAS}: "0" on the workload')


@pytest.mark.parametrize(
    "seen", [boards(0.5), boards(0.2), boards(0.0, peak=0.2), boards(0.0, coverage=0.5), None]
)
def test_no_other_lever_is_ever_pulled_on_what_kueue_has_admitted(seen: Any) -> None:
    for kind, group in (("Job", "batch"), ("JobSet", "jobset.x-k8s.io")):
        spec = job(
            kind=kind,
            group=group,
            gpus=1,
            seen=(seen,) * 2,
            annotations={**CONSENT, "gpu-autoscaler.io/allowed-gpus": "1"},
        )
        made = planned(spec, methods={"allowZeroReplicas": True})

        assert {action.lever for action in made.actions} <= {"deactivate"}
        assert made.actions == ()


def test_switched_off_nothing_is_planned() -> None:
    row = row_of(planned(job(), methods={"deactivate": False}))

    assert (row.action, row.detail) == (None, "no method is switched on")


@pytest.mark.parametrize(
    ("modes", "held"),
    [
        ({}, ("ModeRecommend",)),
        ({"default": "apply"}, ()),
        ({"default": "recommend", "deactivate": "apply"}, ()),
        ({"default": "apply", "deactivate": "recommend"}, ("ModeRecommend",)),
    ],
)
def test_it_has_a_mode_of_its_own(modes: dict[str, Any], held: tuple[str, ...]) -> None:
    (action,) = planned(job(), modes=modes).actions

    assert held == action.held_by


@pytest.mark.parametrize(
    ("spec", "tables", "sections", "reason"),
    [
        (job(pod={"phase": "Pending", "ready": False}), {}, {}, "NotReady"),
        (job(pod={"ready": False}), {}, {}, "NotReady"),
        (job(pod={"deleting": True}), {}, {}, "NotReady"),
        (job(annotations=CONSENT | {"gpu-autoscaler.io/do-not-disrupt": "true"}), {}, {}, "Protected"),
        (job(shape={"priority": 500}), {}, {"guards": {"priorityFloor": 500}}, "PriorityFloor"),
        (job(), {"access": (KindAccess("Workload", "forbidden"),)}, {}, "Forbidden"),
        (
            job(),
            {
                "budgets": (
                    Budget("team", "pdb", LabelSelector({"app": "web"}), minimum="1", expected_pods=1),
                )
            },
            {},
            "DisruptionBudget",
        ),
        (job(), {"acts": (PastAct(REF, NOW_MS - MINUTE_MS),)}, {}, "Cooldown"),
        (job(), {"acts": (PastAct(REF, NOW_MS - 2 * DAY_MS, reversals=2),)}, {}, "Contested"),
        (job(gpus=2, seen=(boards(0.0, 0.0),)), {}, {"budgets": {"fleetPerHour": 0.01}}, "BudgetSpent"),
        (job(seen=(QUIET,) * 3), {}, {"budgets": {"podsPerHour": 2}}, "BudgetSpent"),
        (job(gpus=2, seen=(boards(0.0, 0.0),)), {}, {"methods": {"savingsFloor": 3.0}}, "BelowSavingsFloor"),
        (job(container={"tty": True}, annotations=CONSENT | {ROLE: "interactive"}), {}, {}, "Released"),
    ],
)
def test_every_guard_stands_before_it(
    spec: Spec, tables: dict[str, Any], sections: dict[str, Any], reason: str
) -> None:
    row = row_of(planned(spec, tables=tables, **sections))

    assert row.reason == reason
    if row.action is not None:
        assert row.action.held_by == ("ModeRecommend",)


def test_a_part_that_runs_late_of_a_job_is_no_rollout() -> None:
    """A Job near its end runs fewer pods than its parallelism, a JobSet's status is not read."""
    (action,) = planned(job(seen=(QUIET,) * 2, replicas=4, rollout={"updated": 2, "total": 2})).actions

    assert action.pods == 2


def test_what_waits_for_the_budget_counts_whole() -> None:
    made = planned(job(gpus=2, seen=(boards(0.0, 0.0),) * 2), budgets={"inFlight": 0})

    assert made.actions == ()
    assert made.fleet.reclaimable_milli == 4000


@given(
    st.lists(st.sampled_from([0.0, 0.0, 0.005, 0.05, 0.5]), min_size=1, max_size=3),
    st.sampled_from([queued(), admitted(), admitted(active=False), admitted(evicted="Preempted")]),
    st.sampled_from([{}, CONSENT, {MIN_REPLICAS: "1"}]),
)
def test_it_happens_only_to_what_is_admitted_quiet_and_agreed_to(
    means: list[float], row: KueueWorkload, annotations: dict[str, str]
) -> None:
    made = planned(job(seen=tuple(boards(mean) for mean in means), annotations=annotations), row)
    lawful = row == admitted() and annotations == CONSENT and max(means) <= 0.01

    assert lawful == bool(made.actions)


def test_an_action_without_an_admission_cannot_be_made() -> None:

    found = propose(job())
    assert isinstance(found, Proposal)
    world, judged = judge(cluster(job(), kueue_workloads=(queued(),)))
    with pytest.raises(ValueError, match="was not admitted by Kueue"):
        change_of(world, judged, found)
