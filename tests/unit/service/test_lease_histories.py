"""Whatever the network, the clocks and the processes do, two candidates never believe at once that they may write."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Literal

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from lease_worlds import Candidate, LeaseServer, Mode, World, candidate, settled

SPEEDS = (0.9, 1.0, 1.2)
"""A deadline of 10 s by the slowest is shorter than a duration of 15 s by the fastest."""
indexes = st.integers(0, 2)


class Leaders(RuleBasedStateMachine):
    """Three processes; one that dies is replaced by another."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.world, self.server = World(), LeaseServer()
        self.world.after_each = self.no_two_may_write
        self.server.on_write = self.released_after_its_work
        self.living: list[Candidate] = []
        self.dead: list[Candidate] = []
        self.terms: list[int] = []
        self.born = 0

    def run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self.loop.run_until_complete(coroutine)

    @initialize(rates=st.tuples(*[st.sampled_from(SPEEDS)] * 3))
    def begin(self, rates: tuple[float, ...]) -> None:
        async def start() -> None:
            self.living = [self.birth(rate) for rate in rates]
            await settled()

        self.run(start())

    def birth(self, rate: float) -> Candidate:
        self.born += 1
        clock = {"rate": rate, "zero_s": 1000.0 * self.born, "wall_ms": -3_600_000 * self.born}
        born = candidate(
            self.world, self.server, f"process-{self.born}", on_term=self.terms.append, clock=clock
        )
        born.start()
        return born

    @rule(seconds=st.sampled_from((0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 16.0, 31.0)))
    def time_passes(self, seconds: float) -> None:
        self.run(self.world.advance(seconds))

    @rule(index=indexes, mode=st.sampled_from(("open", "slow", "refused", "silent", "held")))
    def network_changes(self, index: int, mode: Mode) -> None:
        self.living[index].wire.mode = mode

    @rule(
        how=st.sampled_from(("refused", "silent", "held", "stopped")),
        slow_before=st.booleans(),
        seconds=st.sampled_from((9.0, 11.0, 13.0, 16.0)),
    )
    def the_leader_is_cut_off(
        self, how: Mode | Literal["stopped"], seconds: float, *, slow_before: bool
    ) -> None:
        """While the others see and reach everything."""

        async def cut_off() -> None:
            for one in self.living:
                one.clock.resume()
                one.wire.mode = "open"
            await self.world.advance(5.0)
            for leader in [one for one in self.living if one.may_write()]:
                if slow_before:
                    leader.wire.mode = "slow"
                    await self.world.advance(20.0)
                if how == "stopped":
                    leader.clock.pause()
                else:
                    leader.wire.mode = how
            await self.world.advance(seconds)

        self.run(cut_off())

    @rule(index=indexes)
    def an_answer_is_lost(self, index: int) -> None:
        self.living[index].wire.lose_answers += 1

    @rule(index=indexes, answered=st.booleans(), dead=st.booleans())
    def a_held_request_arrives(self, index: int, *, answered: bool, dead: bool) -> None:
        senders = [one for one in (self.dead if dead else self.living[index : index + 1]) if one.wire.held]

        async def arrive() -> None:
            if senders:
                senders[0].wire.deliver(answered=answered)
            await settled()

        self.run(arrive())

    @rule(index=indexes)
    def a_process_is_stopped(self, index: int) -> None:
        self.living[index].clock.pause()

    @rule(index=indexes)
    def a_process_goes_on(self, index: int) -> None:
        async def go_on() -> None:
            self.living[index].clock.resume()
            await settled()

        self.run(go_on())

    @rule(index=indexes, rate=st.sampled_from(SPEEDS))
    def a_process_is_killed(self, index: int, rate: float) -> None:
        async def replace() -> None:
            self.living[index].clock.pause()
            self.dead.append(self.living[index])
            self.living[index] = self.birth(rate)
            await settled()

        self.run(replace())

    @rule(index=indexes, rate=st.sampled_from(SPEEDS))
    def a_process_ends(self, index: int, rate: float) -> None:
        async def end() -> None:
            ending = self.living[index]
            ending.clock.resume()
            ending.wire.mode = "open"
            ending.stop.set()
            await self.world.advance(5.0)
            assert ending.task is not None
            assert ending.task.done()
            ending.task.result()
            self.living[index] = self.birth(rate)
            await settled()

        self.run(end())

    def no_two_may_write(self) -> None:
        writing = [one.name for one in self.living if one.may_write()]
        assert len(writing) <= 1, writing

    def released_after_its_work(self, body: dict[str, Any]) -> None:
        if not body["spec"]["holderIdentity"]:
            holder = self.server.holder
            assert not [one for one in (*self.living, *self.dead) if one.name == holder and one.working]

    @invariant()
    def two_never_may_write(self) -> None:
        self.no_two_may_write()

    @invariant()
    def terms_grow(self) -> None:
        assert self.terms == sorted(set(self.terms))
        assert all(term > 0 for term in self.terms)

    @invariant()
    def nobody_gives_up(self) -> None:
        assert [one.name for one in self.living if one.task is None or one.task.done()] == []

    def teardown(self) -> None:
        """In a world that is well again somebody leads, and only one."""

        async def heal() -> None:
            for one in self.living:
                one.clock.resume()
                one.wire.mode, one.wire.lose_answers = "open", 0
            await self.world.advance(60.0)
            leading = [one for one in self.living if one.may_write()]
            for one in (*self.living, *self.dead):
                one.wire.mode = "refused"
                await one.kill()
            assert len(leading) == min(1, len(self.living))

        try:
            self.run(heal())
        finally:
            self.loop.close()


TestLeaders = Leaders.TestCase
TestLeaders.settings = settings(stateful_step_count=40)
