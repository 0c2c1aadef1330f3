"""Builders for resource claims: the objects of resource.k8s.io and pods that use them, in a few words."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from unit.observe.observed import GPU, make, pod

from autoscaler.kube import wire

DRIVER = "gpu.nvidia.com"
POOL = "node-1"


def device_class(name: str = DRIVER, *, extended: str = "", expression: str = "") -> wire.DeviceClass:
    """A class; without an expression its devices are those of the driver of its name."""
    return make(
        wire.DeviceClass,
        name,
        namespace="",
        spec={
            "extendedResourceName": extended or None,
            "selectors": [{"cel": {"expression": expression or f"device.driver == '{name}'"}}],
        },
    )


def device(name: str, *, uuid: str = "", profile: str = "", **more: Any) -> dict[str, Any]:
    """A board, or a slice of one where a profile is given; `uses` is by counter of the set "board"."""
    uses = more.pop("uses", {})
    attributes: dict[str, Any] = {"type": {"string": "mig" if profile else "gpu"}, "minor": {"int": 0}}
    if uuid:
        attributes[f"{DRIVER}/uuid"] = {"string": uuid}
    if profile:
        attributes["profile"] = {"string": profile}
    consumed = (
        [{"counterSet": "board", "counters": {k: {"value": v} for k, v in uses.items()}}] if uses else []
    )
    return {"name": name, "attributes": attributes, "consumesCounters": consumed, **more}


def resource_slice(
    *devices: Mapping[str, Any],
    name: str = "slice-1",
    driver: str = DRIVER,
    pool: str = POOL,
    node: str = "node-1",
    generation: int = 1,
    slices: int = 1,
    counters: Mapping[str, str] | None = None,
) -> wire.ResourceSlice:
    """A slice; `counters` are those of the set "board"."""
    shared = [{"name": "board", "counters": {k: {"value": v} for k, v in (counters or {}).items()}}]
    return make(
        wire.ResourceSlice,
        name,
        namespace="",
        spec={
            "driver": driver,
            "pool": {"name": pool, "generation": generation, "resourceSliceCount": slices},
            "nodeName": node or None,
            "devices": list(devices),
            "sharedCounters": shared if counters else None,
        },
    )


def claim(
    name: str,
    *given: str,
    pods: Sequence[str] = (),
    count: int = 1,
    asks: str = DRIVER,
    driver: str = DRIVER,
    extended: bool = False,
    **more: Any,
) -> wire.ResourceClaim:
    """A claim in "ml" that asks for devices of a class and was given some of the pool; none: not allocated."""
    request = {
        "name": "gpus",
        "exactly": {"deviceClassName": asks, "count": count, **more.pop("exactly", {})},
    }
    results = [
        {"request": "gpus", "driver": driver, "pool": POOL, "device": device, **more.get("result", {})}
        for device in given
    ]
    consumers = [{"resource": "pods", "name": pod, "uid": f"uid-ml-{pod}"} for pod in pods]
    annotations = {"resource.kubernetes.io/extended-resource-claim": "true"} if extended else {}
    annotations |= more.get("annotations", {})
    return make(
        wire.ResourceClaim,
        name,
        metadata={"annotations": annotations, "ownerReferences": more.get("owners", [])},
        spec={"devices": {"requests": more.get("requests", [request])}},
        status={
            "allocation": {"devices": {"results": results}} if given else None,
            "reservedFor": consumers,
        },
    )


def claimant(name: str, *claims: str, gpus: int = 0, backed_by: str = "", **more: Any) -> wire.Pod:
    """A running pod that names claims; `backed_by` is the claim that the scheduler made for its GPUs."""
    spec = {**more.pop("spec", {}), "resourceClaims": [{"name": c, "resourceClaimName": c} for c in claims]}
    made = pod(name, gpus=gpus, spec=spec if claims else spec | {"resourceClaims": None}, **more)
    if backed_by:
        mapping = wire.ExtendedRequest(resource_name=GPU)
        made.status.extended_resource_claim_status = wire.ExtendedClaimStatus(
            request_mappings=[mapping], resource_claim_name=backed_by
        )
    return msgspec.json.decode(msgspec.json.encode(made), type=wire.Pod)
