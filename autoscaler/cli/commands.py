"""The commands. Each reads its input (a live cluster or a saved snapshot), plans, and prints one view of the plan."""

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import App, CycloptsError, Parameter

from autoscaler import __version__
from autoscaler.cli import acting
from autoscaler.cli.backtest import backtest
from autoscaler.cli.doctor import doctor
from autoscaler.cli.options import (
    FormOption,
    PolicyOption,
    namespace_and_name,
    policy_of,
    run_once,
    settings_of,
)
from autoscaler.cli.protecting import protect
from autoscaler.cli.terminal import progress, say, screen_of_stdout, write_out
from autoscaler.decide import explain_fully
from autoscaler.decide import plan as decide_plan
from autoscaler.model.plan import Plan
from autoscaler.model.policy import Policy
from autoscaler.model.snapshot import Snapshot, encode_snapshot
from autoscaler.service import exit_codes
from autoscaler.service.app import run_service
from autoscaler.service.faults import ServiceError, WorkloadNotFoundError
from autoscaler.service.logs import configure_logs
from autoscaler.service.once import read_live, read_snapshot_file
from autoscaler.service.settings import Settings
from autoscaler.ui.patch_view import patch_view
from autoscaler.ui.views import explain_view, plan_view, report_view

STDOUT: Final = "-"

app = App(
    name="gpu-autoscaler",
    help=(
        "Finds accelerators that pods hold and do not use, says what should change, and explains every decision and "
        "every refusal. apply, undo, protect, pause and resume change something, and so does run where the policy's modes say apply; "
        "everything else only reads. Live commands use the cluster of AUTOSCALER_KUBECONFIG (else in-cluster, "
        "else ~/.kube/config) and the metrics store at AUTOSCALER_PROMETHEUS_URL."
    ),
    help_epilogue=f"{exit_codes.SUMMARY} Data goes to stdout, logs and errors to stderr.",
    help_format="plaintext",
    version=__version__,
)

PlanFormOption = Annotated[
    Literal["table", "wide", "json", "yaml", "patch"],
    Parameter(
        name=["--output", "-o"], help="table, wide, json, yaml or patch (for Git: kustomize, kubectl patch)"
    ),
]
FileOption = Annotated[
    Path | None,
    Parameter(name=["--file", "-f"], help="saved snapshot: no cluster and no metrics store are needed"),
]


@app.command
def run(*, policy: PolicyOption = None) -> int:
    """Watch, plan and serve /readyz, /metrics and /api until SIGTERM or SIGINT; act where the policy says apply."""
    settings = settings_of(policy)
    configure_logs(level=settings.log_level, form=settings.log_format)
    return asyncio.run(run_service(settings, os.environ))


@app.command
def plan(*, file: FileOption = None, policy: PolicyOption = None, output: PlanFormOption = "table") -> int:
    """What would be changed now, and who is left alone for what reason."""
    made, fault = _planned(file, policy)
    if output == "patch":
        write_out(patch_view(made))
    else:
        write_out(plan_view(made, form=output, screen=screen_of_stdout(os.environ)))
    return _ended(fault)


@app.command
def report(*, file: FileOption = None, policy: PolicyOption = None, output: FormOption = "table") -> int:
    """Every workload: accelerators held, use, need, verdict, reason and remedy."""
    made, fault = _planned(file, policy)
    write_out(report_view(made, form=output, screen=screen_of_stdout(os.environ)))
    return _ended(fault)


@app.command
def explain(
    workload: Annotated[str, Parameter(help="NAMESPACE/NAME")],
    /,
    *,
    file: FileOption = None,
    policy: PolicyOption = None,
    output: FormOption = "table",
) -> int:
    """One workload: verdict, each rule with its numbers, the queries, and what would change the answer."""
    namespace, name = namespace_and_name("explain", workload)
    in_force, taken, fault = _taken(file, policy)
    made = decide_plan(taken, in_force, taken.taken_ms)
    rows = [row for row in made.rows if (row.workload.namespace, row.workload.name) == (namespace, name)]
    if not rows:
        raise WorkloadNotFoundError(
            f"no workload {workload} holds or wants accelerators ({len(made.rows)} others do)"
        )
    rows_in_full = explain_fully(taken, in_force, taken.taken_ms, rows)
    write_out(explain_view(rows_in_full, form=output, screen=screen_of_stdout(os.environ)))
    return _ended(fault)


@app.command
def snapshot(
    *,
    output: Annotated[
        Path,
        Parameter(
            name=["--output", "-o"],
            allow_leading_hyphen=True,
            help="file to write (gzipped JSON), - for stdout",
        ),
    ],
    policy: PolicyOption = None,
) -> int:
    """Save the cluster's state as one file that plan, report and explain read with -f."""
    settings = settings_of(policy)
    taken = _read_live(settings, policy_of(settings, os.environ))
    data = encode_snapshot(taken)
    if str(output) == STDOUT:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        try:
            output.write_bytes(data)
        except OSError as error:
            raise ServiceError(f"{output}: cannot be written: {error.strerror}") from None
        say(
            f"wrote {output}: {len(taken.workloads)} workloads, {len(taken.pods)} pods, {len(taken.nodes)} nodes"
        )
    return _ended(taken.telemetry.fault)


for _acting in (acting.apply, acting.ledger, acting.undo, acting.pause, acting.resume, protect):
    app.command(_acting)

app.command(doctor)
app.command(backtest)


@app.command
def version() -> int:
    """Print the version."""
    write_out(f"gpu-autoscaler {__version__}\n")
    return exit_codes.OK


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; its exit code. Expected faults become one sentence on stderr."""
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    try:
        outcome = app(tokens, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        say(f"{_one_line(str(error))} (see gpu-autoscaler --help)")
        return exit_codes.USAGE
    except ServiceError as error:
        say(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        say("interrupted")
        return exit_codes.INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has gone (`| head`); a second failure at interpreter exit must not be shown.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exit_codes.OK
    return outcome if isinstance(outcome, int) else exit_codes.OK


def _planned(file: Path | None, policy_file: Path | None) -> tuple[Plan, str]:
    """The plan of a saved or a live cluster, and the metrics store's fault in a live one."""
    policy, taken, fault = _taken(file, policy_file)
    return decide_plan(taken, policy, taken.taken_ms), fault


def _taken(file: Path | None, policy_file: Path | None) -> tuple[Policy, Snapshot, str]:
    """The policy in force, the snapshot of a saved or a live cluster, and the metrics store's fault in a live one."""
    settings = settings_of(policy_file)
    policy = policy_of(settings, os.environ)
    if file is not None:
        return policy, read_snapshot_file(file), ""
    taken = _read_live(settings, policy)
    return policy, taken, taken.telemetry.fault


def _read_live(settings: Settings, policy: Policy) -> Snapshot:
    with progress() as show:
        taken = run_once(settings, read_live(settings, os.environ, policy, show=show))
    for row in taken.access:
        if row.state == "forbidden":
            say(f"may not read {row.kind}: {row.detail}; what needs it is refused")
    return taken


def _ended(fault: str) -> int:
    """A live answer without metrics is complete and says so, yet a script must notice."""
    if not fault:
        return exit_codes.OK
    say(f"the metrics store failed: {fault}")
    return exit_codes.FAILED


def _one_line(text: str) -> str:
    return " ".join(text.split())
