"""Whole views as text: what a command prints. The same rows in four forms: table, wide, json, yaml."""

from collections.abc import Iterable
from dataclasses import dataclass
from io import StringIO
from typing import Any, Literal, TypeAlias

import msgspec
import yaml
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from autoscaler.model.plan import ExplainRow, Plan
from autoscaler.model.quality import Quality
from autoscaler.ui import figures, tables
from autoscaler.ui.escape import printable_json
from autoscaler.ui.evidence_parts import evidence_parts
from autoscaler.ui.tables import cell

Form: TypeAlias = Literal["table", "wide", "json", "yaml"]
WIDE_COLUMNS = 1_000
"""Wide means: no line is folded before this."""


@dataclass(frozen=True, kw_only=True)
class Screen:
    """What the output is written on."""

    columns: int = 120
    color: bool = False


def plan_view(plan: Plan, *, form: Form = "table", screen: Screen | None = None) -> str:
    """The plan: fleet, actions, and who is left alone for what reason."""
    if form in {"json", "yaml"}:
        return structured(plan, form)
    wide = form == "wide"
    parts: list[RenderableType] = [
        tables.fleet_header(plan),
        tables.plan_table(plan, wide=wide),
        tables.refusal_table(plan, wide=wide),
    ]
    return draw(spaced(parts), wide=wide, screen=screen)


def report_view(plan: Plan, *, form: Form = "table", screen: Screen | None = None) -> str:
    """Every workload with what it holds, uses and needs."""
    if form in {"json", "yaml"}:
        document = {"taken_ms": plan.taken_ms, "mode": plan.mode, "fleet": plan.fleet, "workloads": plan.rows}
        return structured(document, form)
    wide = form == "wide"
    parts: list[RenderableType] = [
        tables.fleet_header(plan),
        tables.workload_table(plan.rows, wide=wide),
        tables.refusal_table(plan, wide=wide),
    ]
    return draw(spaced(parts), wide=wide, screen=screen)


def explain_view(rows: Iterable[ExplainRow], *, form: Form = "table", screen: Screen | None = None) -> str:
    """All that is known of workloads of one name (several kinds may share it)."""
    shown = tuple(rows)
    if form in {"json", "yaml"}:
        return structured(shown[0] if len(shown) == 1 else shown, form)
    return draw(spaced([_explained(row) for row in shown]), wide=form == "wide", screen=screen)


def structured(document: Any, form: Form) -> str:
    """Deterministic JSON or YAML, free of control characters, ending in a line end."""
    if form == "yaml":
        plain = msgspec.to_builtins(document, order="deterministic")
        return yaml.safe_dump(plain, sort_keys=False, allow_unicode=False, width=110)
    text = msgspec.json.format(msgspec.json.encode(document, order="deterministic"), indent=2)
    return printable_json(text.decode()) + "\n"


def draw(renderable: RenderableType, *, wide: bool = False, screen: Screen | None = None) -> str:
    """The renderable as text, without trailing spaces; colour only where the screen has it."""
    screen = screen or Screen()
    stream = StringIO()
    console = Console(
        file=stream,
        width=WIDE_COLUMNS if wide else max(screen.columns, 40),
        force_terminal=screen.color,
        color_system="standard" if screen.color else None,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )
    console.print(renderable)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()).rstrip("\n") + "\n"


def _explained(row: ExplainRow) -> Group:
    facts = Table.grid(padding=(0, 2, 0, 0))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, value in _facts(row):
        if value:
            facts.add_row(Text(name), cell(value))
    title = cell(f"{row.workload.kind} {row.workload}", style="bold")
    parts: list[RenderableType] = [title, facts]
    if row.checks:
        parts += [Text(), Text("rules", style="bold"), _checks(row)]
    if row.refusals:
        parts += [Text(), Text("refused", style="bold"), _refusals(row)]
    if row.explanation is not None:
        parts += evidence_parts(row.explanation)
    elif row.queries:
        parts += [Text(), Text("queries", style="bold"), *(cell(f"  {query}") for query in row.queries)]
    return Group(*parts)


def _facts(row: ExplainRow) -> list[tuple[str, str]]:
    need = row.need
    facts = [
        ("decision", figures.decision(row)),
        ("reason", str(row.reason)),
        ("verdict", row.verdict),
        ("detail", row.detail),
        ("because", row.action.because if row.action else ""),
        ("only if", "; ".join(row.action.preconditions) if row.action else ""),
        ("role", f"{row.role} ({row.role_cause})" if row.role_cause else row.role),
        ("held", f"{row.held} of {row.resource} by {row.units} unit(s)"),
        (
            "use",
            f"{figures.share(row.use_ratio)} of the window's mean, coverage {figures.share(row.coverage)}",
        ),
        ("signal", row.signal),
        ("data", _data(row.quality)),
        ("not measured", row.quality.doubt),
    ]
    if need is not None:
        detail = (
            f"{figures.need_range(need)} (lower/target/upper); activity {figures.boards(need.activity)}, "
            f"memory {figures.boards(need.memory)}, most boards active at once {need.active_peak}, "
            f"confidence {need.confidence:.2f}"
        )
        facts.append(("need", detail))
    facts.append(("to change", tables.remedy(row)))
    return facts


def _data(quality: Quality) -> str:
    """How good the figures are; empty where nothing was read of it."""
    if not quality.signal:
        return ""
    return (
        f"{figures.source(quality)}, a sample every {figures.interval(quality)}, "
        f"coverage {figures.share(quality.coverage)}, newest sample {figures.span(quality.age_ms)} old, "
        f"{quality.measured} of {quality.judged} units measured"
    )


def _checks(row: ExplainRow) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    for check in row.checks:
        mark = Text("  pass", style="green") if check.passed else Text("  FAIL", style="bold red")
        grid.add_row(mark, cell(check.rule), cell(check.detail))
    return grid


def _refusals(row: ExplainRow) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    for refusal in row.refusals:
        considered: str = refusal.method or "any change"
        if refusal.before is not None and refusal.after is not None:
            considered += f" {refusal.before} -> {refusal.after}"
        grid.add_row(
            Text("  ") + cell(considered),
            cell(f"{refusal.reason} ({refusal.guard})", "bold"),
            cell(refusal.evidence),
            cell(refusal.remedy),
        )
    return grid


def spaced(parts: Iterable[RenderableType]) -> Group:
    """The parts with an empty line between them."""
    lines: list[RenderableType] = []
    for part in parts:
        lines += [part, Text()]
    return Group(*lines[:-1])
