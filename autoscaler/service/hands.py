"""The acting half of a leader: settle what is half-done, judge what was done, then carry out what the plan lets through.

Nothing is acted on before the ledger is ours: it is read whole, stamped with our term and repaired first. From then on
every new plan is worked through once, in its order; of the evictions that free one seat only the first that is still to
come is sent, the next plan says whether another is needed.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from autoscaler.act import freed
from autoscaler.act.contract import AuthorityLostError, Recheck
from autoscaler.act.contract import Outcome as ActOutcome
from autoscaler.act.control import read_control
from autoscaler.act.executor import Executor
from autoscaler.act.ledger import ConfigMapLedger, LedgerError
from autoscaler.act.writer import Writer
from autoscaler.kube.errors import KubeError
from autoscaler.kube.session import KubeSession
from autoscaler.model.cluster import NOTHING_DONE, Control, Memory, PastAct, WorkloadRef
from autoscaler.model.plan import Action
from autoscaler.model.policy import Policy
from autoscaler.service.clock import Clock
from autoscaler.service.cycle import Outcome
from autoscaler.service.logs import Log
from autoscaler.service.settling import Settler
from autoscaler.service.telemetry import Metrics

RETRY_S: Final = 2.0
"""Between two tries to make the ledger ours."""
FIRST_REST_S: Final = 30.0
LONGEST_REST_S: Final = 900.0
"""A refusal by admission or for want of a right stays until a person changes something; a budget frees within minutes."""
_WORDS: Final = 300
GIVES_WAY_S: Final = 240.0
"""After the fourth refusal in a row others get its share of the budgets."""


class _Rest(NamedTuple):
    """The version that was tried at, when it may be tried again, the span that is waited, whose it is, and why."""

    version: str
    until_s: float
    span_s: float
    target: WorkloadRef
    why: str


@dataclass
class Refused:
    """Tries that were refused: the same change of the same version is not tried again with every plan."""

    until: dict[str, _Rest] = field(default_factory=dict)
    """By action id."""

    def rests(self, action: Action, now_s: float) -> bool:
        """Whether it has to wait."""
        row = self.until.get(action.id)
        return row is not None and row.version == action.resource_version and now_s < row.until_s

    def hear(self, action: Action, kind: str, now_s: float, why: str = "") -> None:
        """How a try ended; what ended otherwise is forgotten, and so is what was not tried for long."""
        former = self.until.pop(action.id, None)
        if kind == "refused":
            span_s = min(max(FIRST_REST_S, 2 * former.span_s if former else 0.0), LONGEST_REST_S)
            row = _Rest(action.resource_version, now_s + span_s, span_s, action.target, why)
            self.until[action.id] = row
        self.until = {one: row for one, row in self.until.items() if now_s - row.until_s < LONGEST_REST_S}

    def left_alone(self, now_s: float, now_ms: int) -> Iterator[PastAct]:
        """Workloads that the plan should leave alone for now: a plan of acts that are always refused gets nobody anywhere."""
        for row in self.until.values():
            if row.span_s >= GIVES_WAY_S and now_s < row.until_s:
                until_ms = now_ms + round((row.until_s - now_s) * 1000)
                why = f"it was refused several times: {row.why}"[:_WORDS]
                yield PastAct(ref=row.target, at_ms=0, not_before_ms=until_ms, why=why)


class Hands:
    """One per process; `lead` is its work while it leads."""

    def __init__(  # noqa: PLR0913 - the shell hands in everything by name
        self,
        *,
        session: KubeSession,
        namespace: str,
        ledger: ConfigMapLedger,
        executor: Executor,
        recheck: Recheck,
        clock: Clock,
        now_ms: Callable[[], int],
        metrics: Metrics,
        log: Log,
    ) -> None:
        self._session = session
        self._namespace = namespace
        self.ledger = ledger
        self._executor = executor
        self._recheck = recheck
        self._settler = Settler(
            ledger=ledger,
            executor=executor,
            now_ms=now_ms,
            metrics=metrics,
            log=log,
            told=self._tell,
        )
        self._clock = clock
        self._now_ms = now_ms
        self._metrics = metrics
        self._log = log
        self.told: Callable[[Action, ActOutcome], None] = lambda _action, _outcome: None
        """Hears of every attempt."""
        self._refused = Refused()
        self._newest: Outcome | None = None
        self._noticed = asyncio.Event()
        self._quiet_until_ms = -1
        self._memory = NOTHING_DONE

    @property
    def control(self) -> Control:
        """Whether acting may go on, as it was read last."""
        return self._memory.control

    def rest(self, policy: Policy) -> None:
        """A leadership begins: nothing is changed before its quiet period is over, nor by a plan from before it."""
        self._newest = None
        self._noticed.clear()
        self._quiet_until_ms = self._now_ms() + int(policy.guards.quiet_period)

    def notice(self, outcome: Outcome) -> None:
        """A new plan is there."""
        self._newest = outcome
        self._noticed.set()

    def memory(self) -> Memory:
        """What the next plan has to know; acts are as of this moment."""
        if self._memory is NOTHING_DONE:
            return NOTHING_DONE
        resting = sorted(
            self._refused.left_alone(self._clock.monotonic_s(), self._now_ms()), key=lambda act: act.ref
        )
        return Memory(acts=(*resting, *self.ledger.past_acts()), control=self._memory.control)

    async def refresh(self, policy: Policy) -> None:
        """Reads pause and ledger anew; a person's command may have changed both. Nothing is read where nothing acts."""
        if not policy.modes.acting:
            self._memory = NOTHING_DONE
            return
        paused, fault = await read_control(self._session, self._namespace), ""
        try:
            await self.ledger.load(self._session)
            fault = self.ledger.fault
        except KubeError as error:
            fault = f"the ledger cannot be read: {error}"
        control = Control(
            paused=paused,
            ledger_fault=fault,
            quiet_until_ms=self._quiet_until_ms,
            clean_days=0 if fault else self.ledger.clean_days,
        )
        self._memory = Memory(control=control)
        self._tell_memory(policy)

    async def lead(self, writer: Writer, stop: asyncio.Event) -> None:
        """Works through every new plan until `stop`, ending the act in flight; returns when the authority is lost."""
        ours = False
        try:
            while not stop.is_set():
                outcome = await self._next(stop)
                if outcome is None:
                    return
                if not outcome.policy.policy.modes.acting:
                    ours = False
                    continue
                ours = ours or await self.take_over(writer, stop)
                if ours:
                    await self.work_through(outcome, writer, stop)
        except AuthorityLostError as error:
            self._log.warning("stopped_acting", because=str(error))

    async def _next(self, stop: asyncio.Event) -> Outcome | None:
        """The newest plan that was not worked through yet; None at the end."""
        noticed = asyncio.create_task(self._noticed.wait(), name="hands-plan")
        stopping = asyncio.create_task(stop.wait(), name="hands-stop")
        try:
            await asyncio.wait({noticed, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            noticed.cancel()
            stopping.cancel()
            await asyncio.wait({noticed, stopping})
        self._noticed.clear()
        return None if stop.is_set() else self._newest

    async def work_through(self, outcome: Outcome, writer: Writer, stop: asyncio.Event) -> None:
        """One plan, once the ledger is ours; raises `AuthorityLostError` as soon as nothing may be sent any more."""
        await self._settler.settle(outcome, writer)
        await self._carry_out(outcome, writer, stop)

    async def take_over(self, writer: Writer, stop: asyncio.Event) -> bool:
        """Makes the ledger ours; True once it is."""
        said = ""
        while not stop.is_set():
            try:
                await self.ledger.load(self._session)
                await self.ledger.take_over(writer)
            except (KubeError, LedgerError) as error:
                if str(error) != said:
                    self._log.warning("ledger_not_ours", error=str(error))
                said = str(error)
                await self._clock.sleep(RETRY_S)
            else:
                opened = [entry.open_record for entry in self.ledger.entries.values() if entry.open_record]
                self._log.info("ledger_ours", term=writer.authority.term, half_done=len(opened))
                return True
        return False

    async def _carry_out(self, outcome: Outcome, writer: Writer, stop: asyncio.Event) -> None:
        seats = {
            record.action.seat.pod.uid
            for entry in self.ledger.entries.values()
            if (record := entry.open_record) is not None and record.action.seat is not None
        }
        for action in outcome.plan.actions:
            if action.held_by or stop.is_set():
                continue
            if action.seat is not None:
                if action.seat.pod.uid in seats:
                    continue
                # Also where it rests: the next eviction alone would be for nothing.
                seats.add(action.seat.pod.uid)
            if not self._rests(action, outcome.snapshot.taken_ms):
                await self._act(action, outcome, writer)

    def _rests(self, action: Action, taken_ms: int) -> bool:
        """Whether the plan is older than our last act there, or the same try was refused a short while ago."""
        entry = self.ledger.entries.get(action.uid)
        newest_ms = max((one.intended_ms for one in entry.records), default=-1) if entry else -1
        return newest_ms >= taken_ms or self._refused.rests(action, self._clock.monotonic_s())

    async def _act(self, action: Action, planned: Outcome, writer: Writer) -> None:
        began_s = self._clock.monotonic_s()
        paused = await read_control(self._session, self._namespace)
        if paused:
            self._log.info("act_held", action_id=action.id, because=paused)
            return
        held = freed.held_before(action, planned.snapshot)
        outcome = await self._executor.execute(
            action, writer, actor="service", recheck=self._recheck, held=held
        )
        self._metrics.act_attempted(
            action.method,
            result=outcome.kind,
            reason=outcome.reason.value
            if outcome.reason
            else action.reason.value
            if outcome.kind == "done"
            else "",
            seconds=self._clock.monotonic_s() - began_s,
        )
        self._refused.hear(action, outcome.kind, self._clock.monotonic_s(), outcome.detail)
        self.told(action, outcome)
        ref = action.target
        self._log.info(
            "act",
            action_id=action.id,
            result=outcome.kind,
            reason=outcome.reason,
            detail=outcome.detail,
            ns=ref.namespace,
            name=ref.name,
            kind=ref.kind,
            pod=str(action.pod) if action.pod else None,
            lever=action.lever,
            before=action.before,
            after=action.after,
            term=writer.authority.term,
        )

    def _tell(self, action: Action, outcome: ActOutcome) -> None:
        self.told(action, outcome)

    def _tell_memory(self, policy: Policy) -> None:
        entries = self.ledger.entries.values()
        self._metrics.memory(
            paused=bool(self._memory.control.paused),
            open_acts=sum(1 for entry in entries if entry.open_record),
            contested=sum(1 for entry in entries if entry.reversals >= policy.guards.max_reversals),
            freed=freed.boards_by_fate(entries),
        )
