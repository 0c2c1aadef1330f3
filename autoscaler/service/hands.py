"""The acting half of a leader: settle what is half-done, judge what was done, then carry out what the plan lets through.

Nothing is acted on before the ledger is ours: it is read whole, stamped with our term and repaired first. From then on
every new plan is worked through once, in its order; of the evictions that free one seat only the first that is still to
come is sent, the next plan says whether another is needed.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

from autoscaler.act import repair, transitions, undo, verify
from autoscaler.act.contract import AuthorityLostError, Recheck, Site
from autoscaler.act.contract import Outcome as ActOutcome
from autoscaler.act.control import read_control
from autoscaler.act.executor import Executor
from autoscaler.act.ledger import ConfigMapLedger, LedgerError
from autoscaler.act.transitions import RESTORING, TransitionError
from autoscaler.act.writer import Writer
from autoscaler.kube.errors import KubeError
from autoscaler.kube.session import KubeSession
from autoscaler.model.cluster import NOTHING_DONE, Control, Memory, WorkloadRef
from autoscaler.model.ledger import Change, Entry, Record
from autoscaler.model.plan import Action, Plan, PodRef, Verdict
from autoscaler.model.policy import Policy
from autoscaler.model.snapshot import Snapshot
from autoscaler.service.clock import Clock
from autoscaler.service.cycle import Outcome
from autoscaler.service.logs import Log
from autoscaler.service.telemetry import Metrics

RETRY_S: Final = 2.0
"""Between two tries to make the ledger ours."""


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
        self._clock = clock
        self._now_ms = now_ms
        self._metrics = metrics
        self._log = log
        self.told: Callable[[Action, ActOutcome], None] = lambda _action, _outcome: None
        """Hears of every attempt."""
        self._newest: Outcome | None = None
        self._noticed = asyncio.Event()
        self._quiet_until_ms = -1
        self._memory = NOTHING_DONE

    @property
    def control(self) -> Control:
        """Whether acting may go on, as it was read last."""
        return self._memory.control

    def notice(self, outcome: Outcome) -> None:
        """A new plan is there."""
        self._newest = outcome
        self._noticed.set()

    def memory(self) -> Memory:
        """What the next plan has to know; acts are as of this moment."""
        if self._memory is NOTHING_DONE:
            return NOTHING_DONE
        return Memory(acts=self.ledger.past_acts(), control=self._memory.control)

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
        control = Control(paused=paused, ledger_fault=fault, quiet_until_ms=self._quiet_until_ms)
        self._memory = Memory(control=control)
        self._tell_memory(policy)

    async def lead(self, writer: Writer, policy: Callable[[], Policy], stop: asyncio.Event) -> None:
        """Works through every new plan until `stop`, ending the act in flight; returns when the authority is lost."""
        self._quiet_until_ms = self._now_ms() + int(policy().guards.quiet_period)
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
        await self._settle(outcome, writer)
        await self._carry_out(outcome, writer, stop)

    async def take_over(self, writer: Writer, stop: asyncio.Event) -> bool:
        """Makes the ledger ours; True once it is."""
        while not stop.is_set():
            try:
                await self.ledger.load(self._session)
                await self.ledger.take_over(writer)
            except (KubeError, LedgerError) as error:
                self._log.warning("ledger_not_ours", error=str(error))
                await self._clock.sleep(RETRY_S)
            else:
                opened = [entry.open_record for entry in self.ledger.entries.values() if entry.open_record]
                self._log.info("ledger_ours", term=writer.authority.term, half_done=len(opened))
                return True
        return False

    async def _settle(self, outcome: Outcome, writer: Writer) -> None:
        """Every open act, and every value of ours, against what is there now."""
        for entry in list(self.ledger.entries.values()):
            try:
                record = entry.open_record
                if record is None:
                    await self._look_after(entry, outcome, writer)
                elif record.state == "intended":
                    await self._repair(record, writer)
                else:
                    await self._judge(entry, record, outcome, writer)
            except (KubeError, LedgerError, TransitionError) as error:
                self._log.warning(
                    "not_settled", ns=entry.ref.namespace, name=entry.ref.name, error=str(error)
                )

    async def _repair(self, record: Record, writer: Writer) -> None:
        found = await repair.settle(record, self.ledger, self._executor, writer, now_ms=self._now_ms())
        if found.settled != "waiting":
            self._say("repaired", record, end=found.settled, detail=found.detail)
        if found.settled in {"dropped", "superseded", "gone"}:
            self._metrics.act_ended(record.action.method, found.settled)

    async def _judge(self, entry: Entry, record: Record, outcome: Outcome, writer: Writer) -> None:
        policy, action = outcome.policy.policy, record.action
        if outcome.snapshot.taken_ms <= record.acted_ms:
            return
        found = verify.judge(
            record,
            outcome.snapshot,
            verdict=_verdict(outcome.plan, action.target),
            policy=policy,
            now_ms=outcome.snapshot.taken_ms,
        )
        if found.judgement in {"reversed", "superseded"}:
            step = Change(action.lever, action.before, action.after, action.resource, action.container)
            found = await _confirmed(entry, step, writer)
        match found.judgement:
            case "waiting":
                await self._heal(record, outcome.snapshot, writer)
                return
            case "ready":
                await self.ledger.change(
                    writer,
                    entry.uid,
                    Site.LEDGER_OUTCOME,
                    lambda now: transitions.pods_ready(
                        now or entry, record.id, at_ms=outcome.snapshot.taken_ms
                    ),
                )
                return
            case "reversed":
                change = transitions.change_of(entry, action)
                await self._close(record, "superseded", found.detail, writer)
                if change is not None:
                    await self._count_reversal(entry, change, policy, writer)
            case "failed":
                await self._close(record, "failed", found.detail, writer)
                await self._revert(record, writer)
            case ended:
                await self._close(record, ended, found.detail, writer)
        self._metrics.act_ended(action.method, found.judgement)

    async def _close(self, record: Record, state: verify.End, detail: str, writer: Writer) -> None:
        # Clean-up comes first: a closed record is not looked at again.
        await self._executor.finish(record, writer, closing=True)
        if state == "failed":
            await self._executor.abandon(record, writer)
        await self.ledger.advance(writer, record, state, detail=detail)
        self._say("act_ended", record, end=state, detail=detail)

    async def _revert(self, record: Record, writer: Writer) -> None:
        """Puts back what did not prove itself; what was itself a putting back is left as it is."""
        if record.actor in RESTORING:
            return
        outcome = await undo.revert(record, self.ledger, self._executor, writer)
        if outcome is not None:
            self._say("reverted", record, result=outcome.kind, detail=outcome.detail)
            if outcome.kind == "done":
                self._metrics.act_ended(record.action.method, "reverted")

    async def _heal(self, record: Record, snapshot: Snapshot, writer: Writer) -> None:
        """A StatefulSet's pod that is pending at a size that was put back stays so until it is evicted."""
        if record.actor not in RESTORING or record.action.target.kind != "StatefulSet":
            return
        failed = await undo.evict_stuck(list(_stuck(snapshot, record.action)), writer)
        for words in failed:
            self._log.warning("still_stuck", detail=words)

    async def _look_after(self, entry: Entry, outcome: Outcome, writer: Writer) -> None:
        """A value of ours that somebody else set is theirs from then on; who puts ours back is counted."""
        for change in entry.changes:
            if verify.drifted(entry, change, outcome.snapshot) is None:
                continue
            found = await _confirmed(entry, change, writer)
            if found.judgement in {"waiting", "gone"}:
                continue
            if found.judgement == "reversed":
                await self._count_reversal(entry, change, outcome.policy.policy, writer)
            else:
                await self.ledger.change(
                    writer,
                    entry.uid,
                    Site.LEDGER_OUTCOME,
                    lambda now, change=change, detail=found.detail: transitions.taken_over(  # type: ignore[misc]
                        now or entry, change, detail=detail
                    ),
                )
            self._log.info(found.judgement, ns=entry.ref.namespace, name=entry.ref.name, detail=found.detail)

    async def _count_reversal(self, entry: Entry, change: Change, policy: Policy, writer: Writer) -> None:
        now_ms = self._now_ms()

        def counted(now: Entry | None) -> Entry:
            return transitions.reversed_by_others(now or entry, change, at_ms=now_ms, guards=policy.guards)

        await self.ledger.change(writer, entry.uid, Site.LEDGER_OUTCOME, counted)
        self._log.info("reversed_by_others", ns=entry.ref.namespace, name=entry.ref.name)

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
                seats.add(action.seat.pod.uid)
            await self._act(action, writer)

    async def _act(self, action: Action, writer: Writer) -> None:
        began_s = self._clock.monotonic_s()
        paused = await read_control(self._session, self._namespace)
        if paused:
            self._log.info("act_held", action_id=action.id, because=paused)
            return
        outcome = await self._executor.execute(action, writer, actor="service", recheck=self._recheck)
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

    def _tell_memory(self, policy: Policy) -> None:
        entries = self.ledger.entries.values()
        self._metrics.memory(
            paused=bool(self._memory.control.paused),
            open_acts=sum(1 for entry in entries if entry.open_record),
            contested=sum(1 for entry in entries if entry.reversals >= policy.guards.max_reversals),
        )

    def _say(self, event: str, record: Record, **fields: object) -> None:
        ref = record.action.target
        self._log.info(
            event, record=record.id, reason=record.action.reason, ns=ref.namespace, name=ref.name, **fields
        )


def _verdict(plan: Plan, ref: WorkloadRef) -> Verdict | None:
    return next((row.verdict for row in plan.rows if row.workload == ref), None)


async def _confirmed(entry: Entry, change: Change, writer: Writer) -> verify.Finding:
    """What the object itself says: a watch may still show the state from before our own change."""
    live = await writer.workload(entry.ref)
    if live is None or live.uid != entry.uid:
        return verify.Finding("gone", f"no {entry.ref.kind} {entry.ref} of uid {entry.uid}")
    value = live.value(change.lever, resource=change.resource, container=change.container)
    drifted = verify.drift(change.original, change.current, value)
    return drifted or verify.Finding("waiting", "its change is not seen yet")


def _stuck(snapshot: Snapshot, action: Action) -> Iterator[PodRef]:
    """Pending pods of the workload that still ask for another amount than was put back."""
    for pod in snapshot.pods:
        owner = snapshot.workloads[pod.workload]
        if owner.uid != action.uid or pod.phase != "Pending" or pod.deleting:
            continue
        if snapshot.shapes[pod.shape].demand.get(action.resource, 0) != action.after:
            yield PodRef(pod.namespace, pod.name, pod.uid)
