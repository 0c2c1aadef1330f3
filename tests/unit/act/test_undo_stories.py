"""Whatever acts, crashes, owners, leaders and persons do in any order, undo restores what the owner had."""

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any

from act_worlds import WEB, ActWorld, change_action, fail_once, uid_of
from build import HOUR_MS
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.act.contract import AuthorityLostError, Site
from autoscaler.act.repair import settle
from autoscaler.act.transitions import reversed_by_others, taken_over
from autoscaler.act.undo import revert, undo_all, undo_entry
from autoscaler.act.verify import drift
from autoscaler.kube.errors import Unreachable
from autoscaler.model.ledger import Change, Entry
from autoscaler.model.plan import Action
from autoscaler.model.reasons import Reason

LATE_MS = HOUR_MS


async def as_planned(action: Action) -> Action:
    return action


class Story:
    """A workload under a service with changing leaders, an owner and a person; `owned` is what its owner last set."""

    def __init__(self) -> None:
        self.world = ActWorld(shards=1)
        self.world.add(boards=4, replicas=3)
        self.world.store_text("uid-future", '{"version":2}')
        self.owned: dict[Any, int] = {"template": 4, "scale": 3}
        self.deposed: list[tuple[Any, Any]] = []
        self.term = 1

    async def begin(self) -> None:
        await self.world.ledger.load(self.world.server)
        await self.world.ledger.take_over(self.world.writer)

    async def act(self, lever: Any, value: int, fault: str) -> None:
        world = self.world
        if world.value(lever) == value:
            return
        self._arm(fault)
        await world.act(value, lever)
        world.server.before = world.server.after = lambda _verb, _path: None

    async def close(self, state: Any) -> None:
        found = await self.world.reload()
        record = found.open_record if found is not None else None
        if record is None or record.state != "acted":
            return
        record = await self.world.ledger.advance(self.world.writer, record, state)
        if state == "failed" and record.actor == "service":
            await revert(record, self.world.ledger, self.world.executor, self.world.writer)

    async def own(self, lever: Any, value: int) -> None:
        """The owner sets a value; one that is exactly ours cannot be told from ours, so he sets no such one."""
        found = await self.world.reload()
        opened = found.open_record if found is not None else None
        ours = {change.current for change in found.changes if change.lever == lever} if found else set()
        ours |= {opened.action.after} if opened is not None and opened.action.lever == lever else set()
        if value not in {self.world.value(lever), *ours}:
            self.world.set_value(value, lever)
            self.owned[lever] = value

    async def look(self) -> None:
        """What the service does with values of its own that are no longer there."""
        found = await self.world.reload()
        for change in found.changes if found is not None and found.open_record is None else ():
            drifted = drift(change.original, change.current, self.world.value(change.lever))
            if drifted is None:
                continue
            await self.world.ledger.change(
                self.world.writer,
                uid_of(WEB),
                Site.LEDGER_OUTCOME,
                partial(self._let_go, change, drifted.judgement),
            )

    def _let_go(self, change: Change, judgement: str, now: Entry | None) -> Entry:
        assert now is not None
        if judgement == "superseded":
            return taken_over(now, change, detail="it is another")
        again = reversed_by_others(now, change, at_ms=self.world.clock(), guards=self.world.guards)
        assert again.reversals == now.reversals + 1
        return again

    async def depose(self) -> None:
        """A new leader takes over; the old one keeps its ledger and does not know."""
        world = self.world
        self.deposed.append((world.executor, world.writer))
        self.term += 1
        world.ledger = world.new_ledger()
        world.executor = world.new_executor(world.ledger)
        world.writer = world.writer_of(self.term, f"leader {self.term}")
        await self.begin()

    async def act_deposed(self, lever: Any, value: int) -> None:
        """Nothing that a deposed leader tries reaches the workload."""
        before = self.world.value(lever)
        for executor, writer in self.deposed:
            action = change_action(before, value, lever=lever)
            if before == value:
                continue
            try:
                outcome = await executor.execute(action, writer, actor="service", recheck=as_planned)
            except AuthorityLostError:
                continue
            assert outcome.kind == "refused", "an act that it remembers is still open"
        assert self.world.value(lever) == before

    async def repair(self) -> None:
        self.world.clock.pass_ms(LATE_MS)
        found = await self.world.reload()
        record = found.open_record if found is not None else None
        if record is not None:
            world = self.world
            await settle(record, world.ledger, world.executor, world.writer, now_ms=world.clock())

    async def undo(self, fault: str) -> None:
        world = self.world
        await world.ledger.load(world.server)
        found = world.ledger.entries.get(uid_of(WEB))
        if found is None:
            return
        self._arm(fault)
        # What could not be written down is settled later, as after a crash.
        with suppress(Unreachable):
            await undo_entry(found, world.ledger, world.executor, world.person)
        world.server.before = world.server.after = lambda _verb, _path: None

    def _arm(self, fault: str) -> None:
        lost = Unreachable("timeout", "no answer")
        if fault != "none":
            what = {"sent": "PATCH /apis", "unsent": "PATCH /apis", "outcome": "PUT"}[fault]
            arm_second(self.world, fail_once(lost, on=what, after=fault == "sent"), skip=fault == "outcome")

    async def check(self) -> None:
        ledger = self.world.new_ledger()
        found = await self.world.reload(ledger)
        assert self.world.text("uid-future") == '{"version":2}'
        if found is None:
            return
        assert sum(record.is_open for record in found.records) <= 1
        ours = {change.lever: change for change in found.changes}
        opened = found.open_record
        for lever, owned in self.owned.items():
            live = self.world.value(lever)
            if live != owned and not (opened and opened.state == "intended" and opened.action.lever == lever):
                assert (ours[lever].original, ours[lever].current) == (owned, live)


def arm_second(world: ActWorld, arm: Any, *, skip: bool) -> None:
    """Arms a fault, for the outcome's swap only once the intent's has passed."""
    if not skip:
        arm(world.server)
        return

    def intent_passed(verb: str, _path: str) -> None:
        if verb == "PUT":
            arm(world.server)

    world.server.after = intent_passed


LEVERS = st.sampled_from(["template", "scale"])
VALUES = st.integers(1, 5)
FAULTS = st.sampled_from(["none", "none", "sent", "unsent", "outcome"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("act"), LEVERS, VALUES, FAULTS),
        st.tuples(st.just("close"), st.sampled_from(["verified", "failed"])),
        st.tuples(st.just("own"), LEVERS, VALUES),
        st.tuples(st.just("look")),
        st.tuples(st.just("depose")),
        st.tuples(st.just("act_deposed"), LEVERS, VALUES),
        st.tuples(st.just("repair")),
        st.tuples(st.just("undo"), FAULTS),
    ),
    max_size=25,
)


@given(STEPS)
def test_whatever_happened_undo_restores_what_the_owner_had_and_no_deposed_leader_acts(steps: Any) -> None:
    async def told() -> None:
        story = Story()
        await story.begin()
        for name, *arguments in steps:
            await getattr(story, name)(*arguments)
            await story.check()
        await story.repair()
        found = await undo_all(story.world.ledger, story.world.executor, story.world.person)
        assert all(one.outcome.kind == "done" or one.outcome.reason is Reason.SUPERSEDED for one in found), (
            found
        )
        assert {lever: story.world.value(lever) for lever in story.owned} == story.owned
        await story.check()

    asyncio.run(told())
