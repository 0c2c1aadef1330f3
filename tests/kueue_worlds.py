"""Builders for what Kueue admits: a Job that it runs, and the queue behind it."""

from typing import Any

from build import GPU, NOW_MS, Board, Spec, boards

from autoscaler.decide.marks import MIN_REPLICAS
from autoscaler.model.kueue import ClusterQueueRow, FlavorQuota, FlavorUse, KueueWorkload, LocalQueueRow

QUEUE = "kueue.x-k8s.io/queue-name"
QUIET = boards(0.0)
CONSENT = {MIN_REPLICAS: "0"}


def job(name: str = "web", *, seen: tuple[tuple[Board, ...] | None, ...] = (QUIET,), **changes: Any) -> Spec:
    """A Job that nothing is known of but that its boards are quiet and its owner agreed to its being stopped."""
    fields = {"kind": "Job", "group": "batch", "labels": {QUEUE: "main"}, "annotations": CONSENT}
    return Spec(name, seen=seen, **(fields | changes))


def admitted(name: str = "web", **changes: Any) -> KueueWorkload:
    """The Workload by which a Job was admitted."""
    uid = f"uid-team-{name}"
    return KueueWorkload(
        **{
            "namespace": "team",
            "name": f"job-{name}",
            "uid": f"uid-job-{name}",
            "resource_version": "7",
            "controller": uid,
            "owners": (uid,),
            "queue": "main",
            "reserved": True,
            "reserved_ms": NOW_MS - 3_600_000,
            "admitted": True,
            "cluster_queue": "gpus",
            "asks": {GPU: 1},
            **changes,
        }
    )


def queued(name: str = "web", **changes: Any) -> KueueWorkload:
    """The Workload of a Job that waits."""
    nothing = {"reserved": False, "reserved_ms": -1, "admitted": False, "cluster_queue": ""}
    return admitted(name, **(nothing | changes))


def quota(nominal: int, *, borrowing: int | None = None, lending: int | None = None) -> FlavorQuota:
    return FlavorQuota("a100", GPU, nominal, borrowing, lending)


def queue(name: str = "gpus", *quotas: FlavorQuota, used: int = 0, **changes: Any) -> ClusterQueueRow:
    """A ClusterQueue with boards of flavor a100."""
    uses = (FlavorUse("a100", GPU, used),)
    return ClusterQueueRow(**({"name": name, "quotas": quotas or (quota(4),), "uses": uses} | changes))


DOOR = LocalQueueRow("team", "main", "gpus")
