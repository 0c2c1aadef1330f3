"""Rich renderables made of plans and explain rows; the terminal, the run view and tests share them."""

from collections import defaultdict
from collections.abc import Iterable

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from autoscaler.model.plan import ExplainRow, Plan, Verdict
from autoscaler.model.quality import Quality
from autoscaler.model.reasons import CATALOGUE, Reason
from autoscaler.ui import figures
from autoscaler.ui.escape import printable

_VERDICT_STYLE: dict[Verdict, str] = {
    "busy": "green",
    "under-used": "yellow",
    "idle": "magenta",
    "saturated": "cyan",
    "unknown": "dim",
}
_NAMES_SHOWN = 3


def cell(value: object, style: str = "") -> Text:
    """Foreign text as a cell: no markup, no control characters."""
    return Text(printable(str(value)), style=style, overflow="fold")


def verdict_cell(verdict: Verdict) -> Text:
    """A verdict in its colour."""
    return cell(verdict, _VERDICT_STYLE[verdict])


def fleet_header(plan: Plan, facts: Iterable[tuple[str, str]] = ()) -> Group:
    """The cluster in three lines; ``facts`` are further pairs to state, such as URLs."""
    fleet = plan.fleet
    pairs = [("mode", plan.mode), ("taken", figures.moment(plan.taken_ms)), *facts]
    lines = [
        Text("  ").join(cell(f"{name} {value}") for name, value in pairs if value),
        cell(
            f"boards {fleet.boards}  held {fleet.held}  needed {figures.boards(fleet.needed_milli)}  "
            f"reclaimable {figures.boards(fleet.reclaimable_milli)}",
            style="bold",
        ),
        cell(
            f"workloads {fleet.workloads}  units {fleet.units}  measured {fleet.measured} "
            f"(coverage {figures.share(fleet.coverage)})"
        ),
    ]
    if fleet.health.frozen:
        lines.append(cell(f"! frozen, nothing is taken away: {fleet.health.frozen}", style="bold red"))
    lines += [cell(f"! {fault}", style="bold red") for fault in fleet.faults]
    return Group(*lines)


def plan_table(plan: Plan, *, wide: bool = False) -> Table:
    """The ordered actions: what, from what to what, what it saves, why, and what holds it back."""
    table = titled_table("plan", wide=wide)
    add_columns(table, ("WORKLOAD", 22), ("CHANGE", 10), ("SAVES", 5), ("BECAUSE", 24), ("HELD BY", 8))
    if wide:
        add_columns(
            table, ("KIND", 4), ("RESOURCE", 8), ("CONTAINER", 8), ("REASON", 8), ("ID", 8), ("ONLY IF", 8)
        )
    for action in plan.actions:
        cells = [
            cell(action.target),
            cell(figures.change(action), "bold"),
            cell(figures.boards(action.saved_milli_boards)),
            cell(action.because),
            cell(", ".join(action.held_by) or figures.UNKNOWN),
        ]
        if wide:
            cells += [
                cell(action.target.kind),
                cell(action.resource),
                cell(action.container),
                cell(action.reason),
                cell(action.id),
                cell("; ".join(action.preconditions)),
            ]
        table.add_row(*cells)
    if not plan.actions:
        table.add_row(Text("nothing to do"))
    return table


def workload_table(rows: Iterable[ExplainRow], *, wide: bool = False) -> Table:
    """One line a workload: held, use, need, verdict, reason and what its owner can do."""
    table = titled_table("workloads", wide=wide)
    add_columns(table, ("WORKLOAD", 22), ("UNITS", 5), ("HELD", 4), ("USE", 5), ("NEED", 11), ("VERDICT", 10))
    add_columns(table, ("REASON", 10), ("DETAIL" if wide else "CHANGE OR REMEDY", 14))
    if wide:
        for name in ("REMEDY", "KIND", "RESOURCE", "ROLE", "CHANGE"):
            add_columns(table, (name, 4))
        for name in ("MEASURED", "SOURCE", "COVERAGE", "AGE", "INTERVAL", "NOT MEASURED"):
            add_columns(table, (name, 4))
    for row in rows:
        cells = [
            cell(row.workload),
            cell(row.units),
            cell(row.held),
            cell(figures.share(row.use_ratio)),
            cell(figures.need_range(row.need)),
            verdict_cell(row.verdict),
            cell(row.reason, "bold" if row.action else ""),
            cell(row.detail if wide else _short(row)),
        ]
        if wide:
            cells += [
                cell(remedy(row)),
                cell(row.workload.kind),
                cell(row.resource),
                cell(f"{row.role} ({row.role_cause})" if row.role_cause else row.role),
                cell(figures.change(row.action) if row.action else figures.UNKNOWN),
                *_quality_cells(row.quality),
            ]
        table.add_row(*cells)
    return table


def _quality_cells(quality: Quality) -> list[Text]:
    """How good the figures are, or why there are none."""
    return [
        cell(f"{quality.measured} of {quality.judged}"),
        cell(figures.source(quality)),
        cell(figures.share(quality.coverage)),
        cell(figures.span(quality.age_ms)),
        cell(figures.interval(quality)),
        cell(quality.doubt or figures.UNKNOWN),
    ]


def refusal_table(plan: Plan, *, wide: bool = False) -> Table:
    """Workloads left alone, grouped by reason, with what would change the answer."""
    groups: defaultdict[Reason, list[ExplainRow]] = defaultdict(list)
    for row in plan.rows:
        if row.action is None:
            groups[row.reason].append(row)
    table = titled_table("left alone", wide=wide)
    add_columns(table, ("REASON", 12), ("NO.", 3), ("WORKLOADS", 18), ("MEANING", 20), ("REMEDY", 20))
    for reason, members in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        shown = members if wide else members[:_NAMES_SHOWN]
        names = [cell(row.workload) for row in shown]
        if more := len(members) - len(shown):
            names.append(Text(f"and {more} more"))
        remedies = list(dict.fromkeys(filter(None, (remedy(row) for row in members))))
        table.add_row(
            cell(reason, "bold"),
            cell(len(members)),
            Text(", " if wide else "\n").join(names),
            cell(CATALOGUE[reason].meaning),
            cell("; ".join(remedies if wide else remedies[:1]) or figures.UNKNOWN),
        )
    if not groups:
        table.add_row(Text("none"))
    return table


def remedy(row: ExplainRow) -> str:
    """What would change the answer: the row's own words, else the reason's general ones; empty for an action."""
    if row.remedy or row.action is not None:
        return row.remedy
    own = (refusal.remedy for refusal in row.refusals if refusal.reason == row.reason)
    return next(filter(None, own), CATALOGUE[row.reason].remedy)


def _short(row: ExplainRow) -> str:
    return figures.change(row.action) if row.action else remedy(row) or row.detail or figures.UNKNOWN


def titled_table(title: str, *, wide: bool) -> Table:
    """An empty table as all views have them."""
    return Table(
        title=title.upper(),
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
        expand=False,
        show_lines=False,
        header_style="dim" if not wide else "bold",
    )


def add_columns(table: Table, *columns: tuple[str, int]) -> None:
    """Columns with their least widths; longer text folds."""
    for name, width in columns:
        table.add_column(name, overflow="fold", min_width=width)
