"""What a queue may still use, as we work it out and as the real Kueue admits: one board more is one too many."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
import pytest

from autoscaler.decide.queues import Queues
from autoscaler.kube import wire
from autoscaler.model.snapshot import Snapshot
from autoscaler.observe.kueue import cluster_queue_row, cohort_row
from devcluster import Cluster
from devcluster.rooms import DEFAULT_RESOURCE, Room, open_room
from tests.cluster import queues
from tests.cluster.polling import eventually
from tests.cluster.queues import cohort, queue, quota

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(300)]
World = Callable[[Room], list[dict[str, Any]]]


def alone(room: Room) -> list[dict[str, Any]]:
    return queue(room, "a", quota(4))


def borrowing(room: Room) -> list[dict[str, Any]]:
    return [
        *queue(room, "a", quota(4), cohort="all"),
        *queue(room, "b", quota(4, borrowing=2), cohort="all"),
        *queue(room, "c", quota(0, borrowing=0), cohort="all"),
    ]


def lending(room: Room) -> list[dict[str, Any]]:
    return [
        *queue(room, "a", quota(4, lending=1), cohort="all"),
        *queue(room, "b", quota(2), cohort="all"),
        *queue(room, "c", quota(3, borrowing=1, lending=2), cohort="all"),
    ]


def tree(room: Room) -> list[dict[str, Any]]:
    return [
        cohort(room, "root", quota(3)),
        cohort(room, "team", quota(2, borrowing=2, lending=1), parent="root"),
        *queue(room, "a", quota(1), cohort="team"),
        *queue(room, "b", quota(1, borrowing=1), cohort="team"),
        *queue(room, "c", quota(1, lending=0), cohort="root"),
    ]


WORLDS: list[tuple[World, Mapping[str, int], Mapping[str, int]]] = [
    (alone, {"a": 1}, {"a": 3}),
    (borrowing, {"a": 1}, {"a": 7, "b": 6, "c": 0}),
    (borrowing, {"b": 6}, {"a": 2, "b": 0, "c": 0}),
    (borrowing, {"a": 6}, {"a": 2, "b": 2, "c": 0}),
    (lending, {}, {"a": 8, "b": 5, "c": 4}),
    (lending, {"a": 5}, {"a": 3, "b": 3, "c": 4}),
    (lending, {"b": 4}, {"a": 4, "b": 1, "c": 2}),
    (tree, {}, {"a": 6, "b": 2, "c": 5}),
    (tree, {"c": 3}, {"a": 5, "b": 2, "c": 2}),
    (tree, {"a": 5}, {"a": 1, "b": 1, "c": 3}),
]


@pytest.mark.parametrize(
    ("world", "used", "free"),
    [
        pytest.param(
            *one, id=f"{one[0].__name__}-{'-'.join(f'{k}{v}' for k, v in one[1].items()) or 'empty'}"
        )
        for one in WORLDS
    ],
)
async def test_what_is_free_is_admitted_and_one_board_more_is_not(
    kueue_cluster: Cluster, world: World, used: Mapping[str, int], free: Mapping[str, int]
) -> None:
    async with open_room(kueue_cluster, "quota") as room:
        await kueue_cluster.apply([queues.flavor(room), *world(room)])
        for name, boards in used.items():
            await kueue_cluster.apply([queues.job(room, f"used-{name}", queue=name, boards=boards)])
            await queues.until_admitted(room, f"used-{name}")
        told = await eventually(
            lambda: _told(room, free), lambda found: found == dict(free), what=f"{dict(free)}", timeout_s=10
        )
        for name, boards in told.items():
            if boards:
                await _tries(room, name, boards, queues.until_admitted)
            await _tries(room, name, boards + 1, queues.until_queued)


async def _told(room: Room, names: Mapping[str, int]) -> dict[str, int]:
    """What we say is free in each queue."""
    api = f"/apis/{queues.API}"
    listed = await room.cluster.api.get(f"{api}/clusterqueues"), await room.cluster.api.get(f"{api}/cohorts")
    rows = [
        [
            msgspec.convert(item, type=kind)
            for item in found["items"]
            if item["metadata"]["name"].startswith(room.namespace)
        ]
        for found, kind in zip(listed, (wire.ClusterQueue, wire.Cohort), strict=True)
    ]
    snapshot = Snapshot(
        taken_ms=0,
        cluster_queues=tuple(map(cluster_queue_row, rows[0])),
        cohorts=tuple(map(cohort_row, rows[1])),
    )
    found = Queues(snapshot)
    told = {}
    for row in snapshot.cluster_queues:
        left = found.free(row, DEFAULT_RESOURCE)
        assert left is not None
        told[row.name.removeprefix(f"{room.namespace}-")] = left[room.namespace]
    return {name: told[name] for name in names if name in told}


async def _tries(
    room: Room, name: str, boards: int, until: Callable[[Room, str], Awaitable[dict[str, Any]]]
) -> None:
    """A Job that asks for so many boards comes so far, and is gone again with what it had reserved."""
    before = await _told(room, {name: 0})
    await room.cluster.apply([queues.job(room, "tries", queue=name, boards=boards)])
    await until(room, "tries")
    await room.cluster.kubectl("-n", room.namespace, "delete", "job", "tries", "--wait=true")
    await eventually(lambda: _told(room, {name: 0}), lambda found: found == before, what="what was free")
