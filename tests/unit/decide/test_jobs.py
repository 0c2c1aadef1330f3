"""A Job runs fewer pods at once only where it says so itself, all are idle, and no index loses its progress."""

import json
from typing import Any

import pytest
from build import Spec, boards, cluster, judge, policy
from msgspec.structs import replace

from autoscaler.decide import plan
from autoscaler.decide.advice import patch_of
from autoscaler.decide.guards.subject import guard_lever
from autoscaler.decide.marks import MIN_REPLICAS, ROLE
from autoscaler.decide.methods.idle import propose_release
from autoscaler.decide.methods.rightsize import propose_right_size
from autoscaler.decide.methods.scale_in import propose_scale_in
from autoscaler.decide.proposal import Proposal, Ruling
from autoscaler.model.cluster import NamespaceRow

QUIET = boards(0.0)
ONE_STEP = {"budgets": {"podsPerWorkload": 1.0}}


def job(*, floor: str | None = "1", seen: tuple[Any, ...] = (QUIET,) * 3, **workload: Any) -> Spec:
    annotations = {} if floor is None else {MIN_REPLICAS: floor}
    return Spec(kind="Job", group="batch", seen=seen, annotations=annotations, workload=workload)


def planned(spec: Spec) -> Any:
    snapshot = cluster(spec)
    made = plan(snapshot, policy(**ONE_STEP), snapshot.taken_ms)  # type: ignore[arg-type]
    return made.rows[0]


@pytest.mark.parametrize(
    ("spec", "after"),
    [
        (job(), 1),
        (job(floor="2"), 2),
        (job(floor="00"), 1),
        (job(completions=9, succeeded_pods=4), 1),
    ],
)
def test_an_idle_job_that_states_a_floor_goes_to_it_and_never_under_one(spec: Spec, after: int) -> None:
    action = planned(spec).action

    assert (action.method, action.lever, action.before, action.after) == ("idle", "scale", 3, after)
    assert action.leaving == ()


@pytest.mark.parametrize(
    ("spec", "reason", "detail"),
    [
        (job(floor=None), "NoLever", "no lever for kind Job"),
        (job(floor="0"), "NoLever", "no lever for kind Job"),
        (job(indexed=True, completions=9), "NoLever", "completion mode Indexed"),
        (job(suspended=True), "NoLever", "the Job is suspended"),
        (job(succeeded_pods=1), "NoLever", "a pod of the work queue has succeeded"),
        (job(floor="some"), "NeedsConsent", "is not a whole number"),
        (job(floor="3"), "LadderEnd", "3 replicas, the owner's floor is 3"),
    ],
)
def test_any_other_job_is_left_alone_with_a_reason(spec: Spec, reason: str, detail: str) -> None:
    row = planned(spec)

    assert row.action is None
    assert any(reason == refusal.reason and detail in refusal.evidence for refusal in row.refusals)


def test_one_busy_pod_keeps_them_all_since_nobody_can_say_which_would_go() -> None:
    spec = job(seen=(QUIET, QUIET, boards(0.2)))
    found = propose_release(*judge(cluster(spec), policy(**ONE_STEP)))  # type: ignore[arg-type]
    scaled = propose_scale_in(*judge(cluster(spec), policy(**ONE_STEP)))  # type: ignore[arg-type]

    assert isinstance(found, Ruling)
    assert found.reason == "ThinHistory"
    assert isinstance(scaled, Ruling)
    assert scaled.reason == "NoLever"
    assert planned(spec).action is None


def test_a_floor_of_the_namespace_and_a_stated_role_are_no_consent_of_the_job() -> None:
    spec = job(floor=None).but(annotations={ROLE: "serving"})
    floor = NamespaceRow("team", annotations={MIN_REPLICAS: "1"})
    snapshot = replace(cluster(spec), namespaces=(floor,))

    assert guard_lever(*judge(snapshot)).detail == "no lever for kind Job"
    found = propose_release(*judge(snapshot))
    assert isinstance(found, Ruling)
    assert found.detail == "kind Job has no replicas to lower"


def test_the_template_of_a_job_is_not_changed() -> None:
    found = propose_right_size(*judge(cluster(job())))

    assert isinstance(found, Ruling)
    assert (found.reason, found.detail) == ("NoLever", "the template of a Job that runs cannot be changed")


def test_the_advice_names_the_field_that_a_job_has() -> None:
    world, judged = judge(cluster(job()), policy(**ONE_STEP))  # type: ignore[arg-type]
    proposal = propose_release(world, judged)

    assert isinstance(proposal, Proposal)
    assert json.loads(patch_of(judged, proposal)) == {"spec": {"parallelism": 1}}
