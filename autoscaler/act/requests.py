"""An action becomes HTTP requests: pure, and the only place that knows what a change looks like on the wire.

A request names uid and version of what was judged and changes one amount, and nothing that the owner did not state.
Content types are explicit: a custom resource would refuse a strategic merge, and a merge patch of containers erases the
other fields of each.
"""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec

from autoscaler.act.live import LivePod, LiveWorkload
from autoscaler.kube.kinds import HORIZONTAL_POD_AUTOSCALER, KUEUE_WORKLOAD
from autoscaler.kube.session import WriteVerb
from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.plan import KUEUE_GROUP, Action, PodRef

FIELD_MANAGER: Final = "gpu-autoscaler"
DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
LOWERED_COST: Final = "-2147483"
"""Under the default 0 and recognisably ours; the smallest int32 means something to other schedulers."""
_MERGE: Final = "application/merge-patch+json"
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_JSON_PATCH: Final = "application/json-patch+json"
_MANAGED: Final = {"fieldManager": FIELD_MANAGER}
_PATHS: Final = {
    ("apps", "Deployment"): ("/apis/apps/v1", "deployments"),
    ("apps", "StatefulSet"): ("/apis/apps/v1", "statefulsets"),
    ("batch", "CronJob"): ("/apis/batch/v1", "cronjobs"),
    (KUEUE_GROUP, "Workload"): (KUEUE_WORKLOAD.base_path, KUEUE_WORKLOAD.plural),
    ("autoscaling", "HorizontalPodAutoscaler"): (
        HORIZONTAL_POD_AUTOSCALER.base_path,
        HORIZONTAL_POD_AUTOSCALER.plural,
    ),
    ("batch", "Job"): ("/apis/batch/v1", "jobs"),
}


EVICTION: Final = "/eviction"


class NoRequestError(ValueError):
    """There is no request for this lever and kind, or what it names cannot be the name of an object."""


class Request(msgspec.Struct, frozen=True):
    """One changing request."""

    verb: WriteVerb
    path: str
    body: Any
    content_type: str = "application/json"
    params: Mapping[str, str] = {}

    def rehearsed(self) -> "Request":
        """The same request as a server-side dry run."""
        return msgspec.structs.replace(self, params={**self.params, "dryRun": "All"})


def has_lever(ref: WorkloadRef) -> bool:
    """Whether there are requests for a workload of this kind; pods of other kinds can be evicted all the same."""
    return (ref.group, ref.kind) in _PATHS


def workload_path(ref: WorkloadRef) -> str:
    """Where a workload is read and patched; raises `NoRequestError` for a kind without a lever."""
    found = _PATHS.get((ref.group, ref.kind))
    if found is None:
        raise NoRequestError(f"no request changes a {ref.kind} of {ref.group or 'the core API'}")
    base, plural = found
    return f"{base}/namespaces/{_segment(ref.namespace)}/{plural}/{_segment(ref.name)}"


def pod_path(pod: PodRef) -> str:
    """Where a pod is read and patched."""
    return f"/api/v1/namespaces/{_segment(pod.namespace)}/pods/{_segment(pod.name)}"


def _segment(name: str) -> str:
    """A name as one segment of a path; a client folds `.` and `..`, however they are written, into another path."""
    if name in {"", ".", ".."}:
        raise NoRequestError(f"{name!r} names no object")
    return quote(name, safe="")


def change_request(action: Action, live: LiveWorkload) -> Request:
    """The change of a template, of replicas, of their least number or of Kueue's word; raises `NoRequestError` where the live object offers no such field."""
    metadata = {"uid": live.uid, "resourceVersion": live.resource_version}
    path = workload_path(action.written[0])
    integer = _one_field(action)
    if integer is not None:
        # A Job has no scale subresource.
        scaled = action.lever == "scale" and action.target.kind != "Job"
        body = {"metadata": metadata, "spec": integer}
        return Request("PATCH", f"{path}/scale" if scaled else path, body, _MERGE, _MANAGED)
    if action.target.kind == "Job":
        raise NoRequestError("a Job that runs takes no other template")
    if action.lever != "template":
        raise NoRequestError(f"lever {action.lever} changes no workload")
    stated = live.stated(action.container, action.resource)
    if not stated:
        raise NoRequestError(f"container {action.container!r} states no {action.resource}")
    resources = {part: {action.resource: str(action.after)} for part in stated}
    container = {"name": action.container, "resources": resources}
    spec: dict[str, Any] = {"template": {"spec": {"containers": [container]}}}
    if action.target.kind == "CronJob":
        spec = {"jobTemplate": {"spec": spec}}
    return Request("PATCH", path, {"metadata": metadata, "spec": spec}, _STRATEGIC, _MANAGED)


def _one_field(action: Action) -> dict[str, int | bool] | None:
    """The field of a specification that a merge patch sets; None for a lever that needs another request."""
    match action.lever:
        case "deactivate":
            return {"active": bool(action.after)}
        case "bounds":
            return {"minReplicas": action.after}
        case "scale":
            return {"parallelism" if action.target.kind == "Job" else "replicas": action.after}
        case _:
            return None


def disown_request(action: Action, live: LiveWorkload) -> Request | None:
    """Takes our entries out of `managedFields`; None where there is none.

    An owner who applies server-side without force would meet a conflict with them on his unchanged manifest. The last
    entry goes first, since each removal moves the ones behind it.
    """
    if not live.own_entries:
        return None
    steps: list[dict[str, Any]] = [{"op": "test", "path": "/metadata/uid", "value": live.uid}]
    for index in sorted(live.own_entries, reverse=True):
        # Not the version: controllers write the status many times while a rollout runs, and only the index matters.
        entry = f"/metadata/managedFields/{index}"
        steps += [
            {"op": "test", "path": f"{entry}/manager", "value": FIELD_MANAGER},
            {"op": "remove", "path": entry},
        ]
    return Request("PATCH", workload_path(action.written[0]), steps, _JSON_PATCH, _MANAGED)


def cost_request(pod: PodRef, live: LivePod) -> Request:
    """Marks a pod, as it was read, as the first to go when its Deployment shrinks."""
    metadata = {
        "uid": pod.uid,
        "resourceVersion": live.resource_version,
        "annotations": {DELETION_COST: LOWERED_COST},
    }
    return Request("PATCH", pod_path(pod), {"metadata": metadata}, _MERGE, _MANAGED)


def uncost_request(pod: PodRef) -> Request:
    """Takes our mark away, and nobody else's."""
    field = f"/metadata/annotations/{DELETION_COST.replace('/', '~1')}"
    return Request("PATCH", pod_path(pod), _removal(pod, field, LOWERED_COST), _JSON_PATCH, _MANAGED)


def nominate_request(pod: PodRef, node: str) -> Request:
    """Keeps a node's room for a waiting pod."""
    body = {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node}}
    return Request("PATCH", f"{pod_path(pod)}/status", body, _MERGE, _MANAGED)


def unnominate_request(pod: PodRef, node: str) -> Request:
    """Gives that room up again, and no other."""
    body = _removal(pod, "/status/nominatedNodeName", node)
    return Request("PATCH", f"{pod_path(pod)}/status", body, _JSON_PATCH, _MANAGED)


def _removal(pod: PodRef, field: str, value: str) -> list[dict[str, str]]:
    return [
        {"op": "test", "path": "/metadata/uid", "value": pod.uid},
        {"op": "test", "path": field, "value": value},
        {"op": "remove", "path": field},
    ]


def evict_request(pod: PodRef) -> Request:
    """One eviction of exactly this pod, under its disruption budgets and its own grace period."""
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "deleteOptions": {"preconditions": {"uid": pod.uid}},
    }
    return Request("POST", f"{pod_path(pod)}{EVICTION}", body)


def bears_our_cost(pod: LivePod) -> bool:
    """Whether the pod's deletion cost is the one that we set; an owner's own cost is left alone."""
    return pod.annotations.get(DELETION_COST) == LOWERED_COST
