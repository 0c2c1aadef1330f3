import pytest
from build import DAY_MS, GPU, NOW_MS, Board, Spec, boards, cluster, judge, policy
from hypothesis import given
from hypothesis import strategies as st
from worlds import policies, worlds

from autoscaler.decide import plan
from autoscaler.decide.marks import ALLOWED_GPUS, ROLE
from autoscaler.decide.methods.rightsize import propose_right_size
from autoscaler.decide.planner import judge_fleet
from autoscaler.decide.proposal import Proposal, Ruling
from autoscaler.decide.world import World
from autoscaler.model.cluster import Limit, LimitRangeRow
from autoscaler.model.policy import Policy
from autoscaler.model.shapes import ContainerShape
from autoscaler.model.snapshot import Snapshot


def propose(spec: Spec, **sections: object) -> Proposal | Ruling:
    return propose_right_size(*judge(cluster(spec), policy(**sections)))  # type: ignore[arg-type]


def allowed(text: str) -> dict[str, str]:
    return {ALLOWED_GPUS: text}


@pytest.mark.parametrize(
    ("spec", "after"),
    [
        (Spec(gpus=2, seen=(boards(0.55, 0.0),)), 1),
        (Spec(gpus=8, seen=(boards(0.5, 0.5, *[0.0] * 6),)), 2),
        (Spec(gpus=8, seen=(boards(0.9, 0.9, *[0.0] * 6),)), 4),
        (Spec(gpus=2, seen=(boards(0.0, 0.0),)), 1),
        (Spec(gpus=4, seen=(boards(*[0.1] * 4),), annotations=allowed("1,2,4")), 1),
        (Spec(gpus=4, seen=(boards(*[0.1] * 4),), annotations=allowed("2,4")), 2),
        (Spec(gpus=4, seen=(boards(*[0.25] * 4),), annotations=allowed("1,2,4")), 2),
        (Spec(gpus=4, seen=(boards(0.1, 0.1, 0, 0), boards(0.1, 0, 0, 0))), 2),
        (Spec(gpus=4, seen=(boards(0.1, 0, 0, 0),), annotations={**allowed("1,2,4"), ROLE: "training"}), 1),
    ],
)
def test_the_smallest_step_that_holds_the_upper_bound(spec: Spec, after: int) -> None:
    found = propose(spec)

    assert isinstance(found, Proposal)
    assert (spec.gpus, after) == (found.before, found.after)
    assert (spec.gpus - after) * len(spec.seen) == found.saved_boards


@pytest.mark.parametrize(
    ("spec", "reason", "detail"),
    [
        (Spec(gpus=1, seen=(boards(0.1),)), "LadderEnd", "1 is the smallest allowed step"),
        (Spec(gpus=2, seen=(boards(0.1, 0.1),)), "NeedsConsent", "2 of 2 boards were active: fewer changes the application"),
        (Spec(gpus=2, seen=(boards(0.1, 0.0, history_peak=0.06),)), "NeedsConsent", "2 of 2 boards were active"),
        (Spec(gpus=2, seen=(boards(0.1, 0.0),), annotations=allowed("junk")), "NeedsConsent", "is not a list of counts"),
        (Spec(gpus=2, seen=(boards(0.1, 0.0),), annotations=allowed("2,4")), "LadderEnd", "2 is the smallest allowed step"),
        (Spec(gpus=2, seen=(boards(0.1, 0.0),), annotations=allowed("4")), "LadderEnd", "2 is the smallest allowed step"),
        (Spec(gpus=2, seen=(boards(0.1, 0.0),), annotations={ROLE: "training"}), "NeedsConsent", "training"),
        (Spec(gpus=2, seen=(boards(0.1, 0.0),), annotations={ROLE: "trainnig"}), "NeedsConsent", "unreadable"),
        (Spec(gpus=2, seen=(boards(0.1, 0.0),), container={"parallelism": ("--tp", "B", "C", "D")}), "NeedsConsent", "(--tp, B, C)"),
        (Spec(gpus=2, seen=(boards(0.1, 0.0, memory_mib=70_000),)), "MemoryGate", "memory held needs 1.90 boards of 2"),
        (Spec(gpus=2, seen=(boards(0.1, 0.0, memory_mib=None),)), "MemoryGate", "memory held needs 2.00 boards of 2"),
        (Spec(gpus=2, seen=(boards(0.55, 0.0, history_ms=DAY_MS),)), "ThinHistory", "target 0.90 would fit less, the upper bound 1.81"),
        (Spec(gpus=2, seen=(boards(0.55, 0.0, history_ms=0),)), "ThinHistory", "the upper bound unbounded"),
        (Spec(gpus=2, seen=(boards(0.9, 0.0),)), "BelowSavingsFloor", "needs 1.48 of 2 boards"),
        (Spec(gpus=2, seen=(None,)), "EvidenceAbsent", "the need is not known"),
        (Spec(gpus=2, seen=(boards(0.5, 0.0),), workload={"template": -1}), "NoLever", "the template does not state the boards"),
        (Spec(gpus=2, seen=(boards(0.5, 0.0),), shape={"demand": {GPU: 3}}), "RolloutInProgress", "the template states 2, live pods hold 3"),
        (Spec(gpus=2, seen=(boards(0.5, 0.0),), container={"role": "init"}), "NoLever", "only an init container asks for boards"),
    ],
)  # fmt: skip
def test_no_smaller_step_has_a_reason(spec: Spec, reason: str, detail: str) -> None:
    found = propose(spec)

    assert isinstance(found, Ruling)
    assert reason == found.reason
    assert detail in found.detail


def test_two_containers_with_boards_are_advice_only() -> None:
    both = tuple(ContainerShape(name, limits={GPU: 1}) for name in "ab")
    found = propose(Spec(gpus=2, seen=(boards(0.5, 0.0),), shape={"containers": both}))

    assert isinstance(found, Ruling)
    assert (found.reason, found.detail) == ("NoLever", "2 containers ask for boards: advice only")


def test_a_hint_in_any_other_container_needs_consent_too() -> None:
    both = (ContainerShape("main", limits={GPU: 2}), ContainerShape("launcher", parallelism=("WORLD_SIZE",)))
    found = propose(Spec(gpus=2, seen=(boards(0.5, 0.0),), shape={"containers": both}))

    assert found.reason == "NeedsConsent"


@pytest.mark.parametrize(
    ("held", "remedy"), [(2, '"1,2"'), (3, '"1,2,3"'), (8, '"1,2,4,8"'), (6, '"1,2,4,6"')]
)
def test_the_remedy_is_an_annotation_to_copy(held: int, remedy: str) -> None:
    found = propose(Spec(gpus=held, seen=(boards(*[0.06] * held),)))

    assert isinstance(found, Ruling)
    assert f"set annotation {ALLOWED_GPUS}: {remedy} on the workload" == found.remedy


def test_the_ladder_of_the_policy_holds() -> None:
    spec = Spec(gpus=8, seen=(boards(0.5, 0.5, 0.1, *[0.0] * 5),))
    found, none = (
        propose(spec, resources={"steps": [1, 2, 4, 8]}),
        propose(spec, resources={"steps": [1, 16]}),
    )

    assert isinstance(found, Proposal)
    assert found.after == 4
    assert none.reason == "BelowSavingsFloor"


def test_a_load_that_came_within_the_window_is_not_outvoted_by_a_quiet_history() -> None:
    risen = tuple(Board(0.29, history_p95=0.0) for _ in range(4))
    found = propose(Spec(gpus=4, seen=(risen,), annotations=allowed("1,2,4")))

    assert isinstance(found, Proposal)
    assert found.after == 2


HOURLY = {"peak": 0.04, "history_p95": 0.0, "history_peak": 1.0, "history_busiest": 1.0}


@pytest.mark.parametrize(
    "seen", [boards(*[0.04] * 8, **HOURLY), boards(*[0.0] * 8, **{**HOURLY, "peak": 0.0})]
)
def test_consent_lifts_the_count_and_never_the_load(seen: tuple[Board, ...]) -> None:
    # each board is busy for 58 minutes a day, one after the other: no percentile shows it
    found = propose(Spec(gpus=8, seen=(seen,), annotations=allowed("1,2,4,8")))

    assert isinstance(found, Ruling)
    assert found.reason == "BelowSavingsFloor"


def test_short_scattered_spikes_do_not_hold_what_was_consented_to() -> None:
    spiky = boards(*[0.02] * 8, peak=0.04, history_p95=0.02, history_peak=1.0, history_busiest=0.05)
    found = propose(Spec(gpus=8, seen=(spiky,), annotations=allowed("1,2,4,8")))

    assert isinstance(found, Proposal)
    assert found.after == 1


@pytest.mark.parametrize(("days", "reason"), [(1, "ThinHistory"), (2.9, "ThinHistory"), (3, "RightSized")])
def test_boards_that_were_never_active_are_surplus_only_with_confidence(days: float, reason: str) -> None:
    quiet = boards(*[0.0] * 8, history_ms=round(days * DAY_MS), memory_mib=500)
    rows = plan(cluster(Spec(gpus=8, seen=(quiet,))), policy(methods={"idle": False}), NOW_MS).rows

    assert [reason] == [row.reason for row in rows]


def proposals(snapshot: Snapshot, rules: Policy) -> list[tuple[Proposal | Ruling, object]]:
    world = World(snapshot, rules, snapshot.taken_ms)
    return [(propose_right_size(world, judged), judged) for judged in judge_fleet(world)[0]]


@given(worlds(), policies())
def test_a_proposal_lowers_to_at_least_one_board_and_holds_the_upper_bound(
    snapshot: Snapshot, rules: Policy
) -> None:
    for found, judged in proposals(snapshot, rules):
        if isinstance(found, Proposal):
            need = judged.assessment.need  # type: ignore[attr-defined]
            assert 1 <= found.after < found.before
            assert need.upper <= found.after * 1000
            assert need.memory <= found.after * 1000
            for unit in judged.assessment.measured:  # type: ignore[attr-defined]
                lasted = sum(board.history_busiest for board in unit.boards)
                assert lasted / rules.need.target_utilization <= found.after * 10_000


@given(worlds(wild=False), policies(wild=False), st.sampled_from(["2d", "7d", "300d"]))
def test_wider_confidence_never_shrinks_more(snapshot: Snapshot, rules: Policy, unit: str) -> None:
    from autoscaler.model.policy import policy_from_dict, policy_to_dict  # noqa: PLC0415

    document = policy_to_dict(rules)
    document["need"]["confidenceUnit"] = unit
    for (sure, _), (wide, _) in zip(
        proposals(snapshot, rules), proposals(snapshot, policy_from_dict(document)), strict=True
    ):
        if isinstance(wide, Proposal):
            assert isinstance(sure, Proposal)
            assert sure.after <= wide.after


def test_boards_given_by_a_limit_range_default_are_told_from_a_rollout() -> None:
    default = LimitRangeRow("team", "limits", limits=(Limit("Container", default={GPU: 1}),))
    spec = Spec(gpus=1, seen=(boards(0.5, 0.0),), shape={"demand": {GPU: 2}})
    found = propose_right_size(*judge(cluster(spec, limit_ranges=(default,)), policy()))

    assert isinstance(found, Ruling)
    assert found.reason == "LimitRange"
    assert found.detail == "the template states 1, live pods hold 2: a LimitRange default may add the rest"
