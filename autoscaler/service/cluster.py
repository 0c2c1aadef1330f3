"""Keeps every store equal to the API server, and says how far that has come.

A kind the server does not have is skipped. A kind that RBAC denies is asked for again and again (rights are granted later
than pods are started), is named in readiness, and its absence travels in the snapshot's ``access`` rows: never guessed.
"""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, Final

from autoscaler.kube.discovery import Absent, Availability, Denied, Discovery, discover
from autoscaler.kube.errors import KubeError
from autoscaler.kube.kinds import KINDS
from autoscaler.kube.session import KubeSession
from autoscaler.kube.watch import Reflector, StoreWriter
from autoscaler.model.cluster import NOTHING_DONE, Memory
from autoscaler.observe.stores import Stores
from autoscaler.service.clock import Clock
from autoscaler.service.frozen import FrozenCluster, access_rows
from autoscaler.service.logs import Log
from autoscaler.service.readiness import KindState
from autoscaler.service.tasks import guarded
from autoscaler.service.telemetry import Metrics
from autoscaler.service.triggers import ObservedStore, Sensor
from autoscaler.service.watch_metrics import WatchReading

_FIRST_WAIT_S: Final = 1.0
_LAST_WAIT_S: Final = 30.0


class ClusterWatch:
    """All watches of one API server."""

    def __init__(
        self,
        session: KubeSession,
        *,
        writers: Mapping[str, StoreWriter[Any]],
        sensors: Mapping[str, Sensor],
        clock: Clock,
        metrics: Metrics,
        log: Log,
    ) -> None:
        self._session = session
        self._clock = clock
        self._metrics = metrics
        self._log = log
        self._writers = writers
        self._observed = {name: ObservedStore(writer, sensors.get(name)) for name, writer in writers.items()}
        self._reflectors: dict[str, Reflector[Any]] = {}
        self._discovery: Discovery | None = None
        self.fault = ""
        """Why the server could not be asked what it has; empty once it answered."""

    @property
    def known(self) -> bool:
        """Whether discovery has ended."""
        return self._discovery is not None

    @property
    def server_version(self) -> str:
        """The server's version, empty before discovery."""
        return self._discovery.server_version if self._discovery else ""

    async def run(self) -> None:
        """Discover, then watch until cancelled."""
        self._discovery = await self._discover()
        async with asyncio.TaskGroup() as group:
            for name, found in self._discovery.kinds.items():
                if isinstance(found, Absent):
                    self._log.info("kind_absent", kind=name, detail=found.reason)
                    continue
                if isinstance(found, Denied):
                    self._log.warning("kind_forbidden", kind=name, detail=found.reason)
                reflector: Reflector[Any] = Reflector(
                    self._session,
                    self._discovery.served[name],
                    self._observed[name],
                    clock=self._clock.monotonic_s,
                    sleep=self._clock.sleep,
                )
                self._reflectors[name] = reflector
                work = guarded(f"watch-{name}", reflector.run(), log=self._log, metrics=self._metrics)
                group.create_task(work, name=f"watch-{name}")

    async def _discover(self) -> Discovery:
        wait_s = _FIRST_WAIT_S
        while True:
            try:
                found = await discover(self._session, [KINDS[name] for name in self._writers])
            except KubeError as error:
                if str(error) != self.fault:
                    self._log.error("api_server", error=str(error), server=self._session.access.server)
                self.fault = str(error)
                await self._clock.sleep(wait_s)
                wait_s = min(_LAST_WAIT_S, wait_s * 2)
                continue
            self.fault = ""
            self._log.info("api_server", server=self._session.access.server, version=found.server_version)
            return found

    def states(self) -> list[KindState]:
        """How the reading of each kind stands."""
        if self._discovery is None:
            return [KindState(kind=name, detail=self.fault) for name in self._writers]
        return [self._state(name, found) for name, found in self._discovery.kinds.items()]

    def _state(self, name: str, found: Availability) -> KindState:
        reflector = self._reflectors.get(name)
        if isinstance(found, Absent) or reflector is None:
            return KindState(
                kind=name, access="absent", detail=found.reason if isinstance(found, Absent) else ""
            )
        status = reflector.status
        denied = status.forbidden
        if denied is None and isinstance(found, Denied) and not status.synced:
            denied = found.reason
        lost_since_s = status.lost_since_s
        return KindState(
            kind=name,
            access="available" if denied is None else "forbidden",
            synced=status.synced,
            objects=self._size(name),
            lost_for_s=0.0 if lost_since_s is None else self._clock.monotonic_s() - lost_since_s,
            detail=denied or status.last_error or "",
        )

    def blocked(self) -> str:
        """Why nothing may be decided, in words; empty when every kind is read in full or known not to be readable."""
        if self._discovery is None:
            return f"api-server: {self.fault or 'not asked yet'}"
        if self._session.server_time_ms() is None:
            return "api-server: its answers carry no Date, so no age can be judged"
        waiting = [state for state in self.states() if not state.usable]
        if not waiting:
            return ""
        first = waiting[0]
        what = first.access if first.access in {"forbidden", "absent"} else "not read in full"
        more = f" (and {len(waiting) - 1} more kinds)" if len(waiting) > 1 else ""
        return f"watch/{first.kind}: {what}{': ' if first.detail else ''}{first.detail}{more}"

    def freeze(self, stores: Stores, memory: Memory = NOTHING_DONE) -> FrozenCluster:
        """The cluster at this moment, with what we remember; only to be asked while nothing is `blocked`."""
        now_ms = self._session.server_time_ms()
        if now_ms is None:
            raise RuntimeError("the API server's clock is not known yet")
        return FrozenCluster(
            stores=stores.freeze(),
            now_ms=now_ms,
            access=access_rows(self.states()),
            server_version=self.server_version,
            memory=memory,
        )

    def readings(self) -> Iterator[WatchReading]:
        """Counters for the scrape."""
        now_ms, now_s = self._clock.now_ms(), self._clock.monotonic_s()
        for name, reflector in self._reflectors.items():
            status = reflector.status
            heard_s = status.last_event_s
            yield WatchReading(
                resource=KINDS[name].plural,
                events=self._observed[name].events,
                restarts=dict(status.restarts),
                last_event_ms=None if heard_s is None else now_ms - round((now_s - heard_s) * 1000),
                objects=self._size(name),
            )

    def _size(self, name: str) -> int:
        store: Any = self._writers[name]
        return len(store)
