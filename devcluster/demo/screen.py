"""The live view, one line a row so that it fits a terminal: header, workloads, plan and refusals.

It is drawn from the plan that the service serves, with the words of the service's own tables.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from autoscaler.model.duration import format_duration
from autoscaler.model.plan import ExplainRow, Plan
from autoscaler.ui import figures
from autoscaler.ui.tables import cell, remedy

_NEVER_CUT = {"LEFT ALONE": 21, "NO.": 3, "WORKLOAD": 20, "REASON": 17, "PLAN": 26, "CHANGE": 21, "SAVES": 5}
"""Columns that keep their words on a narrow terminal."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the header states beside the plan."""

    api_server_url: str
    prometheus_url: str
    service_url: str
    elapsed_s: float


def frame(plan: Plan | None, facts: Facts, readiness: str) -> RenderableType:
    """One picture of the run; while there is no plan, what the service waits for."""
    head = _header(plan, facts)
    if plan is None:
        return Group(*head, Text(), Text("waiting for the first plan:"), cell(readiness))
    gap = Text()
    return Group(*head, gap, _workloads(plan.rows), gap, _actions(plan), gap, _refusals(plan))


def _header(plan: Plan | None, facts: Facts) -> list[Text]:
    clock = format_duration(round(facts.elapsed_s) * 1000)
    mode = plan.mode if plan else "starting"
    lines = [
        cell(f"gpu-autoscaler  mode {mode}  demo clock {clock}", "bold"),
        cell(f"service {facts.service_url}/api/v1/plan  metrics store {facts.prometheus_url}"),
        cell(f"API server {facts.api_server_url}"),
    ]
    if plan:
        fleet = plan.fleet
        lines.append(
            cell(
                f"boards {fleet.boards}  held {fleet.held}  needed {figures.boards(fleet.needed_milli)}  "
                f"reclaimable {figures.boards(fleet.reclaimable_milli)}  "
                f"units measured {fleet.measured} (coverage {figures.share(fleet.coverage)})",
                "bold",
            )
        )
        lines += [cell(f"! {fault}", "bold red") for fault in fleet.faults]
    return lines


def _table(*columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    for column in columns:
        least = _NEVER_CUT.get(column)
        table.add_column(column, no_wrap=True, overflow="ellipsis", min_width=least)
    return table


def _workloads(rows: Iterable[ExplainRow]) -> Table:
    table = _table("WORKLOAD", "KIND", "HELD", "USE", "NEED", "VERDICT", "REASON")
    for row in rows:
        table.add_row(
            cell(row.workload),
            cell(row.workload.kind),
            cell(row.held),
            cell(figures.share(row.use_ratio)),
            cell(figures.need_range(row.need)),
            cell(row.verdict),
            cell(row.reason, "bold green" if row.action else ""),
        )
    return table


def _actions(plan: Plan) -> Table:
    table = _table("PLAN", "CHANGE", "SAVES", "BECAUSE")
    for action in plan.actions:
        table.add_row(
            cell(action.target),
            cell(figures.change(action), "bold green"),
            cell(figures.boards(action.saved_milli_boards)),
            cell(action.because),
        )
    return table


def _refusals(plan: Plan) -> Table:
    groups: defaultdict[str, list[ExplainRow]] = defaultdict(list)
    for row in plan.rows:
        if row.action is None:
            groups[row.reason].append(row)
    table = _table("LEFT ALONE", "NO.", "WHY", "WHAT CHANGES THE ANSWER")
    for reason, members in sorted(groups.items()):
        table.add_row(cell(reason), cell(len(members)), cell(members[0].detail), cell(remedy(members[0])))
    return table
