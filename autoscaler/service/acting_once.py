"""One-shot acting for commands: a person approved it, the same guards judge it and the same ledger remembers it.

A person has no lease. What bounds a command instead is a window for each act: nothing of it is sent once whoever leads
may take it for abandoned.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import msgspec

from autoscaler.act import control, repair, undo
from autoscaler.act.contract import AuthorityLostError, Outcome, Site
from autoscaler.act.executor import SETTLE_MS, Executor, may_get_stuck
from autoscaler.act.ledger import ConfigMapLedger, LedgerConflictError, LedgerError
from autoscaler.act.transitions import TransitionError, change_by, is_about, settled
from autoscaler.act.undo import Restored
from autoscaler.act.writer import Writer
from autoscaler.decide import plan as decide_plan
from autoscaler.kube.errors import KubeError, NotFound
from autoscaler.kube.lease import LeaseClient, LeaseTimes, observe
from autoscaler.kube.session import KubeSession
from autoscaler.kube.wire.timestamps import parse_rfc3339_ms
from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.ledger import Entry, Record
from autoscaler.model.plan import Action, Plan, Refusal
from autoscaler.model.policy import Modes, Policy
from autoscaler.model.reasons import Reason
from autoscaler.service.clock import Clock, SystemClock
from autoscaler.service.faults import ServiceError
from autoscaler.service.once import read_live
from autoscaler.service.peers import cluster_access, kube_session
from autoscaler.service.recheck import find_again, refusal
from autoscaler.service.settings import Settings
from autoscaler.service.wiring import LEASE

WINDOW_S: Final = SETTLE_MS / 1000
"""From the end of the guards' look: what was written down in it is repaired by nobody before it is over."""
AGAIN_S: Final = 0.5
TRIES: Final = 4
"""A controller writes the status of what is being rolled out many times; putting back is tried again on what is there then."""
APPROVED: Final = frozenset({Reason.QUIET_PERIOD, Reason.MODE_RECOMMEND})
"""What holds an action back only as long as no person approved it."""
Progress: TypeAlias = Callable[[], AbstractContextManager[Callable[[str], None]]]
_anything: "msgspec.json.Decoder[Any]" = msgspec.json.Decoder()


class Approval:
    """The authority of a person's command for one act; the window begins anew with `begin`."""

    term: Final = 0

    def __init__(self, holder: str, clock: Clock) -> None:
        self.holder = holder
        self._clock = clock
        self.begin()

    def begin(self) -> None:
        """From now on there is the whole window."""
        self._until_s = self._clock.monotonic_s() + WINDOW_S

    def remaining_s(self) -> float:
        """Seconds for which a request may be under way; raises `AuthorityLostError` when there are none."""
        left_s = self._until_s - self._clock.monotonic_s()
        if left_s <= 0:
            raise AuthorityLostError(f"it was not done within {WINDOW_S:.0f} s")
        return left_s


@dataclass(frozen=True, kw_only=True)
class Desk:
    """A way to the API server, and what acting over it takes. `holder` is who acts, for the ledger."""

    settings: Settings
    environ: Mapping[str, str]
    policy: Policy
    session: KubeSession
    ledger: ConfigMapLedger
    executor: Executor
    holder: str
    clock: Clock

    def now_ms(self) -> int:
        """The API server's time."""
        return self.session.server_time_ms() or self.clock.now_ms()

    def approval(self) -> Approval:
        """A window that begins now."""
        return Approval(self.holder, self.clock)


@dataclass(frozen=True, kw_only=True)
class LedgerReading:
    """The ledger at a time; `unreadable` says of a workload's uid why its entry is not among the others.

    `fault` is why nothing may be done at all.
    """

    read_ms: int
    entries: tuple[Entry, ...]
    unreadable: Mapping[str, str]
    fault: str
    paused: str


@asynccontextmanager
async def open_desk(
    settings: Settings,
    environ: Mapping[str, str],
    policy: Policy,
    *,
    holder: str = "",
    clock: Clock | None = None,
) -> AsyncIterator[Desk]:
    """A desk whose clock is the API server's; transport errors inside become a `ServiceError` with one sentence."""
    machine = clock or SystemClock()
    access = await cluster_access(settings, environ)
    async with kube_session(settings, access, agent="command") as session:

        def now_ms() -> int:
            return session.server_time_ms() or machine.now_ms()

        ledger = ConfigMapLedger(namespace=settings.namespace, now_ms=now_ms, guards=lambda: policy.guards)
        executor = Executor(ledger, now_ms=now_ms)
        try:
            await session.get_json("/version", None, _anything)
            if session.server_time_ms() is None:
                raise ServiceError(f"{access.server}: its answers carry no Date, so no age can be judged")
            yield Desk(
                settings=settings,
                environ=environ,
                policy=policy,
                session=session,
                ledger=ledger,
                executor=executor,
                holder=holder,
                clock=machine,
            )
        except NotFound as error:
            hint = f" (AUTOSCALER_NAMESPACE is {settings.namespace!r})" if "namespaces" in str(error) else ""
            raise ServiceError(f"{access.server}: {error}{hint}") from None
        except KubeError as error:
            raise ServiceError(f"{access.server}: {error}") from None


async def apply_actions(
    desk: Desk, actions: Iterable[Action], *, progress: Progress, told: Callable[[Action, Outcome], None]
) -> list[Outcome]:
    """Carries out what a person approved, in the order given; `told` hears of each end at once.

    Each action is planned again on the cluster as it is then, with every mode set to apply. Only the very same change
    is made; the words of a refusal are the plan's.
    """
    outcomes = []
    for action in actions:
        with progress() as show:
            outcome = await _apply(desk, action, show)
        told(action, outcome)
        outcomes.append(outcome)
    return outcomes


async def _apply(desk: Desk, action: Action, show: Callable[[str], None]) -> Outcome:
    approval = desk.approval()

    async def recheck(asked: Action) -> Action | Refusal:
        answer = await _judge_again(desk, asked, show)
        approval.begin()
        return answer

    try:
        return await desk.executor.execute(
            action, Writer(desk.session, approval), actor="apply", recheck=recheck
        )
    except AuthorityLostError as error:
        return Outcome("unknown", f"{error}; the ledger tells how far it came")
    except ServiceError as error:
        return Outcome("refused", str(error))


async def _judge_again(desk: Desk, action: Action, show: Callable[[str], None]) -> Action | Refusal:
    stopped = await _stopped(desk, action)
    if stopped is not None:
        return stopped
    taken = await read_live(desk.settings, desk.environ, desk.policy, show=show)
    # Again: reading a large cluster takes long enough for somebody to say stop, or for the service to act.
    stopped = await _stopped(desk, action)
    if stopped is not None:
        return stopped
    snapshot = msgspec.structs.replace(taken, acts=desk.ledger.past_acts())
    approved = msgspec.structs.replace(desk.policy, modes=Modes(default="apply"))
    plan = await asyncio.to_thread(decide_plan, snapshot, approved, snapshot.taken_ms)
    return find_again(_let_through(plan), action)


async def _stopped(desk: Desk, action: Action) -> Refusal | None:
    """What stops all acting: a pause, or a ledger that cannot be relied on; the ledger is read anew for it."""
    paused = await control.read_control(desk.session, desk.settings.namespace)
    if paused:
        return refusal(action, Reason.PAUSED, paused)
    await desk.ledger.load(desk.session)
    return refusal(action, Reason.LEDGER_UNREADABLE, desk.ledger.fault) if desk.ledger.fault else None


def _let_through(plan: Plan) -> Plan:
    """The plan without what a person's approval stands for."""
    actions = tuple(
        msgspec.structs.replace(one, held_by=tuple(held for held in one.held_by if held not in APPROVED))
        for one in plan.actions
    )
    return msgspec.structs.replace(plan, actions=actions)


async def undo_entries(
    desk: Desk, wanted: Callable[[Entry], bool], *, told: Callable[[Restored], None]
) -> list[Restored]:
    """Puts back every value of ours in the wanted workloads; `told` hears of each end at once."""
    await desk.ledger.load(desk.session)
    found = []
    for uid in sorted(uid for uid, entry in desk.ledger.entries.items() if wanted(entry)):
        for restored in await _undo(desk, uid):
            told(restored)
            found.append(restored)
    return found


async def forget_disputes(desk: Desk, wanted: Callable[[Entry], bool]) -> list[WorkloadRef]:
    """A person has settled what was between an owner and us: reversals, failures and back-off are forgotten."""
    forgotten = []
    for uid, entry in sorted(desk.ledger.entries.items()):
        if not wanted(entry) or entry.open_record or not (entry.reversals or entry.failures):
            continue
        writer = Writer(desk.session, desk.approval())
        try:
            await desk.ledger.change(writer, uid, Site.LEDGER_OUTCOME, _settled)
        except LedgerError as error:
            raise ServiceError(f"{entry.ref}: {error}") from None
        forgotten.append(entry.ref)
    return forgotten


def _settled(entry: Entry | None) -> Entry:
    if entry is None:
        raise LedgerConflictError("its entry is no longer in the ledger")
    return settled(entry)


async def _undo(desk: Desk, uid: str) -> list[Restored]:
    """One workload, tried again while others keep changing it; each field counts as it ended last."""
    ended: dict[tuple[str, str, str], Restored] = {}
    for attempt in range(TRIES):
        if attempt:
            await desk.clock.sleep(AGAIN_S)
            await desk.ledger.load(desk.session)
        entry = desk.ledger.entries.get(uid)
        if entry is None:
            break
        again = False
        for restored in await _undo_once(desk, entry):
            change = restored.change
            ended[(change.lever, change.resource, change.container)] = restored
            again = again or restored.outcome.kind == "conflict"
        if not again:
            break
    return list(ended.values())


async def _undo_once(desk: Desk, entry: Entry) -> list[Restored]:
    writer = Writer(desk.session, desk.approval())
    try:
        under_way = await _settle(desk, entry, writer)
        if under_way is not None:
            return list(_all(entry, under_way))
        entry = desk.ledger.entries.get(entry.uid, entry)
        if not entry.changes:
            return []
        return await undo.undo_entry(entry, desk.ledger, desk.executor, writer)
    except (TransitionError, LedgerConflictError) as error:
        return list(_all(entry, Outcome("conflict", str(error))))
    except (KubeError, LedgerError) as error:
        return list(_all(entry, Outcome("refused", str(error))))
    except AuthorityLostError as error:
        return list(_all(entry, Outcome("unknown", f"{error}; the ledger tells how far it came")))


async def _settle(desk: Desk, entry: Entry, writer: Writer) -> Outcome | None:
    """Settles what a crash left open, or why it has to be waited for."""
    record = entry.open_record
    if record is not None and record.state == "acted" and record.actor == "undo":
        await _follow_up(desk, record, writer)
    if record is None or record.state != "intended":
        return None
    now_ms, over_ms = desk.now_ms(), record.settle_ms + repair.MARGIN_MS
    if now_ms <= over_ms:
        left_s = (over_ms - now_ms) // 1000 + 1
        return Outcome("refused", f"an act on it is under way; ask again in {left_s} s", Reason.COOLDOWN)
    await repair.settle(record, desk.ledger, desk.executor, writer, now_ms=now_ms)
    return None


async def _follow_up(desk: Desk, record: Record, writer: Writer) -> None:
    """A putting back that was accepted and whose command died then: our trace goes, and nothing is left to prove."""
    await desk.executor.finish(record, writer, closing=True)
    if not may_get_stuck(record.action):
        await desk.ledger.advance(writer, record, "verified", detail="put back")


def _all(entry: Entry, outcome: Outcome) -> Iterator[Restored]:
    """The outcome for every value of ours, and for the one that an act under way may be setting."""
    for change in entry.changes:
        yield Restored(entry, change, outcome)
    record = entry.open_record
    if record is not None and record.action.lever != "evict":
        action = record.action
        if not any(is_about(change, action) for change in entry.changes):
            yield Restored(entry, change_by(action, action.before), outcome)


async def read_ledger(desk: Desk) -> LedgerReading:
    """What was done so far, and whether acting is paused."""
    await desk.ledger.load(desk.session)
    return LedgerReading(
        read_ms=desk.now_ms(),
        entries=tuple(desk.ledger.entries.values()),
        unreadable=desk.ledger.unreadable,
        fault=desk.ledger.fault,
        paused=await control.read_control(desk.session, desk.settings.namespace),
    )


async def acting_leader(desk: Desk) -> str:
    """Who leads and has made the ledger his, so that he verifies what is done; empty where nobody seems to.

    A hint for people: the age of the lease is judged by the API server's clock.
    """
    client = LeaseClient(
        desk.session,
        namespace=desk.settings.namespace,
        name=LEASE,
        times=LeaseTimes(),
        wall_ms=desk.now_ms,
    )
    try:
        lease = await client.read()
        await desk.ledger.load(desk.session)
    except KubeError:
        return ""
    seen = observe(lease, None, now_s=0.0)
    if lease is None or not seen.holder or seen.term != desk.ledger.largest_term:
        return ""
    try:
        renewed_ms = parse_rfc3339_ms(lease.spec.renew_time or "")
    except ValueError:
        return ""
    return seen.holder if desk.now_ms() - renewed_ms <= 2 * seen.duration_s * 1000 else ""


async def pause(desk: Desk, *, because: str) -> str:
    """Stops all acting; what is in force then, by whom and since when."""
    return await control.pause(
        desk.session, desk.settings.namespace, by=desk.holder, because=because, now_ms=desk.now_ms()
    )


async def resume(desk: Desk) -> bool:
    """Lets it go on; whether it was paused."""
    return await control.resume(desk.session, desk.settings.namespace)
