import pytest
from build import DAY_MS, HOUR_MS, MINUTE_MS, NOW_MS, Board, Spec, boards, cluster, judge, policy
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from autoscaler.decide.guards.subject import (
    guard_evidence,
    guard_lever,
    guard_priority,
    guard_protection,
    guard_start_grace,
    guard_system,
    guard_use,
)
from autoscaler.decide.marks import DO_NOT_DISRUPT
from autoscaler.decide.proposal import Ruling
from autoscaler.model.cluster import NamespaceRow
from autoscaler.model.reasons import Reason

GPU = "nvidia.com/gpu"


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (Spec(), None),
        (Spec(namespace="kube-system"), "SystemPod"),
        (Spec(kind="DaemonSet"), "SystemPod"),
        (Spec(pod={"mirror": True}), "SystemPod"),
        (Spec(shape={"priority": 2_000_000_000}), "SystemPod"),
        (Spec(shape={"priority": 1_000_000_000}), None),
        (Spec(seen=(), shape={"priority": 2_000_001_000}), "SystemPod"),
    ],
)
def test_system_pods_are_never_touched(spec: Spec, reason: str | None) -> None:
    assert reason == guard_system(*judge(cluster(spec))).reason


@pytest.mark.parametrize(
    ("floor", "priority", "reason"),
    [(None, 10**9, None), (100, 99, None), (100, 100, "PriorityFloor"), (-5, 0, "PriorityFloor")],
)
def test_the_policy_s_priority_floor_holds(floor: int | None, priority: int, reason: str | None) -> None:
    rules = policy(guards={"priorityFloor": floor})

    assert reason == guard_priority(*judge(cluster(Spec(shape={"priority": priority})), rules)).reason


MARK = {DO_NOT_DISRUPT: "true"}


@pytest.mark.parametrize(
    ("spec", "namespace", "place"),
    [
        (Spec(annotations=MARK), {}, "workload"),
        (Spec(pod={"annotations": MARK}), {}, "pod web-0"),
        (Spec(), {"annotations": MARK}, "namespace team"),
        (Spec(labels=MARK), {}, "pod web-0"),
        (Spec(seen=(), labels=MARK), {}, "workload"),
        (Spec(), {"labels": MARK}, "namespace team"),
        (Spec(labels={"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}), {}, "pod web-0"),
    ],
)
def test_marks_protect_wherever_they_are_set(spec: Spec, namespace: dict[str, object], place: str) -> None:
    rows = (NamespaceRow("team", **namespace), NamespaceRow("lab", annotations=MARK))  # type: ignore[arg-type]
    found = guard_protection(*judge(cluster(spec, namespaces=rows)))

    assert found.reason == "Protected"
    assert found.detail.startswith(f"{place}: ")


@pytest.mark.parametrize(
    ("spec", "namespace", "age_ms", "protected"),
    [
        (Spec(annotations=MARK), {}, 4 * HOUR_MS - 1, True),
        (Spec(annotations=MARK), {}, 4 * HOUR_MS, False),
        (Spec(pod={"annotations": MARK}), {}, 4 * HOUR_MS, False),
        (Spec(labels={"karpenter.sh/do-not-disrupt": "true"}), {}, 4 * HOUR_MS, False),
        (Spec(annotations=MARK), MARK, 4 * HOUR_MS, True),
        (Spec(annotations=MARK, pod={"started_ms": -1}), {}, 4 * HOUR_MS, True),
        (Spec(seen=(), annotations=MARK), {}, 4 * HOUR_MS, True),
    ],
)
def test_tenants_protect_themselves_for_no_longer_than_policy_lets_them(
    spec: Spec, namespace: dict[str, str], age_ms: int, *, protected: bool
) -> None:
    rows = (NamespaceRow("team", annotations=namespace),)
    snapshot = cluster(spec.but(age_ms=age_ms), namespaces=rows)
    bound = guard_protection(*judge(snapshot, policy(guards={"maxProtection": "4h"})))

    assert (bound.reason == "Protected") == protected
    assert protected or bound.detail.endswith(", for longer than guards.maxProtection (4h) allows")
    assert guard_protection(*judge(snapshot, policy())).reason == "Protected"


def test_a_time_limit_holds_while_any_unit_has_not_started() -> None:
    snapshot = cluster(Spec(seen=(boards(0.5),) * 2, annotations={DO_NOT_DISRUPT: "4h"}, age_ms=5 * HOUR_MS))
    old, new = snapshot.pods
    one_waits = replace(snapshot, pods=(old, replace(new, started_ms=-1)))

    assert guard_protection(*judge(snapshot)).reason is None
    assert guard_protection(*judge(one_waits)).reason == "Protected"


@pytest.mark.parametrize(("age_ms", "reason"), [(HOUR_MS, "Protected"), (5 * HOUR_MS, None)])
def test_a_time_limit_on_the_workload_holds_for_its_youngest_unit(age_ms: int, reason: str | None) -> None:

    snapshot = cluster(Spec(seen=(boards(0.5),) * 2, annotations={DO_NOT_DISRUPT: "4h"}))
    old, young = snapshot.pods
    changed = replace(snapshot, pods=(old, replace(young, started_ms=NOW_MS - age_ms)))

    assert reason == guard_protection(*judge(changed)).reason


@pytest.mark.parametrize(
    ("spec", "reason", "detail"),
    [
        (Spec(), None, "kind Deployment"),
        (Spec(kind="StatefulSet"), None, "kind StatefulSet"),
        (Spec(kind="StatefulSet", group="apps.kruise.io"), "NoLever", "no lever for kind StatefulSet"),
        (Spec(kind="Job", group="batch"), "NoLever", "no lever for kind Job"),
        (Spec(kind="Pod", group=""), "NoLever", "a bare pod"),
        (Spec(kind="CronJob", group="batch", workload={"completed_runs": 2}), "ThinHistory", "2 of 3 completed runs"),
        (Spec(kind="CronJob", group="batch", workload={"completed_runs": 3}), None, "kind CronJob"),
        (Spec(kind="CronJob", group="apps", workload={"completed_runs": 3}), "NoLever", "no lever for kind CronJob"),
        (Spec(workload={"deleting": True}), "NoLever", "it is being deleted"),
        (Spec(shape={"faults": ("limits: x",)}), "NoLever", "unreadable: limits: x"),
        (Spec(resource="nvidia.com/mig-1g.10gb"), "NoLever", "is not counted in whole boards"),
        (Spec(resource="nvidia.com/gpu.shared"), "NoLever", "is not counted in whole boards"),
        (Spec(shape={"demand": {GPU: 1, "nvidia.com/mig-1g.10gb": 1}}), "NoLever", "beside nvidia.com/gpu it holds nvidia.com/mig-1g.10gb"),
        (Spec(shape={"resource_claims": True}), "NoLever", "it holds devices by resource claims, which are read and never changed"),
    ],
)  # fmt: skip
def test_only_kinds_with_a_lawful_lever_and_whole_boards_are_changed(
    spec: Spec, reason: str | None, detail: str
) -> None:
    found = guard_lever(*judge(cluster(spec)))

    assert reason == found.reason
    assert detail in found.detail


@pytest.mark.parametrize(
    ("age_ms", "ready_after_ms", "reason"),
    [
        (30 * MINUTE_MS, 0, None),
        (30 * MINUTE_MS - 1, 0, "ThinHistory"),
        (DAY_MS, DAY_MS - 10 * MINUTE_MS, "ThinHistory"),
        (0, 0, "ThinHistory"),
        (-HOUR_MS, 0, "ThinHistory"),
    ],
)
def test_a_unit_is_judged_after_its_grace_and_a_full_window(
    age_ms: int, ready_after_ms: int, reason: str | None
) -> None:
    found = guard_start_grace(*judge(cluster(Spec(age_ms=age_ms, ready_after_ms=ready_after_ms))))

    assert reason == found.reason


def test_the_grace_of_the_policy_may_be_longer_than_the_window() -> None:
    rules = policy(methods={"startGrace": "2h"})

    assert guard_start_grace(*judge(cluster(Spec(age_ms=HOUR_MS)), rules)).reason == "ThinHistory"


@pytest.mark.parametrize(
    ("seen", "reason", "detail"),
    [
        ((boards(0.5),), None, "coverage 100% (at least 95%), signal engine"),
        ((boards(0.5), None), "EvidenceAbsent", "pod web-1: no sample in 30m"),
        ((boards(0.5), boards(0.5, coverage=0.1)), "EvidencePartial", "pod web-1: 10%"),
        ((), "EvidenceAbsent", "it has no live pod"),
    ],
)
def test_every_unit_is_measured_or_the_first_that_is_not_is_named(
    seen: tuple, reason: str | None, detail: str
) -> None:
    found = guard_evidence(*judge(cluster(Spec(seen=seen))))

    assert reason == found.reason
    assert detail in found.detail


@pytest.mark.parametrize(
    ("mean", "reason"), [(0.0, None), (0.29, None), (0.3, "BelowSavingsFloor"), (0.99, "BelowSavingsFloor")]
)
def test_only_what_is_under_the_low_watermark_is_looked_at(mean: float, reason: str | None) -> None:
    assert reason == guard_use(*judge(cluster(Spec(seen=(boards(mean),))))).reason


def test_unknown_use_is_left_to_the_evidence_guard() -> None:
    assert guard_use(*judge(cluster(Spec(seen=(None,))))).detail == "use is not known"


@given(st.integers(0, 2_000_000_100), st.integers(0, 2_000_000_100))
def test_a_lower_floor_never_protects_less(priority: int, floor: int) -> None:
    snapshot = cluster(Spec(shape={"priority": priority}, seen=((Board(),),)))

    def refused(at: int) -> bool:
        return guard_priority(*judge(snapshot, policy(guards={"priorityFloor": at}))).reason is not None

    assert refused(floor) == (priority >= floor)
    assert refused(floor // 2) or not refused(floor)


@pytest.mark.parametrize(("why", "told"), [("", "it has not started"), ("0/1 nodes", "0/1 nodes")])
def test_a_pending_unit_is_told_with_what_it_waits_for(why: str, told: str) -> None:
    pending = Spec(seen=(None,), pod={"phase": "Pending", "unschedulable": why})

    assert guard_evidence(*judge(cluster(pending))) == Ruling(
        "evidence", f"pod web-0 is pending: {told}", Reason.NOT_READY
    )
