"""A running demonstration: the cluster, the service, and everything that was last seen of both."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import aiohttp
import msgspec

from autoscaler.model.ledger import Entry
from autoscaler.model.plan import Plan
from devcluster.audit import AuditEvent, Reader, service_account_user, writes_by
from devcluster.cluster import Cluster
from devcluster.demo.cast import Cast, Name
from devcluster.demo.deeds import Deeds, deeds_of
from devcluster.demo.phases import Claims, Phase, Sight
from devcluster.demo.service import ACCOUNT, NAMESPACE, DemoService
from devcluster.demo.wire import Budget, Pod, Quota
from devcluster.demo.witness import Witness
from devcluster.exporter.watch import Gone, Listed, Seen, follow
from devcluster.processes import fail_if_dead


@dataclass
class Show:
    """What is known so far; `look` brings it up to date."""

    cluster: Cluster
    service: DemoService
    session: aiohttp.ClientSession
    claims: Claims
    witness: Witness
    watching: asyncio.Task[None]
    audit: Reader
    plan: Plan | None = None
    entries: tuple[Entry, ...] = ()
    deeds: Deeds = field(default_factory=Deeds)
    readiness: str = ""
    known_records: frozenset[str] = frozenset()
    idle: frozenset[Name] = frozenset()
    runs: tuple[str, ...] = ()
    seated: int = 0
    _writes: list[AuditEvent] = field(default_factory=list)

    async def look(self) -> Sight:
        """The newest plan, ledger and audit log; a component that died ends the show with its log's tail."""
        fail_if_dead([*self.cluster.components(), self.service.component])
        if self.watching.done():
            await self.watching
        document = await self.service.plan(self.session)
        if document is None:
            self.readiness = await self.service.readiness(self.session)
        else:
            self.plan = document.plan
            self.idle |= {
                (row.workload.namespace, row.workload.name)
                for row in document.plan.rows
                if row.verdict == "idle"
            }
        entries = await self.service.ledger(self.session)
        self.entries = self.entries if entries is None else entries
        writes = writes_by(self.audit.new_events(), service_account_user(NAMESPACE, ACCOUNT))
        if writes:
            self._writes += writes
            self.deeds = deeds_of(self._writes, NAMESPACE)
        return self.sight()

    def sight(self) -> Sight:
        """What was last seen."""
        return Sight(
            plan=self.plan,
            entries=self.entries,
            deeds=self.deeds,
            witness=self.witness,
            known_records=self.known_records,
            idle=self.idle,
            runs=self.runs,
            seated=self.seated,
        )

    def turn_page(self, phase: Phase) -> None:
        """A phase begins: what the ledger holds already is not of this phase."""
        self.known_records = frozenset(record.id for entry in self.entries for record in entry.records)
        if phase is Phase.DAY:
            self.idle = frozenset()
        if phase is Phase.NIGHT:
            self.seated = len(self.claims.visitors(self.sight()))


def new_witness(cast: Cast) -> Witness:
    """A witness of a scenario's cluster that has seen nothing yet."""
    return Witness(resource=cast.resource, capacity=cast.capacity, most_per_container=cast.most_per_container)


async def keep_watching(cluster: Cluster, witness: Witness) -> None:
    """Tells the witness all that happens, for ever."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_watch_pods(cluster, witness), name="witness of pods")
        tasks.create_task(
            _watch_others(cluster, "/api/v1/resourcequotas", Quota, witness.quota_seen),
            name="witness of quotas",
        )
        tasks.create_task(
            _watch_others(cluster, "/apis/policy/v1/poddisruptionbudgets", Budget, witness.budget_seen),
            name="witness of disruption budgets",
        )


async def _watch_pods(cluster: Cluster, witness: Witness) -> None:
    decoder = msgspec.json.Decoder(Pod)
    async for event in follow(cluster.api, "/api/v1/pods", decoder.decode):
        match event:
            case Listed(objects=pods):
                witness.pods_listed(pods, time.monotonic())
            case Seen(object=pod):
                witness.pod_seen(pod, time.monotonic())
            case Gone(object=pod):
                witness.pod_gone(pod.metadata.uid)


async def _watch_others(
    cluster: Cluster, path: str, kind: type[Quota] | type[Budget], seen: Callable[..., None]
) -> None:
    decoder = msgspec.json.Decoder(kind)
    async for event in follow(cluster.api, path, decoder.decode):
        match event:
            case Listed(objects=objects):
                for one in objects:
                    seen(one)
            case Seen(object=one):
                seen(one)
            case Gone():
                pass
