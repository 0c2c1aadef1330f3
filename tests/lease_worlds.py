"""Candidates for one Lease in a world without real time: an API server in memory, and a wire and a clock for each.

Clocks run at speeds of their own and agree on nothing else; a paused candidate is a stopped process: its clock goes on and
it hears nothing. Held requests arrive when the test says so, also after their sender gave up on them.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
from service_fakes import RecordingLog

from autoscaler.act.contract import AuthorityLostError
from autoscaler.kube.errors import ApiError, Conflict, NotFound, Unreachable
from autoscaler.kube.lease import TERM, LeaseClient, LeaseTimes
from autoscaler.service.leadership import Leadership, Term

Mode = Literal["open", "slow", "refused", "silent", "held"]
SLOW_S = 2.5
"""What is asked arrives at once and is answered so late, just before it is given up."""


@dataclass
class LeaseServer:
    """One Lease, with compare-and-swap."""

    lease: dict[str, Any] | None = None
    version: int = 0
    writes: list[dict[str, Any]] = field(default_factory=list)
    """Every accepted spec, with the term."""
    refuse_with: ApiError | None = None
    on_write: Callable[[dict[str, Any]], None] = lambda _lease: None

    def read(self) -> dict[str, Any]:
        if self.refuse_with is not None:
            raise self.refuse_with
        if self.lease is None:
            raise NotFound(404, "NotFound", "leases not found")
        return self.lease

    def write(self, verb: str, body: dict[str, Any]) -> dict[str, Any]:
        if self.refuse_with is not None:
            raise self.refuse_with
        if verb == "POST" and self.lease is not None:
            raise Conflict(409, "AlreadyExists", "leases already exists")
        # The real server creates an absent Lease on PUT, whatever version it names.
        if verb == "PUT" and self.lease is not None:
            held = self.lease["metadata"]["resourceVersion"]
            if body["metadata"]["resourceVersion"] != held:
                raise Conflict(409, "Conflict", "the object has been modified")
        self.on_write(body)
        self.version += 1
        self.lease = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        self.writes.append({**body["spec"], "term": int(body["metadata"]["annotations"][TERM])})
        return self.lease

    @property
    def holder(self) -> str:
        return str(self.lease["spec"]["holderIdentity"]) if self.lease else ""


@dataclass
class World:
    """Real time, which nobody in it can see."""

    now_s: float = 0.0
    sleepers: list[tuple[float, "CandidateClock", asyncio.Future[None]]] = field(default_factory=list)
    after_each: Callable[[], None] = lambda: None

    async def advance(self, seconds: float) -> None:
        """Moves on, waking everyone whose time comes; `after_each` looks at every state in between."""
        end_s = self.now_s + seconds
        await settled()
        self.after_each()
        while due := [one for one in self.sleepers if one[0] <= end_s + 1e-9 and not one[1].paused]:
            first = min(due, key=lambda one: one[0])
            self.sleepers.remove(first)
            self.now_s = max(self.now_s, first[0])
            if not first[2].done():
                first[2].set_result(None)
            await settled()
            self.after_each()
        self.now_s = end_s
        self.after_each()


async def settled() -> None:
    """Lets everything run that can run without time passing."""
    ready: Any = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]
    for _ in range(1000):
        await asyncio.sleep(0)
        if not ready:
            return
    raise AssertionError("somebody runs on without ever waiting")


class CandidateClock:
    """A clock with a speed, a zero and a wall time of its own."""

    def __init__(self, world: World, *, rate: float = 1.0, zero_s: float = 0.0, wall_ms: int = 0) -> None:
        self._world, self._rate, self._zero_s, self._wall_ms = world, rate, zero_s, wall_ms
        self._awake = asyncio.Event()
        self._awake.set()

    @property
    def paused(self) -> bool:
        return not self._awake.is_set()

    def pause(self) -> None:
        self._awake.clear()

    def resume(self) -> None:
        self._awake.set()

    def now_ms(self) -> int:
        return self._wall_ms + round(self._world.now_s * 1000)

    def monotonic_s(self) -> float:
        return self._zero_s + self._world.now_s * self._rate

    async def sleep(self, seconds: float) -> None:
        waker: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._world.sleepers.append((self._world.now_s + seconds / self._rate, self, waker))
        await waker
        await self._awake.wait()

    async def awake(self) -> None:
        await self._awake.wait()


@dataclass
class LeaseWire:
    """One candidate's connection, as `LeaseClient` uses a session."""

    server: LeaseServer
    clock: CandidateClock
    mode: Mode = "open"
    lose_answers: int = 0
    held: list[tuple[Callable[[], Any], asyncio.Future[Any]]] = field(default_factory=list)
    asked: list[tuple[float, str]] = field(default_factory=list)
    """When, by the candidate's clock, and what."""

    async def get_json(
        self,
        _path: str,
        _params: object,
        decoder: msgspec.json.Decoder[Any],
        *,
        retry: bool,
        timeout_s: float,
    ) -> Any:
        assert not retry
        assert timeout_s > 0
        return decoder.decode(json.dumps(await self._exchange("GET", self.server.read)))

    async def write(
        self, verb: str, _path: str, body: Any, decoder: msgspec.json.Decoder[Any], *, timeout_s: float
    ) -> Any:
        assert timeout_s > 0
        sent: dict[str, Any] = json.loads(json.dumps(body))
        return decoder.decode(json.dumps(await self._exchange(verb, lambda: self.server.write(verb, sent))))

    async def _exchange(self, verb: str, arrive: Callable[[], Any]) -> Any:
        self.asked.append((self.clock.monotonic_s(), verb))
        if self.mode == "refused":
            raise Unreachable("refused", "nobody listens")
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self.mode == "held":
            self.held.append((arrive, answer))
        elif self.mode in {"open", "slow"}:
            _settle(answer, arrive)
            if verb != "GET" and self.lose_answers and answer.exception() is None:
                self.lose_answers -= 1
                answer = asyncio.get_running_loop().create_future()
        if self.mode == "slow":
            await self.clock.sleep(SLOW_S)
        found = await answer
        await self.clock.awake()
        return found

    def deliver(self, *, answered: bool = True) -> None:
        """The oldest held request arrives, and its answer too where it is still waited for."""
        arrive, answer = self.held.pop(0)
        _settle(answer if answered else asyncio.get_running_loop().create_future(), arrive)


def _settle(answer: asyncio.Future[Any], arrive: Callable[[], Any]) -> None:
    try:
        found = arrive()
    except ApiError as error:
        if not answer.done():
            answer.set_exception(error)
            answer.exception()
    else:
        if not answer.done():
            answer.set_result(found)


@dataclass
class Candidate:
    """A process: it leads when it may and does nothing but hold what it has."""

    name: str
    leadership: Leadership
    wire: LeaseWire
    clock: CandidateClock
    log: RecordingLog
    stop: asyncio.Event
    on_term: Callable[[int], None]
    working: Term | None = None
    terms: list[int] = field(default_factory=list)
    task: asyncio.Task[None] | None = None

    async def work(self, term: Term) -> None:
        self.on_term(term.term)
        self.terms.append(term.term)
        self.working = term
        try:
            await self.stop.wait()
        finally:
            await asyncio.sleep(0)
            self.working = None

    def start(self) -> None:
        self.task = asyncio.create_task(self.leadership.lead(self.work, self.stop), name=self.name)

    async def kill(self) -> None:
        """Ends the test's task; a process that is killed does not get this far."""
        if self.task is not None:
            self.task.cancel()
            self.clock.resume()
            await asyncio.wait({self.task})

    def may_write(self) -> bool:
        """What its own check before a write would say."""
        try:
            return self.working is not None and self.working.remaining_s() > 0
        except AuthorityLostError:
            return False


def candidate(
    world: World,
    server: LeaseServer,
    name: str = "a",
    *,
    times: LeaseTimes | None = None,
    least_term: Callable[[], int] = int,
    on_term: Callable[[int], None] = lambda _term: None,
    clock: Mapping[str, Any] | None = None,
) -> Candidate:
    """A candidate that does not run yet."""
    own = CandidateClock(world, **(clock or {}))
    wire, log = LeaseWire(server, own), RecordingLog()
    times = times or LeaseTimes()
    session: Any = wire
    told: Any = log
    client = LeaseClient(session, namespace="own", name="lease", times=times, wall_ms=own.now_ms)
    leadership = Leadership(client, identity=name, clock=own, log=told, times=times, least_term=least_term)
    return Candidate(name, leadership, wire, own, log, asyncio.Event(), on_term)
