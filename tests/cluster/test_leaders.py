"""One writer at a time, whoever stops, crashes or sleeps: proved from the API server's audit log."""

import asyncio
import itertools
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec
import pytest

from autoscaler.act.contract import AuthorityLostError
from autoscaler.act.executor import Executor
from autoscaler.act.ledger import ConfigMapLedger, LedgerError
from autoscaler.act.writer import Writer
from autoscaler.kube.config import from_kubeconfig
from autoscaler.kube.errors import Unreachable
from autoscaler.kube.lease import LeaseClient, LeaseObject, LeaseTimes, Seen
from autoscaler.kube.session import KubeSession, SessionLimits
from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.plan import Action, Refusal
from autoscaler.model.policy import Guards
from autoscaler.model.reasons import Reason
from autoscaler.service.clock import SystemClock
from autoscaler.service.leadership import Leadership, Term
from autoscaler.service.logs import get_log
from devcluster import Cluster
from devcluster.rooms import Room
from tests import audit_law
from tests.cluster.acting import (
    ACCOUNT,
    acting_component,
    assert_lawful,
    boards_of,
    grant_everything,
    live,
    writes,
)
from tests.cluster.live_service import LiveService
from tests.cluster.polling import at_once, eventually
from tests.cluster.stories import half_used

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(480)]

HAND_OVERS = 50
QUICK = LeaseTimes(duration_s=1.0, renew_within_s=0.6, retry_s=0.1, request_s=0.4)
PAUSE_S = 30.0


async def test_a_leader_that_sleeps_for_half_a_minute_writes_nothing_when_it_wakes(
    cluster: Cluster, room: Room
) -> None:
    await room.add_nodes(1, boards=6)
    await cluster.exporter.declare([half_used(room), half_used(room, name="later")])
    await cluster.apply([room.deployment("app", boards=2)])
    await room.until_running(1)
    kubeconfig = await grant_everything(room)
    (one, one_url), (two, two_url) = (
        acting_component(room, kubeconfig, name=f"{name}-{room.namespace}") for name in ("one", "two")
    )
    first, second = LiveService(one, one_url), LiveService(two, two_url)
    one.start()
    try:
        await until_boards(room, "app", 1)
        two.start()
        status, said = await eventually(
            lambda: second.get("/api/v1/plan"), lambda seen: "leads" in seen[1], what="a standby"
        )
        ready_standby = await second.until_ready()
        slept_at_s = time.monotonic()
        os.killpg(one.pid or 0, signal.SIGSTOP)
        await cluster.apply([room.deployment("later", boards=2)])
        await until_boards(room, "later", 1)
        taken_over_s = time.monotonic() - slept_at_s
        await asyncio.sleep(max(0.0, PAUSE_S - taken_over_s))
        woken_at_s = time.time_ns() / 1e9
        os.killpg(one.pid or 0, signal.SIGCONT)
        await eventually(
            lambda: first.get("/api/v1/plan"), lambda seen: "leads" in seen[1], what="the sleeper to stand by"
        )
        await second.pass_cycles(3)
    finally:
        for component in (one, two):
            await component.stop(grace_s=25)

    assert status == 503
    assert f"one-{room.namespace}" in said
    assert "stands by" in ready_standby
    by_the_sleeper = [
        write
        for write in writes(cluster, room)
        if f"one-{room.namespace}" in write.agent and write.at_s >= woken_at_s and write.resource != "leases"
    ]
    assert by_the_sleeper == []
    assert_lawful(cluster, room)


async def until_boards(room: Room, name: str, boards: int) -> None:
    await eventually(
        lambda: live(room, "deployment", name),
        lambda item: boards_of(item) == boards,
        what=f"{name} to ask for {boards} boards",
        timeout_s=150,
    )


@dataclass
class Candidate:
    """A process in small: while it leads it changes one Deployment back and forth, as fast as it can."""

    name: str
    room: Room
    leadership: Leadership
    session: KubeSession
    ledger: ConfigMapLedger
    reigns: list[int] = field(default_factory=list)

    async def work(self, term: Term) -> None:
        """A short reign: take the ledger over, act a few times, end."""
        writer = Writer(self.session, term)
        executor = Executor(self.ledger, now_ms=self.now_ms, acts_per_minute=6000)
        try:
            await self.ledger.load(self.session)
            await self.ledger.take_over(writer)
            self.reigns.append(term.term)
            for _ in range(2):
                for entry in self.ledger.entries.values():
                    if entry.open_record is not None and entry.open_record.state == "acted":
                        await self.ledger.advance(writer, entry.open_record, "verified")
                await executor.execute(await self.flip(), writer, actor="apply", recheck=unchanged)
        except (AuthorityLostError, LedgerError):
            return

    async def flip(self) -> Action:
        """One replica becomes two, two become one."""
        item = await live(self.room, "deployment", "app")
        before = item["spec"]["replicas"]
        return Action(
            id=f"flip-{before}",
            method="scale-in",
            reason=Reason.SCALED_IN,
            lever="scale",
            target=WorkloadRef("apps", "Deployment", self.room.namespace, "app"),
            uid=item["metadata"]["uid"],
            resource_version=item["metadata"]["resourceVersion"],
            resource="gpuconfig.com/gpu",
            container="",
            before=before,
            after=3 - before,
            saved_milli_boards=0,
            because="a test says so",
        )

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


async def unchanged(action: Action) -> Action | Refusal:
    return action


class ForgetfulClient(LeaseClient):
    """Every other time the lease is not given back, as after a crash."""

    coin = itertools.cycle((False, True))

    async def write(self, seen: Seen, *, holder: str, term: int, taking: bool) -> LeaseObject:
        if not holder and next(self.coin):
            raise Unreachable("timeout", "the process died before it could give the lease back")
        return await super().write(seen, holder=holder, term=term, taking=taking)


@asynccontextmanager
async def candidate(room: Room, name: str) -> AsyncIterator[Candidate]:
    path = await room.cluster.service_account_kubeconfig(room.namespace, ACCOUNT)
    access = await from_kubeconfig(str(path))
    limits = SessionLimits(reads_per_s=500, reads_burst=500, writes_per_s=500, writes_burst=500)
    async with KubeSession(access, limits=limits, agent=name) as session:
        client = ForgetfulClient(
            session,
            namespace=room.namespace,
            name="hand-over",
            times=QUICK,
            wall_ms=lambda: time.time_ns() // 1_000_000,
        )
        ledger = ConfigMapLedger(
            namespace=room.namespace, now_ms=lambda: time.time_ns() // 1_000_000, guards=Guards, shards=1
        )
        leadership = Leadership(
            client,
            identity=name,
            clock=SystemClock(),
            log=get_log(),
            times=QUICK,
            least_term=lambda: ledger.largest_term,
        )
        yield Candidate(name, room, leadership, session, ledger)


async def test_over_fifty_hand_overs_there_are_never_two_writers(cluster: Cluster, room: Room) -> None:
    await room.add_nodes(1)
    await cluster.apply([room.deployment("app", boards=1)])
    await grant_everything(room)
    stop = asyncio.Event()
    async with (
        candidate(room, "left") as left,
        candidate(room, "right") as right,
        asyncio.TaskGroup() as group,
    ):
        for one in (left, right):
            group.create_task(one.leadership.lead(one.work, stop), name=one.name)
        await eventually(
            at_once(lambda: len(left.reigns) + len(right.reigns)),
            lambda count: count > HAND_OVERS,
            what=f"{HAND_OVERS} hand-overs",
            timeout_s=300,
        )
        stop.set()

    terms = sorted([*left.reigns, *right.reigns])
    history = writes(cluster, room)
    flips = [
        one for one in history if one.resource == "deployments/scale" and one.accepted and not one.dry_run
    ]
    assert len(terms) > HAND_OVERS
    assert len(set(terms)) == len(terms)
    assert min(len(left.reigns), len(right.reigns)) > 0
    assert len(flips) > HAND_OVERS
    assert audit_law.violations(history, cooldown_s=0, renewed_within_s=QUICK.renew_within_s) == [], (
        msgspec.json.encode([str(one) for one in history[-40:]])
    )
