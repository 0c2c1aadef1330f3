import json
from typing import Any

import msgspec
import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.plan import (
    Action,
    Check,
    ExplainRow,
    Fleet,
    Need,
    Plan,
    Refusal,
    encode_plan,
)
from autoscaler.model.quality import Quality
from autoscaler.model.reasons import Reason
from autoscaler.ui import figures
from autoscaler.ui.escape import printable, printable_json
from autoscaler.ui.views import Screen, explain_view, plan_view, report_view

GPU = "gpuconfig.com/gpu"
HOSTILE = "evil[bold red]x[/]\x1b[2J\u202e\u009b31m\u2028end"


def ref(name: str, kind: str = "Deployment") -> WorkloadRef:
    return WorkloadRef("apps", kind, "ml-workloads", name)


def shrink(**changes: Any) -> Action:
    values: dict[str, Any] = {
        "id": "a1b2c3",
        "method": "right-size",
        "reason": Reason.RIGHT_SIZED,
        "lever": "template",
        "target": ref("inference"),
        "uid": "uid-1",
        "resource_version": "5",
        "resource": GPU,
        "container": "server",
        "before": 2,
        "after": 1,
        "saved_milli_boards": 1000,
        "because": "upper bound 0.9 fits one board",
        "preconditions": ("uid is uid-1", "resourceVersion is 5"),
        "held_by": (Reason.MODE_RECOMMEND,),
    }
    return Action(**{**values, **changes})


def row(name: str = "inference", **changes: Any) -> ExplainRow:
    values: dict[str, Any] = {
        "workload": ref(name),
        "resource": GPU,
        "units": 1,
        "held": 2,
        "verdict": "unknown",
        "reason": Reason.EVIDENCE_ABSENT,
        "detail": "no sample of 2 boards",
        "role": "serving",
        "role_cause": "kind Deployment",
    }
    return ExplainRow(**{**values, **changes})


def sized() -> ExplainRow:
    return row(
        verdict="under-used",
        reason=Reason.RIGHT_SIZED,
        detail="mean use 14 % is under 30 %",
        use_ratio=0.14,
        coverage=1.0,
        need=Need(500, 600, 900, 600, 300, 1, 10.0),
        signal="gpu_gpu_utilization",
        quality=Quality(
            judged=1,
            measured=1,
            profile="seed",
            signal="gpu_gpu_utilization",
            interval_ms=15_000,
            interval_measured=True,
            coverage=1.0,
            age_ms=9_000,
        ),
        queries=('max_over_time(gpu_gpu_utilization{job="x"}[30m])',),
        action=shrink(),
        checks=(Check("evidence", True, "coverage 1.00 >= 0.95"), Check("quota", False, "8 + 1 > 8")),
    )


def plan(*rows: ExplainRow, faults: tuple[str, ...] = ()) -> Plan:
    return Plan(
        taken_ms=1_700_000_000_000,
        mode="recommend",
        fleet=Fleet(24, 18, 7300, 1000, 12, 9, 0.75, len(rows), faults),
        actions=tuple(row.action for row in rows if row.action),
        rows=rows,
    )


def test_the_plan_shows_before_after_saving_cause_and_what_holds_it() -> None:
    text = plan_view(plan(sized()), screen=Screen(columns=120))

    line = next(line for line in text.splitlines() if line.startswith("ml-workloads/inference"))
    assert line.split("  ")[0] == "ml-workloads/inference"
    assert "boards per pod 2 -> 1" in line
    assert "upper bound 0.9 fits one board" in line
    assert "ModeRecommend" in line


def test_the_report_shows_held_use_need_verdict_and_reason() -> None:
    text = report_view(plan(sized()), screen=Screen(columns=120))

    line = next(line for line in text.splitlines() if line.startswith("ml-workloads/inference"))
    assert [part.strip() for part in line.split("  ") if part.strip()][1:7] == [
        "1",
        "2",
        "14 %",
        "0.5/0.6/0.9",
        "under-used",
        "RightSized",
    ]


def test_refusals_are_grouped_by_reason_with_meaning_and_remedy() -> None:
    rows = [row(f"app-{index}") for index in range(5)]
    rows.append(row("trainer", reason=Reason.NEEDS_CONSENT, remedy="set the annotation"))

    text = plan_view(plan(*rows), screen=Screen(columns=500))

    groups = text.split("LEFT ALONE")[1].splitlines()
    assert "EvidenceAbsent  5    ml-workloads/app-0" in groups[3]
    assert "unknown is not idle" in groups[3]
    assert [line.split()[0] for line in groups[4:6]] == ["ml-workloads/app-1", "ml-workloads/app-2"]
    assert groups[6].strip() == "and 2 more"
    assert "set the annotation" in groups[7]


def test_a_missing_figure_is_a_dash_and_never_a_zero() -> None:
    text = report_view(plan(row()), screen=Screen(columns=120))

    line = next(line for line in text.splitlines() if line.startswith("ml-workloads/inference"))
    assert line.split()[3:5] == ["-", "-"]
    assert figures.share(None) == figures.need_range(None) == "-"


def test_the_explanation_tells_verdict_rules_queries_and_what_would_change_it() -> None:
    refusal = Refusal(
        ref("inference"), "idle", Reason.COOLDOWN, "cooldown", "changed 5m ago", "wait 55m", 3, 1
    )
    text = explain_view([msgspec.structs.replace(sized(), refusals=(refusal,), remedy="undo with kubectl")])

    for part in (
        "Deployment ml-workloads/inference",
        "boards per pod 2 -> 1 (RightSized; held by ModeRecommend)",
        "uid is uid-1; resourceVersion is 5",
        "pass  evidence  coverage 1.00 >= 0.95",
        "FAIL  quota     8 + 1 > 8",
        'max_over_time(gpu_gpu_utilization{job="x"}[30m])',
        "0.5/0.6/0.9 (lower/target/upper)",
        "idle 3 -> 1  Cooldown (cooldown)  changed 5m ago  wait 55m",
        "undo with kubectl",
    ):
        assert part in text


@pytest.mark.parametrize("columns", [80, 100, 120])
def test_tables_fit_the_screen(columns: int) -> None:
    rows = (sized(), row("a-workload-with-a-rather-long-name-" + "x" * 60, detail="d" * 300))

    for text in (
        plan_view(plan(*rows), screen=Screen(columns=columns)),
        report_view(plan(*rows), screen=Screen(columns=columns)),
    ):
        assert max(map(len, text.splitlines())) <= columns


def test_wide_shows_everything_on_one_line_each() -> None:
    text = report_view(plan(sized()), form="wide", screen=Screen(columns=80))

    line = next(line for line in text.splitlines() if line.startswith("ml-workloads/inference"))
    for part in (
        "mean use 14 % is under 30 %",
        "seed gpu_gpu_utilization",
        "serving (kind Deployment)",
        GPU,
        "1 of 1",
        "100 %",
        "9s",
        "15s (measured)",
    ):
        assert part in line


@pytest.mark.parametrize("form", ["table", "wide", "json", "yaml"])
def test_hostile_names_cannot_write_to_the_terminal(form: Any) -> None:
    nasty = row(HOSTILE, detail=HOSTILE, remedy=HOSTILE, signal=HOSTILE, queries=(HOSTILE,))
    whole = plan(nasty, faults=(HOSTILE,))
    texts = [
        plan_view(whole, form=form, screen=Screen(columns=80, color=False)),
        report_view(whole, form=form),
        explain_view([nasty], form=form),
    ]

    for text in texts:
        assert all(character.isprintable() or character == "\n" for character in text)


def test_markup_in_names_is_shown_and_not_obeyed() -> None:
    text = explain_view([row("[bold red]x[/] :smile: [link=http://evil]")], screen=Screen(color=True))

    assert "[bold red]x[/] :smile: [link=http://evil]" in text


def test_colour_is_written_only_where_the_screen_has_it() -> None:
    assert "\x1b[" in report_view(plan(row()), screen=Screen(color=True))
    assert "\x1b[" not in report_view(plan(row()), screen=Screen(color=False))


def test_json_is_the_plan_itself_and_deterministic() -> None:
    whole = plan(sized(), row("other"))

    text = plan_view(whole, form="json")

    assert json.loads(text) == json.loads(encode_plan(whole))
    assert text == plan_view(whole, form="json")


def test_yaml_reads_back_as_the_plan() -> None:
    whole = plan(sized(), row(HOSTILE))

    assert yaml.safe_load(plan_view(whole, form="yaml")) == json.loads(json.dumps(msgspec.to_builtins(whole)))


def test_hostile_json_still_reads_back_the_same() -> None:
    whole = plan(row(HOSTILE + "\U000e0041"))

    assert json.loads(plan_view(whole, form="json")) == json.loads(encode_plan(whole))


def test_one_workload_is_an_object_and_several_are_a_list() -> None:
    assert isinstance(json.loads(explain_view([row()], form="json")), dict)
    assert isinstance(json.loads(explain_view([row(), row()], form="json")), list)


def test_an_empty_plan_says_so() -> None:
    text = plan_view(plan())

    assert "nothing to do" in text
    assert "none" in text


def test_printable_spells_out_control_and_direction_characters() -> None:
    assert printable("a\x00\n\x9b\u202e\U000e0041b") == "a\\x00\\x0a\\x9b\\u202e\\U000e0041b"
    assert printable("grün Ω 漢字") == "grün Ω 漢字"
    assert len(printable("x" * 10_000)) < 2_100


def test_printable_json_escapes_outside_the_basic_plane_as_a_pair() -> None:
    assert json.loads(printable_json('"\U000e0041"')) == "\U000e0041"


@pytest.mark.parametrize("columns", [80, 120])
def test_the_views_read_well(columns: int, snapshot: SnapshotAssertion) -> None:
    rows = (sized(), row("trainer", reason=Reason.NEEDS_CONSENT, held=4, use_ratio=0.12), row("blind"))
    whole, screen = plan(*rows, faults=("may not read ResourceQuota: no right",)), Screen(columns=columns)

    assert plan_view(whole, screen=screen) == snapshot(name="plan")
    assert report_view(whole, screen=screen) == snapshot(name="report")
    assert explain_view(rows[:1], screen=screen) == snapshot(name="explain")


def test_a_time_that_no_calendar_has_is_shown_as_the_number_it_is() -> None:
    assert figures.moment(0) == "1970-01-01 00:00:00 UTC"
    for absurd in (-1, 2**63 - 1, 10**30):
        assert figures.moment(absurd) == f"{absurd} ms"
