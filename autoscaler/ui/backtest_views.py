"""A backtest as people and scripts see it: rows in a table or in JSON, or a page that can be kept."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from rich.console import RenderableType

from autoscaler.model.backtest import HorizontalReport, VerticalReport, VerticalRow
from autoscaler.ui.backtest_page import horizontal_page, vertical_page
from autoscaler.ui.backtest_plot import is_ours
from autoscaler.ui.tables import add_columns, cell, titled_table
from autoscaler.ui.views import Screen, draw, spaced, structured

BacktestForm: TypeAlias = Literal["table", "json", "html"]


def vertical_view(
    report: VerticalReport, *, form: BacktestForm = "table", screen: Screen | None = None
) -> str:
    """One row a policy; JSON is the list of rows and nothing else."""
    if form == "json":
        return structured(report.rows, "json")
    if form == "html":
        return vertical_page(report)
    parts: list[RenderableType] = [_vertical_header(report), _vertical_table(report.rows)]
    return draw(spaced(parts), screen=screen)


def horizontal_view(
    report: HorizontalReport, *, form: BacktestForm = "table", screen: Screen | None = None
) -> str:
    """One row a policy and service; JSON is the list of rows and nothing else."""
    if form == "json":
        return structured(report.rows, "json")
    if form == "html":
        return horizontal_page(report)
    table = titled_table("backtest: replicas", wide=False)
    add_columns(
        table, ("SERVICE", 12), ("POLICY", 12), ("HOURS X ORACLE", 8), ("UNSERVED %", 8), ("ACTS/H", 6)
    )
    for row in report.rows:
        table.add_row(
            cell(row.service),
            cell(row.policy, "bold" if is_ours(row.policy) else ""),
            cell(f"{row.replica_hours_x_oracle:.3f}"),
            cell(f"{row.unserved_pct:.3f}"),
            cell(f"{row.acts_per_hour:.2f}"),
        )
    return draw(table, screen=screen)


def _vertical_header(report: VerticalReport) -> RenderableType:
    first = report.rows[0] if report.rows else None
    pairs = [
        ("pods", str(report.pods)),
        ("pod-hours", f"{report.pod_hours:,.0f}"),
        ("board", f"{first.board_gib:g} GiB" if first else ""),
        ("gaps", "yes" if first and first.gaps else "no"),
        ("oracle frees", f"{report.oracle_freed_pct:g} %"),
        ("with nothing changed within an hour", f"{report.ceiling_pct:g} % of that"),
    ]
    return cell("  ".join(f"{name} {value}" for name, value in pairs))


def _vertical_table(rows: Sequence[VerticalRow]) -> RenderableType:
    table = titled_table("backtest: slices and idle boards", wide=False)
    add_columns(
        table, ("POLICY", 18), ("% OF ORACLE", 6), ("FREED %", 6), ("LOST %", 6), ("OOM", 3), ("BLIND", 5)
    )
    add_columns(table, ("WRONG/1000 H", 6), ("RESTARTS/DAY", 6), ("COLD STARTS/DAY", 6))
    for row in rows:
        table.add_row(
            cell(row.policy, "bold" if is_ours(row.policy) else ""),
            cell(f"{row.oracle_pct:.1f}"),
            cell(f"{row.freed_pct:.2f}"),
            cell(f"{row.lost_pct:.3f}"),
            cell(row.oom, "bold red" if row.oom else ""),
            cell(row.blind, "bold red" if row.blind else ""),
            cell(f"{row.wrong_per_1000_pod_hours:.1f}"),
            cell(f"{row.restarts_per_pod_day:.2f}"),
            cell(f"{row.cold_starts_per_pod_day:.2f}"),
        )
    return table
