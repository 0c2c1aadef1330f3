import pytest
from build import DAY_MS, Board, Spec, boards, cluster, judge, policy
from hypothesis import given
from hypothesis import strategies as st
from worlds import policies, worlds

from autoscaler.decide.marks import MIN_REPLICAS, ROLE
from autoscaler.decide.methods.replicas import leaving, spans_pods
from autoscaler.decide.methods.scale_in import floor_of, propose_scale_in
from autoscaler.decide.planner import judge_fleet
from autoscaler.decide.proposal import Proposal, Ruling
from autoscaler.decide.world import World
from autoscaler.model.evidence import ACTIVITY_SCALE
from autoscaler.model.policy import Policy, policy_from_dict, policy_to_dict
from autoscaler.model.snapshot import Snapshot

ALL_AT_ONCE = {"budgets": {"podsPerWorkload": 1.0}}


def propose(spec: Spec, **sections: object) -> Proposal | Ruling:
    return propose_scale_in(*judge(cluster(spec), policy(**sections)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("spec", "share", "after"),
    [
        (Spec(seen=(boards(0.05),) * 3), 0.1, 2),
        (Spec(seen=(boards(0.05),) * 3), 1.0, 1),
        (Spec(seen=(boards(0.05),) * 20), 0.1, 18),
        (Spec(seen=(boards(0.05),) * 3, annotations={MIN_REPLICAS: "2"}), 1.0, 2),
        (Spec(seen=(boards(0.05),) * 3, annotations={MIN_REPLICAS: "0"}), 1.0, 1),
        (Spec(seen=(boards(0.25),) * 4), 1.0, 2),
        (Spec(seen=(boards(0.05, history_peak=0.9),) * 3), 1.0, 3),
        (Spec(seen=(boards(0.05, history_peak=0.6),) * 3), 1.0, 2),
        (Spec(seen=(boards(0.0, peak=0.1),) * 3), 1.0, 1),
        (Spec(gpus=2, seen=(boards(0.3, 0.2),) * 4), 1.0, 2),
        (Spec(seen=(boards(0.05), boards(0.05), boards(0.0)), kind="StatefulSet"), 0.1, 2),
    ],
)
def test_the_replicas_that_hold_the_load_and_all_seen_peaks(spec: Spec, share: float, after: int) -> None:
    found = propose(spec, budgets={"podsPerWorkload": share})

    if after == len(spec.seen):
        assert found.reason == "BelowSavingsFloor"
    else:
        assert isinstance(found, Proposal)
        assert (len(spec.seen), after) == (found.before, found.after)
        assert (found.before - after) * spec.gpus == found.saved_boards


THREE = (boards(0.05),) * 3


@pytest.mark.parametrize(
    ("spec", "reason", "detail"),
    [
        (Spec(seen=THREE, kind="Job"), "NoLever", "kind Job has no replicas to lower"),
        (Spec(seen=THREE, annotations={MIN_REPLICAS: "few"}), "NeedsConsent", "is not a whole number: 'few'"),
        (Spec(seen=THREE, annotations={MIN_REPLICAS: "3"}), "LadderEnd", "3 replicas, the floor is 3"),
        (Spec(seen=(boards(0.05),)), "LadderEnd", "1 replicas, the floor is 1"),
        (Spec(seen=THREE, annotations={ROLE: "training"}), "NeedsConsent", "its replicas are part of the run"),
        (Spec(seen=THREE, annotations={ROLE: "training", MIN_REPLICAS: "1"}), "NeedsConsent", "its replicas are part of the run"),
        (Spec(seen=THREE, container={"parallelism": ("WORLD_SIZE",)}), "NeedsConsent", "(WORLD_SIZE)"),
        (Spec(seen=(boards(0.5),) * 3), "BelowSavingsFloor", "1.50 boards of load"),
        (Spec(seen=(boards(0.29, history_ms=DAY_MS),) * 3), "ThinHistory", "need 3 of 3 replicas"),
        (Spec(seen=(boards(0.05, history_ms=0),) * 3), "ThinHistory", "unknown load"),
        (Spec(seen=THREE, kind="StatefulSet"), "NoLever", "the highest ordinals go first and they were active within their history"),
        (Spec(seen=(boards(0.0), boards(0.05), boards(0.05)), kind="StatefulSet"), "NoLever", "the highest ordinals"),
        (Spec(seen=(boards(0.05), boards(0.05), boards(0.0, history_peak=0.2)), kind="StatefulSet"), "NoLever", "the highest ordinals"),
        (Spec(seen=(boards(0.05, history_peak=0.6, history_busiest=0.5),) * 3), "BelowSavingsFloor", "need 3 of 3 replicas"),
        (Spec(seen=(boards(0.0, history_ms=2 * DAY_MS),) * 2, container={"parallelism": ("--tp",)}), "NeedsConsent", "(--tp)"),
    ],
)  # fmt: skip
def test_no_fewer_replicas_have_a_reason(spec: Spec, reason: str, detail: str) -> None:
    found = propose(spec)

    assert isinstance(found, Ruling)
    assert reason == found.reason
    if "boards of load" not in detail:
        assert detail in found.detail


def test_a_floor_is_the_owner_s_consent_where_a_count_is_built_in() -> None:
    spec = Spec(seen=THREE, container={"parallelism": ("--tp",)}, annotations={MIN_REPLICAS: "1"})

    assert isinstance(propose(spec), Proposal)


PER_POD = ["--tensor-parallel-size", "-tp", "--pipeline_parallel_size", "LOCAL_WORLD_SIZE", "NUM_GPUS", "--nproc_per_node", "CUDA_VISIBLE_DEVICES", "tensorParallelSize", "TP", "--num-shard", "--data-parallel-size-local"]  # fmt: skip
ACROSS = ["WORLD_SIZE", "--nnodes", "RANK", "NODE_RANK", "MASTER_ADDR", "--rdzv-endpoint", "--data-parallel-size", "-dp", "--num_machines", "trainer.num_nodes", "VLLM_DP_SIZE", "VLLM_ARGS", "torchrun", "--strategy", "np"]  # fmt: skip


@pytest.mark.parametrize(("hint", "spans"), [(h, False) for h in PER_POD] + [(h, True) for h in ACROSS])
def test_a_server_s_layout_inside_a_pod_does_not_hold_its_replicas(hint: str, spans: bool) -> None:
    server = Spec(seen=THREE, container={"parallelism": (hint,), "ports": (8000,)})
    found = propose(server)

    assert spans == spans_pods(hint)
    assert spans == isinstance(found, Ruling)
    if spans:
        assert (found.reason, hint in str(found)) == ("NeedsConsent", True)
    assert isinstance(propose(server.but(container={"parallelism": (hint,)})), Ruling)


def test_ordinals_are_numbers_not_texts() -> None:
    quiet_last = (*[boards(0.05)] * 10, boards(0.0))
    found = propose(Spec(seen=quiet_last, kind="StatefulSet"))

    assert isinstance(found, Proposal)
    assert (found.before, found.after) == (11, 10)


def test_a_load_that_came_within_the_window_is_not_outvoted_by_a_quiet_history() -> None:
    risen = (Board(0.29, history_p95=0.0),)
    found = propose(Spec(seen=(risen,) * 4), **ALL_AT_ONCE)

    assert isinstance(found, Proposal)
    assert found.after == 2


def test_the_least_used_pods_leave_a_deployment() -> None:
    seen = (boards(0.05), boards(0.01), boards(0.03), boards(0.01))
    _, judged = judge(cluster(Spec(seen=seen)))

    assert leaving(judged, 0) == ()
    assert [pod.name for pod in leaving(judged, 3)] == ["web-1", "web-3", "web-2"]


@pytest.mark.parametrize(
    ("annotations", "floor"),
    [({}, 1), ({MIN_REPLICAS: "0"}, 1), ({MIN_REPLICAS: "4"}, 4), ({MIN_REPLICAS: "x"}, 1)],
)
def test_scale_in_never_goes_under_one(annotations: dict[str, str], floor: int) -> None:
    assert floor == floor_of(judge(cluster(Spec(annotations=annotations)))[1])


def proposals(snapshot: Snapshot, rules: Policy) -> list[tuple[Proposal | Ruling, object]]:
    world = World(snapshot, rules, snapshot.taken_ms)
    return [
        (propose_scale_in(world, judged), judged)
        for judged in judge_fleet(world)[0]
        if judged.assessment.measured
    ]


@given(worlds(), policies())
def test_what_is_left_holds_all_peaks_and_at_least_one_replica(snapshot: Snapshot, rules: Policy) -> None:
    for found, judged in proposals(snapshot, rules):
        if isinstance(found, Proposal):
            units = judged.assessment.measured  # type: ignore[attr-defined]
            peaks = sum(board.history_peak for unit in units for board in unit.boards)
            assert 1 <= found.after < found.before
            assert peaks <= found.after * judged.case.held * ACTIVITY_SCALE  # type: ignore[attr-defined]
            lasted = sum(board.history_busiest for unit in units for board in unit.boards)
            assert lasted <= found.after * judged.case.held * ACTIVITY_SCALE * rules.need.target_utilization  # type: ignore[attr-defined]


@given(worlds(wild=False), policies(wild=False), st.sampled_from(["2d", "7d", "300d"]))
def test_wider_confidence_never_removes_more(snapshot: Snapshot, rules: Policy, unit: str) -> None:
    document = policy_to_dict(rules)
    document["need"]["confidenceUnit"] = unit
    for (sure, _), (wide, _) in zip(
        proposals(snapshot, rules), proposals(snapshot, policy_from_dict(document)), strict=True
    ):
        if isinstance(wide, Proposal):
            assert isinstance(sure, Proposal)
            assert sure.after <= wide.after
