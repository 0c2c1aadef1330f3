import pytest
from build import DAY_MS, HOUR_MS, MINUTE_MS, Board, Spec, boards, cluster, judge, policy
from hypothesis import given
from worlds import policies, worlds

from autoscaler.decide.assess import assess
from autoscaler.decide.world import World
from autoscaler.model.evidence import Absent, Measured
from autoscaler.model.policy import Policy
from autoscaler.model.snapshot import Snapshot

ROLE = "gpu-autoscaler.io/role"


@pytest.mark.parametrize(
    ("seen", "verdict", "ratio"),
    [
        ((boards(0.0, 0.0),), "idle", 0.0),
        ((boards(0.01, 0.0),), "idle", 0.005),
        ((boards(0.0, peak=0.02),), "under-used", 0.0),
        ((boards(0.29),), "under-used", 0.29),
        ((boards(0.30),), "busy", 0.3),
        ((boards(0.97),), "saturated", 0.97),
        ((boards(0.98), boards(0.0)), "saturated", 0.49),
        ((boards(0.98, 0.0),), "busy", 0.49),
        ((boards(0.55, 0.0), boards(0.0, 0.0)), "under-used", 0.1375),
        ((boards(0.5), None), "unknown", None),
        ((), "unknown", None),
    ],
)
def test_the_verdict_is_the_window_s(seen: tuple, verdict: str, ratio: float | None) -> None:
    gpus = max((len(found) for found in seen if found), default=1)
    _, judged = judge(cluster(Spec(gpus=gpus, seen=seen)))

    assert (verdict, ratio) == (judged.assessment.verdict, judged.assessment.use_ratio)


def test_one_unit_that_is_not_measured_leaves_nothing_but_the_doubt() -> None:
    found = judge(cluster(Spec(seen=(boards(0.0), None))))[1].assessment

    assert (found.need, found.measured, found.idle_ms) == (None, (), 0)
    assert isinstance(found.doubt, Absent)
    assert judge(cluster(Spec()))[1].assessment.doubt is None


@pytest.mark.parametrize(
    ("board", "idle_ms"),
    [
        (Board(0.0, history_ms=3 * HOUR_MS), 3 * HOUR_MS),
        (Board(0.0, history_peak=0.5, history_ms=3 * HOUR_MS), 30 * MINUTE_MS),
        (Board(0.0, history_ms=5 * MINUTE_MS), 5 * MINUTE_MS),
        (Board(0.0, history_peak=0.5, history_ms=5 * MINUTE_MS), 5 * MINUTE_MS),
        (Board(0.0, peak=0.02), 0),
    ],
)
def test_idleness_is_proven_by_the_whole_history_or_else_by_the_window(board: Board, idle_ms: int) -> None:
    assert idle_ms == judge(cluster(Spec(seen=((board,),))))[1].assessment.idle_ms


def test_the_least_idle_replica_counts() -> None:
    seen = (boards(0.0, history_ms=2 * DAY_MS), boards(0.0, history_ms=HOUR_MS))

    assert judge(cluster(Spec(seen=seen)))[1].assessment.idle_ms == HOUR_MS


@pytest.mark.parametrize(
    ("changes", "role", "cause"),
    [
        ({}, "unstated", "nothing tells"),
        ({"annotations": {ROLE: "training"}}, "training", f"{ROLE}=training"),
        ({"annotations": {ROLE: " Serving "}}, "serving", f"{ROLE}= Serving "),
        ({"labels": {ROLE: "interactive"}}, "interactive", f"{ROLE}=interactive"),
        ({"labels": {ROLE: "training"}, "annotations": {ROLE: "serving"}}, "training", f"{ROLE}=training"),
        ({"labels": {ROLE: "interactive"}, "annotations": {ROLE: "serving"}}, "interactive", f"{ROLE}=interactive"),
        ({"annotations": {ROLE: "trainning"}}, "training", f"{ROLE}=trainning (unreadable)"),
        ({"annotations": {ROLE: ""}}, "training", f"{ROLE}= (unreadable)"),
        ({"kind": "PyTorchJob"}, "training", "kind PyTorchJob"),
        ({"kind": "PyTorchJob", "annotations": {ROLE: "serving"}}, "serving", f"{ROLE}=serving"),
        ({"kind": "InferenceService"}, "serving", "kind InferenceService"),
        ({"kind": "Notebook"}, "interactive", "kind Notebook"),
        ({"container": {"image": "quay.io/Jupyter/Base-Notebook:lab-4"}}, "interactive", "container main: notebook port or image"),
        ({"container": {"ports": (8888,)}}, "interactive", "container main: notebook port or image"),
        ({"container": {"tty": True}}, "interactive", "container main has a terminal"),
        ({"container": {"image": "me/finetune:1", "ports": (80,)}}, "training", "image of container main"),
        ({"container": {"image": "vllm/vllm-openai"}}, "serving", "image of container main"),
        ({"container": {"image": "registry:5000/ghcr/text-generation-inference:2.0"}}, "serving", "image of container main"),
        ({"container": {"image": "nvcr.io/nvidia/tritonserver:24.05-py3"}}, "serving", "image of container main"),
        ({"container": {"image": "codercom/code-server:4"}}, "interactive", "container main: notebook port or image"),
        ({"container": {"image": "registry/lab/model.fine_tune@sha256:0a"}}, "training", "image of container main"),
        ({"container": {"image": "nvidia/pytorch:24", "ports": (29500, 8080)}}, "training", "container main has the rendezvous port 29500"),
        ({"container": {"image": "me/digitgif:1"}}, "unstated", "nothing tells"),
        ({"container": {"image": "training/app:1"}}, "unstated", "nothing tells"),
        ({"container": {"image": "constrained:1"}}, "unstated", "nothing tells"),
        ({"container": {"ports": (8080,)}}, "serving", "container main listens on port 8080"),
        ({"container": {"role": "init", "ports": (8080,)}}, "unstated", "nothing tells"),
    ],
)  # fmt: skip
def test_the_role_has_a_stated_cause(changes: dict, role: str, cause: str) -> None:
    found = judge(cluster(Spec(**changes)))[1].assessment

    assert (role, cause) == (found.role, found.role_cause)


@given(worlds(), policies())
def test_all_units_measured_or_unknown(snapshot: Snapshot, rules: Policy) -> None:
    world = World(snapshot, rules, snapshot.taken_ms)
    for index in range(len(snapshot.workloads)):
        case = world.case(index)
        found = assess(world, case)
        measured = bool(case.units) and all(isinstance(o, Measured) for o in found.observations)
        assert measured == (found.verdict != "unknown") == (found.need is not None) == bool(found.measured)
        assert len(case.units) == len(found.observations)


@given(worlds(wild=False))
def test_idle_means_that_no_board_shows_a_sign(snapshot: Snapshot) -> None:
    world = World(snapshot, policy(), snapshot.taken_ms)
    for index in range(len(snapshot.workloads)):
        found = assess(world, world.case(index))
        quiet = all(board.peak <= 100 for unit in found.measured for board in unit.boards)
        assert quiet == (found.verdict == "idle") == (found.idle_ms > 0)
