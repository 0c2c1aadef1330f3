"""A person's word that a workload is to be left alone: one annotation, set or taken back."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from autoscaler.act.contract import Api
from autoscaler.act.live import WorkloadObject, workload_decoder
from autoscaler.kube.errors import NotFound
from autoscaler.model.cluster import WorkloadRef

PATHS: Final = {
    ("apps", "Deployment"): "/apis/apps/v1/namespaces/{}/deployments/{}",
    ("apps", "StatefulSet"): "/apis/apps/v1/namespaces/{}/statefulsets/{}",
    ("batch", "CronJob"): "/apis/batch/v1/namespaces/{}/cronjobs/{}",
    ("batch", "Job"): "/apis/batch/v1/namespaces/{}/jobs/{}",
    ("", "Pod"): "/api/v1/namespaces/{}/pods/{}",
}
"""Kinds that are looked for by name. What a controller made anew would lose its mark, so its owner is marked."""
MANAGER: Final = "gpu-autoscaler-protect"
"""Not the manager of our acts: whoever undoes those leaves a person's word alone."""
_MERGE: Final = "application/merge-patch+json"
_anything: "Final[msgspec.json.Decoder[Any]]" = msgspec.json.Decoder()


class Found(msgspec.Struct, frozen=True):
    """A workload of the name, by its uid, with the annotations that it has."""

    ref: WorkloadRef
    uid: str
    annotations: Mapping[str, str] = {}


async def find(api: Api, namespace: str, name: str) -> tuple[Found, ...]:
    """All workloads of that name of the kinds that are known here; raises `KubeError`."""
    found = []
    for group, kind in PATHS:
        ref = WorkloadRef(group, kind, namespace, name)
        try:
            item: WorkloadObject = await api.get_json(_path(ref), None, workload_decoder)
        except NotFound:
            continue
        found.append(Found(ref, item.metadata.uid, item.metadata.annotations or {}))
    return tuple(found)


async def annotate(api: Api, found: Found, annotations: Mapping[str, str | None]) -> None:
    """Sets the annotations on that very object, and takes those away that are None; raises `KubeError`."""
    body = {"metadata": {"uid": found.uid, "annotations": dict(annotations)}}
    await api.write(
        "PATCH",
        _path(found.ref),
        body,
        _anything,
        content_type=_MERGE,
        params={"fieldManager": MANAGER},
    )


def _path(ref: WorkloadRef) -> str:
    return PATHS[(ref.group, ref.kind)].format(ref.namespace, ref.name)
