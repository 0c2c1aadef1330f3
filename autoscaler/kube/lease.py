"""One leader by a Lease: who holds it, who may take it, and for how long the holder may rely on it.

Clocks of two machines are never compared: a foreign lease has expired when *we* have not seen it change for its whole
duration, by our own monotonic clock. The holder relies on it for less (the renew deadline), counted from the moment its
last successful renewal was *sent*. Between the two lies the time in which nobody may act. A Lease that was deleted is
held until then too, by everyone who saw it: its holder has not heard of it yet.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, Literal
from urllib.parse import quote

import msgspec

from autoscaler.kube.errors import NotFound
from autoscaler.kube.session import KubeSession
from autoscaler.kube.wire import Wire

TERM: Final = "gpu-autoscaler.io/term"
"""Grows with every leadership, over deletions of the Lease too: `leaseTransitions` alone would begin anew."""
UNSTATED_S: Final = 15.0
"""For a holder that states no duration: everybody's default."""
JITTER: Final = 1.2


@dataclass(frozen=True, kw_only=True)
class LeaseTimes:
    """client-go's defaults; a request must end well before the deadline, or one dead connection eats the lease.

    Raises `ValueError` for times under which two could lead, or a leader could not renew in time.
    """

    duration_s: float = 15.0
    renew_within_s: float = 10.0
    retry_s: float = 2.0
    request_s: float = 3.0

    def __post_init__(self) -> None:
        if not 0 < self.retry_s * JITTER < self.renew_within_s < self.duration_s:
            raise ValueError("a lease needs retry < renewal deadline < duration")
        if not 0 < self.request_s < self.renew_within_s:
            raise ValueError("a request about a lease must end before the renewal deadline")


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
    """The Lease as it was read last; `changed_s` is when we first saw this version, by our monotonic clock.

    `version` is empty where there is no Lease; `holder` is then whoever held the one that was deleted. `largest_term` is
    the largest term that was ever seen, whatever the Lease says now.
    """

    version: str = ""
    holder: str = ""
    duration_s: float = 0.0
    transitions: int = 0
    term: int = 0
    largest_term: int = 0
    acquired: str = ""
    changed_s: float = 0.0


Step = Literal["acquire", "renew", "wait"]


def next_step(seen: Seen, *, identity: str, term: int, now_s: float) -> Step:
    """What a candidate (`term` 0) or the leader of a term may do: renew what it holds, acquire what is free, else wait.

    A lease that bears our name and is not of our term is another process' until it expires.
    """
    if term:
        ours = bool(seen.version) and seen.holder == identity and seen.term == term
        return "renew" if ours else "wait"
    if not seen.holder or now_s - seen.changed_s > seen.duration_s:
        return "acquire"
    return "wait"


def observe(lease: LeaseObject | None, before: Seen | None, *, now_s: float) -> Seen:
    """What a read says, with the time since when it is so."""
    before = before or Seen(changed_s=now_s)
    if lease is None:
        return replace(before, version="", transitions=0, term=0, acquired="")
    spec, version = lease.spec, lease.metadata.resource_version
    stated = (lease.metadata.annotations or {}).get(TERM, "0")
    term = int(stated) if stated.isascii() and stated.isdecimal() and len(stated) < 16 else 0
    return Seen(
        version=version,
        holder=spec.holder_identity or "",
        duration_s=float(spec.lease_duration_seconds or UNSTATED_S),
        transitions=spec.lease_transitions or 0,
        term=term,
        largest_term=max(term, before.largest_term),
        acquired=spec.acquire_time or "",
        changed_s=before.changed_s if before.version == version else now_s,
    )


def next_term(seen: Seen, least: int) -> int:
    """The term of the next leadership: larger than all that were seen, and than what the caller knows of."""
    return max(seen.largest_term, seen.transitions, least) + 1


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
            "leaseDurationSeconds": math.ceil(self._times.duration_s) if holder else 1,
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
