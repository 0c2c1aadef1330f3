"""What was done, as people and scripts see it: the ledger's entries, and how the acts of a command ended."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.ledger import Entry, Freed, Record
from autoscaler.ui import figures
from autoscaler.ui.escape import printable
from autoscaler.ui.tables import add_columns, cell, titled_table
from autoscaler.ui.views import Form, Screen, draw, spaced, structured

_STATE_STYLE = {"verified": "green", "failed": "bold red", "intended": "yellow", "acted": "cyan"}

_FATE_STYLE = {"used": "green", "waiting": "cyan", "taken-back": "yellow"}


class LedgerSheet(msgspec.Struct, frozen=True):
    """The ledger as it was read at a time; `unreadable` says of a workload's uid why its entry is not shown.

    `paused` and `fault` are why nothing is done at all.
    """

    read_ms: int
    entries: tuple[Entry, ...] = ()
    paused: str = ""
    fault: str = ""
    unreadable: Mapping[str, str] = {}


class Result(msgspec.Struct, frozen=True):
    """How one act of a command ended; `change` is as `figures` words it, `because` is the server's or a guard's."""

    workload: WorkloadRef
    change: str
    result: str
    reason: str = ""
    because: str = ""
    action_id: str = ""


def ledger_view(sheet: LedgerSheet, *, form: Form = "table", screen: Screen | None = None) -> str:
    """What holds a value of ours, who is left alone, and every act, the newest first."""
    if form in {"json", "yaml"}:
        return structured(sheet, form)
    wide = form == "wide"
    faults = [cell(f"! {fault}", "bold red") for fault in _faults(sheet)]
    parts: list[RenderableType] = [Group(*faults)] if faults else []
    parts += [ours_table(sheet, wide=wide), acts_table(sheet.entries, wide=wide)]
    if any(True for _ in _freed(sheet.entries)):
        parts.append(freed_table(sheet.entries, wide=wide))
    return draw(spaced(parts), wide=wide, screen=screen)


def ours_table(sheet: LedgerSheet, *, wide: bool = False) -> Table:
    """Workloads that hold a value of ours, that others put back, or that are left alone for now."""
    table = titled_table("ours now", wide=wide)
    add_columns(table, ("WORKLOAD", 14), ("OURS NOW", 10), ("REVERSED", 8), ("FAILED", 6))
    add_columns(table, ("LEFT ALONE UNTIL", 10), ("WHY", 12))
    if wide:
        add_columns(table, ("KIND", 4), ("UID", 8), ("FIELDS", 8))
    shown = [entry for entry in sheet.entries if _matters(entry, sheet.read_ms)]
    for entry in sorted(shown, key=lambda one: (one.ref.namespace, one.ref.name, one.ref, one.uid)):
        until = figures.moment(entry.not_before_ms) if entry.not_before_ms > sheet.read_ms else ""
        cells = [
            cell(entry.ref),
            cell("; ".join(map(figures.ours, entry.changes)) or figures.UNKNOWN, "bold"),
            cell(entry.reversals),
            cell(entry.failures),
            cell(until or figures.UNKNOWN),
            cell(entry.why or figures.UNKNOWN),
        ]
        if wide:
            cells += [
                cell(entry.ref.kind),
                cell(entry.uid),
                cell("; ".join(change.field for change in entry.changes) or figures.UNKNOWN),
            ]
        table.add_row(*cells)
    if not shown:
        table.add_row(Text("nothing"))
    return table


def acts_table(entries: Iterable[Entry], *, wide: bool = False) -> Table:
    """One line for each act, the newest first."""
    table = titled_table("acts", wide=wide)
    add_columns(table, ("WHEN", 10), ("WORKLOAD", 10), ("CHANGE", 10), ("STATE", 8), ("BY", 7))
    add_columns(table, ("REASON", 10), ("DETAIL", 8))
    if wide:
        for name in ("KIND", "RESOURCE", "CONTAINER", "TERM", "ACCEPTED", "READY", "ENDED", "ID", "UNDOES"):
            add_columns(table, (name, 4))
    records = [record for entry in entries for record in entry.records]
    records.sort(key=lambda one: (-one.intended_ms, one.action.target, one.id))
    for record in records:
        table.add_row(*_act_cells(record), *(_wide_act_cells(record) if wide else ()))
    if not records:
        table.add_row(Text("none"))
    return table


def freed_table(entries: Iterable[Entry], *, wide: bool = False) -> Table:
    """What became of the boards that verified acts freed, the newest act first."""
    table = titled_table("freed boards", wide=wide)
    add_columns(
        table, ("FREED BY", 10), ("BOARDS", 6), ("NODE", 10), ("NOW", 8), ("WORKLOAD", 10), ("SINCE", 10)
    )
    for record, row in sorted(_freed(entries), key=lambda one: (-one[0].intended_ms, one[0].id)):
        table.add_row(
            cell(record.action.target),
            cell(row.boards),
            cell(row.node),
            cell(row.fate, _FATE_STYLE.get(row.fate, "")),
            cell(row.by or figures.UNKNOWN),
            cell(figures.moment(row.at_ms)),
        )
    return table


def _freed(entries: Iterable[Entry]) -> Iterator[tuple[Record, Freed]]:
    for entry in entries:
        for record in entry.records:
            if record.state == "verified":
                yield from ((record, row) for row in record.freed if row.fate != "held")


def result_line(result: Result) -> str:
    """One act of a command on one line."""
    why = ": ".join(filter(None, (result.reason, result.because)))
    words = f"{result.result:<10} {result.workload.kind} {result.workload}  {result.change}"
    return printable(f"{words}  {why}" if why else words) + "\n"


def results_view(results: Sequence[Result], form: Form) -> str:
    """The same for scripts."""
    return structured(results, form)


def _act_cells(record: Record) -> list[Text]:
    return [
        cell(figures.moment(record.intended_ms)),
        cell(record.action.target),
        cell(figures.change(record.action), "bold"),
        cell(record.state, _STATE_STYLE.get(record.state, "")),
        cell(record.actor),
        cell(record.action.reason),
        cell(record.detail or record.action.because),
    ]


def _wide_act_cells(record: Record) -> list[Text]:
    action = record.action
    return [
        cell(action.target.kind),
        cell(action.resource),
        cell(action.container),
        cell(record.term or figures.UNKNOWN),
        *(
            cell(figures.moment(time_ms) if time_ms >= 0 else figures.UNKNOWN)
            for time_ms in (record.acted_ms, record.ready_ms, record.closed_ms)
        ),
        cell(record.id),
        cell(record.undoes or figures.UNKNOWN),
    ]


def _matters(entry: Entry, now_ms: int) -> bool:
    return bool(entry.changes or entry.reversals or entry.failures or entry.not_before_ms > now_ms)


def _faults(sheet: LedgerSheet) -> list[str]:
    unreadable = [sheet.unreadable[uid] for uid in sorted(sheet.unreadable)]
    return list(dict.fromkeys(filter(None, [sheet.paused, sheet.fault, *unreadable])))
