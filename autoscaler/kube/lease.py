"""One leader by a Lease: who holds it, who may take it, and for how long the holder may rely on it.

Clocks of two machines are never compared: a foreign lease has expired when *we* have not seen it change for its whole
duration, by our own monotonic clock. The holder relies on it for less (the renew deadline), counted from the moment its
last successful renewal was *sent*. Between the two lies the time in which nobody may act.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal
from urllib.parse import quote

import msgspec

from autoscaler.kube.errors import NotFound
from autoscaler.kube.session import KubeSession
from autoscaler.kube.wire import Wire

TERM: Final = "gpu-autoscaler.io/term"
"""Grows with every leadership, over deletions of the Lease too: `leaseTransitions` alone would begin anew."""


@dataclass(frozen=True, kw_only=True)
class LeaseTimes:
    """client-go's defaults; a request must end well before the deadline, or one dead connection eats the lease."""

    duration_s: float = 15.0
    renew_within_s: float = 10.0
    retry_s: float = 2.0
    request_s: float = 3.0


class _Meta(Wire):
    name: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Spec(Wire):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    lease_transitions: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None


class LeaseObject(Wire):
    """A Lease of coordination.k8s.io/v1."""

    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)


lease_decoder = msgspec.json.Decoder(LeaseObject)


@dataclass(frozen=True, kw_only=True)
class Seen:
    """The Lease as it was read last; `changed_s` is when we first saw this version, by our monotonic clock."""

    version: str = ""
    holder: str = ""
    duration_s: float = 0.0
    transitions: int = 0
    term: int = 0
    acquired: str = ""
    changed_s: float = 0.0


Step = Literal["acquire", "renew", "wait"]


def next_step(seen: Seen, *, identity: str, holds: bool, now_s: float) -> Step:
    """What a candidate may do: renew what it holds, acquire what is free or has expired, else wait.

    A lease that bears our name and that this process does not hold is another process' until it expires.
    """
    if holds:
        return "renew" if seen.holder == identity else "wait"
    if not seen.holder or now_s - seen.changed_s > seen.duration_s:
        return "acquire"
    return "wait"


def observe(lease: LeaseObject | None, before: Seen | None, *, now_s: float) -> Seen:
    """What a read says, with the time since when it is so."""
    if lease is None:
        return Seen(changed_s=now_s, term=before.term if before else 0)
    spec, version = lease.spec, lease.metadata.resource_version
    changed_s = before.changed_s if before is not None and before.version == version else now_s
    term = (lease.metadata.annotations or {}).get(TERM, "0")
    return Seen(
        version=version,
        holder=spec.holder_identity or "",
        duration_s=float(spec.lease_duration_seconds or 0),
        transitions=spec.lease_transitions or 0,
        term=int(term) if term.isascii() and term.isdecimal() and len(term) < 16 else 0,
        acquired=spec.acquire_time or "",
        changed_s=changed_s,
    )


class LeaseClient:
    """Reads and writes one Lease; every write is a compare-and-swap, every call has its own short limit."""

    def __init__(
        self,
        session: KubeSession,
        *,
        namespace: str,
        name: str,
        times: LeaseTimes,
        wall_ms: Callable[[], int],
    ) -> None:
        self._session = session
        self._folder = f"/apis/coordination.k8s.io/v1/namespaces/{quote(namespace, safe='')}/leases"
        self._path = f"{self._folder}/{quote(name, safe='')}"
        self._namespace, self._name = namespace, name
        self._times = times
        self._wall_ms = wall_ms

    async def read(self) -> LeaseObject | None:
        """The Lease, None where there is none; raises `KubeError`."""
        try:
            found: LeaseObject = await self._session.get_json(
                self._path, None, lease_decoder, retry=False, timeout_s=self._times.request_s
            )
        except NotFound:
            return None
        return found

    async def write(self, seen: Seen, *, holder: str, term: int, taking: bool) -> LeaseObject:
        """Takes, renews or (with an empty holder) releases the Lease; raises `Conflict` where somebody else wrote it."""
        now = datetime.fromtimestamp(self._wall_ms() / 1000, tz=UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        metadata: dict[str, Any] = {
            "name": self._name,
            "namespace": self._namespace,
            "annotations": {TERM: str(term)},
        }
        spec = {
            "holderIdentity": holder,
            "leaseDurationSeconds": max(1, round(self._times.duration_s)) if holder else 1,
            "acquireTime": now if taking else seen.acquired or now,
            "renewTime": now,
            "leaseTransitions": seen.transitions + (1 if taking and seen.version else 0),
        }
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": spec,
        }
        verb: Literal["POST", "PUT"] = "POST"
        path = self._folder
        if seen.version:
            metadata["resourceVersion"] = seen.version
            verb, path = "PUT", self._path
        written: LeaseObject = await self._session.write(
            verb, path, body, lease_decoder, timeout_s=self._times.request_s
        )
        return written
