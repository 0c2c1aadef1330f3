"""Fake nodes: Node objects that KWOK keeps alive and the GPU exporter fills with boards."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from devcluster.api_client import ApiClient
from devcluster.errors import ApiError
from devcluster.exporter.wire import ACCELERATORS_ANNOTATION, MEMORY_ANNOTATION, MODEL_ANNOTATION
from devcluster.scenario import NodePool

_PARALLEL_POSTS = 8


def node_manifests(pool: NodePool) -> list[dict[str, Any]]:
    """The Node objects of a pool."""
    capacity = pool.capacity | {name: str(count) for name, count in pool.accelerators.items()}
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"} | pool.labels,
                "annotations": {
                    ACCELERATORS_ANNOTATION: ",".join(pool.accelerators),
                    MODEL_ANNOTATION: pool.gpu.model,
                    MEMORY_ANNOTATION: str(pool.gpu.memory_mib),
                }
                | pool.annotations,
            },
            "spec": {"taints": [taint.model_dump() for taint in pool.taints]},
            "status": {"capacity": capacity, "allocatable": capacity},
        }
        for name in pool.node_names()
    ]


async def create_nodes(api: ApiClient, pools: Iterable[NodePool]) -> list[str]:
    """Create the nodes of all pools and return their names."""
    manifests = [manifest for pool in pools for manifest in node_manifests(pool)]
    slots = asyncio.Semaphore(_PARALLEL_POSTS)
    async with api.session() as session:

        async def create(manifest: dict[str, Any]) -> None:
            async with slots, session.post("/api/v1/nodes", json=manifest) as answer:
                if answer.status >= 400:
                    raise ApiError(answer.status, (await answer.json())["message"])

        async with asyncio.TaskGroup() as tasks:
            for manifest in manifests:
                tasks.create_task(create(manifest))
    return [manifest["metadata"]["name"] for manifest in manifests]


async def ready_node_names(api: ApiClient) -> set[str]:
    """The nodes that are ready and that take pods."""
    nodes: Sequence[dict[str, Any]] = (await api.get("/api/v1/nodes"))["items"]
    return {node["metadata"]["name"] for node in nodes if _is_ready(node)}


def _is_ready(node: dict[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions", [])
    taints = node["spec"].get("taints", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions) and not any(
        taint["key"].startswith("node.kubernetes.io/") for taint in taints
    )
