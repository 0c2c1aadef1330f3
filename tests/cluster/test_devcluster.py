from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from devcluster import Cluster
from devcluster.audit import describe
from devcluster.errors import KubectlError
from devcluster.exporter.load import Constant, WorkloadLoad
from devcluster.rooms import Room

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

GPU = "gpuconfig.com/gpu"


def load(room: Room, name: str, boards: float, **settings: Any) -> WorkloadLoad:
    return WorkloadLoad(
        namespace=room.namespace, kind="Deployment", name=name, offered=Constant(boards), **settings
    )


def service_account(room: Room, name: str, verbs: list[str]) -> list[dict[str, Any]]:
    where = {"namespace": room.namespace, "name": name}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": where},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": where,
            "rules": [{"apiGroups": [""], "resources": ["pods", "configmaps"], "verbs": verbs}],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": where,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount"} | where],
        },
    ]


async def test_the_pinned_version_serves(cluster: Cluster) -> None:
    assert (await cluster.api.get("/version"))["gitVersion"] == "v1.36.3"


async def test_pods_are_placed_by_the_real_scheduler_and_run(cluster: Cluster, room: Room) -> None:
    nodes = await room.add_nodes(2, boards=2)
    await cluster.apply([room.deployment("app", replicas=2, boards=2)])

    pods = await room.until_running(2)

    assert sorted(pod["spec"]["nodeName"] for pod in pods) == sorted(nodes)


async def test_a_pod_that_fits_nowhere_stays_pending_for_want_of_boards(cluster: Cluster, room: Room) -> None:
    await room.add_nodes(1, boards=2)
    await cluster.apply([room.pod("large", boards=3)])

    async def unschedulable() -> bool:
        (pod,) = await room.pods()
        return any(one.get("reason") == "Unschedulable" for one in pod["status"].get("conditions", []))

    await cluster.until(unschedulable, what="an unschedulable pod", timeout_s=20)


async def test_exported_boards_are_those_of_the_placed_pods(cluster: Cluster, room: Room) -> None:
    await room.add_nodes(2, boards=4)
    await cluster.apply([room.deployment("app", replicas=3, boards=2)])
    placed = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in await room.until_running(3)}

    async def all_exported() -> bool:
        return len(await room.boards()) == 6

    await cluster.until(all_exported, what="six held boards", timeout_s=20)
    boards = await room.boards()
    text = await cluster.exporter.metrics()
    exported = {
        sample.labels["UUID"]: sample.labels
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "DCGM_FI_DEV_GPU_UTIL"
    }

    assert {(board.pod, board.node) for board in boards} == set(placed.items())
    assert len({(board.node, board.index) for board in boards}) == 6
    for board in boards:
        assert exported[board.uuid]["pod"] == board.pod
        assert exported[board.uuid]["hostname"] == board.node
        assert exported[board.uuid]["gpu"] == str(board.index)


async def test_prometheus_has_the_load_under_the_pods_own_labels(cluster: Cluster, room: Room) -> None:
    await room.add_nodes(1)
    await cluster.exporter.declare([load(room, "app", 0.5, profiles=("dcgm", "seed"))])
    await cluster.apply([room.deployment("app", boards=2)])
    await room.until_running(1)

    async def measured() -> bool:
        selector = f'{{namespace="{room.namespace}",job="gpu-exporter"}}'
        dcgm = await cluster.query(f"DCGM_FI_PROF_GR_ENGINE_ACTIVE{selector}")
        seed = await cluster.query(f"gpu_gpu_utilization{selector}")
        return [row["value"][1] for row in dcgm] == ["0.25"] * 2 and [row["value"][1] for row in seed] == [
            "25"
        ]

    await cluster.until(measured, what="the declared load in Prometheus", timeout_s=20)


async def test_a_workload_with_fewer_boards_gets_busier(cluster: Cluster, room: Room) -> None:
    await room.add_nodes(1)
    await cluster.exporter.declare([load(room, "app", 0.6)])
    await cluster.apply([room.deployment("app", boards=2)])
    await room.until_running(1)
    await cluster.apply([room.deployment("app", boards=1)])

    async def busier() -> bool:
        rows = await cluster.query(f'DCGM_FI_DEV_GPU_UTIL{{namespace="{room.namespace}"}}')
        return [row["value"][1] for row in rows] == ["60"]

    await cluster.until(busier, what="one board at 60 %", timeout_s=30)


async def test_a_service_account_may_do_what_its_role_says_and_nothing_else(
    cluster: Cluster, room: Room
) -> None:
    await cluster.apply(service_account(room, "reader", ["get", "list"]))
    kubectl = await room.kubectl_as("reader")

    await kubectl.run("get", "pods")
    with pytest.raises(KubectlError, match="forbidden"):
        await kubectl.run("delete", "pod", "none")


async def test_the_audit_log_shows_every_attempted_write_of_a_service_account(
    cluster: Cluster, room: Room
) -> None:
    await cluster.apply(service_account(room, "writer", ["get", "create", "list"]))
    kubectl = await room.kubectl_as("writer")
    await kubectl.run("get", "pods")
    await kubectl.run("create", "configmap", "made", "--from-literal=a=b")
    with pytest.raises(KubectlError, match="forbidden"):
        await kubectl.run("delete", "pod", "none")
    with pytest.raises(KubectlError, match="forbidden"):
        await kubectl.run("create", "deployment", "refused", "--image=none")

    async def logged() -> bool:
        return len(cluster.writes_by_service_account(room.namespace, "writer")) >= 3

    await cluster.until(logged, what="three audited writes", timeout_s=10)
    writes = [describe(event) for event in cluster.writes_by_service_account(room.namespace, "writer")]

    assert writes == [
        f"create configmaps {room.namespace}/made 201",
        f"delete pods {room.namespace}/none 403",
        f"create deployments {room.namespace} 403",
    ]
