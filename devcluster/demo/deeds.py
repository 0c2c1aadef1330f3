"""What the service did, by the API server's audit log and not by what it says of itself."""

from collections.abc import Iterable
from dataclasses import dataclass

from devcluster.audit import AuditEvent, describe

_OWN_KINDS = frozenset({"leases", "configmaps", "events"})
_WORKLOADS_AND_PODS = frozenset({"deployments", "statefulsets", "jobs", "cronjobs", "pods"})


@dataclass(frozen=True)
class Deeds:
    """The writes of one identity.

    `all` are refused ones and dry runs too, `strange` those of them that touch neither its own records nor workloads
    and pods. `acts` counts the accepted changes of these, without dry runs; `evicted` are the pods that were evicted.
    """

    all: tuple[str, ...] = ()
    strange: tuple[str, ...] = ()
    acts: int = 0
    evicted: tuple[tuple[str, str], ...] = ()


def deeds_of(writes: Iterable[AuditEvent], own_namespace: str) -> Deeds:
    """The deeds among an identity's writes."""
    events = list(writes)
    changes = [event for event in events if _resource(event) in _WORKLOADS_AND_PODS]
    acts = [event for event in changes if _is_accepted(event)]
    evictions = [event["objectRef"] for event in acts if event["objectRef"].get("subresource") == "eviction"]
    others = [event for event in events if _resource(event) not in _WORKLOADS_AND_PODS]
    strange = [event for event in others if not _is_own(event, own_namespace)]
    return Deeds(
        all=tuple(describe(event) for event in events),
        strange=tuple(describe(event) for event in strange),
        acts=len(acts),
        evicted=tuple((target["namespace"], target["name"]) for target in evictions),
    )


def _resource(event: AuditEvent) -> str:
    return str(event.get("objectRef", {}).get("resource", ""))


def _is_own(event: AuditEvent, own_namespace: str) -> bool:
    return _resource(event) in _OWN_KINDS and event["objectRef"].get("namespace") == own_namespace


def _is_accepted(event: AuditEvent) -> bool:
    succeeded = 200 <= event.get("responseStatus", {}).get("code", 0) < 300
    return succeeded and "dryRun=All" not in event.get("requestURI", "")
