"""Whether the service can do its work, as named checks; pure, so every bad world is a row of a table.

``/livez`` asks only whether the event loop turns. ``/readyz`` fails when a *required* check fails; the others are named as
degraded: the service then works and refuses more.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from autoscaler.model.breaker import FleetHealth
from autoscaler.model.cluster import Control
from autoscaler.model.duration import format_duration
from autoscaler.model.evidence import Telemetry
from autoscaler.model.snapshot import Snapshot

REQUIRED_KINDS: Final = frozenset({"Pod", "Node"})
"""Without pods and nodes there is nothing to judge; without any other kind, guards refuse with ``Forbidden``."""
LOST_AFTER_S: Final = 120.0
"""A kind that could not be read for so long is too old to decide on: two default cycles."""

Access = Literal["available", "absent", "forbidden", "unknown"]
CHECK_NAMES: Final = (
    *(
        "api-server",
        "watch",
        "access",
        "prometheus",
        "series",
        "clock",
        "fleet",
        "history",
        "policy",
        "cycle",
        "lease",
        "ledger",
    ),
)


@dataclass(frozen=True, kw_only=True)
class KindState:
    """How the reading of one kind stands."""

    kind: str
    access: Access = "unknown"
    synced: bool = False
    objects: int = 0
    lost_for_s: float = 0.0
    detail: str = ""

    @property
    def required(self) -> bool:
        """Whether nothing can be decided without it."""
        return self.kind in REQUIRED_KINDS

    @property
    def usable(self) -> bool:
        """Whether a decision may be made with this kind as it stands: read in full, or known not to be readable."""
        if self.access in {"absent", "forbidden"}:
            return not self.required
        return self.access == "available" and self.synced and self.lost_for_s < LOST_AFTER_S


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """One named check; ``group`` is the metric's label."""

    name: str
    ok: bool
    required: bool
    detail: str

    @property
    def group(self) -> str:
        """The part of the name before the slash."""
        return self.name.partition("/")[0]


@dataclass(frozen=True, kw_only=True)
class CycleState:
    """How the cycle stands: ``age_s`` is negative before the first one."""

    age_s: float = -1.0
    every_s: float = 60.0
    waiting_for: str = ""


def all_ready(checks: Iterable[CheckResult]) -> bool:
    """Whether every required check holds."""
    return all(check.ok for check in checks if check.required)


def kind_checks(states: Sequence[KindState]) -> list[CheckResult]:
    """Two checks a kind: may we read it, and have we."""
    checks: list[CheckResult] = []
    for state in states:
        if state.access == "absent":
            detail = "absent: the server has no such kind"
            checks.append(
                _check(f"access/{state.kind}", ok=not state.required, required=state.required, detail=detail)
            )
            continue
        denied = state.access == "forbidden"
        checks.append(
            _check(
                f"access/{state.kind}",
                ok=not denied,
                required=state.required,
                detail=(f"forbidden: {state.detail}" if denied else state.access),
            )
        )
        if not denied:
            checks.append(_watch_check(state))
    return checks


def _watch_check(state: KindState) -> CheckResult:
    because = f": {state.detail}" if state.detail else ""
    if not state.synced:
        detail = f"the first full list is not complete{because}"
    elif state.lost_for_s >= LOST_AFTER_S:
        detail = f"not read for {format_duration(int(state.lost_for_s) * 1000)}{because}"
    else:
        unread = (
            f", not read for {format_duration(int(state.lost_for_s) * 1000)}{because}"
            if state.lost_for_s >= 1
            else ""
        )
        return _check(
            f"watch/{state.kind}", ok=True, required=True, detail=f"{state.objects} objects{unread}"
        )
    return _check(f"watch/{state.kind}", ok=False, required=True, detail=detail)


def metrics_checks(snapshot: Snapshot | None, *, max_skew_ms: int) -> list[CheckResult]:
    """What the newest snapshot says of the metrics store."""
    if snapshot is None:
        waiting = "not asked yet"
        return [
            _check("prometheus", ok=False, required=True, detail=waiting),
            _check("series", ok=False, detail=waiting),
        ]
    telemetry = snapshot.telemetry
    fault = telemetry.fault
    checks = [
        _check("prometheus", ok=not fault, required=True, detail=fault or "answers"),
        _series_check(telemetry, holds=bool(snapshot.pods)),
    ]
    if not fault:
        skewed = abs(telemetry.skew_ms) > max_skew_ms
        limit = format_duration(max_skew_ms)
        detail = f"metrics store minus API server: {format_duration(telemetry.skew_ms)}, allowed {limit}"
        checks.append(_check("clock", ok=not skewed, required=True, detail=detail))
    return checks


def _series_check(telemetry: Telemetry, *, holds: bool) -> CheckResult:
    if telemetry.untrusted:
        told = "; ".join(telemetry.untrusted)
        detail = (
            f"several scrape jobs publish GPU series, so none is trusted ({told}): set evidence.sourceJob"
        )
        return _check("series", ok=False, detail=detail)
    series = {source.profile: source.series for source in telemetry.sources}
    if any(series.values()):
        listed = ", ".join(f"{profile} {count}" for profile, count in sorted(series.items()))
        return _check("series", ok=True, detail=f"series: {listed}; {_provenance(telemetry)}")
    if not holds:
        return _check("series", ok=True, detail="no pod holds an accelerator")
    pinned = f" from scrape job {telemetry.source_job}" if telemetry.source_job else ""
    return _check(
        "series", ok=False, detail=f"no accelerator series of any profile{pinned}: unknown is not idle"
    )


def _provenance(telemetry: Telemetry) -> str:
    """Whose figures are believed, and why."""
    jobs = ", ".join(job or "(no job label)" for job in telemetry.jobs)
    if telemetry.source_job:
        return f"scrape jobs pinned by {telemetry.source_job}: {jobs}"
    return f"unpinned, the only scrape job: {jobs}"


def fleet_check(health: FleetHealth) -> CheckResult:
    """Whether anything may be taken away; a frozen fleet is judged and explained as ever, so this is no unreadiness."""
    named = "" if health.attribution is None else f", attribution {health.attribution:.0%}"
    numbers = f"{health.measured} of {health.units} units measured, {health.seen} seen{named}"
    return _check(
        "fleet", ok=not health.frozen, detail=f"frozen: {health.frozen}" if health.frozen else numbers
    )


def cycle_check(state: CycleState) -> CheckResult:
    """Whether plans are made, and lately."""
    if state.age_s < 0:
        return _check(
            "cycle", ok=False, required=True, detail=state.waiting_for or "the first cycle has not ended"
        )
    detail = f"last plan {format_duration(int(state.age_s) * 1000)} ago"
    if state.waiting_for:
        return _check("cycle", ok=False, required=True, detail=f"{detail}; {state.waiting_for}")
    return _check("cycle", ok=state.age_s <= 3 * state.every_s + 60, required=True, detail=detail)


def standby_check(leader: str) -> CheckResult:
    """A standby makes no plans and is ready all the same: it can take over at any moment."""
    return _check("cycle", ok=True, required=True, detail=f"stands by for {leader}")


def lease_check(*, leads: bool, leader: str, fault: str) -> CheckResult:
    """Whether somebody leads, and whether the lease can be read and written."""
    if fault:
        return _check("lease", ok=False, required=True, detail=fault)
    if leads:
        return _check("lease", ok=True, required=True, detail="leads")
    return _check(
        "lease", ok=bool(leader), required=True, detail=f"{leader} leads" if leader else "nobody leads yet"
    )


def ledger_check(control: Control) -> CheckResult:
    """Whether acting may go on; a pause is no fault, and is named."""
    detail = control.ledger_fault or control.paused or "can be relied on"
    return _check("ledger", ok=not control.ledger_fault, detail=detail)


def server_check(fault: str, *, known: bool) -> CheckResult:
    """Whether the API server answered discovery."""
    return _check(
        "api-server",
        ok=known and not fault,
        required=True,
        detail=fault or ("answers" if known else "not asked yet"),
    )


def policy_check(fault: str, digest: str) -> CheckResult:
    """Whether the policy in force is the file's newest."""
    return _check(
        "policy", ok=not fault, detail=f"refused, the former one stays: {fault}" if fault else digest
    )


def _check(name: str, *, ok: bool, detail: str, required: bool = False) -> CheckResult:
    return CheckResult(name=name, ok=ok, required=required, detail=detail)
