"""kill -9 around every request of an eviction, and around the healing of a StatefulSet whose smaller pod hangs."""

from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from autoscaler.act.contract import Site
from devcluster import Cluster
from devcluster.exporter.load import Constant, WorkloadLoad
from devcluster.rooms import Room
from tests.cluster.acting import (
    Case,
    acting,
    assert_lawful,
    at,
    boards_of,
    changes,
    grant_everything,
    live,
    managers,
    played,
    run_until_death,
)
from tests.cluster.polling import eventually
from tests.cluster.stories import half_used

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]
CASES = [
    *(
        Case((at(site, when),), "evict")
        for site in (Site.NOMINATE, Site.EVICT)
        for when in ("before", "after")
    ),
    *(Case((at(Site.EVICT, "before"), at(Site.UNNOMINATE, when)), "evict") for when in ("before", "after")),
    *(Case((at(Site.EVICT_STUCK, when),), "stuck") for when in ("before", "after")),
]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def outcomes(cluster: Cluster) -> dict[str, str]:
    """What went wrong in each case, empty where nothing did."""

    async def play(room: Room, case: Case) -> None:
        kubeconfig = await grant_everything(room)
        if case.lever == "evict":
            await make_room_and_die(cluster, room, kubeconfig, case)
        else:
            await hang_and_die(cluster, room, kubeconfig, case)

    return await played(cluster, CASES, play)


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_a_killed_process_evicts_once_and_leaves_nothing_half_done(
    outcomes: dict[str, str], case: Case
) -> None:
    assert outcomes[str(case)] == ""


def priority_class(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": 1000,
        "preemptionPolicy": "Never",
    }


async def make_room_and_die(cluster: Cluster, room: Room, kubeconfig: Path, case: Case) -> None:
    """A busy burst unit holds the only two boards that a pod of high priority waits for."""
    high, burst = f"high-priority-{room.namespace}", f"burst-{room.namespace}"
    await cluster.apply([priority_class(high), priority_class(burst)])
    await room.add_nodes(1, boards=2)
    load = WorkloadLoad(namespace=room.namespace, kind="Deployment", name="burst", offered=Constant(1.6))
    await cluster.exporter.declare([load])
    await cluster.apply([room.deployment("burst", boards=2, priorityClassName=burst)])
    await room.until_running(1)
    await cluster.apply([room.deployment("train", boards=2, priorityClassName=high)])
    environment = {"AUTOSCALER_YIELD_CLASSES": burst}
    for number, death in enumerate(case.deaths):
        name = f"{room.namespace}-dies-{number}"
        await run_until_death(room, kubeconfig, name=name, death=death, environment=environment)
    async with acting(room, kubeconfig, name=f"{room.namespace}-recovers", environment=environment) as actor:
        ended = await actor.until_state("burst", "verified", timeout_s=240)
        await actor.service.pass_cycles(3)
        records = await actor.records("burst")
    pods = {pod["metadata"]["labels"]["app"]: pod for pod in await room.pods()}
    evictions = changes(cluster, room, lambda one: one.resource == "pods/eviction")

    assert "has its seat on" in ended.detail
    assert pods["train"]["spec"].get("nodeName") == room.node_names[0]
    assert not pods["burst"]["spec"].get("nodeName")
    assert len(evictions) == 1, evictions
    assert len([one for one in records if one.acted_ms >= 0]) == 1
    assert all(not one.is_open for one in records)
    assert_lawful(cluster, room)


async def hang_and_die(cluster: Cluster, room: Room, kubeconfig: Path, case: Case) -> None:
    """Admission sends pods of a single board nowhere, so a smaller StatefulSet hangs and has to be put back."""
    await cluster.apply(single_boards_go_nowhere(room))
    await room.add_nodes(1, boards=4)
    await cluster.exporter.declare([half_used(room, kind="StatefulSet")])
    stateful = room.deployment("app", boards=2)
    stateful["kind"] = "StatefulSet"
    stateful["spec"]["serviceName"] = "app"
    await cluster.apply([stateful])
    await room.until_running(1)
    environment = {"AUTOSCALER_GUARDS_READY_DEADLINE": "5s"}
    for number, death in enumerate(case.deaths):
        name = f"{room.namespace}-dies-{number}"
        await run_until_death(room, kubeconfig, name=name, death=death, environment=environment)
    async with acting(room, kubeconfig, name=f"{room.namespace}-recovers", environment=environment) as actor:
        records = await eventually(
            lambda: actor.records("app"),
            lambda found: [one.state for one in found] == ["failed", "verified"],
            what="the change to be put back",
            timeout_s=240,
        )
    item = await live(room, "statefulset", "app")
    (pod,) = await room.pods()

    assert [(one.actor, one.action.after) for one in records] == [("service", 1), ("revert", 2)]
    assert boards_of(item) == 2
    assert "gpu-autoscaler" not in managers(item)
    assert pod["status"]["phase"] == "Running"
    assert pod["spec"]["containers"][0]["resources"]["limits"] == {"gpuconfig.com/gpu": "2"}
    assert_lawful(cluster, room)


def single_boards_go_nowhere(room: Room) -> list[dict[str, Any]]:
    policy = {"name": f"single-boards-go-nowhere.{room.namespace}"}
    api = "admissionregistration.k8s.io/v1"
    everywhere = {"matchLabels": {"kubernetes.io/metadata.name": room.namespace}}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    single = "object.spec.containers[0].resources.limits['gpuconfig.com/gpu'] == '1'"
    patch = '[JSONPatch{op: "add", path: "/spec/nodeSelector/nowhere", value: "true"}]'
    return [
        {
            "apiVersion": api,
            "kind": "MutatingAdmissionPolicy",
            "metadata": policy,
            "spec": {
                "failurePolicy": "Fail",
                "reinvocationPolicy": "Never",
                "matchConstraints": {"resourceRules": [rule], "namespaceSelector": everywhere},
                "matchConditions": [{"name": "single-board", "expression": single}],
                "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
            },
        },
        {
            "apiVersion": api,
            "kind": "MutatingAdmissionPolicyBinding",
            "metadata": policy,
            "spec": {"policyName": policy["name"]},
        },
    ]
