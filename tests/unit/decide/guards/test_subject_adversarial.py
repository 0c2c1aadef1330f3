import pytest
from build import NOW_MS, Spec, cluster, judge
from hypothesis import given
from worlds import policies, worlds

from autoscaler.decide.guards import SUBJECT_GUARDS
from autoscaler.decide.guards.subject import guard_lever, guard_priority, guard_protection, guard_start_grace
from autoscaler.decide.marks import DO_NOT_DISRUPT
from autoscaler.decide.planner import judge_fleet
from autoscaler.decide.world import World
from autoscaler.model.policy import Policy
from autoscaler.model.snapshot import Snapshot


@pytest.mark.parametrize("text", ["", "maybe", "-4h", "2027-13-45T00:00:00Z"])
def test_a_mark_of_ours_that_cannot_be_read_protects(text: str) -> None:
    assert guard_protection(*judge(cluster(Spec(annotations={DO_NOT_DISRUPT: text})))).reason == "Protected"


@pytest.mark.parametrize("spec", [Spec(seen=()), Spec(pod={"started_ms": -1})])
def test_a_time_limit_protects_what_has_not_started(spec: Spec) -> None:
    limited = spec.but(annotations={DO_NOT_DISRUPT: "1s"})

    assert guard_protection(*judge(cluster(limited))).reason == "Protected"


def test_a_unit_without_a_start_time_is_left_to_the_evidence_guard() -> None:
    assert guard_start_grace(*judge(cluster(Spec(pod={"started_ms": -1})))).reason is None


def test_a_fault_in_a_live_pod_counts_although_the_template_is_clean() -> None:
    snapshot = cluster(Spec(), Spec("odd", shape={"faults": ("x",)}))
    pods = [type(p)(**{f: getattr(p, f) for f in p.__struct_fields__} | {"shape": 1}) for p in snapshot.pods]
    changed = type(snapshot)(
        **{f: getattr(snapshot, f) for f in snapshot.__struct_fields__} | {"pods": tuple(pods)}
    )

    assert guard_lever(*judge(changed)).detail == "unreadable: x"


def test_a_workload_without_pods_has_its_template_s_priority() -> None:
    assert guard_priority(*judge(cluster(Spec(seen=(), shape={"priority": 7})))).detail == "priority 7"


@given(worlds(), policies())
def test_every_guard_answers_for_every_workload(snapshot: Snapshot, rules: Policy) -> None:
    world = World(snapshot, rules, NOW_MS)
    for judged in judge_fleet(world)[0]:
        for guard in SUBJECT_GUARDS:
            assert guard(world, judged).detail
