"""The HTTP server: probes, metrics and the newest plan. Read-only: no route changes anything anywhere.

Answers about the plan are bounded in size, encoded in a worker thread and kept until the next plan.
"""

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

import msgspec
from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from autoscaler.decide import explain_fully
from autoscaler.model.cluster import Control
from autoscaler.model.ledger import Entry
from autoscaler.model.plan import ExplainRow
from autoscaler.model.snapshot import encode_snapshot
from autoscaler.service.cycle import Outcome
from autoscaler.service.readiness import CheckResult, all_ready

MAX_ROWS: Final = 5_000
DEFAULT_ROWS: Final = 1_000
EXPLAINED_ROWS: Final = 20
"""Kinds that can share one name, and more."""
HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Server": "gpu-autoscaler",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, kw_only=True)
class LedgerView:
    """What was done, and whether the service may go on."""

    entries: Sequence[Entry] = ()
    control: Control = field(default_factory=Control)


@dataclass(frozen=True, kw_only=True)
class Views:
    """Where the server's answers come from."""

    latest: Callable[[], Outcome | None]
    checks: Callable[[], Sequence[CheckResult]]
    registry: CollectorRegistry
    urls: Callable[[], dict[str, str]]
    before_scrape: Callable[[], None] = lambda: None
    ledger: Callable[[], LedgerView] = LedgerView
    standby_for: Callable[[], str] = str
    """Who leads while this process stands by; empty while it leads itself or nobody is known."""


def build_app(views: Views, *, loopback_only: bool) -> web.Application:
    """The routes; with ``loopback_only`` other Host headers are refused, since a web page can rebind its name to 127.0.0.1."""
    pages = _Pages(views)
    app = web.Application(
        middlewares=[_guard(loopback_only=loopback_only)],
        client_max_size=1024,
    )
    app.add_routes(
        [
            web.get("/livez", pages.livez),
            web.get("/readyz", pages.readyz),
            web.get("/metrics", pages.metrics),
            web.get("/api/v1/plan", pages.plan),
            web.get("/api/v1/workloads", pages.workloads),
            web.get("/api/v1/explain/{namespace}/{name}", pages.explain),
            web.get("/api/v1/ledger", pages.ledger),
            web.get("/api/v1/snapshot", pages.snapshot),
        ]
    )
    return app


class _Pages:
    def __init__(self, views: Views) -> None:
        self._views = views

    async def livez(self, _request: web.Request) -> web.Response:
        """The event loop turns, and that is all this says."""
        return web.Response(text="ok\n")

    async def readyz(self, request: web.Request) -> web.Response:
        """Each check by name; 503 names the first failed one even without ``verbose``."""
        checks = self._views.checks()
        ready = all_ready(checks)
        failed = [check for check in checks if not check.ok]
        if "verbose" in request.query:
            lines = [_line(check) for check in checks]
            lines.append("readyz check passed" if ready else "readyz check failed")
        elif ready:
            lines = ["ok"]
        else:
            lines = [f"not ready: {check.name}: {check.detail}" for check in failed if check.required]
        return web.Response(
            text="\n".join(_clean(line) for line in lines) + "\n", status=200 if ready else 503
        )

    async def metrics(self, request: web.Request) -> web.Response:
        """Prometheus' text or OpenMetrics, as asked."""
        self._views.before_scrape()
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(self._views.registry), headers={"Content-Type": content_type})

    async def plan(self, request: web.Request) -> web.Response:
        """The plan with the facts about its making."""
        outcome = self._outcome()
        limit = _limit(request)
        return await _json(lambda: _plan_document(outcome, self._views.urls(), limit))

    async def workloads(self, request: web.Request) -> web.Response:
        """The explain rows, perhaps of one namespace, in pages."""
        outcome = self._outcome()
        limit, offset = _limit(request), _number(request, "offset", 0, 10_000_000)
        namespace = request.query.get("namespace", "")
        rows = [row for row in outcome.plan.rows if not namespace or row.workload.namespace == namespace]
        return await _json(
            lambda: {
                **_made(outcome),
                "total": len(rows),
                "offset": offset,
                "workloads": rows[offset : offset + limit],
            }
        )

    async def explain(self, request: web.Request) -> web.Response:
        """All rows of one name."""
        outcome = self._outcome()
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        rows = [
            row
            for row in outcome.plan.rows
            if row.workload.namespace == namespace and row.workload.name == name
        ]
        if not rows:
            raise _problem(web.HTTPNotFound, "no workload of this name holds or wants accelerators")
        return await _json(lambda: {**_made(outcome), "workloads": _in_full(outcome, rows[:EXPLAINED_ROWS])})

    async def ledger(self, request: web.Request) -> web.Response:
        """The ledger's entries, the latest act first, perhaps of one namespace."""
        self._refuse_standby()
        view, limit = self._views.ledger(), _limit(request)
        namespace = request.query.get("namespace", "")
        entries = [entry for entry in view.entries if not namespace or entry.ref.namespace == namespace]
        return await _json(
            lambda: {
                "total": len(entries),
                "paused": view.control.paused,
                "fault": view.control.ledger_fault,
                "entries": sorted(entries, key=_latest_first)[:limit],
            }
        )

    async def snapshot(self, _request: web.Request) -> web.Response:
        """The plan's exact input, as ``plan -f`` reads it."""
        outcome = self._outcome()
        body = await asyncio.to_thread(encode_snapshot, outcome.snapshot)
        name = f"snapshot-{outcome.decision_id}.json.gz"
        return web.Response(
            body=body,
            content_type="application/gzip",
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )

    def _refuse_standby(self) -> None:
        leader = self._views.standby_for()
        if leader:
            raise _problem(
                web.HTTPServiceUnavailable, f"this process stands by, {leader} leads", leader=leader
            )

    def _outcome(self) -> Outcome:
        self._refuse_standby()
        outcome = self._views.latest()
        if outcome is None:
            failed = [f"{check.name}: {check.detail}" for check in self._views.checks() if not check.ok]
            raise _problem(web.HTTPServiceUnavailable, "no plan yet", waiting_for=failed)
        return outcome


def _latest_first(entry: Entry) -> tuple[int, str]:
    return (-max((record.intended_ms for record in entry.records), default=0), entry.uid)


def _plan_document(outcome: Outcome, urls: dict[str, str], limit: int) -> dict[str, Any]:
    plan = outcome.plan
    left_out = {
        name: len(rows) - limit
        for name, rows in (("actions", plan.actions), ("refusals", plan.refusals), ("rows", plan.rows))
        if len(rows) > limit
    }
    bounded = msgspec.structs.replace(
        plan, actions=plan.actions[:limit], refusals=plan.refusals[:limit], rows=plan.rows[:limit]
    )
    return {
        **_made(outcome),
        "urls": urls,
        "refusals_by_reason": plan.refusals_by_reason(),
        "left_out": left_out,
        "plan": bounded,
    }


def _in_full(outcome: Outcome, rows: Sequence[ExplainRow]) -> tuple[ExplainRow, ...]:
    snapshot = outcome.snapshot
    return explain_fully(snapshot, outcome.policy.policy, snapshot.taken_ms, rows)


def _made(outcome: Outcome) -> dict[str, Any]:
    return {
        "decision_id": outcome.decision_id,
        "generated_at": datetime.fromtimestamp(outcome.generated_ms / 1000, tz=UTC).isoformat(),
        "mode": outcome.plan.mode,
        "policy": {"origin": outcome.policy.origin, "digest": outcome.policy.digest},
    }


async def _json(document: Callable[[], Any]) -> web.Response:
    body = await asyncio.to_thread(lambda: msgspec.json.encode(document(), order="deterministic"))
    return web.Response(body=body, content_type="application/json")


def _limit(request: web.Request) -> int:
    return _number(request, "limit", DEFAULT_ROWS, MAX_ROWS)


def _number(request: web.Request, name: str, default: int, maximum: int) -> int:
    text = request.query.get(name, str(default))
    if not (text.isascii() and text.isdecimal() and len(text) < 12 and int(text) <= maximum):
        raise _problem(web.HTTPBadRequest, f"{name} must be a whole number from 0 to {maximum}")
    return int(text)


def _problem(kind: type[web.HTTPException], error: str, **more: Any) -> web.HTTPException:
    return kind(text=msgspec.json.encode({"error": error, **more}).decode(), content_type="application/json")


def _line(check: CheckResult) -> str:
    mark = "[+]" if check.ok else "[-]" if check.required else "[!]"
    word = "ok" if check.ok else "failed" if check.required else "degraded"
    return f"{mark}{check.name} {word}: {check.detail}"


def _clean(line: str) -> str:
    """A server's words are foreign text: one line, no control characters."""
    return "".join(character if character.isprintable() else " " for character in line)[:1000]


def _guard(*, loopback_only: bool) -> Any:
    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if loopback_only and not _is_loopback(request.host):
            return web.Response(
                status=403, text="this address answers to loopback names only\n", headers=HEADERS
            )
        try:
            response = await handler(request)
        except web.HTTPException as error:
            error.headers.update(HEADERS)
            raise
        response.headers.update(HEADERS)
        return response

    return guard


def _is_loopback(host: str) -> bool:
    name = urlsplit(f"//{host}").hostname or ""
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
