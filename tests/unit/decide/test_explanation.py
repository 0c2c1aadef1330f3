import msgspec
import pytest
from build import NOW_MS, Board, Spec, boards, cluster, policy
from hypothesis import given
from worlds import policies, worlds

from autoscaler.decide import explain_fully, plan
from autoscaler.model.cluster import Control, PastAct, WorkloadRef
from autoscaler.model.evidence import ServingUse, Source
from autoscaler.model.policy import Policy
from autoscaler.model.quality import MOST_BOARDS, BoardFigures, Explanation, Query
from autoscaler.model.snapshot import Snapshot

REF = WorkloadRef("apps", "Deployment", "team", "web")


def explained(*specs: Spec, **tables: object) -> Explanation:
    snapshot = cluster(*specs, **tables)  # type: ignore[arg-type]
    (row,) = explain_fully(snapshot, policy(), NOW_MS, plan(snapshot, policy(), NOW_MS).rows[:1])
    assert row.explanation is not None
    return row.explanation


def test_each_query_stands_beside_the_figures_that_its_answer_became() -> None:
    source = Source(
        "dcgm",
        "engine",
        15_000,
        interval_measured=True,
        queries=("max(a)", "sum(a)", "max(b)"),
        query_names=("window.maximum", "history.total", "board.used"),
    )
    told = explained(Spec(seen=(boards(0.25, peak=0.5, age_ms=1_000),)), sources=(source,))

    assert told.queries == (
        Query("dcgm engine", "window.maximum", "max(a)", ("peak",)),
        Query("dcgm engine", "history.total", "sum(a)", ()),
        Query("dcgm engine", "board.used", "max(b)", ("memory_peak_mib",)),
    )
    assert told.boards == (
        BoardFigures(
            pod="web-0",
            container="main",
            device="gpu-team-web-0-0",
            source="dcgm engine",
            mean=0.25,
            peak=0.5,
            samples=120,
            newest_ms=NOW_MS - 1_000,
            history_p95=0.25,
            history_peak=0.5,
            history_busiest=0.25,
            history_samples=172_800,
            history_first_ms=NOW_MS - 30 * 86_400_000,
            memory_peak_mib=1_000,
            memory_total_mib=81_920,
        ),
    )
    assert told.store_ms == NOW_MS


def test_queries_whose_names_are_not_known_are_shown_without_figures() -> None:
    source = Source("dcgm", "engine", 15_000, interval_measured=True, queries=("max(a)",))

    assert explained(Spec(), sources=(source,)).queries == (Query("dcgm engine", "", "max(a)"),)


def test_figures_that_are_missing_are_no_zeros_and_marks_are_words() -> None:
    (board,) = explained(Spec(seen=((Board(6.5535, memory_mib=None, total_mib=None, flags=5),),))).boards

    assert (board.mean, board.peak, board.memory_peak_mib, board.memory_total_mib) == (None,) * 4
    assert board.marks == ("shared", "samples dropped")


def test_a_large_workload_shows_its_first_boards_and_says_how_many_more_there_are() -> None:
    told = explained(Spec(gpus=8, seen=(boards(*[0.5] * 8),) * 9))

    assert (len(told.boards), told.left_out) == (MOST_BOARDS, 8)


def test_servers_tell_their_signs() -> None:
    use = ServingUse(pod=0, server="vllm", samples=58, expected=60, queue_peak=2.0, counter_moves=5)
    told = explained(Spec(), telemetry={"serving": (use,)})

    assert told.servers == ("vllm on web-0: waiting 2, counter moves 5 (58 of 60 samples)",)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (
            Spec(seen=(boards(0.0),)),
            ("under-used or busy: any board over 1% (the highest peak is 0.00%)",),
        ),
        (
            Spec(seen=(boards(0.1, peak=0.4),)),
            (
                "idle: no board over 1% at any time of the window (the highest peak is 40.00%)",
                "busy: a mean use of 30% or more (it is 10.00%)",
            ),
        ),
        (
            Spec(gpus=2, seen=(boards(0.5, 0.3),)),
            (
                "under-used: a mean use under 30% (it is 40.00%)",
                "saturated: a unit at 97% or more (the fullest is at 40.00%)",
            ),
        ),
        (Spec(seen=(boards(0.99),)), ("busy: every unit under 97% (the fullest is at 99.00%)",)),
        (
            Spec(seen=(None, boards(0.5), None)),
            (
                "any verdict: of pod web-0 and 1 more: check that the exporter runs on the node (EvidenceAbsent)",
            ),
        ),
        (Spec(seen=(), replicas=1), ("any verdict: a pod that runs",)),
    ],
)
def test_what_would_change_the_verdict_is_told_beside_the_present_figures(
    spec: Spec, told: tuple[str, ...]
) -> None:
    found = explained(spec).verdict_changes
    if "EvidenceAbsent" in told[0]:
        assert [line.split(": ")[:2] for line in found] == [line.split(": ")[:2] for line in told]
        assert found[0].endswith("(EvidenceAbsent)")
    else:
        assert found == told


def test_the_commands_leave_it_alone_and_stop_everything() -> None:
    assert explained(Spec()).commands == (
        "leave it alone: kubectl annotate -n team deployment.apps web gpu-autoscaler.io/do-not-disrupt=true",
        "stop all acting: gpu-autoscaler pause",
    )


def test_what_was_done_can_be_put_back_and_a_pause_be_ended() -> None:
    told = explained(Spec(), acts=(PastAct(REF, NOW_MS - 1),), control=Control(paused="a person"))

    assert told.commands[1:] == (
        "put it back: gpu-autoscaler undo team/web",
        "let acting go on: gpu-autoscaler resume",
    )


def test_names_from_anywhere_are_quoted_in_commands() -> None:
    told = explained(Spec("web; rm -rf ~", kind="Pod", group=""), acts=())

    assert told.commands[0].startswith("leave it alone: kubectl annotate -n team pod 'web; rm -rf ~' ")


@given(worlds(), policies())
def test_every_row_can_be_explained_and_written(snapshot: Snapshot, rules: Policy) -> None:
    rows = plan(snapshot, rules, NOW_MS).rows
    told = explain_fully(snapshot, rules, NOW_MS, rows)

    assert [row.workload for row in told] == [row.workload for row in rows]
    for row in told:
        assert row.explanation is not None
        assert len(row.explanation.boards) <= MOST_BOARDS
        assert msgspec.json.decode(msgspec.json.encode(row), type=type(row)) == row
