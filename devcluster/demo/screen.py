"""The live view, one line a row so that it fits a terminal: header, ledger, workloads, plan and refusals.

It is drawn from the plan and the ledger that the service serves, with the words of the service's own tables.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from autoscaler.model.duration import format_duration
from autoscaler.model.ledger import Entry, Record, State
from autoscaler.model.plan import ExplainRow, Plan
from autoscaler.ui import figures
from autoscaler.ui.tables import cell, remedy

_ELASTIC = {
    "WORKLOAD": 3,
    "KIND": 1,
    "CHANGE": 2,
    "BECAUSE": 3,
    "HOW IT WENT": 2,
    "WHY": 3,
    "WHAT CHANGES THE ANSWER": 3,
}
"""Columns that share what the others leave where a line would be longer than the terminal is wide."""
_ANY_WIDTH = 10_000
_RECORDS_SHOWN = 8
_STATE_STYLE: dict[State, str] = {
    "intended": "yellow",
    "acted": "yellow",
    "verified": "green",
    "failed": "bold red",
    "undone": "cyan",
    "superseded": "magenta",
    "dropped": "dim",
    "gone": "dim",
}


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the header states beside the plan."""

    api_server_url: str
    prometheus_url: str
    service_url: str
    elapsed_s: float
    clock: str
    phase: str
    tells: str
    waits_for: Sequence[str] = ()


def frame(plan: Plan | None, entries: Iterable[Entry], facts: Facts, readiness: str) -> RenderableType:
    """One picture of the run; while there is no plan, what the service waits for."""
    head = _header(plan, facts)
    if plan is None:
        lacking = [line for line in readiness.splitlines() if not line.startswith("[+]")]
        return Group(*head, Text(), Text("waiting for the first plan:"), *map(cell, lacking))
    gap = Text()
    tables = [_workloads(plan.rows), _actions(plan), _refusals(plan)]
    records = latest_records(entries)
    if records:
        tables.insert(0, _ledger(records))
    return Group(*head, *(part for table in tables for part in (gap, _Fitted(table))))


@dataclass(frozen=True)
class _Fitted:
    """A table at its natural width, or cut to the terminal's: only then rich looks at the columns' ratios."""

    table: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        natural = Measurement.get(console, options.update(max_width=_ANY_WIDTH), self.table).maximum
        self.table.expand = natural > options.max_width
        yield self.table


def latest_records(entries: Iterable[Entry]) -> list[tuple[Entry, Record]]:
    """The newest acts of all workloads, the newest first."""
    found = [(entry, record) for entry in entries for record in entry.records]
    found.sort(key=lambda pair: (pair[1].intended_ms, pair[1].id), reverse=True)
    return found[:_RECORDS_SHOWN]


def _header(plan: Plan | None, facts: Facts) -> list[Text]:
    elapsed = format_duration(round(facts.elapsed_s) * 1000)
    mode = plan.mode if plan else "starting"
    waits = f"  (waits for {len(facts.waits_for)}: {facts.waits_for[0]})" if facts.waits_for else ""
    lines = [
        cell(
            f"gpu-autoscaler  mode {mode}  it is {facts.clock} in the story, {elapsed} since the start",
            "bold",
        ),
        cell(f"{facts.phase}: {facts.tells}{waits}", "cyan"),
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
        table.add_column(column, no_wrap=True, overflow="ellipsis", ratio=_ELASTIC.get(column))
    return table


def _ledger(records: Iterable[tuple[Entry, Record]]) -> Table:
    table = _table("LEDGER", "CHANGE", "STATE", "BY", "HOW IT WENT", "BECAUSE")
    for entry, record in records:
        action = record.action
        table.add_row(
            cell(entry.ref),
            cell(figures.change(action)),
            cell(record.state, _STATE_STYLE[record.state]),
            cell(record.actor),
            cell(record.detail or figures.UNKNOWN),
            cell(action.because),
        )
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
