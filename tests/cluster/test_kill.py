"""kill -9 before and after every changing request: the next start finishes or drops what was half-done, once.

Each case has a room and a service of its own. The first process (or the first two) is ended at its request; then one
runs on until nothing is open. Whatever happened, the workload is changed exactly once and nothing of ours is left on it.
"""

import pytest
import pytest_asyncio

from autoscaler.act.contract import Site
from autoscaler.act.requests import DELETION_COST
from devcluster import Cluster
from devcluster.rooms import Room
from tests.cluster.acting import (
    Actor,
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
from tests.cluster.stories import half_used, lightly_used
from tests.cluster.test_kill_evictions import CASES as EVICTION_CASES

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]
AT_ONCE = 5


TEMPLATE = [
    Case((at(site, when),))
    for site in (
        *(Site.FENCE, Site.DRY_RUN, Site.LEDGER_INTENT, Site.CHANGE, Site.LEDGER_OUTCOME, Site.DISOWN),
    )
    for when in ("before", "after")
]
SCALE = [
    Case((at(Site.CHANGE, "before"),), "scale"),
    Case((at(Site.DELETION_COST, "before"),), "scale"),
    Case((at(Site.DELETION_COST, "after"),), "scale"),
    Case((at(Site.CHANGE, "before"), at(Site.CLEAR_DELETION_COST, "before")), "scale"),
    Case((at(Site.CHANGE, "before"), at(Site.CLEAR_DELETION_COST, "after")), "scale"),
    Case((at(Site.CHANGE, "after"),), "scale"),
]
CASES = [*TEMPLATE, *SCALE]


async def stage(room: Room, case: Case) -> None:
    await room.add_nodes(1, boards=4)
    if case.lever == "scale":
        await room.cluster.exporter.declare([lightly_used(room)])
        await room.cluster.apply([room.deployment("app", boards=1, replicas=3)])
        await room.until_running(3)
        return
    await room.cluster.exporter.declare([half_used(room)])
    await room.cluster.apply([room.deployment("app", boards=2)])
    await room.until_running(1)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def outcomes(cluster: Cluster) -> dict[str, str]:
    """What went wrong in each case, empty where nothing did."""

    async def play(room: Room, case: Case) -> None:
        await stage(room, case)
        await die_and_recover(cluster, room, case)

    return await played(cluster, CASES, play)


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_a_killed_process_leaves_nothing_half_done(outcomes: dict[str, str], case: Case) -> None:
    assert outcomes[str(case)] == ""


def test_every_site_is_tried_before_and_after() -> None:
    tried = {tuple(death.split(":")[:2]) for case in (*CASES, *EVICTION_CASES) for death in case.deaths}

    assert {(site.value, when) for site in Site for when in ("before", "after")} == tried


async def die_and_recover(cluster: Cluster, room: Room, case: Case) -> None:
    kubeconfig = await grant_everything(room)
    for number, death in enumerate(case.deaths):
        await run_until_death(room, kubeconfig, name=f"{room.namespace}-dies-{number}", death=death)
    async with acting(room, kubeconfig, name=f"{room.namespace}-recovers") as actor:
        await actor.until_state("app", "verified", timeout_s=240)
        await actor.service.pass_cycles(3)
        await assert_once(cluster, actor, case)
    assert_lawful(cluster, room)


async def assert_once(cluster: Cluster, actor: Actor, case: Case) -> None:
    """Exactly one accepted change, one act that counts, and nothing of ours left on the objects."""
    room = actor.room
    item = await live(room, "deployment", "app")
    records = await actor.records("app")
    happened = [one for one in records if one.acted_ms >= 0]
    resource = "deployments/scale" if case.lever == "scale" else "deployments"
    accepted = changes(cluster, room, lambda one: one.resource == resource and isinstance(one.body, dict))

    assert (item["spec"]["replicas"] if case.lever == "scale" else boards_of(item)) == 1
    assert "gpu-autoscaler" not in managers(item)
    assert len(happened) == 1, records
    assert len(accepted) == 1, accepted
    assert all(not one.is_open for one in records)
    for pod in await room.pods():
        assert DELETION_COST not in pod["metadata"].get("annotations", {})
