"""What went wrong for other people (facts/reports.md), as far as one cycle can tell: the entry's right answer."""

import msgspec
import pytest
from build import (
    DAY_MS,
    GPU,
    HOUR_MS,
    MINUTE_MS,
    NOW_MS,
    Board,
    Spec,
    boards,
    burst,
    cluster,
    node,
    policy,
    waiting,
)

from autoscaler.decide import plan
from autoscaler.decide.marks import ALLOWED_GPUS, MIN_REPLICAS
from autoscaler.model.cluster import Budget, FieldOwner, Limit, LimitRangeRow, PastAct, Quota, WorkloadRef
from autoscaler.model.evidence import CONTRADICTORY, DROPPED, SHARED, UnownedDevice
from autoscaler.model.plan import ExplainRow, Plan
from autoscaler.model.selectors import LabelSelector
from autoscaler.model.snapshot import Snapshot

PEERS = tuple(Spec(f"peer-{n}", seen=(boards(0.9),)) for n in range(9))
MAY_GO = {MIN_REPLICAS: "0"}


def row(spec: Spec, **more: object) -> ExplainRow:
    planned = plan(cluster(spec, *PEERS, **more), policy(), NOW_MS)  # type: ignore[arg-type]
    return next(found for found in planned.rows if found.workload.name == "web")


def plan_of(snapshot: Snapshot) -> Plan:
    return plan(snapshot, policy(), NOW_MS)


def test_the_seed_two_boards_of_which_one_is_used_become_one_within_quota_and_limit_range() -> None:
    vendor = "gpuconfig.com/gpu"
    spec = Spec("inference", "ml-workloads", gpus=2, resource=vendor, seen=(boards(0.55, 0.0),))
    room = node(allocatable={"cpu": 96_000, vendor: 8, "pods": 110})
    quota = Quota(
        "ml-workloads",
        "gpu-quota",
        {f"requests.{vendor}": 8, f"limits.{vendor}": 8},
        {f"requests.{vendor}": 6},
    )
    limits = LimitRangeRow("ml-workloads", "gpu-limits", (Limit("Container", {vendor: 4}),))
    (action,) = plan_of(cluster(spec, nodes=(room,), quotas=(quota,), limit_ranges=(limits,))).actions

    assert ("RightSized", vendor, 2, 1, 1000) == (
        action.reason,
        action.resource,
        action.before,
        action.after,
        action.saved_milli_boards,
    )


@pytest.mark.parametrize(("used", "surges"), [(6, 2), (7, 1), (8, 0)])
def test_the_seed_s_quota_of_eight_holds_for_all_surge_pods_together(used: int, surges: int) -> None:
    key = f"requests.{GPU}"
    specs = [Spec(f"w{n}", gpus=2, seen=(boards(0.5, 0.0),)) for n in range(3)]
    planned = plan_of(cluster(*specs, quotas=(Quota("team", "gpu-quota", {key: 8}, {key: used}),)))

    assert surges == len(planned.actions)
    assert 3 - surges == planned.refusals_by_reason().get("QuotaShort", 0)


def test_u05_a_share_is_never_counted_as_a_board() -> None:
    found = row(Spec(resource="nvidia.com/gpu.shared", gpus=2, seen=(boards(0.0, 0.0),), annotations=MAY_GO))

    assert (found.action, found.reason) == (None, "NoLever")
    assert (
        plan_of(cluster(Spec(resource="nvidia.com/gpu.shared"))).fleet.boards
        == node(gpus=64).allocatable[GPU]
    )


def test_u06_a_unit_of_a_time_sliced_node_is_a_share_although_it_is_called_a_gpu() -> None:
    sliced = node(
        labels={"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.product": "NVIDIA-A100-SHARED"}, gpus=64
    )

    assert row(Spec(seen=(boards(0.0),), annotations=MAY_GO), nodes=(sliced,)).reason == "SharedBoard"


@pytest.mark.parametrize(
    "spec", [Spec(seen=(boards(0.0, coverage=0.35),)), Spec(seen=(boards(0.0, flags=SHARED),))]
)
def test_u07_a_board_that_jumps_from_pod_to_pod_is_nobody_s(spec: Spec) -> None:
    assert row(spec.but(annotations=MAY_GO)).verdict == "unknown"


def test_u14_u16_an_empty_answer_holds_everything_and_is_an_incident() -> None:
    dark = [Spec(f"w{n}", seen=(None,) * 3, annotations=MAY_GO) for n in range(5)]
    planned = plan_of(cluster(*dark))

    assert planned.actions == ()
    assert planned.refusals_by_reason() == {"EvidenceAbsent": 5}
    assert all("FleetBlind" in {refusal.reason for refusal in found.refusals} for found in planned.rows)


def test_u16_the_measured_few_are_frozen_too_while_the_fleet_is_blind() -> None:
    dark = [Spec(f"dark-{n}", seen=(None,)) for n in range(5)]
    planned = plan_of(cluster(*dark, Spec(gpus=2, seen=(boards(0.5, 0.0),))))

    assert planned.actions == ()
    assert planned.refusals_by_reason()["FleetBlind"] == 1


def test_u17_one_zero_after_an_outage_is_not_a_window() -> None:
    found = row(Spec(seen=(boards(0.0, coverage=1 / 120),), annotations=MAY_GO))

    assert (found.action, found.reason) == (None, "EvidencePartial")


def test_u19_seven_of_eight_boards_at_zero_are_not_eight() -> None:
    found = row(Spec(gpus=8, seen=(boards(*[0.0] * 7),), annotations=MAY_GO))

    assert (found.reason, found.detail) == ("EvidencePartial", "pod web-0: 7 of 8 boards seen")


def test_u20_zero_engine_beside_high_power_is_a_contradiction() -> None:
    found = row(Spec(seen=(boards(0.0, flags=CONTRADICTORY),), annotations=MAY_GO))

    assert (found.action, found.reason) == (None, "EvidenceContradictory")


@pytest.mark.parametrize("minutes", [25, 29])
def test_u22_a_window_that_began_before_the_pod_is_not_its_window(minutes: int) -> None:
    reborn = Spec(kind="StatefulSet", seen=(boards(0.0),), age_ms=minutes * MINUTE_MS, annotations=MAY_GO)

    assert (row(reborn).action, row(reborn).reason) == (None, "ThinHistory")


def test_u23_a_new_pod_has_its_grace_and_a_busy_board_without_owner_forbids_idle() -> None:
    young = Spec(seen=(None,), age_ms=40_000, annotations=MAY_GO)
    lost = {"telemetry": {"unowned": (UnownedDevice("MIG-1", "node-1", 3800),)}}

    assert row(young, **lost).reason == "ThinHistory"
    assert row(Spec(seen=(boards(0.0),), annotations=MAY_GO), **lost).reason == "EvidenceContradictory"


def test_u23_a_server_that_has_just_become_ready_was_loading_not_idling() -> None:
    loading = Spec(seen=(boards(0.0),), age_ms=2 * HOUR_MS, ready_after_ms=2 * HOUR_MS - 5 * MINUTE_MS)

    assert row(loading.but(annotations=MAY_GO)).reason == "ThinHistory"


@pytest.mark.parametrize("board", [Board(3.4, flags=DROPPED), Board(3.4)])
def test_u28_more_than_a_whole_board_lowers_nothing_and_adds_nothing(board: Board) -> None:
    found = row(Spec(gpus=2, seen=((board, Board(0.0)),), annotations={ALLOWED_GPUS: "1,2"}))

    assert found.action is None
    assert found.use_ratio is None or found.use_ratio <= 1


def test_u30_cpu_never_stands_in_for_the_use_of_boards() -> None:
    found = row(Spec(seen=(None,), cpu_milli=1, annotations=MAY_GO))

    assert (found.action, found.reason) == (None, "EvidenceAbsent")


def test_u35_of_three_replicas_at_90_88_and_0_none_is_killed() -> None:
    found = row(Spec(seen=(boards(0.9), boards(0.88), boards(0.0))))

    assert (found.action, found.reason) == (None, "BelowSavingsFloor")


def test_u35_the_idle_replica_goes_or_none() -> None:
    quiet_first = (boards(0.0), boards(0.1), boards(0.1))
    chosen, unlucky, lucky = (
        row(Spec(seen=quiet_first)),
        row(Spec(seen=quiet_first, kind="StatefulSet")),
        row(Spec(seen=quiet_first[::-1], kind="StatefulSet")),
    )

    assert chosen.action is not None
    assert chosen.action.preconditions[-1].endswith("pod-deletion-cost is lowest on web-0")
    assert unlucky.action is None
    assert "NoLever" in {refusal.reason for refusal in unlucky.refusals}
    assert lucky.action is not None
    assert (lucky.action.before, lucky.action.after) == (3, 2)


@pytest.mark.parametrize("suspended", [False, True])
def test_u37_u38_a_job_s_template_is_not_changed(suspended: bool) -> None:
    job = Spec(
        kind="Job",
        group="batch",
        gpus=4,
        seen=(boards(0.4, 0.4, 0.0, 0.0),),
        workload={"suspended": suspended},
    )

    assert (row(job).action, row(job).reason) == (None, "NoLever")


@pytest.mark.parametrize(
    ("key", "reason"),
    [(GPU, "RightSized"), (f"limits.{GPU}", "RightSized"), (f"requests.{GPU}", "QuotaShort")],
)
def test_u39_only_the_quota_s_requests_of_boards_hold_anything(key: str, reason: str) -> None:
    surging = Spec(gpus=2, seen=(boards(0.5, 0.0),))

    assert reason == row(surging, quotas=(Quota("team", "q", {key: 2}, {key: 2}),)).reason


def test_u40_a_size_outside_the_limit_range_is_not_proposed() -> None:
    limits = LimitRangeRow("team", "range", (Limit("Container", minimum={GPU: 2}),))

    assert row(Spec(gpus=2, seen=(boards(0.5, 0.0),)), limit_ranges=(limits,)).reason == "LimitRange"


@pytest.mark.parametrize(("hard", "reason"), [(8, "QuotaShort"), (9, "RightSized")])
def test_u41_a_full_quota_has_no_room_for_the_surge_pod(hard: int, reason: str) -> None:
    key = f"requests.{GPU}"
    spec = Spec(gpus=2, seen=(boards(0.5, 0.0),) * 4, annotations={MIN_REPLICAS: "4"})

    assert reason == row(spec, quotas=(Quota("team", "q", {key: hard}, {key: 8}),)).reason


@pytest.mark.parametrize(
    ("rollout", "gpus", "reason"),
    [
        ({"max_surge": "25%", "max_unavailable": "25%"}, 0, "NoSurge"),
        ({"max_surge": "25%", "max_unavailable": "25%"}, 1, "RightSized"),
        ({"max_surge": "0", "max_unavailable": "1"}, 0, "RightSized"),
    ],
)
def test_u42_a_single_replica_that_could_never_roll_is_not_started(
    rollout: dict[str, str], gpus: int, reason: str
) -> None:
    spec = Spec(gpus=2, seen=(boards(0.5, 0.0),), rollout=rollout)
    taken = 2 + len(PEERS)

    assert reason == row(spec, nodes=(node(gpus=taken + gpus),)).reason


def test_u43_a_terminating_pod_still_holds_its_board() -> None:
    going = Spec("going", seen=(boards(0.9),), pod={"deleting": True})
    nodes = (node(gpus=3),)
    planned = plan_of(cluster(Spec(gpus=2, seen=(boards(0.5, 0.0),)), going, nodes=nodes))

    assert planned.actions == ()
    assert planned.refusals_by_reason()["NoSurge"] == 1


def test_u44_who_was_asked_in_vain_is_left_alone_for_a_while() -> None:
    ref = WorkloadRef("apps", "Deployment", "team", "burst")
    vain = PastAct(
        ref, NOW_MS - MINUTE_MS, method="make-room", not_before_ms=NOW_MS + HOUR_MS, why="evicted in vain"
    )
    asked = cluster(burst(), waiting(), nodes=(node(gpus=1),))
    left = msgspec.structs.replace(asked, acts=(vain,))

    assert [action.target.name for action in plan_of(asked).actions] == ["burst"]
    assert plan_of(left).actions == ()


def test_u45_a_pod_of_two_disruption_budgets_is_never_evicted() -> None:
    one, two = (Budget("team", name, LabelSelector(), unavailable="1", allowed=5) for name in ("a", "b"))
    full = cluster(burst(), waiting(), nodes=(node(gpus=1),))

    assert len(plan_of(msgspec.structs.replace(full, budgets=(one,))).actions) == 1
    assert plan_of(msgspec.structs.replace(full, budgets=(one, two))).actions == ()


@pytest.mark.parametrize(("reversals", "reason"), [(0, "Released"), (2, "Contested")])
def test_u46_who_put_replicas_back_twice_is_not_fought(reversals: int, reason: str) -> None:
    past = PastAct(WorkloadRef("apps", "Deployment", "team", "web"), NOW_MS - 9 * DAY_MS, reversals=reversals)
    idle = Spec(seen=(boards(0.0),), annotations=MAY_GO)

    assert reason == row(idle, acts=(past,)).reason


def test_u46_what_a_gitops_controller_wrote_is_its_own() -> None:
    argo = (FieldOwner("argocd-controller", replicas=True),)
    idle = Spec(seen=(boards(0.0),), annotations=MAY_GO, workload={"field_owners": argo})

    assert (row(idle).action, row(idle).reason) == (None, "OtherOwner")


@pytest.mark.parametrize(
    ("group", "kind"), [("serving.kserve.io", "InferenceService"), ("kubeflow.org", "Notebook")]
)
def test_u47_u48_what_an_operator_makes_is_changed_at_its_top_or_not_at_all(group: str, kind: str) -> None:
    idle = Spec(kind=kind, group=group, seen=(boards(0.0),), annotations=MAY_GO)

    assert (row(idle).action, row(idle).reason) == (None, "NoLever")


def test_u49_who_was_evicted_lately_is_not_evicted_again() -> None:
    ref = WorkloadRef("apps", "Deployment", "team", "burst")
    evicted = PastAct(
        ref, NOW_MS - DAY_MS, method="make-room", not_before_ms=NOW_MS + MINUTE_MS, why="evicted"
    )
    idle = burst(use=0.0)
    planned = plan_of(cluster(idle, waiting(), nodes=(node(gpus=1),), acts=(evicted,)))

    assert planned.actions == ()
    assert "EvictionMemory" in planned.refusals_by_reason()


def test_u50_an_idle_member_of_a_group_is_neither_idle_nor_evicted() -> None:
    group = Spec(
        "burst",
        kind="PyTorchJob",
        group="kubeflow.org",
        seen=(boards(0.95), boards(0.95), boards(0.95), boards(0.0)),
        shape={"priority_class": "gpu-burst", "priority": 1_000_000},
    )
    planned = plan_of(cluster(group, waiting(), nodes=(node(gpus=4),)))
    (found,) = (row for row in planned.rows if row.workload.name == "burst")

    assert planned.actions == ()
    assert (found.units, found.verdict) == (4, "busy")


def test_u51_a_mark_that_was_set_as_a_label_protects() -> None:
    marked = Spec(
        seen=(boards(0.0),),
        annotations=MAY_GO,
        labels={"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"},
    )

    assert row(marked).reason == "Protected"


def test_u52_a_pod_without_an_owner_is_never_touched() -> None:
    bare = Spec(kind="Pod", group="", seen=(boards(0.0, history_ms=30 * DAY_MS),), annotations=MAY_GO)

    assert (row(bare).action, row(bare).reason) == (None, "NoLever")
