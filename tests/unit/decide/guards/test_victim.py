from typing import Any

import pytest
from build import HOUR_MS, MINUTE_MS, NOW_MS, Board, Spec, boards, burst, cluster, judge, node, policy
from msgspec.structs import replace

from autoscaler.decide.guards.victim import guard_bound_volumes, guard_evictable, judge_victim
from autoscaler.decide.proposal import Proposal, Ruling
from autoscaler.decide.tally import Tally
from autoscaler.decide.yielding import alone
from autoscaler.model.cluster import NamespaceRow, NodeRow, PastAct, WorkloadRef
from autoscaler.model.reasons import Reason
from autoscaler.model.shapes import Requirement
from autoscaler.model.snapshot import KindAccess

MARK = {"gpu-autoscaler.io/do-not-disrupt": "true"}
PROPOSAL = Proposal("make-room", Reason.MADE_ROOM, "evict", 1, 0, 1, "a test says so")
SERVER = {"ports": (8080,)}


def last(spec: Spec, *, sections: dict[str, Any] | None = None, **tables: Any) -> Ruling:
    world, judged = judge(cluster(spec, **tables), policy(**(sections or {})), spec.name)
    return judge_victim(world, alone(world, judged, 0), PROPOSAL, Tally.of(world))[-1]


def job(**workload: Any) -> Spec:
    return burst(kind="Job", group="batch", workload=workload)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (burst(), None),
        (burst(kind="StatefulSet"), None),
        (burst(kind="ReplicaSet"), None),
        (burst(kind="ReplicationController", group=""), None),
        (burst(kind="DaemonSet"), "SystemPod"),
        (burst(namespace="kube-system"), "SystemPod"),
        (burst(pod={"mirror": True}), "SystemPod"),
        (burst(shape={"priority": 2_000_000_000}), "SystemPod"),
        (burst(pod={"annotations": MARK}), "Protected"),
        (burst(annotations=MARK), "Protected"),
        (burst(labels={"kueue.x-k8s.io/queue-name": "q"}), "Kueue"),
        (burst(shape={"faults": ("limits: x",)}), "NoLever"),
        (burst(resource="nvidia.com/mig-1g.10gb"), "NoLever"),
        (burst(shape={"resource_claims": True}), "NoLever"),
        (burst(kind="Rollout", group="argoproj.io"), "NoLever"),
        (burst(kind="Deployment", group="apps.kruise.io"), "NoLever"),
        (burst(kind="Pod", group=""), "NeedsConsent"),
        (burst(kind="Pod", group="example.com"), "NoLever"),
        (burst(kind="CronJob", group="example.com"), "NoLever"),
        (burst(pod={"restarts": 99}), None),
        (burst(kind="Pod", group="", pod={"annotations": {"gpu-autoscaler.io/evictable": "true"}}), None),
        (burst(kind="Pod", group="", pod={"annotations": {"gpu-autoscaler.io/evictable": "yes"}}), "NeedsConsent"),
        (burst(kind="Pod", group="", pod={"labels": {"gpu-autoscaler.io/evictable": "true"}}), "NeedsConsent"),
        (burst(kind="CronJob", group="batch"), "WouldFailJob"),
        (job(), None),
        (job(backoff_limit=0), "WouldFailJob"),
        (job(backoff_limit=1), None),
        (job(backoff_limit=1, failed_pods=1), "WouldFailJob"),
        (job().but(pod={"restarts": 6}), "WouldFailJob"),
        (job().but(pod={"restarts": 5}), None),
        (job(replicas=2), "GangMember"),
        (burst(pod={"deleting": True}), "NotReady"),
        (burst(workload={"deleting": True}), "NotReady"),
        (burst(pod={"ready": False}), "NotReady"),
        (burst(pod={"phase": "Unknown"}), "NotReady"),
        (burst(shape={"scheduler": "volcano"}), "ForeignScheduler"),
        (burst(container=SERVER), None),
        (Spec("burst", container=SERVER), "NoSurge"),
        (Spec("burst", container=SERVER, seen=(boards(0.1),) * 2), None),
        (Spec("burst", container=SERVER, seen=(boards(0.1),), replicas=2), "NoSurge"),
        (burst(age_ms=5 * MINUTE_MS), "ThinHistory"),
        (burst().but(seen=(None,)), "EvidenceAbsent"),
        (burst().but(seen=((Board(0.9, coverage=0.5),),)), "EvidencePartial"),
    ],
)  # fmt: skip
def test_who_may_be_asked_to_leave(spec: Spec, reason: str | None) -> None:
    assert reason == last(spec, sections={"evidence": {"fleetCoverage": 0.0}}).reason


def test_only_the_unit_s_own_mark_and_those_of_its_workload_and_namespace_protect_it() -> None:
    snapshot = cluster(burst().but(seen=(boards(0.9),) * 2))
    first, second = snapshot.pods
    world, judged = judge(replace(snapshot, pods=(first, replace(second, annotations=MARK))), name="burst")

    assert judge_victim(world, alone(world, judged, 0), PROPOSAL, Tally.of(world))[-1].reason is None
    assert judge_victim(world, alone(world, judged, 1), PROPOSAL, Tally.of(world))[-1].reason == "Protected"
    assert last(burst(), namespaces=(NamespaceRow("team", annotations=MARK),)).reason == "Protected"


@pytest.mark.parametrize(
    ("sections", "tables", "reason"),
    [
        ({"guards": {"priorityFloor": 1_000_000}}, {}, "PriorityFloor"),
        ({}, {"telemetry": {"skew_ms": HOUR_MS}}, "ClockSkew"),
        ({}, {"access": (KindAccess("PodDisruptionBudget", "forbidden"),)}, "Forbidden"),
        ({}, {"access": (KindAccess("Job", "forbidden"),)}, "Forbidden"),
        ({}, {"access": (KindAccess("Lease", "forbidden"),)}, None),
        (
            {},
            {"acts": (PastAct(WorkloadRef("apps", "Deployment", "team", "burst"), NOW_MS - 1),)},
            "Cooldown",
        ),
        (
            {},
            {
                "acts": (
                    PastAct(
                        WorkloadRef("apps", "Deployment", "team", "burst"),
                        NOW_MS - 2 * HOUR_MS,
                        method="make-room",
                        not_before_ms=NOW_MS + 1,
                    ),
                )
            },
            "EvictionMemory",
        ),
        (
            {},
            {"acts": (PastAct(WorkloadRef("apps", "Deployment", "team", "burst"), 0, reversals=2),)},
            "Contested",
        ),
    ],
)
def test_when_nobody_is_asked(sections: dict[str, Any], tables: dict[str, Any], reason: str | None) -> None:
    assert reason == last(burst(), sections=sections, **tables).reason


def test_while_the_fleet_is_blind_nobody_is_asked() -> None:
    world, judged = judge(cluster(burst(), Spec("blind", seen=(None,))), name="burst")

    assert judge_victim(world, alone(world, judged, 0), PROPOSAL, Tally.of(world))[-1].reason == "FleetBlind"


def test_a_unit_that_holds_nothing_gives_nothing() -> None:
    snapshot = cluster(burst(), Spec("bare", gpus=0))
    (first, second) = snapshot.pods
    world, judged = judge(replace(snapshot, pods=(replace(first, shape=second.shape), second)), name="burst")

    assert guard_evictable(world, alone(world, judged, 0)).reason == "NoLever"


def tied(*terms: tuple[tuple[Requirement, ...], ...], nodes: tuple[NodeRow, ...] = ()) -> Ruling:
    """A unit on node-1 whose volumes are tied to these places."""
    here = node("node-1", labels={"zone": "a", "kubernetes.io/hostname": "node-1"})
    world, judged = judge(cluster(Spec(pod={"volume_terms": terms}), nodes=(here, *nodes)))
    return guard_bound_volumes(world, judged)


ZONE_A = ((Requirement("zone", "In", ("a",)),),)
ZONE_B = ((Requirement("zone", "In", ("b",)),),)
HOME = ((Requirement("kubernetes.io/hostname", "In", ("node-1",)),),)


@pytest.mark.parametrize(
    ("terms", "reason"),
    [
        ((), None),
        ((ZONE_A,), None),
        (((*ZONE_B, *ZONE_A),), None),
        ((HOME,), "VolumeBound"),
        ((ZONE_A, HOME), "VolumeBound"),
        ((ZONE_B,), "VolumeBound"),
        (((),), "VolumeBound"),
        ((((),),), "VolumeBound"),
    ],
)
def test_a_pod_stays_whose_volumes_no_other_node_can_mount(
    terms: tuple[tuple[tuple[Requirement, ...], ...], ...], reason: str | None
) -> None:
    assert tied(*terms, nodes=(node("node-2", labels={"zone": "a"}),)).reason == reason


def test_a_node_that_takes_no_pods_mounts_nothing_for_them() -> None:
    assert (
        tied(ZONE_A, nodes=(node("node-2", labels={"zone": "a"}, unschedulable=True),)).reason
        == "VolumeBound"
    )
