"""What is planned is done, verified, and leaves no trace but the amount; what goes wrong is put back."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from devcluster import Cluster
from devcluster.rooms import Room
from tests.cluster.acting import (
    acting,
    assert_lawful,
    boards_of,
    changes,
    grant_everything,
    live,
    managers,
)
from tests.cluster.polling import eventually
from tests.cluster.stories import half_used, lightly_used, staged

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]


async def stage_three_levers(room: Room) -> None:
    """A Deployment and a StatefulSet that use half of what they hold, and a Deployment with too many replicas."""
    await room.add_nodes(2, boards=6)
    await room.cluster.exporter.declare(
        [half_used(room), half_used(room, name="set", kind="StatefulSet"), lightly_used(room, name="many")]
    )
    stateful = room.deployment("set", boards=2)
    stateful["kind"] = "StatefulSet"
    stateful["spec"]["serviceName"] = "set"
    objects = [room.deployment("app", boards=2), stateful, room.deployment("many", boards=1, replicas=3)]
    await room.cluster.apply(objects)
    await room.until_running(5)


async def stage_refused_successors(room: Room) -> None:
    """A Deployment whose smaller pods are refused at admission: its template can be changed, its rollout cannot end."""
    policy = {"name": f"no-single-board.{room.namespace}"}
    api = "admissionregistration.k8s.io"
    boards = "object.spec.containers[0].resources.limits['gpuconfig.com/gpu']"
    await room.cluster.apply(
        [
            {
                "apiVersion": f"{api}/v1",
                "kind": "ValidatingAdmissionPolicy",
                "metadata": policy,
                "spec": {
                    "failurePolicy": "Fail",
                    "matchConstraints": {
                        "resourceRules": [
                            {
                                "apiGroups": [""],
                                "apiVersions": ["v1"],
                                "operations": ["CREATE"],
                                "resources": ["pods"],
                            }
                        ],
                        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": room.namespace}},
                    },
                    "validations": [{"expression": f"{boards} != '1'", "message": "no single boards here"}],
                },
            },
            {
                "apiVersion": f"{api}/v1",
                "kind": "ValidatingAdmissionPolicyBinding",
                "metadata": policy,
                "spec": {"policyName": policy["name"], "validationActions": ["Deny"]},
            },
        ]
    )
    await room.add_nodes(1, boards=4)
    await room.cluster.exporter.declare([half_used(room)])
    await room.cluster.apply([room.deployment("app", boards=2)])
    await room.until_running(1)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def rooms(cluster: Cluster) -> AsyncIterator[dict[str, Room]]:
    stages = {"levers": stage_three_levers, "failing": stage_refused_successors}
    async with staged(cluster, stages) as opened:
        yield opened


async def test_every_lever_is_pulled_once_and_verified_and_leaves_only_its_amount(
    cluster: Cluster, rooms: dict[str, Room]
) -> None:
    room = rooms["levers"]
    before = {
        name: await live(room, kind, name)
        for kind, name in (("deployment", "app"), ("statefulset", "set"), ("deployment", "many"))
    }
    kubeconfig = await grant_everything(room)
    async with acting(room, kubeconfig, name=f"levers-{room.namespace}") as actor:
        for name in ("app", "set", "many"):
            await actor.until_state(name, "verified")
        await actor.service.pass_cycles(3)
    after = {
        name: await live(room, kind, name)
        for kind, name in (("deployment", "app"), ("statefulset", "set"), ("deployment", "many"))
    }

    assert [boards_of(after[name]) for name in ("app", "set")] == [1, 1]
    assert after["many"]["spec"]["replicas"] == 1
    assert all("gpu-autoscaler" not in managers(item) for item in after.values())
    resources = after["app"]["spec"]["template"]["spec"]["containers"][0]["resources"]
    stated = before["app"]["spec"]["template"]["spec"]["containers"][0]["resources"]
    assert resources.keys() == stated.keys()
    for name, item in after.items():
        item["spec"]["replicas"] = before[name]["spec"]["replicas"]
        item["spec"]["template"]["spec"]["containers"][0]["resources"] = (
            stated
            if name != "many"
            else (before[name]["spec"]["template"]["spec"]["containers"][0]["resources"])
        )
        assert item["spec"] == before[name]["spec"]
    assert len(await room.pods()) == 3
    assert (
        len(
            changes(
                cluster,
                room,
                lambda one: one.resource in {"deployments", "statefulsets"} and isinstance(one.body, dict),
            )
        )
        == 2
    )
    assert len(changes(cluster, room, lambda one: one.resource == "deployments/scale")) == 1
    assert_lawful(cluster, room)


async def test_a_rollout_that_does_not_end_in_time_is_put_back_and_left_alone(
    cluster: Cluster, rooms: dict[str, Room]
) -> None:
    room = rooms["failing"]
    before = await live(room, "deployment", "app")
    kubeconfig = await grant_everything(room)
    environment = {"AUTOSCALER_GUARDS_READY_DEADLINE": "5s"}
    async with acting(room, kubeconfig, name=f"failing-{room.namespace}", environment=environment) as actor:
        await actor.until_state("app", "acted")
        undone = await eventually(
            lambda: actor.records("app"),
            lambda records: [one.state for one in records] == ["failed", "verified"],
            what="the change to be put back",
        )
        await actor.service.pass_cycles(3)
        (entry,) = await actor.entries()
    after = await live(room, "deployment", "app")

    assert [(one.actor, one.action.before, one.action.after) for one in undone] == [
        ("service", 2, 1),
        ("revert", 1, 2),
    ]
    assert after["spec"] == before["spec"]
    assert "gpu-autoscaler" not in managers(after)
    assert (entry.failures, entry.changes, len(entry.records)) == (1, (), 2)
    assert entry.not_before_ms > undone[-1].closed_ms
    assert "pods still have the former size after 5s" in undone[0].detail or "of 1 pods" in undone[0].detail
    assert_lawful(cluster, room)
