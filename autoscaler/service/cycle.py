"""One cycle: read the policy, ask the metrics store, freeze the stores, then think in a worker thread and publish.

Each step is timed by name, so the metrics read like this docstring. The cycle knows its sources as callables only. Nothing
blocks the event loop: file reads, assembling, planning and hashing happen in threads.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import msgspec
import structlog

from autoscaler.model.breaker import FleetHealth
from autoscaler.model.plan import Plan
from autoscaler.model.policy import Policy
from autoscaler.model.snapshot import Snapshot
from autoscaler.service.breaker import log_breaker
from autoscaler.service.clock import Clock
from autoscaler.service.logs import Log
from autoscaler.service.policy_file import LoadedPolicy, PolicySource
from autoscaler.service.telemetry import Metrics
from autoscaler.service.triggers import Alarm

_PIECE_ROWS: Final = 500
F = TypeVar("F")
S = TypeVar("S")
WAIT_RETRY_S: Final = 0.25
"""How often unready stores are looked at again."""
LOGGED_ROWS: Final = 200
"""Changed refusals logged per cycle: a flapping fleet must not flood the log; the plan has them all."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one cycle produced."""

    sequence: int
    decision_id: str
    plan: Plan
    snapshot: Snapshot
    policy: LoadedPolicy
    generated_ms: int
    generated_s: float


@dataclass(frozen=True, kw_only=True)
class Sources(Generic[F, S]):
    """The cycle's inputs.

    ``blocked`` says in words why nothing may be decided yet, empty when something may. ``query`` never raises for a fault
    of the metrics store: its answer carries the fault. ``freeze`` runs on the loop and must be quick; ``assemble`` and
    ``decide`` run in a worker thread.
    """

    blocked: Callable[[], str]
    query: Callable[[Policy], Awaitable[S]]
    freeze: Callable[[], F]
    assemble: Callable[[F, S, Policy], Snapshot]
    decide: Callable[[Snapshot, Policy, int], Plan]


class Cycle(Generic[F, S]):
    """Runs for ever; ``latest`` is the newest outcome, None before the first."""

    def __init__(  # noqa: PLR0913 - the shell hands in everything by name
        self,
        *,
        sources: Sources[F, S],
        policy: PolicySource,
        alarm: Alarm,
        clock: Clock,
        metrics: Metrics,
        log: Log,
        every_s: float,
        debounce_s: float,
        quiet: Callable[[], AbstractContextManager[None]] = nullcontext,
        noticed: Callable[[Outcome], None] = lambda _: None,
    ) -> None:
        self._sources = sources
        self._policy = policy
        self._alarm = alarm
        self._clock = clock
        self._metrics = metrics
        self._log = log
        self._every_s = every_s
        self._debounce_s = debounce_s
        self._quiet = quiet
        self._noticed = noticed
        self._sequence = 0
        self._last_reasons: dict[str, str] = {}
        self.latest: Outcome | None = None
        self.waiting_for = "the stores' first full lists"

    async def run(self) -> None:
        """The loop. Only a defect ends it."""
        await self._until_ready()
        await self.once(trigger="timer", since_s=None)
        while True:
            reasons, since_s = await self._alarm.wait(timer_s=self._every_s, debounce_s=self._debounce_s)
            await self._until_ready()
            if reasons:
                self._log.info("woken", reasons=list(reasons))
            await self.once(trigger="event" if reasons else "timer", since_s=since_s)

    async def once(self, *, trigger: str, since_s: float | None) -> Outcome:
        """One cycle, whatever the timer says."""
        timed = self._metrics.step
        with timed("policy"):
            loaded = await asyncio.to_thread(self._policy.refresh, self._report)
        self._metrics.policy_in_force(mode=loaded.policy.modes.in_words, digest=loaded.digest)
        with timed("query"):
            series = await self._sources.query(loaded.policy)
        with timed("freeze"):
            frozen = self._sources.freeze()
        with self._quiet():
            snapshot, plan, fingerprint = await asyncio.to_thread(self._think, frozen, series, loaded.policy)
            before, outcome = self.latest, self._outcome(snapshot, plan, fingerprint, loaded)
            self.latest = outcome
            reaction_s = None if since_s is None else outcome.generated_s - since_s
            self._noticed(outcome)
            with timed("publish"):
                await asyncio.to_thread(self._tell, outcome, before, trigger, reaction_s)
        return outcome

    def forget(self) -> None:
        """Nothing is known any more: somebody else decides from now on."""
        self.latest = None
        self._last_reasons = {}

    async def _until_ready(self) -> None:
        while reason := self._sources.blocked():
            if reason != self.waiting_for:
                self._log.warning("waiting", reason=reason)
            self.waiting_for = reason
            await self._clock.sleep(WAIT_RETRY_S)
        self.waiting_for = ""

    def _think(self, frozen: F, series: S, policy: Policy) -> tuple[Snapshot, Plan, str]:
        with self._metrics.step("assemble"):
            snapshot = self._sources.assemble(frozen, series, policy)
        with self._metrics.step("decide"):
            # The API server's own clock: the same snapshot read from a file gives the same plan.
            plan = self._sources.decide(snapshot, policy, snapshot.taken_ms)
        return snapshot, plan, _fingerprint(plan)

    def _outcome(self, snapshot: Snapshot, plan: Plan, fingerprint: str, loaded: LoadedPolicy) -> Outcome:
        self._sequence += 1
        return Outcome(
            sequence=self._sequence,
            decision_id=f"{self._sequence}-{fingerprint}",
            plan=plan,
            snapshot=snapshot,
            policy=loaded,
            generated_ms=self._clock.now_ms(),
            generated_s=self._clock.monotonic_s(),
        )

    def _tell(self, outcome: Outcome, before: Outcome | None, trigger: str, reaction_s: float | None) -> None:
        """Metrics and logs walk over every row, so they are told from a worker thread too."""
        self._metrics.cycle_ended(outcome.plan, trigger=trigger, reaction_s=reaction_s)
        self._metrics.evidence_read(outcome.snapshot.telemetry)
        if not outcome.snapshot.telemetry.fault:
            self._metrics.metrics_read(outcome.generated_ms)
        with structlog.contextvars.bound_contextvars(decision_id=outcome.decision_id):
            known = before.plan.fleet.health if before else FleetHealth()
            log_breaker(self._log, known, outcome.plan.fleet.health)
            self._log_plan(outcome, before)

    def _log_plan(self, outcome: Outcome, before: Outcome | None) -> None:
        plan = outcome.plan
        self._log.info(
            "plan",
            mode=plan.mode,
            actions=len(plan.actions),
            refusals=plan.refusals_by_reason(),
            reclaimable_milli=plan.fleet.reclaimable_milli,
            coverage=round(plan.fleet.coverage, 3),
            faults=list(plan.fleet.faults),
            frozen=plan.fleet.health.frozen,
        )
        known = {action.id for action in before.plan.actions} if before else set()
        for action in plan.actions:
            if action.id not in known:
                ref = action.target
                self._log.info(
                    "decision",
                    action_id=action.id,
                    reason=action.reason,
                    ns=ref.namespace,
                    name=ref.name,
                    kind=ref.kind,
                    uid=action.uid,
                    lever=action.lever,
                    before=action.before,
                    after=action.after,
                    held_by=list(action.held_by),
                    because=action.because,
                )
        self._log_refusals(plan)

    def _log_refusals(self, plan: Plan) -> None:
        """Only what changed since the last plan."""
        reasons: dict[str, str] = {}
        logged = 0
        for row in plan.rows:
            key = f"{row.workload.kind} {row.workload}"
            reasons[key] = row.reason
            if row.action is not None or self._last_reasons.get(key) == row.reason:
                continue
            logged += 1
            if logged <= LOGGED_ROWS:
                ref = row.workload
                self._log.info(
                    "left_alone",
                    reason=row.reason,
                    ns=ref.namespace,
                    name=ref.name,
                    kind=ref.kind,
                    verdict=row.verdict,
                    detail=row.detail,
                )
        if logged > LOGGED_ROWS:
            self._log.info("left_alone_more", count=logged - LOGGED_ROWS)
        self._last_reasons = reasons

    def _report(self, event: str, text: str) -> None:
        """Called from a worker thread by the policy source."""
        if event == "policy_refused":
            self._log.error(event, error=text)
        else:
            self._log.info(event, digest=text)


def _fingerprint(plan: Plan) -> str:
    """The same for equal plans; encoded in pieces, because encoding keeps all other threads waiting."""
    digest = hashlib.sha256()
    for rows in (plan.actions, plan.refusals, plan.rows):
        for start in range(0, len(rows), _PIECE_ROWS):
            digest.update(msgspec.json.encode(rows[start : start + _PIECE_ROWS], order="deterministic"))
    return digest.hexdigest()[:10]
