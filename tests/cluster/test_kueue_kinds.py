"""Kueue's kinds on a real API server, without its controller: what it would write is written by hand.

The real controller's part is `test_kueue`; here is what the API server itself does with our reads and writes.
"""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from autoscaler.model.reasons import Reason
from devcluster import Cluster, running_cluster
from devcluster.kueue import apply_crds
from devcluster.rooms import Room, open_room
from tests.cluster import queues
from tests.cluster.acting import acting_environment, grant_everything, live, managers, writes
from tests.cluster.live_service import running_service
from tests.cluster.test_commands_acting import Person

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(200)]
KINDS = "workloads.kueue.x-k8s.io"
AT = "2026-01-01T00:00:00Z"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def kinds() -> AsyncIterator[Cluster]:
    """A control plane of its own: to others of this run these kinds do not exist."""
    async with running_cluster() as started:
        await apply_crds(started)
        yield started


def condition(kind: str, status: str = "True") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": "Test", "message": "", "lastTransitionTime": AT}


async def stands_for(room: Room, owner: str, *names: str, admitted: bool = True) -> str:
    """Makes the Workload of some objects, as Kueue would; its name."""
    refs = []
    for name in names:
        found = await live(room, owner, name)
        ref = {"apiVersion": found["apiVersion"], "kind": found["kind"], "name": name}
        refs.append(ref | {"uid": found["metadata"]["uid"], "controller": owner == "job"})
    template = {"spec": {"restartPolicy": "Never", "containers": room.pod_spec(1)["containers"]}}
    item = {
        "apiVersion": queues.API,
        "kind": "Workload",
        "metadata": {"name": f"of-{names[0]}", "namespace": room.namespace, "ownerReferences": refs},
        "spec": {"queueName": "main", "podSets": [{"name": "main", "count": 1, "template": template}]},
    }
    await room.cluster.apply([item])
    status: dict[str, Any] = {"conditions": [condition("QuotaReserved", "False")]}
    if admitted:
        assigned = {"name": "main", "flavors": {}, "resourceUsage": {}, "count": 1}
        status = {
            "conditions": [condition("QuotaReserved"), condition("Admitted")],
            "admission": {"clusterQueue": f"{room.namespace}-main", "podSetAssignments": [assigned]},
        }
    name = f"of-{names[0]}"
    patch = (
        "patch",
        KINDS,
        name,
        "--subresource=status",
        "--type=merge",
        "-p",
        json.dumps({"status": status}),
    )
    await room.cluster.kubectl("-n", room.namespace, *patch)
    return name


def running(room: Room, name: str) -> dict[str, Any]:
    """A Job whose owner agreed to its being stopped, started as Kueue would have."""
    item = queues.job(room, name, annotations=queues.CONSENT)
    item["spec"]["suspend"] = False
    return item


async def test_a_release_is_one_field_of_the_workload_and_undo_gives_it_back(
    kinds: Cluster, tmp_path: Path
) -> None:
    async with open_room(kinds, "kinds") as room:
        await room.add_nodes(1, boards=8)
        names = ("idle", "waits", "alone")
        await kinds.exporter.declare([queues.load(room, name, 0.0) for name in names])
        pods = [room.pod(f"group-{n}") for n in "ab"]
        for pod in pods:
            pod["metadata"]["labels"]["kueue.x-k8s.io/pod-group-name"] = "group"
        await kinds.apply([queues.flavor(room), *queues.queue(room, "main", queues.quota(3))])
        await kinds.apply([*(running(room, name) for name in names), *pods])
        through = await stands_for(room, "job", "idle")
        await stands_for(room, "job", "waits", admitted=False)
        await stands_for(room, "pod", "group-a", "group-b")
        await room.until_running(5)
        kubeconfig = await grant_everything(room)
        settings = {**acting_environment(room, kubeconfig, 0), "AUTOSCALER_MODE": "recommend"}
        del settings["AUTOSCALER_LISTEN"]
        before = await live(room, KINDS, through)
        job = await live(room, "job", "idle")
        async with running_service(kinds, kubeconfig, name="kinds", environment=settings) as service:
            planned = await service.until_reason(room, "idle", Reason.RELEASED)
            waits = await service.until_reason(room, "waits", Reason.KUEUE)
            alone = await service.until_reason(room, "alone", Reason.KUEUE)
            group = await service.until_reason(room, "group-a", Reason.KUEUE)
        person = Person(room, acting_environment(room, kubeconfig, 0, AUTOSCALER_MODE="recommend"))
        plan = await person.plans(tmp_path / "plan.yaml")
        applied = await person.types("apply", "-f", plan, "--yes")
        released = await live(room, KINDS, through)
        undone = await person.types("undo", f"{room.namespace}/idle", "--yes", "-o", "json")
        restored = await live(room, KINDS, through)
        untouched = await live(room, "job", "idle")

        assert planned.action is not None
        assert planned.action.held_by == (Reason.MODE_RECOMMEND,)
        assert "queued in ClusterQueue" in waits.detail
        assert "free are 3 of flavor" in waits.detail
        assert alone.detail == f"{queues.QUEUE_LABEL}=main; its Workload is not known"
        assert group.detail.startswith("Kueue would delete the pods of Workload")
        assert applied.code == 0, applied.out + applied.err
        assert f"active of Workload {through} 1 -> 0" in applied.out
        assert (before["spec"]["active"], released["spec"]["active"]) == (True, False)
        assert (undone.code, undone.results()) == (0, [("done", "")])
        assert restored["spec"] == before["spec"]
        assert "gpu-autoscaler" not in managers(released) | managers(restored)
        assert untouched["spec"] == job["spec"]
        touched = {one.resource for one in writes(kinds, room)} - {"leases", "configmaps"}
        assert touched == {"workloads"}
