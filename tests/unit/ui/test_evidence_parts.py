import json

import msgspec

from autoscaler.model.breaker import FleetHealth
from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.plan import ExplainRow, Fleet, Plan
from autoscaler.model.quality import BoardFigures, Explanation, Quality, Query
from autoscaler.model.reasons import Reason
from autoscaler.ui.views import Screen, explain_view, plan_view, report_view

STORE_MS = 1_700_000_000_000
WIDE = Screen(columns=200)
TOLD = Explanation(
    queries=(
        Query("dcgm engine", "window.maximum", "max_over_time(engine[30m])", ("peak",)),
        Query("dcgm engine", "window.newest", "timestamp(engine)", ("newest_ms",)),
        Query("dcgm engine", "board.used", "max_over_time(used[30m])", ("memory_peak_mib",)),
        Query("dcgm engine", "window.covered", "sum_over_time(engine[30m])", ("samples",)),
        Query("dcgm engine", "", "something(else)"),
        Query("dcgm util", "window.maximum", "max_over_time(util[30m])", ("peak",)),
    ),
    boards=(
        BoardFigures(
            "web-0", "main", "a", "dcgm engine", 0.125, 0.5, 120, STORE_MS - 9_000, memory_peak_mib=1_000
        ),
        BoardFigures("web-1", "", "", "dcgm engine", marks=("shared",)),
    ),
    left_out=3,
    store_ms=STORE_MS,
    servers=("vllm on web-0: waiting 0",),
    terms=("mode of idle: apply (apply by policy)",),
    verdict_changes=("busy: a mean use of 30% or more (it is 12.50%)",),
    commands=("stop all acting: gpu-autoscaler pause",),
)
ROW = ExplainRow(
    workload=WorkloadRef("apps", "Deployment", "team", "web"),
    resource="nvidia.com/gpu",
    units=2,
    held=2,
    verdict="unknown",
    reason=Reason.EVIDENCE_PARTIAL,
    detail="too few",
    role="serving",
    role_cause="kind",
    quality=Quality(
        judged=2,
        measured=1,
        profile="dcgm",
        signal="engine",
        interval_ms=15_000,
        coverage=0.5,
        age_ms=9_500,
        doubt="pod web-1: EvidencePartial: 50%",
    ),
    explanation=TOLD,
)


def lines(row: ExplainRow = ROW) -> list[str]:
    return [line.strip() for line in explain_view([row], screen=WIDE).splitlines()]


def following(heading: str, *, row: ExplainRow = ROW) -> list[str]:
    """The lines under a heading, up to the next empty one."""
    text = lines(row)
    start = text.index(heading) + 1
    return text[start : text.index("", start)] if "" in text[start:] else text[start:]


def test_each_query_is_followed_by_its_answer_for_each_board_of_its_source() -> None:
    assert following("queries and their answers") == [
        "dcgm engine  window.maximum",
        "max_over_time(engine[30m])",
        "= peak: 50.00 %, -",
        "dcgm engine  window.newest",
        "timestamp(engine)",
        "= newest: 9s ago, -",
        "dcgm engine  board.used",
        "max_over_time(used[30m])",
        "= memory_peak: 1000 MiB, -",
        "dcgm engine  window.covered",
        "sum_over_time(engine[30m])",
        "= samples: 120, 0",
        "dcgm engine",
        "something(else)",
        "dcgm util  window.maximum",
        "max_over_time(util[30m])",
    ]


def test_boards_are_a_table_with_dashes_for_what_is_not_known() -> None:
    heading, first, second, more = following("boards, as they were read")

    assert heading.split("  ")[0] == "POD"
    assert " ".join(first.split()) == (
        "web-0/main a 12.50 % 50.00 % 120 9s ago - - - 1000 MiB of - dcgm engine"
    )
    assert " ".join(second.split()) == "web-1 - - - 0 - - - - - of - dcgm engine, shared"
    assert more == "and 3 more"


def test_what_would_change_the_verdict_and_what_to_type_are_told() -> None:
    assert following("would change the verdict") == ["busy: a mean use of 30% or more (it is 12.50%)"]
    assert following("inference servers") == ["vllm on web-0: waiting 0"]
    assert following("commands") == ["stop all acting: gpu-autoscaler pause"]


def test_what_there_is_nothing_of_has_no_heading() -> None:
    text = lines(msgspec.structs.replace(ROW, explanation=Explanation()))

    assert not {"commands", "inference servers", "boards, as they were read"} & set(text)


def test_the_quality_of_the_data_is_told_in_one_line_with_what_is_missing() -> None:
    text = " ".join(" ".join(lines()).split())

    assert (
        "data dcgm engine, a sample every 15s (stated), coverage 50 %, newest sample 9s500ms old, "
        "1 of 2 units measured"
    ) in text
    assert "not measured pod web-1: EvidencePartial: 50%" in text


def test_an_explanation_is_whole_in_json() -> None:
    found = json.loads(explain_view([ROW], form="json"))["explanation"]

    assert msgspec.convert(found, Explanation) == TOLD


def test_a_wide_report_tells_the_data_quality_of_each_workload() -> None:
    fleet = Fleet(2, 2, 2000, 0, 2, 1, 0.5, 1)
    text = report_view(Plan(STORE_MS, "recommend", fleet, rows=(ROW,)), form="wide")
    line = next(line for line in text.splitlines() if line.startswith("team/web"))

    for part in (
        "1 of 2",
        "dcgm engine",
        "50 %",
        "9s500ms",
        "15s (stated)",
        "pod web-1: EvidencePartial: 50%",
    ):
        assert part in line


def test_a_frozen_fleet_is_told_at_the_head_of_plan_and_report() -> None:
    fleet = Fleet(2, 2, 2000, 0, 2, 1, 0.5, 1, health=FleetHealth(frozen="1 of 2 units measured"))
    made = Plan(STORE_MS, "recommend", fleet, rows=(ROW,))

    for text in (plan_view(made), report_view(made)):
        assert "! frozen, nothing is taken away: 1 of 2 units measured" in text


def test_what_holds_is_told_with_who_says_so() -> None:
    assert following("what holds for it") == ["mode of idle: apply (apply by policy)"]
