"""A node autoscaler at work: nobody leaves for a pod whose node was ordered, nor where the successor would buy one."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from autoscaler.model.reasons import Reason
from devcluster import Cluster
from devcluster.exporter.load import Constant, WorkloadLoad
from devcluster.rooms import DEFAULT_RESOURCE, ROOM_KEY, Room
from tests.cluster.live_service import grant_shipped_rights, running_service
from tests.cluster.stories import play

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]

GROUP, PLURAL = "karpenter.sh", "nodeclaims"
OPEN: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{PLURAL}.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Cluster",
        "names": {"kind": "NodeClaim", "plural": PLURAL, "singular": "nodeclaim"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": OPEN}}],
    },
}
"""As little of Karpenter's own definition as a NodeClaim needs to be stored."""


@pytest_asyncio.fixture
async def karpenter(cluster: Cluster) -> AsyncIterator[None]:
    """A server that has NodeClaims while the test runs."""
    await cluster.apply([DEFINITION])
    await cluster.kubectl("wait", "--for=condition=Established", f"crd/{PLURAL}.{GROUP}", "--timeout=30s")
    yield
    await cluster.kubectl("delete", "crd", f"{PLURAL}.{GROUP}", "--wait=true")


def priority_class(name: str) -> dict[str, Any]:
    api = "scheduling.k8s.io/v1"
    never = {"value": 1000, "preemptionPolicy": "Never"}
    return {"apiVersion": api, "kind": "PriorityClass", "metadata": {"name": name}} | never


def order(room: Room, boards: int) -> dict[str, Any]:
    """A NodeClaim as Karpenter makes it for a pod of the room."""
    requests = {DEFAULT_RESOURCE: str(boards), "cpu": "2", "pods": "4"}
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "NodeClaim",
        "metadata": {"name": f"order-{room.namespace}"},
        "spec": {
            "requirements": [{"key": ROOM_KEY, "operator": "In", "values": [room.namespace]}],
            "resources": {"requests": requests},
        },
    }


async def patch_node(room: Room, patch: dict[str, Any]) -> None:
    await room.cluster.kubectl("patch", "node", room.node_names[0], "--type=merge", "-p", json.dumps(patch))


@pytest.mark.usefixtures("karpenter")
async def test_room_is_made_only_when_no_node_is_on_its_way_and_none_would_be_bought(
    cluster: Cluster, room: Room
) -> None:
    high, burst = f"high-priority-{room.namespace}", f"burst-{room.namespace}"
    await cluster.apply([priority_class(high), priority_class(burst)])
    await room.add_nodes(boards=2)
    busy = WorkloadLoad(namespace=room.namespace, kind="Deployment", name="burst", offered=Constant(1.6))
    await play(room, room.deployment("burst", boards=2, priorityClassName=burst), load=busy)
    await cluster.apply([order(room, 2), room.deployment("train", boards=2, priorityClassName=high)])
    kubeconfig = await grant_shipped_rights(cluster)
    settings = {"AUTOSCALER_NAMESPACES": room.namespace, "AUTOSCALER_YIELD_CLASSES": burst}

    async with running_service(
        cluster, kubeconfig, name=f"service-{room.namespace}", environment=settings
    ) as service:
        ordered = await service.until_reason(room, "train", Reason.NODE_ON_ITS_WAY)
        assert service.decisions(room) == []

        await cluster.kubectl("delete", "nodeclaim", order(room, 2)["metadata"]["name"])
        await service.until_reason(room, "burst", Reason.MADE_ROOM, timeout_s=30)

        await patch_node(room, {"metadata": {"labels": {"karpenter.sh/nodepool": "gpu"}}})
        bought = await service.until_reason(room, "train", Reason.NO_PLACEMENT, timeout_s=30)

        await patch_node(room, {"metadata": {"labels": {"karpenter.sh/nodepool": None}}})
        await service.until_reason(room, "burst", Reason.MADE_ROOM, timeout_s=30)

        node = json.loads(await cluster.kubectl("get", "node", room.node_names[0], "-o", "json"))
        leaving = {"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"}
        await patch_node(room, {"spec": {"taints": [*node["spec"]["taints"], leaving]}})
        gone = await service.until_reason(room, "train", Reason.NO_PLACEMENT, timeout_s=30)

    await cluster.kubectl("delete", "priorityclass", high, burst, "--wait=false")
    assert f"NodeClaim order-{room.namespace} was ordered" in ordered.detail
    assert "would wait, and Karpenter buy a node" in bought.detail
    assert "no node's state, labels and taints let it in" in gone.detail
