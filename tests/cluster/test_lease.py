"""The lease on a real API server: handed over, taken over, deleted under its leader."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from autoscaler.act.contract import AuthorityLostError
from autoscaler.kube.config import from_kubeconfig
from autoscaler.kube.errors import Unreachable
from autoscaler.kube.events import event_object, event_path
from autoscaler.kube.lease import LeaseClient, LeaseObject, LeaseTimes, Seen
from autoscaler.kube.session import KubeSession
from autoscaler.service.clock import SystemClock
from autoscaler.service.leadership import Leadership, Term
from autoscaler.service.logs import get_log
from devcluster import Cluster
from devcluster.rooms import Room
from tests.cluster.polling import at_once, eventually

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

lenient: "msgspec.json.Decoder[Any]" = msgspec.json.Decoder()
HAND_OVERS = 10
QUICK = LeaseTimes(duration_s=3.0, renew_within_s=2.0, retry_s=0.2, request_s=0.8)


class MortalClient(LeaseClient):
    """Once dead it says nothing more: a killed process gives no lease back."""

    dead = False

    async def read(self) -> LeaseObject | None:
        self._live()
        return await super().read()

    async def write(self, seen: Seen, *, holder: str, term: int, taking: bool) -> LeaseObject:
        self._live()
        return await super().write(seen, holder=holder, term=term, taking=taking)

    def _live(self) -> None:
        if self.dead:
            raise Unreachable("network", "this process is dead")


@dataclass
class Process:
    """A candidate that holds what it has."""

    name: str
    client: MortalClient
    leadership: Leadership
    task: "asyncio.Task[None]"
    stop: asyncio.Event

    async def end(self) -> None:
        self.stop.set()
        await self.task

    async def kill(self) -> None:
        self.client.dead = True
        self.task.cancel()
        await asyncio.wait({self.task})


@dataclass
class Stage:
    """The processes of one room, and every term that began, with whether another still had rights then."""

    room: Room
    session: KubeSession
    terms: list[Term] = field(default_factory=list)
    overlaps: list[int] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)

    def process(self) -> Process:
        name, stop = f"process-{len(self.processes)}", asyncio.Event()
        client = MortalClient(
            self.session,
            namespace=self.room.namespace,
            name="lease",
            times=QUICK,
            wall_ms=lambda: time.time_ns() // 1_000_000,
        )
        leadership = Leadership(client, identity=name, clock=SystemClock(), log=get_log(), times=QUICK)

        async def work(term: Term) -> None:
            self.overlaps += [one.term for one in self.terms if has_rights(one)]
            self.terms.append(term)
            await stop.wait()

        task = asyncio.create_task(leadership.lead(work, stop), name=name)
        self.processes.append(Process(name, client, leadership, task, stop))
        return self.processes[-1]

    async def until_term(self, count: int) -> Term:
        await eventually(
            at_once(lambda: len(self.terms)), lambda seen: seen >= count, what=f"leadership number {count}"
        )
        return self.terms[count - 1]

    def leading(self) -> Process:
        (found,) = [one for one in self.processes if one.name == self.terms[-1].holder]
        return found

    async def until_known(self, standby: Process) -> None:
        await eventually(
            at_once(lambda: standby.leadership.leader),
            lambda seen: seen == self.terms[-1].holder,
            what="the standby to know who leads",
        )


def has_rights(term: Term) -> bool:
    try:
        return term.remaining_s() > 0
    except AuthorityLostError:
        return False


@asynccontextmanager
async def opened(room: Room) -> AsyncIterator[Stage]:
    access = await from_kubeconfig(str(room.cluster.admin_kubeconfig))
    async with AsyncExitStack() as stack:
        stage = Stage(room, await stack.enter_async_context(KubeSession(access)))
        yield stage
        for process in stage.processes:
            if not process.task.done():
                await process.end()


async def test_a_lease_is_handed_over_ten_times_and_terms_grow(cluster: Cluster, room: Room) -> None:
    async with opened(room) as stage:
        stage.process()
        await stage.until_term(1)
        for number in range(2, HAND_OVERS + 2):
            standby, leader = stage.process(), stage.leading()
            await stage.until_known(standby)
            began_s = time.monotonic()
            await leader.end()
            await stage.until_term(number)
            assert time.monotonic() - began_s < QUICK.duration_s
            assert stage.leading() is standby
        held = await cluster.api.get(lease_path(room))

    assert [term.term for term in stage.terms] == list(range(1, HAND_OVERS + 2))
    assert stage.overlaps == []
    assert held["spec"]["leaseTransitions"] == HAND_OVERS
    assert held["metadata"]["annotations"] == {"gpu-autoscaler.io/term": str(HAND_OVERS + 1)}
    assert (await cluster.api.get(lease_path(room)))["spec"].get("holderIdentity", "") == ""


async def test_who_dies_is_followed_after_the_duration_and_not_before(room: Room) -> None:
    async with opened(room) as stage:
        dying = stage.process()
        await stage.until_term(1)
        standby = stage.process()
        await stage.until_known(standby)
        await dying.kill()
        died_s = time.monotonic()
        term = await stage.until_term(2)
        waited_s = time.monotonic() - died_s

    assert (term.term, term.holder) == (2, standby.name)
    assert waited_s > QUICK.renew_within_s - QUICK.retry_s
    assert stage.overlaps == []


async def test_a_lease_deleted_under_its_leader_is_there_again_with_its_next_renewal(
    cluster: Cluster, room: Room
) -> None:
    async with opened(room) as stage:
        stage.process()
        term = await stage.until_term(1)
        await stage.until_known(stage.process())
        before = await cluster.api.get(lease_path(room))
        await cluster.kubectl("delete", "lease", "lease", "-n", room.namespace)
        await asyncio.sleep(QUICK.duration_s + 1)
        held = await cluster.api.get(lease_path(room))
        leads = has_rights(term)

    assert leads
    assert stage.terms == [term]
    assert held["metadata"]["uid"] != before["metadata"]["uid"]
    assert held["spec"]["holderIdentity"] == term.holder
    assert held["metadata"]["annotations"] == {"gpu-autoscaler.io/term": "1"}


async def test_a_lease_deleted_after_its_leader_died_is_made_anew_in_time_and_with_a_larger_term(
    cluster: Cluster, room: Room
) -> None:
    async with opened(room) as stage:
        dying = stage.process()
        first = await stage.until_term(1)
        await stage.until_known(stage.process())
        await dying.kill()
        await cluster.kubectl("delete", "lease", "lease", "-n", room.namespace)
        second = await stage.until_term(2)
        held = await cluster.api.get(lease_path(room))

    assert (first.term, second.term) == (1, 2)
    assert held["spec"]["leaseTransitions"] == 0
    assert held["metadata"]["annotations"] == {"gpu-autoscaler.io/term": "2"}


@pytest.mark.parametrize("note", ["x" * 3000, "ü€😀" * 900], ids=["ascii", "many bytes a character"])
async def test_an_event_is_accepted_however_long_its_words(cluster: Cluster, room: Room, note: str) -> None:
    await cluster.apply([room.deployment("app", replicas=0)])
    item = await cluster.api.get(f"/apis/apps/v1/namespaces/{room.namespace}/deployments/app")
    event: dict[str, Any] = event_object(
        api_version="apps/v1",
        kind="Deployment",
        namespace=room.namespace,
        name="app",
        uid=item["metadata"]["uid"],
        reason="RightSized",
        action="RightSize",
        note=note,
        instance="ü" * 300,
        now_ms=time.time_ns() // 1_000_000,
    )
    async with opened(room) as stage:
        await stage.session.post(event_path(room.namespace), event, lenient)

    described = await cluster.kubectl("describe", "deployment", "app", "-n", room.namespace)
    assert "RightSized" in described


def lease_path(room: Room) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{room.namespace}/leases/lease"
