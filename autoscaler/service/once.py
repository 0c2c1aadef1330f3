"""Reads a cluster once, without watching: what the one-shot commands judge. The same stores and the same assembling.

A watch waits out an overloaded server; here a list is asked for again a few times, as the server wants, before giving up.
"""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from autoscaler.kube.discovery import Absent, Denied, discover
from autoscaler.kube.errors import ApiError, Forbidden, KubeError
from autoscaler.kube.kinds import KINDS, Kind
from autoscaler.kube.session import KubeSession
from autoscaler.kube.watch import StoreWriter
from autoscaler.model.policy import Policy
from autoscaler.model.snapshot import MAX_BYTES, Snapshot, SnapshotError, decode_snapshot
from autoscaler.observe.reader import SeriesReader
from autoscaler.observe.stores import Stores
from autoscaler.service.faults import ServiceError
from autoscaler.service.frozen import FrozenCluster, access_rows, assemble_frozen
from autoscaler.service.past_once import read_past
from autoscaler.service.peers import (
    cluster_access,
    exporter_profiles,
    kube_session,
    prometheus_client,
    read_series,
    require_live,
    serving_profiles,
)
from autoscaler.service.readiness import KindState
from autoscaler.service.settings import Settings

PAGE_SIZE: Final = 500
_LIST_ATTEMPTS: Final = 3
"""A list whose continue token ran out is begun again."""


async def read_live(
    settings: Settings, environ: Mapping[str, str], policy: Policy, *, show: Callable[[str], None]
) -> Snapshot:
    """The cluster now; raises a `ServiceError` with one sentence when it cannot be read.

    A metrics store that fails is no such fault: the snapshot carries it. ``show`` is told what is being read.
    """
    require_live(settings)
    access = await cluster_access(settings, environ)
    profiles = await exporter_profiles(settings)
    serving = await serving_profiles(settings)
    async with kube_session(settings, access) as session, await prometheus_client(settings) as client:
        stores = Stores(policy.resources)
        try:
            version, states = await _fill(session, stores, show)
        except KubeError as error:
            raise ServiceError(f"{access.server}: {error}") from None
        _refuse_blindness(states, access.server)
        show("metrics")
        series = await read_series(SeriesReader(client, profiles, serving=serving), session, policy)
        now_ms = session.server_time_ms()
        if now_ms is None:
            raise ServiceError(f"{access.server}: its answers carry no Date, so no age can be judged")
        frozen = FrozenCluster(
            stores=stores.freeze(), now_ms=now_ms, access=access_rows(states), server_version=version
        )
        show("assembling")
        snapshot = await asyncio.to_thread(assemble_frozen, frozen, series, policy)
        histories = await read_past(
            client,
            frozen.stores,
            series,
            snapshot,
            policy,
            limit_s=settings.history_read / 1000,
            show=show,
        )
        return msgspec.structs.replace(snapshot, histories=histories)


def read_snapshot_file(path: Path) -> Snapshot:
    """A saved snapshot; raises a `ServiceError` with one sentence."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES)
        return decode_snapshot(data)
    except OSError as error:
        raise ServiceError(f"{path}: cannot be read: {error.strerror}") from None
    except SnapshotError as error:
        raise ServiceError(f"{path}: {error} (gpu-autoscaler snapshot -o FILE makes one)") from None


async def _fill(
    session: KubeSession, stores: Stores, show: Callable[[str], None]
) -> tuple[str, list[KindState]]:
    show("what the API server has")
    found = await discover(session, [KINDS[name] for name in stores.writers])
    states: list[KindState] = []
    for name, available in found.kinds.items():
        match available:
            case Absent(reason=reason):
                states.append(KindState(kind=name, access="absent", detail=reason))
            case Denied(reason=reason):
                states.append(KindState(kind=name, access="forbidden", detail=reason))
            case _:
                states.append(await _read_kind(session, found.served[name], stores.writers[name], show))
    return found.server_version, states


async def _read_kind(
    session: KubeSession, kind: Kind[Any], writer: StoreWriter[Any], show: Callable[[str], None]
) -> KindState:
    for attempt in range(1, _LIST_ATTEMPTS + 1):
        try:
            await _list_all(session, kind, writer, show)
            break
        except Forbidden as error:
            return KindState(kind=kind.name, access="forbidden", detail=error.message)
        except ApiError as error:
            if not error.expired or attempt == _LIST_ATTEMPTS:
                raise
    return KindState(kind=kind.name, access="available", synced=True)


async def _list_all(
    session: KubeSession, kind: Kind[Any], writer: StoreWriter[Any], show: Callable[[str], None]
) -> None:
    writer.begin_relist()
    token, version, count = "", "", 0
    while True:
        show(f"{kind.name} {count}")
        page = await session.list_page(kind, limit=PAGE_SIZE, continue_token=token, retry=True)
        items = page.items or []
        count += len(items)
        writer.relist_page(items)
        version = version or page.metadata.resource_version
        token = page.metadata.continue_
        if not token:
            break
    writer.commit_relist(version)


def _refuse_blindness(states: list[KindState], server: str) -> None:
    """Without pods and nodes there is nothing to judge."""
    for state in states:
        if state.required and state.access != "available":
            raise ServiceError(f"{server}: {state.kind} is {state.access}: {state.detail}")
