"""Owner walk: every pod has a workload, the topmost that is known by name, and nothing is guessed."""

from typing import Any

import pytest
from unit.observe.observed import GPU, deployment, make, owner, pod, replica_set, snapshot, spec

from autoscaler.kube import wire
from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.snapshot import Snapshot, decode_snapshot, encode_snapshot

pytestmark = pytest.mark.unit


def workload_of(seen: Snapshot, name: str) -> tuple[WorkloadRef, int]:
    row = next(row for row in seen.pods if row.name == name)
    workload = seen.workloads[row.workload]
    return workload.ref, workload.template


def job(name: str, *, of: dict[str, Any] | None = None, ended: str = "", **more: Any) -> wire.Job:
    return make(
        wire.Job,
        name,
        metadata={"ownerReferences": [of]} if of else {},
        spec={"template": {"spec": spec()}, **more},
        status={"conditions": [{"type": ended, "status": "True"}]} if ended else {},
    )


def cron_job(name: str, **more: Any) -> wire.CronJob:
    template = {"spec": {"template": {"spec": spec(2)}, "backoffLimit": 0}}
    return make(wire.CronJob, name, spec={"schedule": "0 2 * * *", "jobTemplate": template, **more})


def test_a_pod_of_a_replica_set_belongs_to_its_deployment() -> None:
    seen = snapshot(
        deployment("serve", replicas=3),
        replica_set("serve-1", of="serve"),
        pod("p", owner=owner("ReplicaSet", "serve-1")),
    )
    ref, template = workload_of(seen, "p")

    assert ref == WorkloadRef("apps", "Deployment", "ml", "serve")
    assert seen.shapes[template].demand == {"cpu": 1000, GPU: 1}
    assert [(w.ref.kind, w.replicas) for w in seen.workloads] == [("Deployment", 3)]


def test_an_owner_that_is_not_known_yet_is_a_row_without_template() -> None:
    of_unknown_set = snapshot(pod("p", owner=owner("ReplicaSet", "serve-1")))
    of_unknown_top = snapshot(
        replica_set("serve-1", of="serve"), pod("p", owner=owner("ReplicaSet", "serve-1"))
    )

    assert workload_of(of_unknown_set, "p") == (WorkloadRef("apps", "ReplicaSet", "ml", "serve-1"), -1)
    assert workload_of(of_unknown_top, "p") == (WorkloadRef("apps", "Deployment", "ml", "serve"), -1)


def test_an_owner_made_anew_under_the_same_name_is_another_one() -> None:
    seen = snapshot(
        deployment("serve"),
        replica_set("serve-1", of="serve", uid="second"),
        pod("p", owner=owner("ReplicaSet", "serve-1", uid="first")),
    )

    assert workload_of(seen, "p") == (WorkloadRef("apps", "ReplicaSet", "ml", "serve-1"), -1)


def test_an_unknown_kind_is_named_with_the_pods_it_has() -> None:
    of = owner("PyTorchJob", "train", api="kubeflow.org/v1")
    seen = snapshot(pod("w-0", owner=of), pod("w-1", owner=of))

    assert workload_of(seen, "w-0") == (WorkloadRef("kubeflow.org", "PyTorchJob", "ml", "train"), -1)
    assert [w.replicas for w in seen.workloads] == [2]


def test_the_walk_goes_on_through_a_built_in_kind_to_a_custom_one() -> None:
    stateful = make(
        wire.StatefulSet,
        "nb",
        metadata={"ownerReferences": [owner("Notebook", "nb", api="kubeflow.org/v1", uid="n")]},
        spec={"template": {"spec": spec()}},
    )
    seen = snapshot(stateful, pod("nb-0", owner=owner("StatefulSet", "nb")))

    assert workload_of(seen, "nb-0") == (WorkloadRef("kubeflow.org", "Notebook", "ml", "nb"), -1)
    assert len(seen.workloads) == 1


def test_a_bare_pod_and_a_mirror_pod_are_their_own_workload() -> None:
    seen = snapshot(pod("bare"), pod("static", owner=owner("Node", "node-1", api="v1")))

    assert workload_of(seen, "bare")[0] == WorkloadRef("", "Pod", "ml", "bare")
    assert workload_of(seen, "static")[0] == WorkloadRef("", "Pod", "ml", "static")


def test_an_owner_that_does_not_control_is_no_owner() -> None:
    seen = snapshot(pod("p", owner={**owner("ReplicaSet", "serve-1"), "controller": None}))

    assert workload_of(seen, "p")[0].kind == "Pod"


def test_a_cycle_of_owners_ends() -> None:
    looped = make(wire.ReplicaSet, "r", metadata={"ownerReferences": [owner("ReplicaSet", "r")]})
    seen = snapshot(looped, pod("p", owner=owner("ReplicaSet", "r")))

    assert workload_of(seen, "p")[0].kind == "ReplicaSet"


def test_workloads_without_pods_count_if_their_template_wants_accelerators() -> None:
    seen = snapshot(
        deployment("asleep", replicas=0),
        deployment("web", gpus=0),
        cron_job("nightly"),
        job("done", ended="Complete"),
    )

    assert [(w.ref.kind, w.ref.name, w.replicas) for w in seen.workloads] == [
        ("Deployment", "asleep", 0),
        ("CronJob", "nightly", 1),
    ]


def test_a_cron_job_counts_its_own_successful_runs() -> None:
    by = owner("CronJob", "nightly", api="batch/v1")
    other = owner("CronJob", "nightly", api="batch/v1", uid="an older one")
    seen = snapshot(
        cron_job("nightly"),
        job("n-1", of=by, ended="Complete"),
        job("n-2", of=by, ended="Failed"),
        job("n-3", of=by),
        job("n-0", of=other, ended="Complete"),
        pod("n-3-x", owner=owner("Job", "n-3", api="batch/v1")),
    )
    row = seen.workloads[seen.pods[0].workload]

    assert (row.ref.kind, row.schedule, row.completed_runs, row.backoff_limit) == (
        "CronJob",
        "0 2 * * *",
        1,
        0,
    )


def test_a_suspended_job_wants_accelerators() -> None:
    seen = snapshot(job("queued", suspend=True))

    assert [(w.ref.name, w.suspended) for w in seen.workloads] == [("queued", True)]


def test_a_rollout_tells_how_far_it_has_come() -> None:
    rolling = make(
        wire.Deployment,
        "serve",
        metadata={"generation": 5},
        spec={
            "replicas": 4,
            "paused": True,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "10%"}},
            "template": {"spec": spec()},
        },
        status={
            "observedGeneration": 4,
            "replicas": 5,
            "updatedReplicas": 2,
            "readyReplicas": 3,
            "availableReplicas": 3,
        },
    )
    rollout = snapshot(rolling).workloads[0].rollout

    assert (rollout.max_surge, rollout.max_unavailable, rollout.paused, rollout.observed) == (
        "1",
        "10%",
        True,
        False,
    )
    assert (rollout.total, rollout.updated, rollout.ready, rollout.available) == (5, 2, 3, 3)


def test_a_job_tells_how_many_of_its_pods_failed() -> None:
    failing = make(
        wire.Job, "train", spec={"template": {"spec": spec()}, "backoffLimit": 2}, status={"failed": 2}
    )
    (row,) = snapshot(failing).workloads

    assert (row.failed_pods, row.backoff_limit) == (2, 2)


@pytest.mark.parametrize(
    ("stated", "completions", "indexed"),
    [
        ({}, -1, False),
        ({"completions": 4, "completionMode": "NonIndexed"}, 4, False),
        ({"completions": 4, "completionMode": "Indexed"}, 4, True),
    ],
)
def test_a_job_tells_how_it_counts_its_work(stated: Any, completions: int, indexed: bool) -> None:
    job = make(
        wire.Job,
        "train",
        spec={"template": {"spec": spec()}, "parallelism": 3, **stated},
        status={"succeeded": 2},
    )
    (row,) = snapshot(job).workloads

    assert (row.replicas, row.succeeded_pods) == (3, 2)
    assert (row.completions, row.indexed) == (completions, indexed)


def test_the_consent_to_an_eviction_is_kept_with_its_pod() -> None:
    (row,) = snapshot(pod("alone", annotations={"gpu-autoscaler.io/evictable": "true"})).pods

    assert row.annotations == {"gpu-autoscaler.io/evictable": "true"}


def test_a_waiting_pod_tells_which_node_keeps_its_seat() -> None:
    waits = make(wire.Pod, "urgent", spec=spec(), status={"phase": "Pending", "nominatedNodeName": "node-2"})
    rows = {row.name: row.nominated_node for row in snapshot(waits, pod("runs")).pods}

    assert rows == {"urgent": "node-2", "runs": ""}


def test_only_marks_that_guards_read_are_kept() -> None:
    marks = {"gpu-autoscaler.io/allowed-gpus": "1,2", "example.com/notes": "long text"}
    row = snapshot(deployment("serve", annotations=marks, labels={"team": "x"})).workloads[0]

    assert row.annotations == {"gpu-autoscaler.io/allowed-gpus": "1,2"}
    assert row.labels == {"team": "x"}


def test_the_priority_of_a_template_is_that_of_its_class() -> None:
    template = {"spec": spec(priorityClassName="high")}
    waiting = make(wire.Deployment, "serve", spec={"template": template})
    seen = snapshot(waiting, make(wire.PriorityClass, "high", namespace="", value=1000))

    assert seen.shapes[seen.workloads[0].template].priority == 1000


def test_the_same_objects_in_any_order_give_the_same_bytes() -> None:
    objects = [
        deployment("serve"),
        replica_set("serve-1", of="serve"),
        pod("a", owner=owner("ReplicaSet", "serve-1")),
        pod("b", owner=owner("ReplicaSet", "serve-1")),
        pod("bare", gpus=2),
        pod("web", gpus=0),
        cron_job("nightly"),
    ]
    seen = snapshot(*objects)

    assert encode_snapshot(seen) == encode_snapshot(snapshot(*reversed(objects)))
    assert decode_snapshot(encode_snapshot(seen)) == seen
