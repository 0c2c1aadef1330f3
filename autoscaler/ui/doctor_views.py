"""An examination as people and scripts see it."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from autoscaler.model.findings import Examination, Finding, State
from autoscaler.ui.figures import UNKNOWN
from autoscaler.ui.tables import add_columns, cell, titled_table
from autoscaler.ui.views import Form, Screen, draw, spaced, structured

_STYLE: dict[State, str] = {"ok": "green", "warning": "yellow", "failed": "bold red", "skipped": "dim"}


def doctor_view(examination: Examination, *, form: Form = "table", screen: Screen | None = None) -> str:
    """Every check with its state, what was found, and what mends it."""
    if form in {"json", "yaml"}:
        document = {
            "server": examination.server,
            "user": examination.user,
            "store": examination.store,
            "failed": examination.failed,
            "checks": examination.findings,
        }
        return structured(document, form)
    wide = form == "wide"
    parts: list[RenderableType] = [_header(examination), _findings(examination.findings, wide=wide)]
    fixes = [finding for finding in examination.findings if finding.fix]
    if fixes:
        parts.append(_fixes(fixes))
    return draw(spaced(parts), wide=wide, screen=screen)


def _header(examination: Examination) -> Group:
    counts: dict[State, int] = {}
    for finding in examination.findings:
        counts[finding.state] = counts.get(finding.state, 0) + 1
    pairs = [("server", examination.server), ("as", examination.user), ("store", examination.store)]
    return Group(
        Text("  ").join(cell(f"{name} {value or UNKNOWN}") for name, value in pairs),
        Text("  ").join(cell(f"{state} {counts.get(state, 0)}", style) for state, style in _STYLE.items()),
    )


def _findings(findings: tuple[Finding, ...], *, wide: bool) -> Table:
    table = titled_table("checks", wide=wide)
    add_columns(table, ("ID", 3), ("CHECK", 12), ("STATE", 7), ("FOUND", 40))
    for finding in findings:
        table.add_row(
            cell(finding.id),
            cell(finding.name),
            cell(finding.state, _STYLE[finding.state]),
            cell(finding.found),
        )
    return table


def _fixes(findings: list[Finding]) -> Group:
    """Below the table, unfolded by cells: a fix is to be copied."""
    lines: list[RenderableType] = [Text("TO MEND", style="bold")]
    for finding in findings:
        first, *rest = finding.fix.split("\n")
        lines.append(cell(f"{finding.id:<4} {first}"))
        lines += [cell(f"     {line}") for line in rest]
    return Group(*lines)
