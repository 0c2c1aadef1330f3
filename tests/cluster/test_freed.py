"""What became of freed boards is followed on real nodes, by whoever leads."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from devcluster import Cluster
from devcluster.rooms import Room
from tests.cluster.acting import Actor, acting, grant_everything
from tests.cluster.polling import eventually
from tests.cluster.stories import lightly_used, staged

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]


async def stage(room: Room) -> None:
    """On the only node a Deployment with three replicas, of which one would do."""
    await room.add_nodes(1, boards=4)
    await room.cluster.exporter.declare([lightly_used(room, name="many")])
    await room.cluster.apply([room.deployment("many", boards=1, replicas=3)])
    await room.until_running(3)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def room(cluster: Cluster) -> AsyncIterator[Room]:
    async with staged(cluster, {"freed": stage}) as opened:
        yield opened["freed"]


async def until_fates(actor: Actor, expected: list[tuple[str, int, str]]) -> str:
    """Waits until the act's boards are told so: fate, boards, who; returns the node."""

    async def told() -> list[tuple[str, int, str, str]]:
        (record,) = await actor.records("many") or [None]
        rows = record.freed if record is not None and record.state == "verified" else ()
        return sorted((row.fate, row.boards, row.by.name if row.by else "", row.node) for row in rows)

    found = await eventually(
        told,
        lambda rows: [row[:3] for row in rows] == expected,
        what=f"freed boards to be {expected}",
        timeout_s=120,
    )
    return found[0][3]


async def test_freed_boards_wait_are_used_and_are_followed_by_the_next_leader(
    cluster: Cluster, room: Room
) -> None:
    kubeconfig = await grant_everything(room)
    async with acting(room, kubeconfig, name=f"first-{room.namespace}") as actor:
        node = await until_fates(actor, [("waiting", 2, "")])
    await cluster.apply([room.deployment("next", boards=1)])
    await room.until_running(2)
    async with acting(room, kubeconfig, name=f"second-{room.namespace}") as actor:
        await until_fates(actor, [("used", 1, "next"), ("waiting", 1, "")])
        await cluster.kubectl("cordon", node)
        await until_fates(actor, [("cordoned", 1, ""), ("used", 1, "next")])
        await actor.service.pass_cycles(2)
        status, metrics = await actor.service.get("/metrics")

    assert status == 200
    assert 'gpu_autoscaler_freed_boards{fate="used"} 1.0' in metrics
    assert 'gpu_autoscaler_freed_boards{fate="cordoned"} 1.0' in metrics
