"""Whether a pod fits, by our own look at many random clusters and by the real scheduler: never a seat that is none."""

import asyncio
from collections.abc import Iterable
from random import Random
from typing import Any

import msgspec
import pytest

from autoscaler.decide.node_marks import why_leaving
from autoscaler.decide.placement import place
from autoscaler.decide.room import Room as Seats
from autoscaler.decide.waiting import is_placeable
from autoscaler.decide.world import Unit, World
from autoscaler.kube import KINDS
from autoscaler.model.policy import Policy, Resources
from autoscaler.observe.assemble import assemble
from autoscaler.observe.series import SeriesReading
from autoscaler.observe.stores import Stores
from devcluster.fake_nodes import node_manifests
from devcluster.rooms import DEFAULT_RESOURCE, ROOM_KEY, Room
from devcluster.scenario import NodePool
from tests.cluster.polling import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]

STATES = 48
NAME, ZONE, STATE = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "state"
TOLERATE_ALL = [{"operator": "Exists"}]
TAINTS = (
    {"key": "team", "value": "x", "effect": "NoSchedule"},
    {"key": "team", "value": "x", "effect": "PreferNoSchedule"},
    {"key": "spot", "effect": "NoExecute"},
    {"key": "DeletionCandidateOfClusterAutoscaler", "value": "1", "effect": "PreferNoSchedule"},
)
TOLERATIONS: tuple[list[dict[str, Any]], ...] = (
    *([], [], TOLERATE_ALL),
    [{"key": "team", "operator": "Equal", "value": "x", "effect": "NoSchedule"}],
    [{"key": "team", "operator": "Exists"}, {"key": "spot", "operator": "Exists"}],
    [{"key": "team", "operator": "Equal", "value": "y"}],
)


def nodes_of(dice: Random, room: Room, state: int) -> list[dict[str, Any]]:
    labels = {ROOM_KEY: room.namespace, STATE: f"s{state}"}
    pool = NodePool(name=f"{room.namespace}-s{state}", count=dice.randint(1, 3), labels=labels)
    made = node_manifests(pool)
    for node in made:
        node["metadata"]["labels"] |= {
            ZONE: f"z{state}-{dice.randint(0, 1)}",
            "size": str(dice.randint(1, 4)),
        }
        room_for = {"cpu": str(dice.randint(1, 4)), "memory": "8Gi", "pods": str(dice.randint(1, 4))}
        room_for[DEFAULT_RESOURCE] = str(dice.choice((0, 1, 2, 4)))
        node["status"] = {"capacity": room_for, "allocatable": room_for}
        taints = dice.sample(TAINTS, dice.choice((0, 0, 1, 2)))
        node["spec"] = {"taints": taints, "unschedulable": dice.random() < 0.1}
    return made


def resources(boards: int, cpu: int) -> dict[str, Any]:
    amounts = {"cpu": f"{cpu}m"} | ({DEFAULT_RESOURCE: str(boards)} if boards else {})
    return {"requests": amounts, "limits": amounts}


def pod(room: Room, name: str, app: str, needs: dict[str, Any], **spec: Any) -> dict[str, Any]:
    made = room.pod(name, boards=0)
    made["metadata"]["labels"]["app"] = app
    made["spec"]["containers"][0]["resources"] = needs
    made["spec"] |= spec
    return made


def held(dice: Random, room: Room, state: int, nodes: list[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """Pods that are there already, some with boards; some keep others out of their node or zone."""
    for number in range(dice.randint(0, 4)):
        term = {
            "topologyKey": dice.choice((NAME, ZONE)),
            "labelSelector": {
                "matchExpressions": [
                    {"key": "app", "operator": dice.choice(("In", "NotIn")), "values": [dice.choice("ab")]}
                ]
            },
            **dice.choice(({}, {}, {"namespaces": ["elsewhere"]}, {"namespaceSelector": {}})),
        }
        affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        yield pod(
            room,
            f"s{state}-held-{number}",
            dice.choice("ab"),
            resources(dice.choice((0, 0, 1, 2)), dice.choice((100, 1000))),
            nodeName=dice.choice(nodes)["metadata"]["name"],
            nodeSelector={},
            tolerations=TOLERATE_ALL,
            affinity=affinity if dice.random() < 0.3 else {},
        )


def wanted(dice: Random, room: Room, state: int, nodes: list[dict[str, Any]]) -> dict[str, Any]:
    """A pod that looks for a node of its state."""
    names = [node["metadata"]["name"] for node in nodes]
    expressions = (
        {"key": "size", "operator": "Gt", "values": ["1"]},
        {"key": "size", "operator": "Lt", "values": ["3"]},
        {"key": ZONE, "operator": "NotIn", "values": [f"z{state}-0"]},
        {"key": "absent", "operator": "DoesNotExist"},
        {"key": "absent", "operator": "Exists"},
    )
    fields = {
        "key": "metadata.name",
        "operator": dice.choice(("In", "NotIn")),
        "values": [dice.choice(names)],
    }
    terms: list[dict[str, Any]] = [
        {"matchExpressions": dice.sample(expressions, dice.randint(1, 2))},
        {"matchExpressions": [dice.choice(expressions)], "matchFields": [fields]},
        {"matchFields": [fields]},
    ]
    chosen = dice.sample(terms, dice.randint(1, 2)) if dice.random() < 0.5 else []
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": chosen}}
    }
    return pod(
        room,
        f"s{state}-wants",
        dice.choice("ab"),
        resources(dice.choice((1, 1, 2, 3)), dice.choice((100, 1000, 2500))),
        nodeSelector={STATE: f"s{state}"},
        tolerations=dice.choice(TOLERATIONS),
        affinity=affinity if chosen else {},
    )


async def world_of(room: Room, wants: list[dict[str, Any]]) -> World:
    """The cluster as it is, with the pods that are still to come."""
    stores = Stores(Resources())
    for kind in ("Node", "Pod"):
        items = (await room.cluster.api.get(KINDS[kind].path))["items"]
        for item in items + (wants if kind == "Pod" else []):
            stores.writers[kind].apply(msgspec.convert(item, KINDS[kind].struct))
    return World(assemble(stores.freeze(), SeriesReading(), now_ms=0), Policy(), 0)


def seat(world: World, unit: Unit) -> str:
    """The node that we would count on; empty where we see none."""
    nodes = Seats(world).admitting(unit) if is_placeable(world, unit) else {}
    found = place(unit.shape, unit.shape.demand, 1, nodes=nodes, free=world.free)
    return found[0] if found else ""


async def post_all(room: Room, path: str, bodies: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The answers in order; a few at a time over one session."""
    slots = asyncio.Semaphore(8)
    async with room.cluster.api.session() as session:

        async def post(body: dict[str, Any]) -> dict[str, Any]:
            async with slots, session.post(path, json=body) as answer:
                content = await answer.json()
                assert answer.status < 300, content
                return dict(content)

        return list(await asyncio.gather(*map(post, bodies)))


async def remove_nodes(room: Room) -> None:
    """Faster than one kubectl for all of them, which paces itself."""
    async with room.cluster.api.session() as session:
        await asyncio.gather(*(session.delete(f"/api/v1/nodes/{name}") for name in room.node_names))
    room.node_names.clear()


def verdict(found: dict[str, Any]) -> str | None:
    """Where the scheduler put the pod, empty where it found no node, None before it has looked."""
    conditions = found["status"].get("conditions", [])
    if any(c["type"] == "PodScheduled" and c.get("reason") == "Unschedulable" for c in conditions):
        return ""
    return found["spec"].get("nodeName")


async def test_a_pod_that_fits_by_our_rules_is_never_one_that_the_scheduler_cannot_place(room: Room) -> None:
    """Nor does the scheduler find a seat that we do not see, but on nodes that are about to go."""
    dice, api = Random(20_260_701), room.cluster.api
    base = f"/api/v1/namespaces/{room.namespace}/pods"
    nodes = {state: nodes_of(dice, room, state) for state in range(STATES)}
    every = [node for made in nodes.values() for node in made]
    room.node_names += [node["metadata"]["name"] for node in every]
    await post_all(room, "/api/v1/nodes", every)

    async def young() -> list[str]:
        items = (await api.get("/api/v1/nodes"))["items"]
        return [
            item["metadata"]["name"]
            for item in items
            if item["metadata"]["name"] in room.node_names
            and (
                any(t["key"] == "node.kubernetes.io/not-ready" for t in item["spec"].get("taints", []))
                or not any(
                    c["type"] == "Ready" and c["status"] == "True"
                    for c in item["status"].get("conditions", [])
                )
            )
        ]

    await eventually(young, lambda names: not names, what="ready nodes", timeout_s=60)
    bound = [one for state in nodes for one in held(dice, room, state, nodes[state])]
    await post_all(room, base, bound)
    asked = [wanted(dice, room, state, nodes[state]) for state in nodes]
    wants = await post_all(room, f"{base}?dryRun=All", asked)
    world = await world_of(room, wants)
    units = {
        u.pod.name: u for found in world.units_of.values() for u in found if u.pod.namespace == room.namespace
    }
    ours = {one["metadata"]["name"]: seat(world, units[one["metadata"]["name"]]) for one in asked}
    await post_all(room, base, asked)

    async def answers() -> dict[str, str | None]:
        items = (await api.get(base))["items"]
        return {i["metadata"]["name"]: verdict(i) for i in items if i["metadata"]["name"] in ours}

    theirs = await eventually(
        answers,
        lambda found: len(found) == len(ours) and None not in found.values(),
        what="the scheduler to have looked at every pod",
        timeout_s=60,
    )
    await remove_nodes(room)

    assert [name for name in ours if ours[name] and not theirs[name]] == []
    unseen = [node for name, node in theirs.items() if node and not ours[name]]
    assert [node for node in unseen if not why_leaving(world.nodes[node])] == []
    assert sum(map(bool, ours.values())) >= 8
    assert sum(not node for node in theirs.values()) >= 8
