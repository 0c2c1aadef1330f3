"""What became of our acts: half-done ones are settled, done ones judged, failed ones put back, lost ones given up.

Worked through with every plan, before anything new is begun. One workload that cannot be settled stops no other.
"""

from collections.abc import Callable, Iterator
from typing import Final

from autoscaler.act import aftercare, freed, repair, seats, transitions, undo, verify
from autoscaler.act.contract import Outcome as ActOutcome
from autoscaler.act.contract import Site
from autoscaler.act.executor import Executor
from autoscaler.act.ledger import ConfigMapLedger, LedgerError
from autoscaler.act.requests import NoRequestError, has_lever
from autoscaler.act.transitions import RESTORING, TransitionError
from autoscaler.act.writer import Writer
from autoscaler.kube.errors import KubeError
from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.ledger import Change, Entry, Record
from autoscaler.model.plan import Action, Plan, PodRef, Verdict
from autoscaler.model.policy import Policy
from autoscaler.model.snapshot import Snapshot
from autoscaler.service.cycle import Outcome
from autoscaler.service.logs import Log
from autoscaler.service.telemetry import Metrics

OWED_AGAIN_MS: Final = 60_000


class Settler:
    """Brings the ledger and the cluster together again."""

    def __init__(
        self,
        *,
        ledger: ConfigMapLedger,
        executor: Executor,
        now_ms: Callable[[], int],
        metrics: Metrics,
        log: Log,
        told: Callable[[Action, ActOutcome], None] = lambda _action, _outcome: None,
    ) -> None:
        """`told` hears of every putting back."""
        self._told = told
        self._ledger = ledger
        self._executor = executor
        self._now_ms = now_ms
        self._metrics = metrics
        self._log = log
        self._owed_again_ms: dict[str, int] = {}

    async def settle(self, outcome: Outcome, writer: Writer) -> None:
        """Every open act, every value of ours and every putting back that is owed, against what is there now.

        Raises `AuthorityLostError` as soon as nothing may be sent any more.
        """
        for entry in list(self._ledger.entries.values()):
            try:
                await self._settle_entry(entry, outcome, writer)
            except (KubeError, LedgerError, TransitionError, NoRequestError) as error:
                self._log.warning(
                    "not_settled", ns=entry.ref.namespace, name=entry.ref.name, error=str(error)
                )
        await self._give_up_stalled_seats(outcome, writer)
        await self._follow_freed(outcome, writer)

    async def _follow_freed(self, outcome: Outcome, writer: Writer) -> None:
        """What became of the boards of verified acts; it is only told, so it may fail and is looked at again."""
        entries, within_ms = self._ledger.entries.values(), int(outcome.policy.policy.guards.freed_followed)
        for row in list(freed.follow(entries, outcome.snapshot, within_ms=within_ms)):

            def noted(now: Entry | None, row: freed.Followed = row) -> Entry:
                return freed.noted(now or row.entry, row.record.id, row.freed)

            try:
                await self._ledger.note(writer, row.entry.uid, noted)
            except (KubeError, LedgerError) as error:
                self._log.warning("freed_not_noted", record=row.record.id, error=str(error))
            else:
                fates = [f"{one.boards} {one.fate} on {one.node}" for one in row.freed]
                self._say("freed_boards", row.record, fates=fates)

    async def _give_up_stalled_seats(self, outcome: Outcome, writer: Writer) -> None:
        entries, within_ms = self._ledger.entries.values(), int(outcome.policy.policy.guards.ready_deadline)
        for seat in list(seats.stalled(entries, outcome.plan, outcome.snapshot, within_ms=within_ms)):
            try:
                await aftercare.give_up_seat(seat, writer)
            except KubeError as error:
                self._log.warning("seat_not_given_up", pod=str(seat.pod), node=seat.node, error=str(error))
            else:
                self._log.info("seat_given_up", pod=str(seat.pod), node=seat.node)

    async def _settle_entry(self, entry: Entry, outcome: Outcome, writer: Writer) -> None:
        record = entry.open_record
        if record is None:
            owed = undo.owed_revert(entry)
            if owed is not None:
                await self._make_up_for(owed, writer)
            else:
                await self._look_after(entry, outcome, writer)
        elif record.state == "intended":
            await self._repair(record, writer)
        else:
            await self._judge(entry, record, outcome, writer)

    async def _make_up_for(self, record: Record, writer: Writer) -> None:
        """A putting back that is owed; one that is refused is tried again a minute later, not with every plan."""
        uid, now_ms = record.action.uid, self._now_ms()
        if now_ms >= self._owed_again_ms.get(uid, 0):
            self._owed_again_ms[uid] = now_ms + OWED_AGAIN_MS
            await self._revert(record, writer)

    async def _repair(self, record: Record, writer: Writer) -> None:
        found = await repair.settle(record, self._ledger, self._executor, writer, now_ms=self._now_ms())
        if found.settled != "waiting":
            self._say("repaired", record, end=found.settled, detail=found.detail)
        if found.settled in {"dropped", "superseded", "gone"}:
            self._metrics.act_ended(record.action.method, found.settled)

    async def _judge(self, entry: Entry, record: Record, outcome: Outcome, writer: Writer) -> None:
        snapshot, policy, action = outcome.snapshot, outcome.policy.policy, record.action
        if snapshot.taken_ms <= record.acted_ms or await self._heals(record, snapshot, writer):
            return
        verdict = _verdict(outcome.plan, action.target)
        found = verify.judge(record, snapshot, verdict=verdict, policy=policy, now_ms=snapshot.taken_ms)
        if found.judgement in {"reversed", "superseded", "gone"}:
            step = transitions.change_by(action, action.before)
            seen, found = found, await _confirmed(entry, step, writer)
            if seen.judgement == "gone" and found.judgement == "waiting":
                # Out of scope, adopted by another owner, or no longer readable: what its owner had is still owed.
                found = verify.unseen(record, policy=policy, now_ms=snapshot.taken_ms)
        match found.judgement:
            case "waiting":
                return
            case "ready":
                await self._begin_probation(entry, record, snapshot.taken_ms, writer)
                return
            case "reversed":
                await self._executor.finish(record, writer, closing=True)
                await self._close_reversed(entry, record, policy, found.detail, writer)
            case "failed":
                await self._close(record, "failed", found.detail, writer)
                await self._revert(record, writer)
            case ended:
                await self._close(record, ended, found.detail, writer)
        self._metrics.act_ended(action.method, found.judgement)

    async def _begin_probation(self, entry: Entry, record: Record, at_ms: int, writer: Writer) -> None:
        def ready(now: Entry | None) -> Entry:
            return transitions.pods_ready(now or entry, record.id, at_ms=at_ms)

        await self._ledger.change(writer, entry.uid, Site.LEDGER_OUTCOME, ready)

    async def _close(self, record: Record, state: verify.End, detail: str, writer: Writer) -> None:
        # Clean-up comes first: a closed record is not looked at again.
        await self._executor.finish(record, writer, closing=True)
        if state == "failed" and record.action.seat is not None:
            await aftercare.give_up_seat(record.action.seat, writer)
        await self._ledger.advance(writer, record, state, detail=detail)
        self._say("act_ended", record, end=state, detail=detail)

    async def _close_reversed(
        self, entry: Entry, record: Record, policy: Policy, detail: str, writer: Writer
    ) -> None:
        """One swap for both: a crash between them would forget the count."""
        now_ms, guards = self._now_ms(), policy.guards
        change = transitions.change_of(entry, record.action)

        def closed(now: Entry | None) -> Entry:
            after = transitions.advance(
                now or entry, record.id, "superseded", at_ms=now_ms, guards=guards, detail=detail
            )
            if change is None:
                return after
            return transitions.reversed_by_others(after, change, at_ms=now_ms, guards=guards)

        await self._ledger.change(writer, entry.uid, Site.LEDGER_OUTCOME, closed)
        self._say("reversed_by_others", record, detail=detail)

    async def _revert(self, record: Record, writer: Writer) -> None:
        """Puts back what did not prove itself; what was itself a putting back is left as it is."""
        if record.actor in RESTORING:
            return
        outcome = await undo.revert(record, self._ledger, self._executor, writer)
        if outcome is not None:
            self._say("reverted", record, result=outcome.kind, detail=outcome.detail)
            if outcome.kind == "done":
                self._metrics.act_ended(record.action.method, "reverted")
            if outcome.record is not None:
                self._told(outcome.record.action, outcome)

    async def _heals(self, record: Record, snapshot: Snapshot, writer: Writer) -> bool:
        """Whether a putting back waits for pods that hang: a StatefulSet does not replace them, so they are evicted.

        Before it is judged: a leader may come too late for the deadline, and not too late to heal.
        """
        action = record.action
        if record.actor not in RESTORING or action.lever != "template" or action.target.kind != "StatefulSet":
            return False
        stuck = list(_stuck(snapshot, action))
        failed = await undo.evict_stuck(stuck, writer)
        for words in failed:
            self._log.warning("still_stuck", detail=words)
        # What cannot be healed is judged: its time runs out.
        return len(stuck) > len(failed)

    async def _look_after(self, entry: Entry, outcome: Outcome, writer: Writer) -> None:
        """A value of ours that somebody else set is theirs from then on; who puts ours back is counted."""
        if not any(row.uid == entry.uid for row in outcome.snapshot.workloads):
            await self._see_off(entry, writer)
            return
        for change in entry.changes:
            if verify.drifted(entry, change, outcome.snapshot) is None:
                continue
            found = await _confirmed(entry, change, writer)
            if found.judgement == "reversed":
                await self._count_reversal(entry, change, outcome.policy.policy, writer)
                for record in entry.records[-1:]:
                    self._metrics.act_ended(record.action.method, "reversed")
            elif found.judgement == "superseded" or (
                found.judgement == "gone" and change.through is not None
            ):
                await self._let_go(entry, change, found.detail, writer)
            self._log.info(found.judgement, ns=entry.ref.namespace, name=entry.ref.name, detail=found.detail)

    async def _see_off(self, entry: Entry, writer: Writer) -> None:
        """An object that the watches do not show may be out of scope; only one that is gone is forgotten."""
        if transitions.departed(entry) == entry:
            return
        kept = {entry.written(change) for change in entry.changes}
        if not kept and (entry.ref.kind == "Job" or not has_lever(entry.ref)):
            # Only its pods were evicted and nothing says that it is gone: it is forgotten once no back-off runs.
            if self._now_ms() < entry.not_before_ms:
                return
            await self._depart(entry, writer)
            return
        for ref, uid in kept or {(entry.ref, entry.uid)}:
            live = await writer.workload(ref)
            if live is not None and live.uid == uid and not live.ended:
                return
        await self._depart(entry, writer)

    async def _depart(self, entry: Entry, writer: Writer) -> None:
        await self._ledger.change(
            writer, entry.uid, Site.LEDGER_OUTCOME, lambda now: transitions.departed(now or entry)
        )

    async def _let_go(self, entry: Entry, change: Change, detail: str, writer: Writer) -> None:
        def without(now: Entry | None) -> Entry:
            return transitions.taken_over(now or entry, change, detail=detail)

        await self._ledger.change(writer, entry.uid, Site.LEDGER_OUTCOME, without)

    async def _count_reversal(self, entry: Entry, change: Change, policy: Policy, writer: Writer) -> None:
        now_ms = self._now_ms()

        def counted(now: Entry | None) -> Entry:
            return transitions.reversed_by_others(now or entry, change, at_ms=now_ms, guards=policy.guards)

        await self._ledger.change(writer, entry.uid, Site.LEDGER_OUTCOME, counted)

    def _say(self, event: str, record: Record, **fields: object) -> None:
        ref = record.action.target
        self._log.info(
            event, record=record.id, reason=record.action.reason, ns=ref.namespace, name=ref.name, **fields
        )


def _verdict(plan: Plan, ref: WorkloadRef) -> Verdict | None:
    return next((row.verdict for row in plan.rows if row.workload == ref), None)


async def _confirmed(entry: Entry, change: Change, writer: Writer) -> verify.Finding:
    """What the object itself says: a watch may still show the state from before our own change."""
    ref, uid = entry.written(change)
    live = await writer.workload(ref)
    if live is None or live.uid != uid:
        return verify.Finding("gone", f"no {ref.kind} {ref} of uid {uid}")
    if live.ended:
        return verify.Finding("gone", f"{ref.kind} {ref} has ended")
    value = live.value(change.lever, resource=change.resource, container=change.container)
    drifted = verify.drift(change.original, change.current, value)
    return drifted or verify.Finding("waiting", "its change is not seen yet")


def _stuck(snapshot: Snapshot, action: Action) -> Iterator[PodRef]:
    """Pending pods of the workload whose container still asks for another amount than was put back."""
    for pod in snapshot.pods:
        owner = snapshot.workloads[pod.workload]
        if owner.uid != action.uid or pod.phase != "Pending" or pod.deleting:
            continue
        # Not the whole pod's demand: an init container, or one that a webhook added, may ask for more.
        amount = verify.amount_in(snapshot.shapes[pod.shape], action.resource, action.container)
        if amount is not None and amount != action.after:
            yield PodRef(pod.namespace, pod.name, pod.uid)
