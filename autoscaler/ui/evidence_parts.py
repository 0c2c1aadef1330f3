"""What an explanation shows of the evidence: queries with their answers, what would change the verdict, what to type."""

from collections.abc import Iterable

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from autoscaler.model.quality import BoardFigures, Explanation, Query
from autoscaler.ui import figures
from autoscaler.ui.tables import cell

_HEADINGS = (
    "POD",
    "BOARD",
    "MEAN",
    "PEAK",
    "SAMPLES",
    "NEWEST",
    "P95",
    "PAST PEAK",
    "BUSIEST",
    "MEMORY",
    "MARKS",
)
_HISTORY = "history_"


def evidence_parts(told: Explanation) -> list[RenderableType]:
    """The parts, each with its heading; what there is nothing of is left out."""
    parts: list[RenderableType] = []
    for heading, lines in (
        ("what holds for it", told.terms),
        ("would change the verdict", told.verdict_changes),
        ("inference servers", told.servers),
        ("commands", told.commands),
    ):
        if lines:
            parts += [Text(), Text(heading, style="bold"), *(cell(f"  {line}") for line in lines)]
    if told.boards:
        parts += [Text(), Text("boards, as they were read", style="bold"), _boards(told)]
    if told.left_out:
        parts.append(Text(f"  and {told.left_out} more"))
    if told.queries:
        parts += [Text(), Text("queries and their answers", style="bold")]
        parts += [line for query in told.queries for line in _query(query, told)]
    return parts


def _boards(told: Explanation) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_row(*(Text(f"  {name}" if name == "POD" else name, style="dim") for name in _HEADINGS))
    for board in told.boards:
        table.add_row(
            *(Text("  ") + cell(text) if i == 0 else cell(text) for i, text in enumerate(_cells(board, told)))
        )
    return table


def _cells(board: BoardFigures, told: Explanation) -> tuple[str, ...]:
    return (
        "/".join(filter(None, (board.pod, board.container))),
        board.device or figures.UNKNOWN,
        *(_figure(name, board, told) for name in ("mean", "peak", "samples", "newest_ms")),
        *(_figure(f"{_HISTORY}{name}", board, told) for name in ("p95", "peak", "busiest")),
        f"{_mib(board.memory_peak_mib)} of {_mib(board.memory_total_mib)}",
        ", ".join((board.source, *board.marks)),
    )


def _mib(amount: int | None) -> str:
    return figures.UNKNOWN if amount is None else f"{amount} MiB"


def _figure(name: str, board: BoardFigures, told: Explanation) -> str:
    """One figure of a board as people read it."""
    value: float | int | None = getattr(board, name)
    if name.endswith("_mib"):
        return _mib(None if value is None else int(value))
    if name.endswith("_ms"):
        return (
            figures.UNKNOWN
            if value is None or value < 0
            else f"{figures.span(told.store_ms - int(value))} ago"
        )
    if name.endswith("samples"):
        return str(value)
    return figures.UNKNOWN if value is None else f"{value * 100:.2f} %"


def _query(query: Query, told: Explanation) -> Iterable[RenderableType]:
    yield cell(f"  {query.source}  {query.asks}".rstrip(), style="dim")
    yield cell(f"    {query.text}")
    for name in query.figures:
        answers = [_figure(name, board, told) for board in told.boards if board.source == query.source]
        if answers:
            yield cell(f"    = {name.removesuffix('_ms').removesuffix('_mib')}: {', '.join(answers)}")
