"""What a doctor may have gathered, in a few words: a healthy world, to be changed one way at a time."""

from dataclasses import replace
from typing import Any

from build import DAY_MS, NOW_MS, Spec, cluster

from autoscaler.model.findings import Finding
from autoscaler.model.policy import Policy, policy_from_dict
from autoscaler.model.snapshot import Snapshot
from autoscaler.observe.profiles import Profile, parse_profile
from autoscaler.service.doctor.checks import examine
from autoscaler.service.doctor.gathered import (
    Gathered,
    LeaseFacts,
    MonitorFacts,
    Published,
    Review,
    Right,
    Rows,
    ServerFacts,
    StoreFacts,
    Targets,
)
from autoscaler.service.settings import load_settings

UTIL = "DCGM_FI_DEV_GPU_UTIL"
JOB = "dcgm-exporter"
SOURCE = {"job": JOB, "instance": "10.0.0.1:9400"}
URL = "http://prometheus.monitoring:9090"
DCGM = parse_profile(
    f"""
name: dcgm
scope: device
signals: [{{metric: {UTIL}, kind: util, full: 100}}]
owners: [{{pod: pod, namespace: namespace, container: container}}]
device: UUID
slices: [GPU_I_ID]
variants: [{{name: mig, label: GPU_I_ID}}]
""",
    where="here",
)


def board(index: int = 0, **labels: str) -> dict[str, str]:
    """The labels of one board's series."""
    return {**SOURCE, "UUID": f"GPU-{index:04d}", **labels}


def rows(*series: dict[str, str], profile: Profile = DCGM) -> tuple[Rows, ...]:
    """Series of one profile."""
    return (Rows(profile=profile, metric=profile.signals[0].metric, rows=series),)


def published(job: str = JOB, **changes: Any) -> Published:
    """What a job publishes."""
    known = {"metric": UTIL, "job": job, "series": 8, "newest_ms": NOW_MS - 5_000}
    return Published(**{**known, "oldest_ms": NOW_MS - 30 * DAY_MS, **changes})


def store(**changes: Any) -> StoreFacts:
    """A store that has eight boards of one exporter, for a month."""
    known: dict[str, Any] = {
        "now_ms": NOW_MS,
        "minus_own_ms": 0,
        "targets": (Targets(job=JOB, up=2),),
        "published": (published(),),
        "rows": rows(board(namespace="team", pod="web-0")),
        "retention_ms": 30 * DAY_MS,
    }
    return StoreFacts(**{**known, **changes})


def server(**changes: Any) -> ServerFacts:
    """A server that grants everything, where somebody leads."""
    known: dict[str, Any] = {
        "server": "https://10.0.0.1:6443",
        "user": "system:serviceaccount:gpu-autoscaler:gpu-autoscaler",
        "reviews": (allowed("", "pods", "list"), allowed("", "nodes", "list")),
        "lease": LeaseFacts(exists=True, holder="gpu-autoscaler-0_1", renewed_ms=NOW_MS - 2_000),
        "monitors": MonitorFacts(absent=True),
        "now_ms": NOW_MS,
        "minus_own_ms": 0,
    }
    return ServerFacts(**{**known, **changes})


def allowed(group: str, resource: str, verb: str, **changes: Any) -> Review:
    """A right that is granted; `is_allowed=False` for one that is not."""
    is_allowed = changes.pop("is_allowed", True)
    right = Right(group=group, resource=resource, verb=verb, role="ClusterRole read, read.yaml", **changes)
    return Review(right=right, allowed=is_allowed)


def seen(
    *specs: Spec,
    snapshot: Snapshot | None = None,
    policy: Policy | None = None,
    environ: dict[str, str] | None = None,
    **changes: Any,
) -> Gathered:
    """What was gathered of these workloads, in a healthy world."""
    known: dict[str, Any] = {
        "settings": load_settings({"AUTOSCALER_PROMETHEUS_URL": URL, **(environ or {})}),
        "policy": policy or Policy(),
        "profiles": (DCGM,),
        "store": store(),
        "server": server(),
        "snapshot": snapshot or cluster(*(specs or (Spec(),))),
    }
    return Gathered(**{**known, **changes})


def blinded(gathered: Gathered) -> Gathered:
    """The same where the cluster could not be read."""
    return replace(gathered, snapshot=None, snapshot_fault="403 Forbidden: pods")


def finding(gathered: Gathered, number: str) -> Finding:
    """One check's finding."""
    return next(one for one in examine(gathered).findings if one.id == number)


def states(gathered: Gathered) -> dict[str, str]:
    """Every check's state."""
    return {one.id: one.state for one in examine(gathered).findings}


def policy(**sections: Any) -> Policy:
    """A policy with these sections."""
    return policy_from_dict(sections)
