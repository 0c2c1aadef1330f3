"""A lease over real sockets: whatever the server does, the leader knows in time whether it still leads."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from aiohttp import web
from lease_worlds import LeaseServer
from service_fakes import HastyClock, RecordingLog

from autoscaler.act.contract import AuthorityLostError
from autoscaler.kube.errors import ApiError, Conflict
from autoscaler.kube.lease import LeaseClient, LeaseTimes, Seen, observe
from autoscaler.service.leadership import Leadership, Term

FOLDER = "/apis/coordination.k8s.io/v1/namespaces/own/leases"
SPEED = 20.0
STEADY = 5.0
"""Where the leader must not lose it: a slow machine may stall for a second."""
Fault = Literal["", "hang", "cut", "500", "taken"]


@dataclass
class LeaseApi:
    """The model of the server behind a socket; a fault is of every request, or of writes only."""

    api: Any
    server: LeaseServer = field(default_factory=LeaseServer)
    fault: Fault = ""
    writes_only: bool = False
    faults: int = 0

    def __post_init__(self) -> None:
        self.api.on(FOLDER, self.answer)
        self.api.on(f"{FOLDER}/lease", self.answer)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if self.fault and not (self.writes_only and request.method == "GET"):
            self.faults += 1
            match self.fault:
                case "hang":
                    await self.api.over.wait()
                case "cut":
                    assert request.transport is not None
                    request.transport.close()
                case "500":
                    return web.json_response({"kind": "Status", "code": 500}, status=500)
                case "taken":
                    assert self.server.lease is not None
                    self.server.lease["spec"]["holderIdentity"] = "b"
                    self.server.lease["metadata"]["resourceVersion"] = "77"
        try:
            if request.method == "GET":
                return web.json_response(self.server.read())
            return web.json_response(self.server.write(request.method, await request.json()))
        except ApiError as error:
            body = {"kind": "Status", "code": error.status, "reason": error.reason, "message": error.message}
            return web.json_response(body, status=error.status)


@dataclass
class Process:
    leadership: Leadership
    log: RecordingLog
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    terms: list[Term] = field(default_factory=list)
    ended: int = 0

    async def work(self, term: Term) -> None:
        self.terms.append(term)
        try:
            await self.stop.wait()
        finally:
            self.ended += 1


@pytest.fixture
def lease_api(api: Any) -> LeaseApi:
    return LeaseApi(api)


@asynccontextmanager
async def leading(
    connect: Any, until: Any, *, speed: float = SPEED, **options: Any
) -> AsyncIterator[Process]:
    """A process that leads; it is stopped afterwards and must end by itself."""
    clock, log = HastyClock(speed), RecordingLog()
    told: Any = log
    async with connect(**options) as session:
        client = LeaseClient(session, namespace="own", name="lease", times=LeaseTimes(), wall_ms=clock.now_ms)
        process = Process(Leadership(client, identity="a", clock=clock, log=told), log)
        task = asyncio.create_task(process.leadership.lead(process.work, process.stop))
        try:
            await until(lambda: process.terms)
            yield process
        finally:
            process.stop.set()
            await asyncio.wait({task})
        task.result()


def rights_of(term: Term) -> bool:
    try:
        return term.remaining_s() > 0
    except AuthorityLostError:
        return False


async def test_a_lease_is_created_and_then_swapped_under_its_version(
    lease_api: LeaseApi, connect: Any, api: Any
) -> None:
    async with connect() as session:
        client = LeaseClient(
            session, namespace="own", name="lease", times=LeaseTimes(), wall_ms=lambda: 1_800_000_000_123
        )
        assert await client.read() is None
        first = observe(await client.write(Seen(), holder="a", term=5, taking=True), None, now_s=0.0)
        renewed = observe(await client.write(first, holder="a", term=5, taking=False), first, now_s=2.0)
        with pytest.raises(Conflict):
            await client.write(first, holder="b", term=6, taking=True)
        await client.write(renewed, holder="", term=5, taking=False)

    sent = [(request.method, request.path) for request in api.requests[1:]]
    assert sent == [("POST", FOLDER), *[("PUT", f"{FOLDER}/lease")] * 3]
    assert api.bodies[1]["metadata"] == {
        "name": "lease",
        "namespace": "own",
        "annotations": {"gpu-autoscaler.io/term": "5"},
    }
    assert api.bodies[1]["spec"] == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "2027-01-15T08:00:00.123000Z",
        "renewTime": "2027-01-15T08:00:00.123000Z",
        "leaseTransitions": 0,
    }
    assert [body["metadata"].get("resourceVersion") for body in api.bodies[1:]] == [None, "1", "1", "2"]
    assert [body["spec"]["leaseTransitions"] for body in api.bodies[1:]] == [0, 0, 1, 0]
    released = json.loads(json.dumps(lease_api.server.lease))["spec"]
    assert (released["holderIdentity"], released["leaseDurationSeconds"]) == ("", 1)


@pytest.mark.parametrize("fault", ["hang", "cut", "500"])
async def test_a_leader_that_is_not_answered_stops_and_leads_again_when_it_is(
    fault: Fault, lease_api: LeaseApi, connect: Any, until: Callable[..., Any]
) -> None:
    async with leading(connect, until) as process:
        lease_api.fault = fault
        await until(lambda: process.ended)
        had_rights = rights_of(process.terms[0])
        lease_api.fault = ""
        await until(lambda: len(process.terms) > 1)

    assert not had_rights
    assert "leadership_lost" in process.log.events()
    assert [term.term for term in process.terms[:2]] == [1, 2]
    assert lease_api.server.holder == ""


@pytest.mark.parametrize("fault", ["hang", "cut", "500"])
async def test_a_write_that_fails_once_costs_no_leadership(
    fault: Fault, lease_api: LeaseApi, connect: Any, until: Callable[..., Any]
) -> None:
    async with leading(connect, until, speed=STEADY) as process:
        lease_api.fault, lease_api.writes_only = fault, True
        await until(lambda: lease_api.faults)
        lease_api.fault = ""
        written = len(lease_api.server.writes)
        await until(lambda: len(lease_api.server.writes) > written + 3)

    assert len(process.terms) == 1


async def test_a_leader_whose_lease_went_to_another_stops_at_once(
    lease_api: LeaseApi, connect: Any, until: Callable[..., Any]
) -> None:
    async with leading(connect, until) as process:
        lease_api.fault, lease_api.writes_only = "taken", True
        await until(lambda: process.ended)
        lease_api.fault = ""
        leader, rights = process.leadership.leader, rights_of(process.terms[0])

    assert (leader, rights) == ("b", False)
    assert lease_api.server.holder == "b"


async def test_the_rate_limit_of_other_writes_cannot_keep_a_dead_leader_in_office(
    lease_api: LeaseApi, connect: Any, until: Callable[..., Any]
) -> None:
    """The first write takes the only permission there is; renewals wait in the session's queue for ever."""
    limits = {"writes_burst": 1, "writes_per_s": 1e-6}
    async with leading(connect, until, limits=limits) as process:
        await until(lambda: process.ended)

    assert not rights_of(process.terms[0])
    assert len(lease_api.server.writes) == 1
