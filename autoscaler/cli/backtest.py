"""The commands that ask what would have happened: policies over recorded load, with no cluster at hand."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TypeVar

from cyclopts import App, Parameter
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from autoscaler.cli.terminal import screen_of_stdout, write_out
from autoscaler.model.backtest import HorizontalReport
from autoscaler.replay.catalogue import VERTICAL
from autoscaler.replay.drawn import run_drawn
from autoscaler.replay.horizontal import run
from autoscaler.replay.policies_horizontal import POLICIES as HORIZONTAL
from autoscaler.replay.report import run_vertical
from autoscaler.replay.traces import DirectoryTraces, TraceError
from autoscaler.service import exit_codes
from autoscaler.service.faults import ConfigError, ServiceError
from autoscaler.ui.backtest_views import BacktestForm, horizontal_view, vertical_view
from autoscaler.ui.escape import printable

backtest = App(
    name="backtest",
    help="What this program's policies and other tools' would have done to recorded load, and what an oracle could.",
)

TracesOption = Annotated[
    Path, Parameter(help="directory with recorded load; what it holds is in docs/backtest.md")
]
OutputOption = Annotated[BacktestForm, Parameter(name=["--output", "-o"], help="table, json or html")]
PolicyNames = Annotated[
    tuple[str, ...], Parameter(name="--policy", negative="", help="only this one; may be given several times")
]
Made = TypeVar("Made")


@backtest.command
def vertical(
    *,
    traces: TracesOption,
    output: OutputOption = "table",
    board_gib: Annotated[float, Parameter(help="memory of a whole board")] = 48.0,
    gaps: Annotated[
        bool, Parameter(negative="", help="hide a tenth of the samples, in holes of 20 minutes")
    ] = False,
    policy: PolicyNames = (),
) -> int:
    """Slices and idle boards: how much board time each policy gives back, and what it breaks."""
    if not 0 < board_gib < 1_000_000:
        raise ConfigError(f"--board-gib is the memory of a board in GiB, got {board_gib:g}")
    chosen = _chosen(VERTICAL, policy)
    try:
        source = DirectoryTraces(traces)
        with _bar() as show:
            report = run_vertical(
                source,
                chosen,
                board_gib=board_gib,
                gaps=gaps,
                keep=output == "html",
                progress=lambda done, total: show("replaying", done, total),
            )
    except TraceError as error:
        raise ServiceError(str(error)) from None
    write_out(vertical_view(report, form=output, screen=screen_of_stdout(os.environ)))
    return exit_codes.OK


@backtest.command
def horizontal(*, traces: TracesOption, output: OutputOption = "table", policy: PolicyNames = ()) -> int:
    """Replicas of serving workloads: what each policy pays against an oracle, and what it leaves unserved."""
    chosen = _chosen(HORIZONTAL, policy)
    try:
        with _bar() as show:
            if output == "html":
                report = run_drawn(traces, chosen, show)
            else:
                report = HorizontalReport(rows=tuple(run(traces, chosen, show)))
    except TraceError as error:
        raise ServiceError(str(error)) from None
    write_out(horizontal_view(report, form=output, screen=screen_of_stdout(os.environ)))
    return exit_codes.OK


def _chosen(known: Mapping[str, Made], names: tuple[str, ...]) -> Mapping[str, Made]:
    """The policies of these names, all without names; raises `ConfigError` for a name that is none."""
    for name in names:
        if name not in known:
            raise ConfigError(f"--policy {name}: there is none of that name, only {', '.join(known)}")
    return {name: make for name, make in known.items() if not names or name in names}


@contextmanager
def _bar() -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar on stderr if that is a terminal: told what is under way, steps done and steps in all."""
    if not sys.stderr.isatty():
        yield lambda _what, _done, _total: None
        return
    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        bar = bars.add_task("", total=None)
        yield lambda what, done, total: bars.update(
            bar, description=printable(what), completed=done, total=total
        )
