"""What is made of one scrape of an exporter, for people and for programs."""

from collections.abc import Iterable

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from autoscaler.model.exposition import ExpositionReport, PodJudged, ProfileRead, SignalRead
from autoscaler.ui import figures
from autoscaler.ui.tables import add_columns, cell, titled_table, verdict_cell
from autoscaler.ui.views import Form, Screen, draw, spaced, structured

_SIGNALS_SHOWN = 3


def exposition_view(report: ExpositionReport, *, form: Form = "table", screen: Screen | None = None) -> str:
    """The whole report: how metrics are read, each pod's verdict, what nobody owns, what was left out."""
    if form in {"json", "yaml"}:
        return structured(report, form)
    wide = form == "wide"
    parts: list[RenderableType] = [_profiles(report.profiles, wide=wide), _pods(report.pods, wide=wide)]
    if report.unowned:
        parts.append(_unowned(report, wide=wide))
    if report.ghosts:
        parts.append(_ghosts(report, wide=wide))
    parts += [cell(f"dropped: {count} {reason}") for reason, count in report.dropped.items()]
    parts.append(Text("\n").join(cell(f"note: {note}") for note in report.notes))
    return draw(spaced(parts), wide=wide, screen=screen)


def _profiles(rows: Iterable[ProfileRead], *, wide: bool) -> Table:
    table = titled_table("profiles", wide=wide)
    add_columns(table, ("PROFILE", 10), ("METRIC", 24), ("SCALE", 6), ("UNIT", 6), ("OWNER LABELS", 12))
    add_columns(table, ("DEVICE LABEL", 8), ("SERIES", 3))
    for row in rows:
        name = row.profile if row.live else f"{row.profile} (none of its signals has a series)"
        owner = ", ".join(row.owner_labels) or figures.UNKNOWN
        for number, metric in enumerate(row.metrics):
            first = (
                cell(name, "bold"),
                cell(owner),
                cell(row.device_label or figures.UNKNOWN),
                cell(row.series),
            )
            profile, *rest = first if number == 0 else (Text(), Text(), Text(), Text())
            table.add_row(profile, cell(metric.metric), cell(metric.scale), cell(metric.unit), *rest)
    if not table.row_count:
        table.add_row(Text("no metric of any profile"))
    return table


def _pods(rows: Iterable[PodJudged], *, wide: bool) -> Table:
    table = titled_table("pods", wide=wide)
    add_columns(
        table, ("POD", 22), ("HOLDS", 10), ("VERDICT", 10), ("REASON", 12), ("DETAIL", 20), ("SIGNALS", 20)
    )
    for row in rows:
        table.add_row(
            cell(f"{row.namespace}/{row.pod}"),
            cell(", ".join(f"{count} {name}" for name, count in row.held.items())),
            verdict_cell(row.verdict),
            cell(row.reason, "bold"),
            cell(row.detail),
            cell(_signals(row.signals, wide=wide)),
        )
    if not table.row_count:
        table.add_row(Text("no pod holds accelerators"))
    return table


def _signals(rows: tuple[SignalRead, ...], *, wide: bool) -> str:
    shown = rows if wide else rows[:_SIGNALS_SHOWN]
    texts = [
        f"{row.signal} {_value(row)}{f' ({row.device})' if wide and row.device else ''}" for row in shown
    ]
    more = len(rows) - len(shown)
    return "; ".join([*texts, *([f"{more} more"] if more else [])]) or figures.UNKNOWN


def _value(row: SignalRead) -> str:
    return row.value if isinstance(row.value, str) else f"{row.value:g} {row.unit}"


def _unowned(report: ExpositionReport, *, wide: bool) -> Table:
    table = titled_table("devices without owner", wide=wide)
    add_columns(table, ("DEVICE", 20), ("NODE", 12), ("PEAK", 6))
    for row in report.unowned:
        table.add_row(cell(row.device), cell(row.node or figures.UNKNOWN), cell(figures.share(row.peak)))
    return table


def _ghosts(report: ExpositionReport, *, wide: bool) -> Table:
    table = titled_table("series of pods that the objects do not have", wide=wide)
    add_columns(table, ("POD", 22), ("PROFILE", 10), ("DEVICES", 20))
    for row in report.ghosts:
        devices = ", ".join(row.devices) or figures.UNKNOWN
        table.add_row(cell(f"{row.namespace or figures.UNKNOWN}/{row.pod}"), cell(row.profile), cell(devices))
    return table
