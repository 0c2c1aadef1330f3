"""What a cycle freezes on the event loop, and how a worker thread makes a snapshot of it."""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from autoscaler.model.breaker import NOTHING_SEEN, FleetWatch
from autoscaler.model.cluster import NOTHING_DONE, Memory
from autoscaler.model.history import WorkloadHistory
from autoscaler.model.policy import Policy
from autoscaler.model.snapshot import KindAccess, Snapshot
from autoscaler.observe.assemble import assemble
from autoscaler.observe.series import SeriesReading
from autoscaler.observe.stores import StoresView
from autoscaler.service.readiness import KindState


@dataclass(frozen=True, kw_only=True)
class FrozenCluster:
    """All stores at one moment, by the API server's clock, with what could be read of it."""

    stores: StoresView
    now_ms: int
    access: tuple[KindAccess, ...]
    server_version: str
    memory: Memory = NOTHING_DONE
    watch: FleetWatch = NOTHING_SEEN
    histories: tuple[WorkloadHistory, ...] = ()


def access_rows(states: Iterable[KindState]) -> tuple[KindAccess, ...]:
    """The states as the snapshot carries them; a detail is told only where something is missing."""
    return tuple(
        KindAccess(state.kind, state.access, "" if state.access == "available" else state.detail)
        for state in states
    )


def assemble_frozen(frozen: FrozenCluster, series: SeriesReading, _policy: Policy) -> Snapshot:
    """The snapshot; pure, for a worker thread."""
    snapshot = assemble(
        frozen.stores,
        series,
        now_ms=frozen.now_ms,
        access=frozen.access,
        server_version=frozen.server_version,
        memory=frozen.memory,
    )
    return msgspec.structs.replace(snapshot, watch=frozen.watch, histories=frozen.histories)
