"""One leader at a time, by one's own clock; the work ends, awaited, before the lease is given back."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from service_fakes import ManualClock, RecordingLog, settle

from autoscaler.act.contract import AuthorityLostError
from autoscaler.kube.errors import Conflict, Unreachable
from autoscaler.kube.lease import TERM, LeaseObject, LeaseTimes, Seen, lease_decoder, next_step, observe
from autoscaler.service.leadership import Leadership, Term

TIMES = LeaseTimes()


@dataclass
class ModelLease:
    """One Lease on a server, in place of the client: versions, compare-and-swap, faults when told."""

    body: dict[str, Any] | None = None
    version: int = 0
    faulty: bool = False
    lose_answers: bool = False
    writes: list[str] = field(default_factory=list)

    async def read(self) -> LeaseObject | None:
        if self.faulty:
            raise Unreachable("timeout", "no answer")
        return self._object()

    async def write(self, seen: Seen, *, holder: str, term: int, taking: bool) -> LeaseObject:
        del taking
        if self.faulty:
            raise Unreachable("timeout", "no answer")
        if seen.version != (str(self.version) if self.body else ""):
            raise Conflict(409, "Conflict", "the object has been modified")
        self.version += 1
        transitions = seen.transitions + (holder != seen.holder)
        self.body = {
            "metadata": {"name": "x", "resourceVersion": str(self.version), "annotations": {TERM: str(term)}},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": transitions},
        }
        self.writes.append(holder or "released")
        if self.lose_answers:
            raise Unreachable("timeout", "the answer was lost")
        found = self._object()
        assert found is not None
        return found

    def _object(self) -> LeaseObject | None:
        return lease_decoder.decode(json.dumps(self.body)) if self.body else None


@dataclass
class Work:
    """What a leader does: it runs until it is ended, and says when."""

    lease: ModelLease
    terms: list[Term] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    fail: Exception | None = None

    async def __call__(self, term: Term) -> None:
        self.terms.append(term)
        if self.fail is not None:
            raise self.fail
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            self.ended.append(self.lease.writes[-1])


class Bench:
    """One candidate and its work."""

    def __init__(self, lease: ModelLease, name: str = "a", clock: ManualClock | None = None) -> None:
        self.lease, self.clock, self.stop = lease, clock or ManualClock(), asyncio.Event()
        log: Any = RecordingLog()
        client: Any = lease
        self.known_term = 0
        self.leadership = Leadership(
            client, identity=name, clock=self.clock, log=log, times=TIMES, least_term=lambda: self.known_term
        )
        self.work = Work(lease)
        self.task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self.task = asyncio.create_task(self.leadership.lead(self.work, self.stop))
        await settle()

    async def end(self) -> None:
        self.stop.set()
        await self.clock.advance(30)
        assert self.task is not None
        await asyncio.wait({self.task})


async def test_a_free_lease_is_taken_at_once_and_given_back_at_the_end() -> None:
    bench = Bench(ModelLease())
    await bench.start()
    (term,) = bench.work.terms
    leads = term.remaining_s()
    bench.stop.set()
    await bench.clock.advance(25)

    assert leads == 10.0
    assert term.term == 1
    assert bench.lease.writes[0] == "a"
    assert bench.lease.writes[-1] == "released"
    with pytest.raises(AuthorityLostError):
        term.remaining_s()


async def test_the_work_has_ended_before_the_lease_is_given_back() -> None:
    bench = Bench(ModelLease())
    await bench.start()
    await bench.end()

    assert bench.work.ended == ["a"]
    assert bench.lease.writes[-1] == "released"


async def test_a_lease_is_renewed_while_the_work_goes_on() -> None:
    bench = Bench(ModelLease())
    await bench.start()
    for _ in range(60):
        await bench.clock.advance(1)

    assert bench.work.terms[0].remaining_s() > 7
    assert len(bench.work.terms) == 1
    await bench.end()


async def test_a_foreign_lease_is_waited_for_by_our_own_clock() -> None:
    lease, clock = ModelLease(), ManualClock()
    await lease.write(Seen(), holder="b", term=7, taking=True)
    bench = Bench(lease, clock=clock)
    await bench.start()
    await clock.advance(14)
    early = list(bench.work.terms)
    await clock.advance(4)

    assert early == []
    assert [term.term for term in bench.work.terms] == [8]
    await bench.end()


async def test_a_leader_that_cannot_renew_stops_within_its_deadline_and_its_work_is_awaited() -> None:
    bench = Bench(ModelLease())
    await bench.start()
    bench.lease.faulty = True
    await bench.clock.advance(9)
    (term,) = bench.work.terms
    still = term.remaining_s()
    await bench.clock.advance(2)

    assert 0 < still <= 1
    assert bench.work.ended == ["a"]
    with pytest.raises(AuthorityLostError):
        term.remaining_s()
    assert bench.leadership.fault.startswith("API server unreachable")
    bench.lease.faulty = False
    await bench.end()


async def test_a_process_that_slept_finds_its_authority_over_on_its_first_look() -> None:
    clock = ManualClock()
    term = Term(number=1, holder="a", within_s=10.0, clock=clock, sent_s=0.0)
    await clock.advance(30)

    with pytest.raises(AuthorityLostError, match="not renewed for 30"):
        term.remaining_s()
    with pytest.raises(AuthorityLostError):
        term.renewed(30.0)
    with pytest.raises(AuthorityLostError):
        term.remaining_s()


async def test_who_finds_another_name_on_the_lease_stops_at_once() -> None:
    bench = Bench(ModelLease())
    await bench.start()
    seen = observe(await bench.lease.read(), None, now_s=0)
    await bench.lease.write(seen, holder="b", term=9, taking=True)
    await bench.clock.advance(3)

    assert bench.work.ended == ["b"]
    assert bench.leadership.leader == "b"
    assert bench.leadership.term is None
    await bench.end()


async def test_work_that_dies_gives_the_lease_back_and_its_death_is_seen() -> None:
    bench = Bench(ModelLease())
    bench.work.fail = ValueError("a defect")
    await bench.start()

    assert bench.task is not None
    with pytest.raises(ValueError, match="a defect"):
        await bench.task
    assert bench.lease.writes[-1] == "released"


async def test_terms_grow_also_when_the_lease_was_deleted() -> None:
    bench = Bench(ModelLease())
    bench.known_term = 41
    await bench.start()

    assert [term.term for term in bench.work.terms] == [42]
    await bench.end()


async def test_a_lost_answer_to_a_renewal_is_looked_up_and_costs_no_leadership() -> None:
    bench = Bench(ModelLease())
    await bench.start()
    bench.lease.lose_answers = True
    await bench.clock.advance(3)
    bench.lease.lose_answers = False
    await bench.clock.advance(4)

    assert len(bench.work.terms) == 1
    assert bench.work.terms[0].remaining_s() > 5
    await bench.end()


@dataclass
class Server:
    """The Lease's state, for histories in which every read, write and answer has its own moment."""

    version: int = 0
    holder: str = ""
    term: int = 0

    def lease(self) -> LeaseObject | None:
        body = {
            "metadata": {"resourceVersion": str(self.version), "annotations": {TERM: str(self.term)}},
            "spec": {"holderIdentity": self.holder, "leaseDurationSeconds": 15},
        }
        return lease_decoder.decode(json.dumps(body)) if self.version else None


@dataclass
class Player:
    """A candidate whose requests take time: what it saw, what it believes, and what is on its way."""

    name: str
    seen: Seen | None = None
    until_s: float = -1.0
    term: int = 0


MOVES = st.tuples(
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(["look", "try", "try", "sleep", "release"]),
    st.floats(0, 3),
    st.booleans(),
)


@given(st.lists(MOVES, max_size=60), st.floats(0.1, 9))
def test_two_candidates_never_rely_on_the_lease_at_the_same_time(
    moves: list[tuple[str, str, float, bool]], pace_s: float
) -> None:
    """Reads, writes and answers at random moments; answers that are lost; candidates that sleep and wake."""
    server, now_s = Server(), 0.0
    players = {name: Player(name) for name in "abc"}
    terms: list[int] = []
    for name, move, delay_s, answered in moves:
        now_s += pace_s
        player = players[name]
        holds = player.until_s > now_s and player.term > 0
        if move == "look" or (move == "try" and player.seen is None):
            player.seen = observe(server.lease(), player.seen, now_s=now_s)
        elif move == "sleep":
            now_s += 10 * delay_s
        elif move == "try" and player.seen is not None:
            step = next_step(player.seen, identity=name, term=player.term if holds else 0, now_s=now_s)
            if step == "wait":
                continue
            sent_s, seen = now_s, player.seen
            now_s += delay_s
            if seen.version != (str(server.version) if server.version else ""):
                player.seen = observe(server.lease(), player.seen, now_s=now_s)
                continue
            if step == "acquire":
                server.term = max(seen.term, server.term) + 1
                terms.append(server.term)
            server.version, server.holder = server.version + 1, name
            if answered:
                player.seen = observe(server.lease(), seen, now_s=now_s)
                player.until_s, player.term = sent_s + TIMES.renew_within_s, server.term
        elif move == "release" and holds and server.holder == name:
            player.until_s = -1.0
            server.version, server.holder = server.version + 1, ""
        relying = [one.name for one in players.values() if one.until_s > now_s]
        assert len(relying) <= 1, (now_s, relying)
    assert terms == sorted(set(terms))
