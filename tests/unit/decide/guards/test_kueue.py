"""What waits is not idle, what is admitted is released through its Workload alone, and pods of Kueue's are never evicted."""

from typing import Any

import pytest
from build import GPU, Spec, boards, burst, cluster, judge
from hypothesis import given
from hypothesis import strategies as st
from kueue_worlds import DOOR, QUEUE, admitted, job, queue, queued, quota

from autoscaler.decide.guards.kueue import admitted_by, guard_kueue, guard_unmanaged
from autoscaler.decide.guards.subject import guard_lever
from autoscaler.decide.proposal import Ruling
from autoscaler.model.kueue import KueueWorkload
from autoscaler.model.snapshot import KindAccess

PODS = ("uid-team-web-0", "uid-team-web-1")


def ask(spec: Spec, *rows: KueueWorkload, **tables: Any) -> Ruling:
    return guard_kueue(*judge(cluster(spec, kueue_workloads=rows, **tables)))


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (Spec(), None),
        (Spec(labels={QUEUE: "team-queue"}), "Kueue"),
        (Spec(annotations={QUEUE: "team-queue"}), "Kueue"),
        (Spec(labels={QUEUE: ""}), None),
        (Spec(pod={"labels": {"kueue.x-k8s.io/managed": "true"}}), "Kueue"),
        (Spec(pod={"labels": {"kueue.x-k8s.io/pod-group-name": "g"}}), "Kueue"),
        (Spec(pod={"annotations": {QUEUE: "team-queue"}}), "Kueue"),
    ],
)
def test_a_mark_alone_makes_it_kueue_s(spec: Spec, reason: str | None) -> None:
    assert reason == ask(spec).reason
    assert reason == guard_unmanaged(*judge(cluster(spec))).reason


def test_what_a_job_was_admitted_by_lets_it_pass_with_or_without_a_mark() -> None:
    for spec in (job(), job(labels={})):
        world, judged = judge(cluster(spec, kueue_workloads=(admitted(),)))

        assert guard_kueue(world, judged).reason is None
        assert guard_kueue(world, judged).detail == (
            "admitted by ClusterQueue gpus through Workload team/job-web"
        )
        assert guard_lever(world, judged) == Ruling("lever", "Workload team/job-web of Kueue")
        assert admitted_by(world, judged.case) == admitted()


def test_a_job_that_kueue_does_not_know_has_no_lever() -> None:
    world, judged = judge(cluster(job(labels={})))

    assert guard_lever(world, judged).reason == "NoLever"
    assert admitted_by(world, judged.case) is None


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (queued(), "queued in LocalQueue main"),
        (queued(queue=""), "queued in LocalQueue (none)"),
        (admitted(active=False), "Workload team/job-web is deactivated"),
        (queued(active=False), "Workload team/job-web is deactivated"),
        (admitted(evicted="Preempted"), "Kueue is stopping it (Preempted)"),
        (queued(evicted="Preempted"), "queued in LocalQueue main"),
        (admitted(admitted=False), "its quota is reserved in ClusterQueue gpus, and it is not admitted yet"),
    ],
)
def test_what_waits_is_stopped_or_is_being_stopped_is_not_idle(row: KueueWorkload, words: str) -> None:
    found = ask(job(), row)

    assert found.reason == "Kueue"
    assert found.detail.startswith(words)


@pytest.mark.parametrize(
    ("quotas", "changes", "words"),
    [
        ((quota(4),), {}, "queued in ClusterQueue gpus; asks 2 nvidia.com/gpu, free are 1 of flavor a100"),
        ((quota(2),), {}, "queued in ClusterQueue gpus; asks 2 nvidia.com/gpu, free are 0 of flavor a100"),
        (
            (),
            {"quotas": ()},
            "queued in ClusterQueue gpus; asks 2 nvidia.com/gpu, of which the queue has no quota",
        ),
        (
            (),
            {"unreadable": ("x",)},
            "queued in ClusterQueue gpus; asks 2 nvidia.com/gpu, what is left is not known",
        ),
        (
            (quota(4),),
            {"stop": "Hold"},
            "queued in ClusterQueue gpus, which admits nobody (Hold); asks 2 nvidia.com/gpu, free are 1 of flavor a100",
        ),
    ],
)
def test_what_is_queued_is_told_what_it_waits_for(quotas: Any, changes: dict[str, Any], words: str) -> None:
    row = queued(asks={GPU: 2, "cpu": 4_000})
    behind = {"cluster_queues": (queue("gpus", *quotas, used=3, **changes),), "local_queues": (DOOR,)}
    found = ask(job(seen=()), row, **behind)

    assert found.detail == words
    assert found.remedy == "nothing to do: what is queued holds no board"


@pytest.mark.parametrize(
    ("spec", "rows", "words"),
    [
        # A pod group shares one Workload, a Deployment's pods have one each, a bare pod is deleted for good.
        (
            job(kind="StatefulSet", group="apps", seen=(boards(0.0),) * 2),
            (admitted(controller="", owners=PODS),),
            "Kueue would delete the pods of Workload team/job-web, not suspend a StatefulSet",
        ),
        (
            job(kind="Deployment", group="apps", seen=(boards(0.0),) * 2),
            (admitted("a", owners=PODS[:1]), admitted("b", owners=PODS[1:])),
            "2 Workloads of Kueue stand for its pods: none stands for all of them",
        ),
        (
            job(kind="Pod", group=""),
            (admitted(controller="uid-team-web"),),
            "Kueue would delete the pods of Workload team/job-web, not suspend a Pod",
        ),
        (
            job(group="batch.volcano.sh"),
            (admitted(),),
            "Kueue would delete the pods of Workload team/job-web, not suspend a Job",
        ),
        (
            job(),
            (admitted(controller="uid-somebody-else", owners=("uid-somebody-else", PODS[0])),),
            "Kueue would delete the pods of Workload team/job-web, not suspend a Job",
        ),
    ],
)
def test_what_kueue_would_delete_and_not_suspend_is_left_alone(
    spec: Spec, rows: tuple[KueueWorkload, ...], words: str
) -> None:
    found = ask(spec, *rows)

    assert (found.reason, found.detail) == ("Kueue", words)


@pytest.mark.parametrize(
    ("group", "kind"),
    [("jobset.x-k8s.io", "JobSet"), ("kubeflow.org", "PyTorchJob"), ("ray.io", "RayCluster")],
)
def test_kinds_that_kueue_suspends_are_recognised_as_one(group: str, kind: str) -> None:
    world, judged = judge(cluster(job(kind=kind, group=group), kueue_workloads=(admitted(),)))

    assert admitted_by(world, judged.case) == admitted()


@pytest.mark.parametrize(
    ("access", "remedy"),
    [
        ((), "wait until Kueue has made one (API kueue.x-k8s.io/v1beta2)"),
        ((KindAccess("Workload", "absent"),), "wait until Kueue has made one (API kueue.x-k8s.io/v1beta2)"),
        ((KindAccess("Workload", "forbidden", "no"),), "grant list and watch on workloads.kueue.x-k8s.io"),
    ],
)
def test_an_unknown_workload_is_a_no(access: tuple[KindAccess, ...], remedy: str) -> None:
    found = ask(job(), access=access)

    assert (found.reason, found.detail) == ("Kueue", f"{QUEUE}=main; its Workload is not known")
    assert found.remedy == remedy


def test_who_stopped_it_can_start_it_again() -> None:
    assert ask(job(), queued(active=False)).remedy == (
        "gpu-autoscaler undo, where it was us; else spec.active: true on Workload team/job-web"
    )


def test_the_workload_of_another_namespace_stands_for_nobody_here() -> None:
    assert ask(job(), admitted(namespace="lab")).detail == f"{QUEUE}=main; its Workload is not known"
    assert ask(job(), admitted(finished=True)).detail == f"{QUEUE}=main; its Workload is not known"


def test_a_pod_of_kueue_s_is_never_evicted() -> None:
    marked, known = burst("web", labels={QUEUE: "q"}), burst("web")
    row = admitted(controller="", owners=PODS[:1])

    assert guard_unmanaged(*judge(cluster(marked))).detail == f"{QUEUE}=q: its pods are Kueue's to stop"
    found = guard_unmanaged(*judge(cluster(known, kueue_workloads=(row,))))
    assert (found.reason, found.detail) == (
        "Kueue",
        "Workload team/job-web stands for it: its pods are Kueue's to stop",
    )
    assert guard_unmanaged(*judge(cluster(known))).reason is None


@given(
    st.builds(
        admitted,
        active=st.booleans(),
        reserved=st.booleans(),
        admitted=st.booleans(),
        evicted=st.sampled_from(["", "Preempted", "Deactivated"]),
        finished=st.booleans(),
        controller=st.sampled_from(["", "uid-team-web", "other"]),
        owners=st.sampled_from([(), ("uid-team-web",), PODS, ("other",)]),
        namespace=st.sampled_from(["team", "lab"]),
        cluster_queue=st.sampled_from(["", "gpus"]),
    ),
    st.sampled_from(["Job", "JobSet", "Deployment", "Pod"]),
)
def test_whatever_its_state_only_an_active_admitted_one_that_is_not_stopped_is_released(
    row: KueueWorkload, kind: str
) -> None:
    world, judged = judge(cluster(job(kind=kind), kueue_workloads=(row,)))
    passes = guard_kueue(world, judged).reason is None

    assert passes == (admitted_by(world, judged.case) is not None)
    if passes:
        assert row.active
        assert row.reserved
        assert row.admitted
        assert not row.evicted
        assert not row.finished
        assert (row.controller, kind) == ("uid-team-web", "Job")
