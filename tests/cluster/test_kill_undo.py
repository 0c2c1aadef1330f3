"""kill -9 in the middle of a person's `undo`: asked again, it ends what was begun, and the owner's value is there once."""

import asyncio
import sys
from pathlib import Path

import pytest
import pytest_asyncio

from autoscaler.act.contract import Site
from devcluster import Cluster
from devcluster.rooms import Room
from tests.cluster.acting import (
    Case,
    acting,
    acting_environment,
    at,
    boards_of,
    changes,
    grant_everything,
    live,
    managers,
    played,
)
from tests.cluster.live_service import PROGRAM
from tests.cluster.polling import eventually
from tests.cluster.stories import half_used

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
CASES = [
    Case((at(site, when),), "undo")
    for site in (Site.LEDGER_INTENT, Site.CHANGE, Site.LEDGER_OUTCOME, Site.DISOWN)
    for when in ("before", "after")
]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def outcomes(cluster: Cluster) -> dict[str, str]:
    """What went wrong in each case, empty where nothing did."""

    async def play(room: Room, case: Case) -> None:
        await undo_and_die(cluster, room, case)

    return await played(cluster, CASES, play)


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_an_undo_that_was_killed_is_ended_by_the_next(outcomes: dict[str, str], case: Case) -> None:
    assert outcomes[str(case)] == ""


async def undo_and_die(cluster: Cluster, room: Room, case: Case) -> None:
    await room.add_nodes(1, boards=4)
    await cluster.exporter.declare([half_used(room)])
    await cluster.apply([room.deployment("app", boards=2)])
    await room.until_running(1)
    before = await live(room, "deployment", "app")
    kubeconfig = await grant_everything(room)
    async with acting(room, kubeconfig, name=f"{room.namespace}-acts") as actor:
        await actor.until_state("app", "verified")
    (death,) = case.deaths
    died = await undo(room, kubeconfig, die_at=death)
    await eventually(
        lambda: undo(room, kubeconfig), lambda code: code == 0, what="the next undo to succeed", timeout_s=120
    )
    after = await live(room, "deployment", "app")
    put_back = [
        one
        for one in changes(cluster, room, lambda one: one.resource == "deployments")
        if isinstance(one.body, dict)
    ]

    assert died == -9
    assert after["spec"] == before["spec"]
    assert boards_of(after) == 2
    assert "gpu-autoscaler" not in managers(after)
    assert len(put_back) == 2, put_back


async def undo(room: Room, kubeconfig: Path, *, die_at: str = "") -> int:
    """The exit code of `undo --all`."""
    environment = acting_environment(room, kubeconfig, 1)
    command: list[str | Path] = [PROGRAM]
    if die_at:
        environment["DIE_AT"] = die_at
        command = [sys.executable, "-m", "tests.cluster.dying_service"]
    process = await asyncio.create_subprocess_exec(
        *map(str, [*command, "undo", "--all", "--yes"]),
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    return await process.wait()
