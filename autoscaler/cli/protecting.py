"""The command with which anybody who may annotate a workload has it left alone."""

import os
from datetime import UTC, datetime
from typing import Annotated

from cyclopts import Parameter

from autoscaler.act import protection
from autoscaler.cli.options import namespace_and_name, run_once, settings_of
from autoscaler.cli.terminal import one_line, write_out
from autoscaler.decide.marks import DO_NOT_DISRUPT, REASON
from autoscaler.model.duration import DurationError, parse_duration
from autoscaler.model.policy import Policy
from autoscaler.service import acting_once, exit_codes
from autoscaler.service.faults import ConfigError, WorkloadNotFoundError
from autoscaler.service.settings import Settings


def protect(
    workload: Annotated[str, Parameter(help="NAMESPACE/NAME")],
    /,
    *,
    span: Annotated[str, Parameter(name="--for", help="for how long, e.g. 4h; without it, until --off")] = "",
    because: Annotated[str, Parameter(help="why, for whoever wonders")] = "",
    kind: Annotated[str, Parameter(help="the kind, where several have that name, e.g. Deployment")] = "",
    off: Annotated[bool, Parameter(negative="", help="take the protection back")] = False,
) -> int:
    """Have a workload left alone: sets the annotation do-not-disrupt on it, or takes it back."""
    namespace, name = namespace_and_name("protect", workload)
    if off and (span or because):
        raise ConfigError("--off takes neither --for nor --because")
    settings = settings_of(None)
    told = run_once(
        settings, _protect(settings, (namespace, name), kind, span=span, because=because, off=off)
    )
    write_out(one_line(told))
    return exit_codes.OK


async def _protect(
    settings: Settings, name: tuple[str, str], kind: str, *, span: str, because: str, off: bool
) -> str:
    lasts_ms = _span_ms(span)
    async with acting_once.open_desk(settings, os.environ, Policy()) as desk:
        found = _only(await protection.find(desk.session, *name), kind, "/".join(name))
        value = _value(lasts_ms, now_ms=desk.now_ms())
        wanted = (
            {DO_NOT_DISRUPT: None, REASON: None} if off else {DO_NOT_DISRUPT: value, REASON: because or None}
        )
        await protection.annotate(desk.session, found, wanted)
    former = found.annotations.get(DO_NOT_DISRUPT)
    before = f" (it had {DO_NOT_DISRUPT}={former})" if former is not None else ""
    if off:
        return f"{found.ref.kind} {found.ref} is no longer protected{before}"
    until = f"until {value}" if lasts_ms else "until protect --off"
    return f"{found.ref.kind} {found.ref} is left alone {until}{before}"


def _span_ms(span: str) -> int:
    """0 where none is stated."""
    if not span:
        return 0
    try:
        lasts_ms = parse_duration(span)
    except DurationError as error:
        raise ConfigError(f"--for: {error}") from None
    if lasts_ms <= 0:
        raise ConfigError("--for must be over 0s")
    return lasts_ms


def _value(lasts_ms: int, *, now_ms: int) -> str:
    """A moment, since an age would count from the start of each pod."""
    if not lasts_ms:
        return "true"
    try:
        return datetime.fromtimestamp((now_ms + lasts_ms) / 1000, tz=UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        raise ConfigError("--for is longer than dates reach; leave it out for no end") from None


def _only(found: tuple[protection.Found, ...], kind: str, name: str) -> protection.Found:
    wanted = [one for one in found if not kind or one.ref.kind.lower() == kind.lower()]
    if not wanted:
        known = ", ".join(known for _, known in protection.PATHS)
        what = f"no {kind or 'workload'} {name}"
        raise WorkloadNotFoundError(
            f"{what} (looked for {known}); of another kind: kubectl annotate it with {DO_NOT_DISRUPT}=true"
        )
    if len(wanted) > 1:
        raise ConfigError(f"{name} is {', '.join(one.ref.kind for one in wanted)}: say --kind")
    return wanted[0]
