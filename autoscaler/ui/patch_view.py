"""A plan as patches for a Git repository: what an owner would change in his own manifests."""

from collections.abc import Iterator
from typing import Any, Final

import yaml

from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.plan import Action, Plan
from autoscaler.ui import figures
from autoscaler.ui.escape import printable

_VERSIONS: Final = {"apps": "apps/v1", "batch": "batch/v1"}


def patch_view(plan: Plan) -> str:
    """Strategic merge patches, one document for each change, as kustomize and `kubectl patch` take them.

    A comment above each says why; what no patch can do, such as an eviction, is a comment alone.
    """
    return "".join(_document(action) for action in plan.actions) or "# nothing to change\n"


def _document(action: Action) -> str:
    title = "".join(f"# {line}\n" for line in _comments(action))
    body = _patch(action)
    if body is None:
        return title
    return f"---\n{title}{yaml.safe_dump(body, sort_keys=False, allow_unicode=False)}"


def _comments(action: Action) -> Iterator[str]:
    target = action.target
    yield printable(f"{target.kind} {target}: {figures.change(action)}; {action.because}")
    if _patch(action) is None:
        yield "not a patch: only gpu-autoscaler apply or the service does this"


def _patch(action: Action) -> dict[str, Any] | None:
    if action.lever == "bounds":
        target, _ = action.written
        spec: dict[str, Any] = {"minReplicas": action.after}
        return _manifest("autoscaling/v2", target, spec)
    target, version = action.target, _VERSIONS.get(action.target.group)
    if version is None or action.lever in {"evict", "deactivate"}:
        return None
    spec = {"parallelism" if target.kind == "Job" else "replicas": action.after}
    if action.lever == "template":
        # Requests and limits of an extended resource must be equal; a manifest may state either or both.
        amount = {action.resource: str(action.after)}
        container = {"name": action.container, "resources": {"limits": amount, "requests": dict(amount)}}
        spec = {"template": {"spec": {"containers": [container]}}}
        if target.kind == "CronJob":
            spec = {"jobTemplate": {"spec": spec}}
    return _manifest(version, target, spec)


def _manifest(version: str, target: WorkloadRef, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": target.name, "namespace": target.namespace}
    return {"apiVersion": version, "kind": target.kind, "metadata": metadata, "spec": spec}
