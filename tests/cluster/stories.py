"""Worlds that take a full evidence window to become tellable: all of a module are staged at once, each in its own room."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from devcluster import Cluster
from devcluster.exporter.load import Constant, WorkloadLoad
from devcluster.rooms import Room, open_room

Stage = Callable[[Room], Coroutine[Any, Any, None]]


@asynccontextmanager
async def staged(cluster: Cluster, stages: Mapping[str, Stage]) -> AsyncIterator[dict[str, Room]]:
    """A room for each story, set up side by side."""
    async with AsyncExitStack() as stack:
        rooms = {name: await stack.enter_async_context(open_room(cluster, name)) for name in stages}
        async with asyncio.TaskGroup() as group:
            for name, stage in stages.items():
                group.create_task(stage(rooms[name]), name=name)
        yield rooms


def half_used(room: Room, *, name: str = "app", kind: str = "Deployment", **settings: Any) -> WorkloadLoad:
    """The load of a workload that holds two boards and only ever uses one of them."""
    fields: dict[str, Any] = {"offered": Constant(0.4), "spread": "packed", "opens_boards": 1}
    return WorkloadLoad(namespace=room.namespace, kind=kind, name=name, **{**fields, **settings})


def lightly_used(room: Room, *, name: str = "app", kind: str = "Deployment") -> WorkloadLoad:
    """The load of a workload whose replicas have work for one of them at most."""
    return WorkloadLoad(namespace=room.namespace, kind=kind, name=name, offered=Constant(0.3))


async def play(room: Room, *objects: dict[str, Any], load: WorkloadLoad, pods: int = 1) -> None:
    """Declares the load, applies the objects and waits for the pods."""
    await room.cluster.exporter.declare([load])
    await room.cluster.apply(objects)
    await room.until_running(pods, timeout_s=60)
