"""Boards that pods hold by resource claims, as a real scheduler hands them out, are held once and on their node."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from autoscaler.decide.world import World
from autoscaler.model.plan import Plan
from autoscaler.model.policy import Policy
from autoscaler.model.reasons import Reason
from autoscaler.model.snapshot import decode_snapshot
from devcluster import Cluster
from devcluster.rooms import Room, open_room
from tests.cluster.live_service import QUICK_POLICY, grant_shipped_rights, only_row, run_command

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

GPU = "nvidia.com/gpu"
DRIVER = "gpu.nvidia.com"
API = "resource.k8s.io/v1"


def device_class(room: Room) -> dict[str, Any]:
    """A class of the room's boards that also backs the extended resource."""
    only = f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].room == '{room.namespace}'"
    return {
        "apiVersion": API,
        "kind": "DeviceClass",
        "metadata": {"name": f"{room.namespace}.gpu"},
        "spec": {"extendedResourceName": GPU, "selectors": [{"cel": {"expression": only}}]},
    }


def resource_slice(room: Room, node: str, boards: int) -> dict[str, Any]:
    """The boards of a node, as the driver there would publish them."""
    devices = [
        {
            "name": f"gpu-{number}",
            "attributes": {
                "uuid": {"string": f"GPU-{room.namespace}-{number}"},
                "type": {"string": "gpu"},
                "room": {"string": room.namespace},
            },
        }
        for number in range(boards)
    ]
    return {
        "apiVersion": API,
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-slice"},
        "spec": {
            "driver": DRIVER,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "nodeName": node,
            "devices": devices,
        },
    }


def claim_template(room: Room, count: int) -> dict[str, Any]:
    exactly = {"deviceClassName": f"{room.namespace}.gpu", "count": count}
    return {
        "apiVersion": API,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "boards", "namespace": room.namespace},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpus", "exactly": exactly}]}}},
    }


def by_claim(room: Room, name: str) -> dict[str, Any]:
    """A Deployment whose pod gets a claim of its own from the template."""
    made = room.deployment(name, boards=0)
    spec = made["spec"]["template"]["spec"]
    spec["resourceClaims"] = [{"name": "gpus", "resourceClaimTemplateName": "boards"}]
    spec["containers"][0]["resources"] = {"claims": [{"name": "gpus"}]}
    return made


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def claimed_room(cluster: Cluster) -> AsyncIterator[Room]:
    """Eight boards on a node without a device plugin: two held by a claim, one by an extended resource."""
    async with open_room(cluster) as room:
        (node,) = await room.add_nodes(boards=0)
        await cluster.apply(
            [
                device_class(room),
                resource_slice(room, node, 8),
                claim_template(room, 2),
                by_claim(room, "claims"),
                room.deployment("extended", boards=1, resource=GPU),
            ]
        )
        try:
            await room.until_running(2)
            yield room
        finally:
            await cluster.kubectl("delete", "deviceclass", f"{room.namespace}.gpu", "--wait=false")
            await cluster.kubectl("delete", "resourceslice", f"{node}-slice", "--wait=false")


async def test_claimed_boards_are_held_once_and_the_rest_of_their_node_is_free(
    cluster: Cluster, claimed_room: Room, tmp_path: Path
) -> None:
    room, file = claimed_room, tmp_path / "saved.json.gz"
    live = {
        **QUICK_POLICY,
        "AUTOSCALER_KUBECONFIG": str(await grant_shipped_rights(cluster)),
        "AUTOSCALER_PROMETHEUS_URL": cluster.prometheus_url,
        "AUTOSCALER_NAMESPACES": room.namespace,
    }
    claims = await cluster.api.get(f"/apis/{API}/namespaces/{room.namespace}/resourceclaims")
    allocated = sum(len(one["status"]["allocation"]["devices"]["results"]) for one in claims["items"])
    await run_command("snapshot", "-o", file, environment=live)
    output, _ = await run_command("plan", "-o", "json", environment=live)

    world = World(decode_snapshot(file.read_bytes()), Policy(), 0)
    plan = msgspec.json.decode(output, type=Plan)
    held = {
        pod.labels["app"]: world.snapshot.shapes[pod.shape].demand[GPU]
        for pod in world.snapshot.pods
        if pod.namespace == room.namespace
    }
    (node,) = room.node_names
    assert allocated == 3
    assert held == {"claims": 2, "extended": 1}
    assert (world.nodes[node].allocatable[GPU], world.free[node][GPU]) == (8, 5)
    assert [only_row(plan, room, name).held for name in ("claims", "extended")] == [2, 1]
    assert {only_row(plan, room, name).reason for name in ("claims", "extended")} == {Reason.NO_LEVER}
