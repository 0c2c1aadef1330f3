"""What a person would change where this service may not: the exact patch, in words that can be typed."""

import shlex
from typing import Any

import msgspec

from autoscaler.decide.proposal import Judged, Proposal
from autoscaler.model.cluster import Autoscaler


def patch_of(judged: Judged, proposal: Proposal) -> str:
    """The merge patch of a workload's manifest that a proposal amounts to, as one line of JSON; empty for an eviction."""
    case = judged.case
    if proposal.lever == "scale":
        field = "parallelism" if case.workload.ref.kind == "Job" else "replicas"
        return _json({"spec": {field: proposal.after}})
    if proposal.lever != "template" or case.container is None:
        return ""
    amount = {case.resource: str(proposal.after)}
    container = {"name": case.container.name, "resources": {"limits": amount, "requests": amount}}
    spec: dict[str, Any] = {"template": {"spec": {"containers": [container]}}}
    return _json({"spec": {"jobTemplate": {"spec": spec}} if case.workload.ref.kind == "CronJob" else spec})


def bounds_command(autoscaler: Autoscaler, replicas: int) -> str:
    """What lets a HorizontalPodAutoscaler go down to so many replicas; the API takes no fewer than one."""
    patch = _json({"spec": {"minReplicas": max(1, replicas)}})
    target = ("-n", autoscaler.namespace, "patch", "hpa", autoscaler.name, "--type=merge", "-p", patch)
    return shlex.join(("kubectl", *target))


def _json(document: dict[str, Any]) -> str:
    return msgspec.json.encode(document).decode()
