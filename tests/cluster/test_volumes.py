"""A volume that one node alone can mount ties its pod to that node, whatever room there is elsewhere."""

from typing import Any

import msgspec
import pytest

from autoscaler.decide.placement import holds_any
from autoscaler.kube import KINDS
from autoscaler.model.policy import Resources
from autoscaler.observe.assemble import assemble
from autoscaler.observe.series import SeriesReading
from autoscaler.observe.stores import Stores
from devcluster.rooms import Room
from tests.cluster.polling import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]


def volume(room: Room, node: str) -> list[dict[str, Any]]:
    """A volume on a node's own disk, and its claim."""
    size, name = "1Gi", f"disk-{room.namespace}"
    by_host = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    places = {"required": {"nodeSelectorTerms": [{"matchExpressions": [by_host]}]}}
    common = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": common
            | {"capacity": {"storage": size}, "local": {"path": "/disk"}, "nodeAffinity": places},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "disk", "namespace": room.namespace},
            "spec": common | {"volumeName": name, "resources": {"requests": {"storage": size}}},
        },
    ]


async def test_a_successor_waits_for_the_one_node_that_can_mount_its_volume(room: Room) -> None:
    home, other = await room.add_nodes(2, boards=1)
    disk = {"volumes": [{"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}]}
    await room.cluster.apply([*volume(room, home), room.deployment("app", **disk)])
    (first,) = await room.until_running(1)
    stores = Stores(Resources())
    for kind in ("Node", "Pod", "PersistentVolume", "PersistentVolumeClaim"):
        for item in (await room.cluster.api.get(KINDS[kind].path))["items"]:
            stores.writers[kind].apply(msgspec.convert(item, KINDS[kind].struct))
    snapshot = assemble(stores.freeze(), SeriesReading(), now_ms=0)
    (row,) = [pod for pod in snapshot.pods if pod.namespace == room.namespace]

    name = first["metadata"]["name"]
    await room.cluster.apply([room.pod("taker", nodeName=home)])
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    await room.cluster.api.post(f"/api/v1/namespaces/{room.namespace}/pods/{name}/eviction", eviction)

    async def told() -> str:
        pods = [pod for pod in await room.pods() if pod["metadata"]["name"] not in {name, "taker"}]
        conditions = [c for pod in pods for c in pod["status"].get("conditions", [])]
        return next((c["message"] for c in conditions if c.get("reason") == "Unschedulable"), "")

    message = await eventually(told, bool, what="the successor to find no node", timeout_s=30)
    await room.cluster.kubectl("delete", "pv", f"disk-{room.namespace}", "--wait=false")

    assert first["spec"]["nodeName"] == home
    assert len(row.volume_terms) == 1
    able = [node.name for node in snapshot.nodes if all(holds_any(node, terms) for terms in row.volume_terms)]
    assert (able, other in able) == ([home], False)
    assert "didn't match PersistentVolume's node affinity" in message
