"""Wires the rooms into one process: watches, the cycle, the HTTP server and their supervision in one TaskGroup.

Probes answer from the first moment, whatever the peers do. A background task that dies takes the process with it, exit code
1: a half-dead service that still looks alive would be worse.
"""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from autoscaler import __version__
from autoscaler.model.policy import Policy, policy_to_dict
from autoscaler.observe.reader import SeriesReader
from autoscaler.service import exit_codes
from autoscaler.service.allocator import tune_allocator
from autoscaler.service.clock import Clock, SystemClock
from autoscaler.service.cluster import ClusterWatch
from autoscaler.service.cycle import Outcome
from autoscaler.service.faults import ServiceError
from autoscaler.service.garbage import GarbagePolicy
from autoscaler.service.http import Views, build_app
from autoscaler.service.led import Led
from autoscaler.service.logs import Log, get_log
from autoscaler.service.loop_lag import measure_loop_lag
from autoscaler.service.peers import (
    cluster_access,
    exporter_profiles,
    kube_session,
    prometheus_client,
    require_live,
    serving_profiles,
)
from autoscaler.service.policy_file import PolicySource
from autoscaler.service.policy_variables import policy_overrides
from autoscaler.service.readiness import (
    CheckResult,
    CycleState,
    all_ready,
    cycle_check,
    fleet_check,
    kind_checks,
    ledger_check,
    metrics_checks,
    policy_check,
    server_check,
    standby_check,
)
from autoscaler.service.remembering import Remembering
from autoscaler.service.settings import Settings
from autoscaler.service.tasks import TaskDiedError, guarded
from autoscaler.service.telemetry import Metrics
from autoscaler.service.watch_metrics import WatchCollector
from autoscaler.service.wiring import Machine, MetricsStore, identity_of, wire

READINESS_EVERY_S: Final = 1.0
Address = tuple[str, int]


async def run_service(
    settings: Settings,
    environ: Mapping[str, str],
    *,
    clock: Clock | None = None,
    stop: asyncio.Event | None = None,
    on_listening: Callable[[Address], None] = lambda _: None,
) -> int:
    """Runs until ``stop`` is set (by default by SIGTERM or SIGINT) or a task dies; the exit code.

    Raises a `ServiceError` for what stops the start.
    """
    require_live(settings)
    tune_allocator()
    policy = await asyncio.to_thread(PolicySource, settings.policy_file, policy_overrides(environ))
    async with Service.opened(settings, environ, policy, clock or SystemClock()) as service:
        if stop is not None:
            return await service.serve(stop, on_listening)
        with _stopped_by_signals() as signalled:
            return await service.serve(signalled, on_listening)


@dataclass(frozen=True, kw_only=True)
class Service:
    """One running process; built by `opened`."""

    cluster: ClusterWatch
    led: Led
    remembering: Remembering
    policy: PolicySource
    clock: Clock
    metrics: Metrics
    log: Log
    listen: Address
    every_s: float
    urls: dict[str, str]

    @classmethod
    @asynccontextmanager
    async def opened(
        cls, settings: Settings, environ: Mapping[str, str], policy: PolicySource, clock: Clock
    ) -> AsyncIterator["Service"]:
        """The service with its sessions open."""
        log, metrics = get_log(), Metrics(clock=clock.monotonic_s)
        access = await cluster_access(settings, environ)
        profiles = await exporter_profiles(settings)
        serving = await serving_profiles(settings)
        _log_configuration(log, settings, policy, access.source)
        in_cluster = bool(environ.get("KUBERNETES_SERVICE_HOST"))
        garbage, identity = GarbagePolicy(), identity_of(settings)
        async with (
            kube_session(settings, access, metrics, agent=identity) as session,
            await prometheus_client(settings, metrics) as client,
        ):
            parts = wire(
                settings,
                session,
                MetricsStore(reader=SeriesReader(client, profiles, serving=serving), client=client),
                policy,
                Machine(
                    clock=clock,
                    metrics=metrics,
                    log=log,
                    in_cluster=in_cluster,
                    identity=identity,
                    quiet=garbage.around_cycle,
                ),
            )
            with garbage.in_force():
                yield cls(
                    cluster=parts.cluster,
                    led=parts.led,
                    remembering=parts.remembering,
                    policy=policy,
                    clock=clock,
                    metrics=metrics,
                    log=log,
                    listen=settings.listen_address(in_cluster=in_cluster),
                    every_s=settings.cycle / 1000,
                    urls={"prometheus": settings.effective()["prometheus_url"], "api_server": access.server},
                )

    @property
    def latest(self) -> Outcome | None:
        """The newest outcome."""
        return self.led.cycle.latest

    def checks(self) -> list[CheckResult]:
        """All readiness checks, as of now."""
        in_force = self.policy.loaded
        return [
            server_check(self.cluster.fault, known=self.cluster.known),
            *kind_checks(self.cluster.states()),
            policy_check(self.policy.fault, in_force.digest),
            *self.led.check(),
            *self._deciding_checks(in_force.policy),
        ]

    def _deciding_checks(self, policy: Policy) -> list[CheckResult]:
        """What only whoever decides can say."""
        leader, latest, cycle = self.led.standby_for(), self.latest, self.led.cycle
        if leader:
            return [standby_check(leader)]
        age_s = -1.0 if latest is None else self.clock.monotonic_s() - latest.generated_s
        acting = [ledger_check(self.led.hands.control)] if policy.modes.acting else []
        return [
            *metrics_checks(latest.snapshot if latest else None, max_skew_ms=policy.evidence.max_skew),
            *([fleet_check(latest.plan.fleet.health)] if latest else []),
            *acting,
            self.remembering.check(),
            cycle_check(CycleState(age_s=age_s, every_s=self.every_s, waiting_for=cycle.waiting_for)),
        ]

    async def serve(self, stop: asyncio.Event, on_listening: Callable[[Address], None]) -> int:
        """Everything until ``stop``; 1 when a task died."""
        self.metrics.registry.register(WatchCollector(self.cluster.readings))
        async with self._http_server(on_listening):
            code = await self._supervise(stop)
        self.log.info("stopped", exit_code=code)
        return code

    async def _supervise(self, stop: asyncio.Event) -> int:
        work = {
            "cluster": self.cluster.run(),
            "history": self.remembering.run(),
            "loop-lag": measure_loop_lag(self.clock, self.metrics),
            "readiness": self._tell_readiness(),
        }
        died: list[str] = []
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(guarded(name, job, log=self.log, metrics=self.metrics), name=name)
                    for name, job in work.items()
                ]
                # It ends its act in flight and gives the lease back, while the watches still run.
                decide = guarded(
                    "deciding", self.led.run(stop), log=self.log, metrics=self.metrics, may_end=stop.is_set
                )
                deciding = group.create_task(decide, name="deciding")
                await stop.wait()
                self.log.info("stopping")
                await asyncio.wait({deciding})
                for task in tasks:
                    task.cancel()
        except* TaskDiedError as errors:
            died = [str(error) for error in errors.exceptions]
        return exit_codes.FAILED if died else exit_codes.OK

    @asynccontextmanager
    async def _http_server(self, on_listening: Callable[[Address], None]) -> AsyncIterator[None]:
        host, port = self.listen
        views = Views(
            latest=lambda: self.latest,
            checks=self.checks,
            registry=self.metrics.registry,
            urls=lambda: self.urls,
            before_scrape=lambda: self.metrics.checks(self.checks()),
            ledger=self.led.ledger,
            standby_for=self.led.standby_for,
        )
        loopback = host in {"127.0.0.1", "::1", "localhost"}
        runner = web.AppRunner(
            build_app(views, loopback_only=loopback),
            access_log=None,
            handle_signals=False,
            shutdown_timeout=1.0,
        )
        await runner.setup()
        try:
            site = web.TCPSite(runner, host, port)
            try:
                await site.start()
            except OSError as error:
                raise ServiceError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
            address = runner.addresses[0]
            self.log.info("listening", host=address[0], port=address[1])
            on_listening((address[0], address[1]))
            yield
        finally:
            await runner.cleanup()

    async def _tell_readiness(self) -> None:
        """Logs each change of readiness with the names of what failed."""
        before: tuple[str, ...] | None = None
        while True:
            checks = self.checks()
            failed = tuple(check.name for check in checks if not check.ok)
            if failed != before:
                told = {check.name: check.detail for check in checks if not check.ok}
                if all_ready(checks):
                    self.log.info("ready", degraded=told)
                else:
                    self.log.warning("not_ready", failed=told)
                before = failed
            await self.clock.sleep(READINESS_EVERY_S)


def _log_configuration(log: Log, settings: Settings, policy: PolicySource, source: str) -> None:
    """The effective configuration, once; secrets are masked by the settings themselves."""
    loaded = policy.loaded
    log.info(
        "configuration",
        version=__version__,
        settings=settings.effective(),
        policy=policy_to_dict(loaded.policy),
        policy_digest=loaded.digest,
        policy_origin=loaded.origin,
        access=source,
    )


@contextlib.contextmanager
def _stopped_by_signals() -> Iterator[asyncio.Event]:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
