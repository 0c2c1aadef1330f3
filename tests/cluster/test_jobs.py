"""A Job that states its floor runs fewer idle pods at once, and its completions are counted as before."""

import asyncio
import json
from typing import Any

import pytest

from autoscaler.model.reasons import Reason
from devcluster import Cluster
from devcluster.exporter.load import Constant, WorkloadLoad
from devcluster.rooms import Room
from tests.cluster.acting import acting, assert_lawful, changes, grant_everything, live, managers
from tests.cluster.polling import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(200)]

FLOOR = {"gpu-autoscaler.io/min-replicas": "1"}
KEEPS_RUNNING = {"devcluster.gpu-autoscaler.io/keeps-running": "true"}
SUCCEEDED = {"status": {"phase": "Succeeded"}}


def job(room: Room, name: str, *, annotations: dict[str, str], **spec: Any) -> dict[str, Any]:
    """Three pods at once that hold a board each; one pod that fails would end it for good."""
    template = {
        "metadata": {"labels": {"app": name}, "annotations": KEEPS_RUNNING},
        "spec": room.pod_spec(1, restartPolicy="Never"),
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": room.namespace, "annotations": annotations},
        "spec": {"parallelism": 3, "backoffLimit": 0, "template": template, **spec},
    }


async def pods_of(room: Room, name: str) -> list[dict[str, Any]]:
    text = await room.cluster.kubectl("-n", room.namespace, "get", "pods", "-l", f"app={name}", "-o", "json")
    return list(json.loads(text)["items"])


async def end_one(room: Room, name: str) -> None:
    """One pod of a Job ends well, and the Job has counted it and made the next."""
    first = (await pods_of(room, name))[0]["metadata"]["name"]
    await room.cluster.kubectl(
        *("-n", room.namespace, "patch", "pod", first, "--subresource=status", "-p", json.dumps(SUCCEEDED))
    )
    await eventually(
        lambda: live(room, "job", name),
        lambda item: item["status"].get("succeeded") == 1 and item["status"].get("active") == 3,
        what=f"{name} to have counted a completion",
    )


async def test_an_idle_job_runs_fewer_pods_and_counts_on_while_indexes_and_silent_owners_keep_theirs(
    cluster: Cluster, room: Room
) -> None:
    names = ("queue", "indexed", "silent")
    await room.add_nodes(2, boards=6)
    await cluster.exporter.declare(
        [
            WorkloadLoad(namespace=room.namespace, kind="Job", name=name, offered=Constant(0.0))
            for name in names
        ]
    )
    await cluster.apply(
        [
            job(room, "queue", annotations=FLOOR, completions=6),
            job(room, "indexed", annotations=FLOOR, completions=6, completionMode="Indexed"),
            job(room, "silent", annotations={}, completions=6),
        ]
    )
    await room.until_running(9)
    await end_one(room, "queue")
    kubeconfig = await grant_everything(room)
    async with acting(room, kubeconfig, name=f"jobs-{room.namespace}") as actor:
        record = await actor.until_state("queue", "verified")
        kept = {row.workload.name: row for row in (await actor.service.plan()).plan.rows}
    found = dict(zip(names, await asyncio.gather(*(live(room, "job", name) for name in names)), strict=True))

    assert (record.action.lever, record.action.before) == ("scale", 3)
    assert found["queue"]["spec"]["parallelism"] == record.action.after < 3
    status = found["queue"]["status"]
    assert (status["succeeded"], status.get("failed", 0)) == (1, 0)
    assert status["active"] == record.action.after
    assert "gpu-autoscaler" not in managers(found["queue"])
    assert [found[name]["spec"]["parallelism"] for name in names[1:]] == [3, 3]
    assert [kept[name].reason for name in names[1:]] == [Reason.NO_LEVER, Reason.NO_LEVER]
    sent = changes(cluster, room, lambda one: one.resource == "jobs" and isinstance(one.body, dict))
    assert [one.body["spec"] for one in sent] == [{"parallelism": record.action.after}]
    assert_lawful(cluster, room)
