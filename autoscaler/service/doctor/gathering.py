"""Asks both peers once. Neither stops the other: what could not be had is a fault among the answers."""

from collections.abc import Callable, Mapping

from autoscaler.kube.config import ClusterAccess
from autoscaler.model.policy import Policy
from autoscaler.model.snapshot import Snapshot
from autoscaler.service.clock import Clock, SystemClock
from autoscaler.service.doctor.gathered import Gathered, ServerFacts, StoreFacts
from autoscaler.service.doctor.rights import rights_needed
from autoscaler.service.doctor.server_reading import read_server
from autoscaler.service.doctor.store_reading import read_store
from autoscaler.service.faults import ServiceError
from autoscaler.service.once import read_live
from autoscaler.service.peers import cluster_access, exporter_profiles, kube_session
from autoscaler.service.settings import Settings

_NO_STORE = "http://no-store.invalid"
"""A name that RFC 2606 keeps from ever resolving: the cluster is then read with a store that fails at once."""


async def gather(
    settings: Settings,
    environ: Mapping[str, str],
    policy: Policy,
    *,
    show: Callable[[str], None],
    clock: Clock | None = None,
) -> Gathered:
    """All that the checks look at; raises a `ConfigError` only for exporter profiles that cannot be read."""
    clock = clock or SystemClock()
    chosen = policy.evidence.profiles
    profiles = tuple(p for p in await exporter_profiles(settings) if not chosen or p.name in chosen)
    store = await read_store(settings, policy, profiles, clock=clock, show=show)
    try:
        access = await cluster_access(settings, environ)
    except ServiceError as error:
        server, snapshot, fault = ServerFacts(fault=str(error)), None, str(error)
    else:
        server = await _ask_server(settings, access, policy, clock=clock, show=show)
        snapshot, fault = await _snapshot(settings, environ, policy, store, server, show=show)
    return Gathered(
        settings=settings,
        policy=policy,
        profiles=profiles,
        store=store,
        server=server,
        snapshot=snapshot,
        snapshot_fault=fault,
    )


async def _ask_server(
    settings: Settings, access: ClusterAccess, policy: Policy, *, clock: Clock, show: Callable[[str], None]
) -> ServerFacts:
    async with kube_session(settings, access) as session:
        return await read_server(
            session,
            rights_needed(policy, settings),
            namespace=settings.namespace,
            clock=clock,
            show=show,
        )


async def _snapshot(
    settings: Settings,
    environ: Mapping[str, str],
    policy: Policy,
    store: StoreFacts,
    server: ServerFacts,
    *,
    show: Callable[[str], None],
) -> tuple[Snapshot | None, str]:
    """The cluster as every command reads it, without a store where none answers."""
    if server.fault:
        return None, server.fault
    if store.now_ms < 0:
        without = {"prometheus_url": _NO_STORE, "prometheus_ca_file": None, "prometheus_token_file": None}
        settings = settings.model_copy(update=without)
    settings = settings.model_copy(update={"history_read": 0})
    try:
        return await read_live(settings, environ, policy, show=show), ""
    except ServiceError as error:
        return None, str(error)
