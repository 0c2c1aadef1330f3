"""The commands that change something, each with a person's approval, and the one that shows what was done."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from autoscaler.act.contract import Outcome
from autoscaler.act.undo import Restored
from autoscaler.cli.options import (
    FormOption,
    PolicyOption,
    namespace_and_name,
    person,
    policy_of,
    run_once,
    settings_of,
)
from autoscaler.cli.plan_file import STDIN, read_plan_file, refuse_stale
from autoscaler.cli.terminal import confirmed, note, one_line, progress, say, screen_of_stdout, write_out
from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.ledger import Entry
from autoscaler.model.plan import Action
from autoscaler.model.policy import Policy
from autoscaler.model.reasons import Reason
from autoscaler.service import acting_once, exit_codes
from autoscaler.service.faults import ConfigError, WorkloadNotFoundError
from autoscaler.service.peers import require_live
from autoscaler.service.settings import Settings
from autoscaler.ui import figures
from autoscaler.ui.ledger_views import LedgerSheet, Result, ledger_view, result_line, results_view
from autoscaler.ui.views import Form

YesOption = Annotated[bool, Parameter(name=["--yes", "-y"], negative="", help="do not ask")]
_SETTLED = frozenset({"done", "gone", "superseded"})


def ledger(
    workload: Annotated[str | None, Parameter(help="NAMESPACE/NAME; without it, everything")] = None,
    /,
    *,
    output: FormOption = "table",
) -> int:
    """What was done, when, by whom and why, and which values are ours now."""
    wanted = None if workload is None else namespace_and_name("ledger", workload)
    settings = settings_of(None)
    sheet = run_once(settings, _read_sheet(settings, Policy()))
    if workload is not None:
        found = tuple(one for one in sheet.entries if _name(one) == wanted)
        if not found:
            raise _nothing_done(workload, sheet)
        sheet = msgspec.structs.replace(sheet, entries=found)
    write_out(ledger_view(sheet, form=output, screen=screen_of_stdout(os.environ)))
    return exit_codes.OK


def apply(
    *,
    file: Annotated[
        Path,
        Parameter(
            name=["--file", "-f"],
            allow_leading_hyphen=True,
            help="a plan (plan -o yaml or json), - for stdin",
        ),
    ],
    yes: YesOption = False,
    stale_ok: Annotated[bool, Parameter(negative="", help="also a plan that is over an hour old")] = False,
    policy: PolicyOption = None,
    output: FormOption = "table",
) -> int:
    """Carry out a plan that a person approved. Each action is planned again first; only the very same change is made."""
    settings = settings_of(policy)
    in_force = policy_of(settings, os.environ)
    require_live(settings)
    plan = read_plan_file(file)
    if not stale_ok:
        refuse_stale(plan, run_once(settings, _server_time_ms(settings)))
    lines = [f"{one.target.kind} {one.target}: {figures.change(one)}; {one.because}" for one in plan.actions]
    if lines and not yes:
        _ask("apply", lines, reads_stdin=str(file) == STDIN)
    shown: list[Result] = []

    def told(action: Action, outcome: Outcome) -> None:
        _tell(shown, _act_result(action, outcome), output)

    if lines:
        verifier = run_once(settings, _apply(settings, in_force, plan.actions, told))
    else:
        verifier = ""
        say("the plan has no actions: nothing to do")
    _conclude(shown, output)
    if not verifier and any(one.result == "done" for one in shown):
        say(
            "no service leads in mode apply here: nobody verifies what was done or puts back what fails; "
            "watch the rollouts, gpu-autoscaler undo puts back"
        )
    return exit_codes.OK if all(one.result == "done" for one in shown) else exit_codes.FAILED


def undo(
    workload: Annotated[str | None, Parameter(help="NAMESPACE/NAME")] = None,
    /,
    *,
    everything: Annotated[
        bool, Parameter(name="--all", negative="", help="every workload that holds a value of ours")
    ] = False,
    yes: YesOption = False,
    policy: PolicyOption = None,
    output: FormOption = "table",
) -> int:
    """Put back what was there before our first act, wherever the value is still ours."""
    if (workload is None) != everything:
        raise ConfigError("undo takes either NAMESPACE/NAME or --all")
    settings = settings_of(policy)
    in_force = policy_of(settings, os.environ)
    wanted = _wanted(workload)
    sheet = run_once(settings, _read_sheet(settings, in_force))
    entries = [one for one in sheet.entries if wanted(one)]
    if workload is not None and not entries:
        raise _nothing_done(workload, sheet)
    lines = [f"{one.ref.kind} {one.ref}: {figures.ours(change)}" for one in entries for change in one.changes]
    if lines and not yes:
        _ask("put back", lines, reads_stdin=False)
    shown: list[Result] = []

    def told(restored: Restored) -> None:
        _tell(shown, _undo_result(restored), output)

    forgotten = run_once(settings, _undo(settings, in_force, wanted, told, forget=workload is not None))
    for ref in forgotten:
        say(f"{ref}: what was contested or failed there is forgotten")
    if not shown and not forgotten:
        say("no value of ours is there to put back")
    _conclude(shown, output)
    unread = {sheet.fault, *sheet.unreadable.values()} - {""}
    for fault in sorted(unread):
        say(f"{fault}: it is left as it is")
    blind = everything and bool(unread)
    return exit_codes.OK if not blind and {one.result for one in shown} <= _SETTLED else exit_codes.FAILED


def pause(*, because: Annotated[str, Parameter(help="why, for whoever wonders")] = "") -> int:
    """Stop all acting at once, whoever leads; plans are still made. An earlier pause stays as it is."""
    settings = settings_of(None)
    write_out(one_line(run_once(settings, _pause(settings, because))))
    return exit_codes.OK


def resume() -> int:
    """Let acting go on."""
    settings = settings_of(None)
    write_out("resumed\n" if run_once(settings, _resume(settings)) else "it was not paused\n")
    return exit_codes.OK


async def _read_sheet(settings: Settings, policy: Policy) -> LedgerSheet:
    async with acting_once.open_desk(settings, os.environ, policy) as desk:
        read = await acting_once.read_ledger(desk)
    return LedgerSheet(
        read_ms=read.read_ms,
        entries=read.entries,
        paused=read.paused,
        fault=read.fault,
        unreadable=read.unreadable,
    )


async def _server_time_ms(settings: Settings) -> int:
    async with acting_once.open_desk(settings, os.environ, Policy()) as desk:
        return desk.now_ms()


async def _apply(
    settings: Settings, policy: Policy, actions: Sequence[Action], told: Callable[[Action, Outcome], None]
) -> str:
    """Carries the actions out; who verifies them, empty for nobody."""
    async with acting_once.open_desk(settings, os.environ, policy, holder=person()) as desk:
        await acting_once.apply_actions(desk, actions, progress=progress, told=told)
        return await acting_once.acting_leader(desk)


async def _undo(
    settings: Settings,
    policy: Policy,
    wanted: Callable[[Entry], bool],
    told: Callable[[Restored], None],
    *,
    forget: bool,
) -> list[WorkloadRef]:
    async with acting_once.open_desk(settings, os.environ, policy, holder=person()) as desk:
        await acting_once.undo_entries(desk, wanted, told=told)
        return await acting_once.forget_disputes(desk, wanted) if forget else []


async def _pause(settings: Settings, because: str) -> str:
    async with acting_once.open_desk(settings, os.environ, Policy(), holder=person()) as desk:
        return await acting_once.pause(desk, because=because)


async def _resume(settings: Settings) -> bool:
    async with acting_once.open_desk(settings, os.environ, Policy(), holder=person()) as desk:
        return await acting_once.resume(desk)


def _wanted(workload: str | None) -> Callable[[Entry], bool]:
    if workload is None:
        return lambda _: True
    name = namespace_and_name("undo", workload)
    return lambda entry: _name(entry) == name


def _name(entry: Entry) -> tuple[str, str]:
    return entry.ref.namespace, entry.ref.name


def _nothing_done(workload: str, sheet: LedgerSheet) -> WorkloadNotFoundError:
    unread = f"; {len(sheet.unreadable)} entries cannot be read" if sheet.unreadable else ""
    return WorkloadNotFoundError(
        f"nothing was ever done to {workload}: it is not among the {len(sheet.entries)} workloads of the ledger{unread}"
    )


def _ask(what: str, lines: Sequence[str], *, reads_stdin: bool) -> None:
    """Raises `ConfigError` unless a person at a terminal says yes."""
    if reads_stdin or not sys.stdin.isatty():
        raise ConfigError(f"nobody can be asked: stdin is no terminal; say --yes to {what} without asking")
    for line in lines:
        note(line)
    if not confirmed(f"{what} {len(lines)} change{'s' if len(lines) > 1 else ''}?"):
        raise ConfigError("not approved: nothing was changed")


def _tell(shown: list[Result], result: Result, form: Form) -> None:
    """At once where people read it: whoever interrupts a command has to know how far it came."""
    shown.append(result)
    if form in {"table", "wide"}:
        write_out(result_line(result))


def _conclude(shown: Sequence[Result], form: Form) -> None:
    if form not in {"table", "wide"}:
        write_out(results_view(shown, form))


def _act_result(action: Action, outcome: Outcome) -> Result:
    return Result(
        workload=action.target,
        change=figures.change(action),
        result=outcome.kind,
        reason=outcome.reason or "",
        because=outcome.detail,
        action_id=action.id,
    )


def _undo_result(restored: Restored) -> Result:
    outcome, change = restored.outcome, restored.change
    superseded = outcome.kind == "refused" and outcome.reason is Reason.SUPERSEDED
    return Result(
        workload=restored.entry.ref,
        change=figures.restored(change),
        result="superseded" if superseded else outcome.kind,
        reason=outcome.reason or "",
        because=outcome.detail,
        action_id=outcome.record.action.id if outcome.record is not None else "",
    )
