"""With the real HorizontalPodAutoscaler controller: its minimum is lowered, it takes the replicas itself, and undo gives them back.

The controller asks the API of external metrics; here a custom resource answers it, so that its value can be set.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from autoscaler.decide.marks import MIN_REPLICAS
from autoscaler.model.reasons import Reason
from devcluster import Cluster
from devcluster.rooms import Room
from tests.cluster.acting import (
    acting,
    acting_environment,
    assert_lawful,
    changes,
    grant_everything,
    live,
    managers,
)
from tests.cluster.polling import eventually
from tests.cluster.stories import lightly_used
from tests.cluster.test_commands_acting import Person

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]
GROUP = "external.metrics.k8s.io"
ALLOWED = {"AUTOSCALER_METHODS_AUTOSCALER_BOUNDS": "agreed"}


@pytest_asyncio.fixture
async def metric(cluster: Cluster, room: Room) -> AsyncIterator[str]:
    """An external metric of the room's own, at 0; the room's service may not see it, only the controller does."""
    name = f"queue{room.namespace.replace('-', '')}"
    names = {
        "plural": name,
        "singular": name,
        "kind": "ExternalMetricValue",
        "listKind": "ExternalMetricValueList",
    }
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    versions = [{"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{name}.{GROUP}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, a test's own"},
        },
        "spec": {"group": GROUP, "names": names, "scope": "Namespaced", "versions": versions},
    }
    await cluster.apply([definition])
    await cluster.kubectl("wait", "--for=condition=Established", f"crd/{name}.{GROUP}", "--timeout=30s")
    value = {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "ExternalMetricValue",
        "metadata": {"name": "length", "namespace": room.namespace},
        "metricName": name,
        "timestamp": "2026-01-01T00:00:00Z",
        "value": "0",
    }
    path = f"/apis/{GROUP}/v1beta1/namespaces/{room.namespace}/{name}"
    await cluster.api.post(path, value)
    yield name
    await cluster.kubectl("delete", "crd", f"{name}.{GROUP}", "--wait=false")


def autoscaler(room: Room, target: str, minimum: int, metric: str) -> dict[str, Any]:
    """One that would have no replicas by its metric, and keeps its minimum."""
    wanted = {"metric": {"name": metric}, "target": {"type": "AverageValue", "averageValue": "10"}}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": target, "namespace": room.namespace},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target},
            "minReplicas": minimum,
            "maxReplicas": 6,
            "metrics": [{"type": "External", "external": wanted}],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
        },
    }


async def minimum_of(room: Room, name: str) -> int:
    return int((await live(room, "hpa", name))["spec"]["minReplicas"])


async def replicas_of(room: Room, name: str) -> int:
    return int((await live(room, "deployment", name))["spec"]["replicas"])


async def until_active(room: Room, name: str) -> None:
    """The controller has read the metric."""

    async def conditions() -> set[str]:
        found = (await live(room, "hpa", name)).get("status", {}).get("conditions", [])
        return {one["type"] for one in found if one["status"] == "True"}

    await eventually(
        conditions, lambda seen: "ScalingActive" in seen, what="an active autoscaler", timeout_s=60
    )


async def test_a_lower_minimum_is_used_by_the_autoscaler_and_put_back_by_undo(
    cluster: Cluster, room: Room, metric: str
) -> None:
    await room.add_nodes(1, boards=8)
    await cluster.exporter.declare([lightly_used(room, name=name) for name in ("agreed", "unasked")])
    agreed, unasked = (room.deployment(name, boards=1, replicas=3) for name in ("agreed", "unasked"))
    agreed["metadata"]["annotations"] = {MIN_REPLICAS: "1"}
    await cluster.apply([agreed, unasked])
    await cluster.apply([autoscaler(room, name, 3, metric) for name in ("agreed", "unasked")])
    await room.until_running(6)
    await until_active(room, "agreed")
    await until_active(room, "unasked")
    kubeconfig = await grant_everything(room)
    person = Person(
        room, {**acting_environment(room, kubeconfig, 0), **ALLOWED, "AUTOSCALER_MODE": "recommend"}
    )
    async with acting(room, kubeconfig, name=f"acts-{room.namespace}", environment=ALLOWED) as actor:
        record = await actor.until_state("agreed", "verified", timeout_s=120)
        left = await actor.service.until_reason(room, "unasked", Reason.OTHER_OWNER)
        lowered, fewer = await minimum_of(room, "agreed"), await replicas_of(room, "agreed")
        traces = managers(await live(room, "hpa", "agreed"))
        assert_lawful(cluster, room)
        undone = await person.types("undo", f"{room.namespace}/agreed", "--yes", "-o", "json")
        raised = await minimum_of(room, "agreed")
        again = await eventually(
            lambda: replicas_of(room, "agreed"), lambda count: count == 3, what="its replicas", timeout_s=60
        )

    action = record.action
    assert (action.method, action.lever, action.before, action.after) == ("scale-in", "bounds", 3, 1)
    assert (lowered, fewer) == (1, 1)
    assert "gpu-autoscaler" not in traces
    assert left.remedy == (
        f'kubectl -n {room.namespace} patch hpa unasked --type=merge -p \'{{"spec":{{"minReplicas":1}}}}\''
    )
    assert (undone.code, undone.results()) == (0, [("done", "")])
    assert (raised, again, await minimum_of(room, "unasked")) == (3, 3, 3)
    sent = changes(cluster, room, lambda one: one.resource == "horizontalpodautoscalers")
    assert [one.body["spec"]["minReplicas"] for one in sent if isinstance(one.body, dict)] == [1, 3]
    assert changes(cluster, room, lambda one: one.resource.startswith("deployments")) == []
