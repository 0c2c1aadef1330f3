"""A room of one's own in a shared cluster.

Tests of one run share a control plane.  Each works in a namespace of its own, on fake nodes that carry the
room's label and a taint, so that nobody else's pods land there and its own land nowhere else.
"""

import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from devcluster.cluster import Cluster
from devcluster.exporter.fleet import BoardView
from devcluster.kubectl import Kubectl
from devcluster.scenario import Gpu, NodePool, Taint

ROOM_KEY = "devcluster.gpu-autoscaler.io/room"
DEFAULT_RESOURCE = "gpuconfig.com/gpu"


@dataclass
class Room:
    """A namespace, its nodes and builders for what runs on them."""

    cluster: Cluster
    namespace: str
    node_names: list[str] = field(default_factory=list)

    async def add_nodes(
        self,
        count: int = 1,
        *,
        boards: int = 4,
        resource: str = DEFAULT_RESOURCE,
        labels: Mapping[str, str] | None = None,
        gpu: Gpu | None = None,
    ) -> list[str]:
        """Ready nodes that only the room's pods use; returns their names."""
        pool = NodePool(
            name=f"{self.namespace}-{secrets.token_hex(2)}",
            count=count,
            labels={ROOM_KEY: self.namespace} | dict(labels or {}),
            taints=[Taint(key=ROOM_KEY, value=self.namespace, effect="NoSchedule")],
            accelerators={resource: boards},
            gpu=gpu or Gpu(),
        )
        names = await self.cluster.add_nodes([pool])
        self.node_names += names
        return names

    def pod_spec(self, boards: int, *, resource: str = DEFAULT_RESOURCE, **fields: Any) -> dict[str, Any]:
        """A pod spec that lands on the room's nodes; `fields` are added to it."""
        limits = {resource: str(boards)} if boards else {}
        container = {
            "name": "main",
            "image": "registry.invalid/workload:1",
            "resources": {"limits": limits},
        }
        return {
            "nodeSelector": {ROOM_KEY: self.namespace},
            "tolerations": [{"key": ROOM_KEY, "operator": "Exists"}],
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
        } | fields

    def pod(self, name: str, *, boards: int = 1, **spec_fields: Any) -> dict[str, Any]:
        """A bare pod."""
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": self.namespace, "labels": {"gpu": "true"}},
            "spec": self.pod_spec(boards, **spec_fields),
        }

    def deployment(
        self,
        name: str,
        *,
        replicas: int = 1,
        boards: int = 1,
        annotations: Mapping[str, str] | None = None,
        **spec_fields: Any,
    ) -> dict[str, Any]:
        """A Deployment."""
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "annotations": dict(annotations or {}),
            },
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name, "gpu": "true"}},
                    "spec": self.pod_spec(boards, **spec_fields),
                },
            },
        }

    async def pods(self) -> list[dict[str, Any]]:
        """The room's pods."""
        listed = await self.cluster.api.get(f"/api/v1/namespaces/{self.namespace}/pods")
        return list(listed["items"])

    async def until_running(self, count: int, *, timeout_s: float = 60) -> list[dict[str, Any]]:
        """Wait until the room has exactly so many pods and all of them run; returns them."""

        async def all_run() -> bool:
            pods = await self.pods()
            return len(pods) == count and all(pod["status"].get("phase") == "Running" for pod in pods)

        await self.cluster.until(
            all_run, what=f"{count} running pods in {self.namespace}", timeout_s=timeout_s
        )
        return await self.pods()

    async def boards(self) -> list[BoardView]:
        """The boards that the room's pods hold, as the GPU exporter sees it."""
        return [board for board in await self.cluster.exporter.boards() if board.namespace == self.namespace]

    async def kubectl_as(self, service_account: str) -> Kubectl:
        """Kubectl under one of the room's ServiceAccounts."""
        kubeconfig = await self.cluster.service_account_kubeconfig(self.namespace, service_account)
        return Kubectl(
            self.cluster.binaries.path("kubectl"),
            kubeconfig,
            self.cluster.run_dir / "kubectl-cache" / kubeconfig.stem,
        )


@asynccontextmanager
async def open_room(cluster: Cluster, prefix: str = "room") -> AsyncIterator[Room]:
    """A fresh room; its namespace and nodes are deleted afterwards."""
    room = Room(cluster, f"{prefix}-{secrets.token_hex(3)}")
    await cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": room.namespace}}])
    try:
        yield room
    finally:
        await cluster.kubectl("delete", "namespace", room.namespace, "--wait=false")
        if room.node_names:
            await cluster.kubectl("delete", "node", *room.node_names, "--wait=false")
