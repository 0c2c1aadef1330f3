"""Puts the rooms together: stores and series into a cycle, its plans into hands, hands under a lease."""

import socket
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Final

from autoscaler.act.contract import AuthorityLostError
from autoscaler.act.executor import Executor
from autoscaler.act.ledger import ConfigMapLedger
from autoscaler.decide import plan
from autoscaler.kube.lease import LeaseClient, LeaseTimes
from autoscaler.kube.session import KubeSession
from autoscaler.model.policy import Policy
from autoscaler.model.snapshot import Snapshot
from autoscaler.observe.history.feed import RangeSource
from autoscaler.observe.reader import SeriesReader
from autoscaler.observe.series import SeriesReading
from autoscaler.observe.stores import Stores
from autoscaler.service.breaker import Breaker
from autoscaler.service.clock import Clock
from autoscaler.service.cluster import ClusterWatch
from autoscaler.service.cycle import Cycle, Sources
from autoscaler.service.event_recorder import EventRecorder
from autoscaler.service.frozen import FrozenCluster, assemble_frozen
from autoscaler.service.hands import Hands
from autoscaler.service.leadership import Leadership
from autoscaler.service.led import Led, LiveCycle
from autoscaler.service.logs import Log
from autoscaler.service.peers import read_series
from autoscaler.service.policy_file import PolicySource
from autoscaler.service.recheck import LatestReading, Rechecker
from autoscaler.service.remembering import Remembering
from autoscaler.service.settings import Settings
from autoscaler.service.telemetry import Metrics
from autoscaler.service.triggers import Alarm, sensors

LEASE: Final = "gpu-autoscaler"


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What a process has of its own."""

    clock: Clock
    metrics: Metrics
    log: Log
    in_cluster: bool
    identity: str
    quiet: Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True, kw_only=True)
class MetricsStore:
    """The metrics store: who reads the present from it, and who answers for the past."""

    reader: SeriesReader
    client: RangeSource


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What the process runs."""

    cluster: ClusterWatch
    led: Led
    remembering: Remembering


def identity_of(settings: Settings) -> str:
    """Our name as a leader: one process' alone, also after a restart under the same pod name."""
    return f"{settings.identity or socket.gethostname()}_{uuid.uuid4().hex[:8]}"


def wire(
    settings: Settings, session: KubeSession, store: MetricsStore, policy: PolicySource, machine: Machine
) -> Parts:
    """The parts of one process, not yet running."""
    resources, alarm = policy.loaded.policy.resources, Alarm(machine.clock)
    stores = Stores(resources)
    cluster = ClusterWatch(
        session,
        writers=stores.writers,
        sensors=sensors(alarm, (*resources.boards, *resources.slices)),
        clock=machine.clock,
        metrics=machine.metrics,
        log=machine.log,
    )

    async def read(in_force: Policy) -> SeriesReading:
        with remembering.aside():
            return await read_series(store.reader, session, in_force)

    async def query(in_force: Policy) -> SeriesReading:
        await hands.refresh(in_force)
        return await readings.read(in_force)

    def assembled(frozen: FrozenCluster, reading: SeriesReading, in_force: Policy) -> Snapshot:
        snapshot = assemble_frozen(frozen, reading, in_force)
        remembering.saw(frozen.stores, reading, snapshot, in_force)
        return snapshot

    readings, breaker = LatestReading(read, machine.clock), Breaker()
    remembering = Remembering(
        store.client, clock=machine.clock, log=machine.log, told=machine.metrics.history_read
    )
    sources: Sources[FrozenCluster, SeriesReading] = Sources(
        blocked=cluster.blocked,
        query=query,
        freeze=lambda: replace(
            cluster.freeze(stores, hands.memory()), watch=breaker.watch, histories=remembering.latest
        ),
        assemble=assembled,
        decide=breaker.decide,
    )
    leadership = _leadership(settings, session, machine, lambda: hands.ledger.largest_term)
    recorder = _recorder(session, leadership, machine) if settings.events == "true" else None
    hands = _hands(settings, session, Recheckable(sources, readings), policy, machine)
    if recorder is not None:
        hands.told = recorder.tell
    cycle: LiveCycle = Cycle(
        sources=sources,
        policy=policy,
        alarm=alarm,
        clock=machine.clock,
        metrics=machine.metrics,
        log=machine.log,
        every_s=settings.cycle / 1000,
        debounce_s=settings.debounce / 1000,
        quiet=machine.quiet,
        noticed=hands.notice,
    )
    asked = settings.leader_election
    led = Led(
        session=session,
        cycle=cycle,
        hands=hands,
        leadership=leadership,
        recorder=recorder,
        policy=policy,
        elects=asked == "true" or (asked == "auto" and machine.in_cluster),
        may_elect=asked != "false",
        clock=machine.clock,
        metrics=machine.metrics,
        log=machine.log,
    )
    return Parts(cluster=cluster, led=led, remembering=remembering)


@dataclass(frozen=True)
class Recheckable:
    """What a recheck looks at."""

    sources: Sources[FrozenCluster, SeriesReading]
    readings: LatestReading[SeriesReading]


def _hands(
    settings: Settings, session: KubeSession, look: Recheckable, policy: PolicySource, machine: Machine
) -> Hands:
    def now_ms() -> int:
        """The API server's time, which the plan's is too; the machine's until it was heard."""
        return session.server_time_ms() or machine.clock.now_ms()

    ledger = ConfigMapLedger(
        namespace=settings.namespace, now_ms=now_ms, guards=lambda: policy.loaded.policy.guards
    )
    recheck = Rechecker(
        blocked=look.sources.blocked,
        reading=look.readings,
        freeze=look.sources.freeze,
        assemble=look.sources.assemble,
        decide=plan,
        policy=lambda: policy.loaded.policy,
    )
    return Hands(
        session=session,
        namespace=settings.namespace,
        ledger=ledger,
        executor=Executor(ledger, now_ms=now_ms),
        recheck=recheck,
        clock=machine.clock,
        now_ms=now_ms,
        metrics=machine.metrics,
        log=machine.log,
    )


def _leadership(
    settings: Settings, session: KubeSession, machine: Machine, least_term: Callable[[], int]
) -> Leadership:
    times = LeaseTimes()
    client = LeaseClient(
        session, namespace=settings.namespace, name=LEASE, times=times, wall_ms=machine.clock.now_ms
    )
    return Leadership(
        client,
        identity=machine.identity,
        clock=machine.clock,
        log=machine.log,
        times=times,
        least_term=least_term,
    )


def _recorder(session: KubeSession, leadership: Leadership, machine: Machine) -> EventRecorder:
    def may_write() -> float:
        if leadership.term is None:
            raise AuthorityLostError("nobody leads here")
        return leadership.term.remaining_s()

    return EventRecorder(
        session,
        instance=machine.identity,
        may_write=may_write,
        clock=machine.clock,
        metrics=machine.metrics,
        log=machine.log,
    )
