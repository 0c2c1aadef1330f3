"""With the real Kueue: what it has admitted and nobody uses is released through it, and it is never fought.

Kueue takes minutes to build, so this family is slow; what needs only its kinds is in `test_kueue_kinds`.
"""

import pytest
import pytest_asyncio

from autoscaler.act.contract import Site
from autoscaler.model.ledger import Entry
from autoscaler.model.reasons import Reason
from devcluster import Cluster
from devcluster.rooms import Room, open_room
from tests.cluster import queues
from tests.cluster.acting import (
    Actor,
    Case,
    acting,
    acting_environment,
    assert_lawful,
    at,
    changes,
    grant_everything,
    live,
    managers,
    played,
    run_until_death,
    writes,
)
from tests.cluster.polling import eventually
from tests.cluster.test_commands_acting import Person

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(300)]
KINDS = "workloads.kueue.x-k8s.io"
OWN = {"leases", "configmaps"}


async def stage(room: Room) -> None:
    """A queue of two boards whose Job uses none of them, and another Job that waits for them with work."""
    await room.add_nodes(1, boards=4)
    await room.cluster.exporter.declare([queues.load(room, "idle", 0.0), queues.load(room, "next", 1.8)])
    await room.cluster.apply([queues.flavor(room), *queues.queue(room, "main", queues.quota(2))])
    await room.cluster.apply([queues.job(room, "idle", boards=2, annotations=queues.CONSENT)])
    await queues.until_admitted(room, "idle")
    await room.cluster.apply([queues.job(room, "next", boards=2)])
    await queues.until_queued(room, "next")
    await room.until_running(1)


def turned(room: Room) -> list[bool]:
    """Every value that the room's service has given to a Workload's `active`, in order."""
    accepted = changes(
        room.cluster, room, lambda one: one.resource == "workloads" and isinstance(one.body, dict)
    )
    return [one.body["spec"]["active"] for one in accepted]


async def entry_of(actor: Actor, name: str) -> Entry:
    return next(one for one in await actor.entries() if one.ref.name == name)


async def test_an_idle_admitted_job_gives_its_quota_to_the_waiting_one_and_can_be_put_back(
    kueue_cluster: Cluster,
) -> None:
    async with open_room(kueue_cluster, "kueue") as room:
        await stage(room)
        kubeconfig = await grant_everything(room)
        recommending = {"AUTOSCALER_MODE": "recommend"}
        person = Person(room, {**acting_environment(room, kubeconfig, 0), **recommending})
        async with acting(room, kubeconfig, name=f"acts-{room.namespace}") as actor:
            record = await actor.until_state("idle", "verified")
            taken = await queues.until_admitted(room, "next")
            released = await queues.kueue_workload(room, "idle")
            (pod,) = await room.until_running(1)
            row = await actor.service.until_reason(room, "idle", Reason.KUEUE)
            busy = await actor.service.until_reason(room, "next", Reason.BELOW_SAVINGS_FLOOR)
            assert_lawful(kueue_cluster, room)
            undone = await person.types("undo", f"{room.namespace}/idle", "--yes", "-o", "json")
            again = await queues.until_queued(room, "idle")
            queued = await eventually(
                lambda: actor.service.rows(room.namespace, "idle"),
                lambda rows: "queued in" in rows[0].detail,
                what="a row that says queued",
            )
            waits_suspended = await queues.is_suspended(room, "idle")
            await actor.service.pass_cycles(3)
            await kueue_cluster.kubectl("-n", room.namespace, "delete", "job", "next", "--wait=true")
            await queues.until_admitted(room, "idle")
            await actor.service.pass_cycles(3)
            records, entry = await actor.records("idle"), await entry_of(actor, "idle")

        action = record.action
        assert (action.method, action.before, action.after) == ("deactivate", 1, 0)
        assert (action.saved_milli_boards, action.pods) == (2000, 1)
        assert "its quota is free" in record.detail
        assert released is not None
        assert released["spec"]["active"] is False
        assert not queues.holds(released, "QuotaReserved")
        assert action.through is not None
        assert "gpu-autoscaler" not in managers(await live(room, KINDS, action.through.name))
        assert pod["metadata"]["labels"]["app"] == "next"
        assert taken["status"]["admission"]["clusterQueue"] == f"{room.namespace}-main"
        assert row.detail.endswith("it is not queued, and stays stopped until it is active again")
        assert busy.verdict == "busy"
        assert (undone.code, undone.results()) == (0, [("done", "")])
        assert again["spec"]["active"] is True
        assert queued[0].reason is Reason.KUEUE
        assert queued[0].detail == (
            f"queued in ClusterQueue {room.namespace}-main; "
            f"asks 2 gpuconfig.com/gpu, free are 0 of flavor {room.namespace}"
        )
        assert waits_suspended
        assert [(one.actor, one.state) for one in records] == [("service", "verified"), ("undo", "verified")]
        assert entry.changes == ()
        assert not await queues.is_suspended(room, "idle")
        assert {one.resource for one in writes(kueue_cluster, room)} - OWN == {"workloads"}
        assert turned(room) == [False, True]


async def test_what_is_busy_queued_or_not_agreed_to_is_left_to_kueue(kueue_cluster: Cluster) -> None:
    async with open_room(kueue_cluster, "kueue") as room:
        await room.add_nodes(1, boards=8)
        names = ("busy", "unasked", "served", "waits")
        await kueue_cluster.exporter.declare(
            [queues.load(room, name, 0.9 if name == "busy" else 0.0) for name in names]
        )
        serving = {**queues.CONSENT, "gpu-autoscaler.io/role": "serving"}
        stated = {"busy": queues.CONSENT, "served": serving, "waits": queues.CONSENT}
        await kueue_cluster.apply([queues.flavor(room), *queues.queue(room, "main", queues.quota(3))])
        for name in names[:3]:
            await kueue_cluster.apply([queues.job(room, name, annotations=stated.get(name))])
            await queues.until_admitted(room, name)
        await kueue_cluster.apply([queues.job(room, "waits", boards=2, annotations=queues.CONSENT)])
        await queues.until_queued(room, "waits")
        await room.until_running(3)
        async with acting(room, await grant_everything(room), name=f"acts-{room.namespace}") as actor:
            service = actor.service
            busy = await service.until_reason(room, "busy", Reason.BELOW_SAVINGS_FLOOR)
            unasked = await service.until_reason(room, "unasked", Reason.NEEDS_CONSENT)
            served = await service.until_reason(room, "served", Reason.NEEDS_CONSENT)
            waits = await service.until_reason(room, "waits", Reason.KUEUE)
            await service.pass_cycles(5)

        assert busy.verdict == "busy"
        assert unasked.detail == "idle, and nobody agreed to its being stopped"
        assert "once stopped nothing here would wake it" in served.detail
        assert (waits.verdict, waits.units) == ("unknown", 0)
        assert "asks 2 gpuconfig.com/gpu, free are 0" in waits.detail
        assert {one.resource for one in writes(kueue_cluster, room)} <= OWN


async def test_whoever_activates_it_again_is_not_fought(kueue_cluster: Cluster) -> None:
    async with open_room(kueue_cluster, "kueue") as room:
        await stage(room)
        async with acting(room, await grant_everything(room), name=f"acts-{room.namespace}") as actor:
            record = await actor.until_state("idle", "verified")
            assert record.action.through is not None
            patch = ("patch", KINDS, record.action.through.name, "--type=merge")
            await kueue_cluster.kubectl("-n", room.namespace, *patch, "-p", '{"spec":{"active":true}}')
            entry = await eventually(
                lambda: entry_of(actor, "idle"), lambda found: not found.changes, what="a reversal"
            )
            await actor.service.pass_cycles(5)
            item = await queues.kueue_workload(room, "idle")

        assert entry.reversals == 1
        assert item is not None
        assert item["spec"]["active"] is True
        assert turned(room) == [False]
        assert_lawful(kueue_cluster, room)


async def test_a_job_that_is_deleted_after_its_release_is_forgotten(kueue_cluster: Cluster) -> None:
    async with open_room(kueue_cluster, "kueue") as room:
        await stage(room)
        async with acting(room, await grant_everything(room), name=f"acts-{room.namespace}") as actor:
            await actor.until_state("idle", "verified")
            await kueue_cluster.kubectl("-n", room.namespace, "delete", "job", "idle", "--wait=true")
            entry = await eventually(
                lambda: entry_of(actor, "idle"), lambda found: not found.changes, what="a forgotten value"
            )

        assert entry.reversals == 0
        assert turned(room) == [False]


DEATHS = [
    Case((at(site, when),), "deactivate")
    for site, when in (
        (Site.LEDGER_INTENT, "after"),
        (Site.CHANGE, "before"),
        (Site.CHANGE, "after"),
        (Site.LEDGER_OUTCOME, "before"),
        (Site.DISOWN, "before"),
        (Site.DISOWN, "after"),
    )
]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def outcomes(kueue_cluster: Cluster) -> dict[str, str]:
    """What went wrong in each case, empty where nothing did."""

    async def play(room: Room, case: Case) -> None:
        await stage(room)
        kubeconfig = await grant_everything(room)
        (death,) = case.deaths
        await run_until_death(room, kubeconfig, name=f"{room.namespace}-dies", death=death)
        async with acting(room, kubeconfig, name=f"{room.namespace}-recovers") as actor:
            await actor.until_state("idle", "verified", timeout_s=240)
            await actor.service.pass_cycles(3)
            records = await actor.records("idle")
            through = records[-1].action.through
        assert through is not None
        await queues.until_admitted(room, "next")
        item = await live(room, KINDS, through.name)
        assert item["spec"]["active"] is False
        assert "gpu-autoscaler" not in managers(item)
        assert turned(room) == [False]
        assert len([one for one in records if one.acted_ms >= 0]) == 1, records
        assert all(not one.is_open for one in records)
        assert_lawful(kueue_cluster, room)

    return await played(kueue_cluster, DEATHS, play)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("case", DEATHS, ids=str)
async def test_a_killed_process_leaves_no_release_half_done(outcomes: dict[str, str], case: Case) -> None:
    assert outcomes[str(case)] == ""
