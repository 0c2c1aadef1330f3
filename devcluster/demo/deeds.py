"""What the service did, by the API server's audit log and not by what it says of itself."""

from collections.abc import Iterable
from dataclasses import dataclass

from devcluster.audit import AuditEvent, describe

_OWN_KINDS = frozenset({"leases", "configmaps", "events"})
_WORKLOADS_AND_PODS = frozenset({"deployments", "statefulsets", "jobs", "cronjobs", "pods"})


@dataclass(frozen=True)
class Deeds:
    """The writes of one identity.

    `foreign` are all that touch anything but its own records, refused ones and dry runs too; `acts` the accepted
    changes of workloads and pods, without dry runs; `evicted` the pods among them that were evicted.
    """

    foreign: tuple[str, ...] = ()
    acts: int = 0
    evicted: tuple[tuple[str, str], ...] = ()


def deeds_of(writes: Iterable[AuditEvent], own_namespace: str) -> Deeds:
    """The deeds among an identity's writes."""
    foreign = [event for event in writes if not _is_own(event, own_namespace)]
    acts = [event for event in foreign if _is_act(event)]
    evictions = [event["objectRef"] for event in acts if event["objectRef"].get("subresource") == "eviction"]
    return Deeds(
        foreign=tuple(describe(event) for event in foreign),
        acts=len(acts),
        evicted=tuple((target["namespace"], target["name"]) for target in evictions),
    )


def _is_own(event: AuditEvent, own_namespace: str) -> bool:
    target = event.get("objectRef", {})
    return target.get("resource") in _OWN_KINDS and target.get("namespace") == own_namespace


def _is_act(event: AuditEvent) -> bool:
    accepted = 200 <= event.get("responseStatus", {}).get("code", 0) < 300
    dry_run = "dryRun=All" in event.get("requestURI", "")
    return accepted and not dry_run and event.get("objectRef", {}).get("resource") in _WORKLOADS_AND_PODS
