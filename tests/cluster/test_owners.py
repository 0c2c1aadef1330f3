"""Owners keep applying their manifests, by whatever tool: they never meet a conflict with us, and what they reset is theirs."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from autoscaler.act.executor import Executor
from autoscaler.act.ledger import ConfigMapLedger
from autoscaler.act.undo import undo_all
from autoscaler.act.writer import Writer
from autoscaler.kube.config import from_kubeconfig
from autoscaler.kube.session import KubeSession
from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.plan import Action, Refusal
from autoscaler.model.policy import Guards
from autoscaler.model.reasons import Reason
from devcluster import Cluster
from devcluster.rooms import Room
from tests.cluster.acting import acting, assert_lawful, boards_of, grant_everything, live, managers
from tests.cluster.polling import eventually
from tests.cluster.stories import half_used, staged

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(480)]

_any: "msgspec.json.Decoder[Any]" = msgspec.json.Decoder()
Apply = Callable[[Room, dict[str, Any]], Awaitable[None]]


async def client_side(room: Room, manifest: dict[str, Any]) -> None:
    """`kubectl apply`."""
    await room.cluster.apply([manifest])


async def server_side(room: Room, manifest: dict[str, Any]) -> None:
    """`kubectl apply --server-side` without force, as Helm 4 and Flux apply."""
    await room.cluster.kubectl(
        "apply", "--server-side", "--field-manager=deployer", "-f", "-", input=json.dumps(manifest)
    )


async def three_way(room: Room, manifest: dict[str, Any]) -> None:
    """As Helm 3 upgrades: a strategic-merge patch of what the live object has otherwise than the manifest."""
    name = manifest["metadata"]["name"]
    found = await room.cluster.kubectl(
        "-n", room.namespace, "get", "deployment", name, "--ignore-not-found", "-o", "name"
    )
    if not found.strip():
        await room.cluster.kubectl("create", "--field-manager=helm", "-f", "-", input=json.dumps(manifest))
        return
    patch = {key: manifest[key] for key in ("metadata", "spec")}
    await room.cluster.kubectl(
        *("-n", room.namespace, "patch", "deployment", name, "--field-manager=helm"),
        *("--type=strategic", "-p", json.dumps(patch)),
    )


APPLIERS: dict[str, Apply] = {"client-side": client_side, "server-side": server_side, "three-way": three_way}


def manifest_of(room: Room, *, boards: int = 2, note: str = "first") -> dict[str, Any]:
    manifest = room.deployment("app", boards=boards)
    manifest["spec"]["template"]["metadata"]["annotations"] = {"note": note}
    return manifest


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def rooms(cluster: Cluster) -> AsyncIterator[dict[str, Room]]:
    def stage(apply: Apply) -> Callable[[Room], Any]:
        async def staging(room: Room) -> None:
            await room.add_nodes(1, boards=6)
            await room.cluster.exporter.declare([half_used(room)])
            await apply(room, manifest_of(room))
            await room.until_running(1)

        return staging

    stages = {name: stage(apply) for name, apply in APPLIERS.items()}
    stages |= {f"undo-{name}": stage(apply) for name, apply in APPLIERS.items()}
    async with staged(cluster, stages) as opened:
        yield opened


async def quick_reversals(cluster: Cluster, room: Room, apply: Apply) -> None:
    """The owner puts the change back twice; after the second time we stop."""
    kubeconfig = await grant_everything(room)
    environment = {"AUTOSCALER_GUARDS_COOLDOWN": "1s", "AUTOSCALER_GUARDS_BACKOFF": "1s"}
    async with acting(room, kubeconfig, name=f"owner-{room.namespace}", environment=environment) as actor:
        for times in (1, 2):
            await eventually(
                lambda: actor.records("app"),
                lambda found, times=times: sum(one.state == "verified" for one in found) == times,  # type: ignore[misc]
                what=f"act number {times}",
            )
            assert boards_of(await live(room, "deployment", "app")) == 1
            await apply(room, manifest_of(room))
            assert boards_of(await live(room, "deployment", "app")) == 2
            await eventually(
                actor.entries,
                lambda found, times=times: [one.reversals for one in found] == [times],  # type: ignore[misc]
                what=f"reversal number {times}",
            )
        await actor.service.until_reason(room, "app", Reason.CONTESTED)
        await actor.service.pass_cycles(5)
        records = await actor.records("app")
        (entry,) = await actor.entries()

    assert len(records) == 2
    assert entry.changes == ()
    item = await live(room, "deployment", "app")
    assert boards_of(item) == 2
    assert "gpu-autoscaler" not in managers(item)
    assert_lawful(cluster, room, cooldown_s=1)


@pytest.mark.parametrize("name", APPLIERS)
async def test_who_resets_our_change_is_not_fought_and_after_two_times_it_is_contested(
    cluster: Cluster, rooms: dict[str, Room], name: str
) -> None:
    await quick_reversals(cluster, rooms[name], APPLIERS[name])


class Person:
    """The authority of a command."""

    term = 0
    holder = "a test"

    def remaining_s(self) -> float:
        return 30.0


@asynccontextmanager
async def at_the_desk(room: Room) -> AsyncIterator[tuple[ConfigMapLedger, Executor, Writer]]:
    """Ledger, executor and writer of one person, under all rights."""
    access = await from_kubeconfig(str(await grant_everything(room)))
    async with KubeSession(access) as session:
        await session.get_json("/version", None, _any)

        def now_ms() -> int:
            return session.server_time_ms() or 0

        ledger = ConfigMapLedger(namespace=room.namespace, now_ms=now_ms, guards=Guards)
        await ledger.load(session)
        yield ledger, Executor(ledger, now_ms=now_ms), Writer(session, Person())


async def halving(room: Room, kind: str = "deployment", name: str = "app") -> Action:
    item = await live(room, kind, name)
    template = item["spec"].get("jobTemplate", item)
    return Action(
        id="halving",
        method="right-size",
        reason=Reason.RIGHT_SIZED,
        lever="template",
        target=WorkloadRef("apps", "Deployment", room.namespace, "app"),
        uid=item["metadata"]["uid"],
        resource_version=item["metadata"]["resourceVersion"],
        resource="gpuconfig.com/gpu",
        container="main",
        before=boards_of(template),
        after=1,
        saved_milli_boards=1000,
        because="a test says so",
    )


@pytest.mark.parametrize("name", APPLIERS)
async def test_an_owner_who_applies_between_plan_and_act_wins_and_after_an_undo_applies_as_ever(
    rooms: dict[str, Room], name: str
) -> None:
    room, apply = rooms[f"undo-{name}"], APPLIERS[name]
    async with at_the_desk(room) as (ledger, executor, writer):
        planned = await halving(room)

        async def meanwhile(action: Action) -> Action | Refusal:
            await apply(room, manifest_of(room, note="changed meanwhile"))
            return action

        beaten = await executor.execute(planned, writer, actor="apply", recheck=meanwhile)
        ledger_then = dict(ledger.entries)
        note_then = (await live(room, "deployment", "app"))["spec"]["template"]["metadata"]["annotations"]

        await room.cluster.kubectl(
            "-n", room.namespace, "rollout", "status", "deployment/app", "--timeout=60s"
        )
        before = await live(room, "deployment", "app")

        async def unchanged(action: Action) -> Action | Refusal:
            return action

        done = await executor.execute(await halving(room), writer, actor="apply", recheck=unchanged)
        between = await live(room, "deployment", "app")

        async def put_back() -> dict[str, Any]:
            await undo_all(ledger, executor, writer)
            return await live(room, "deployment", "app")

        # While the rollout runs its controller writes the status, and one try may meet a conflict.
        after = await eventually(
            put_back, lambda item: boards_of(item) == boards_of(before), what="what was there before"
        )

    assert (beaten.kind, ledger_then, note_then["note"]) == ("conflict", {}, "changed meanwhile")
    assert (done.kind, boards_of(between)) == ("done", 1)
    assert after["spec"] == before["spec"]
    assert "gpu-autoscaler" not in managers(after) | managers(between)
    await apply(room, manifest_of(room, note="changed meanwhile"))
    assert boards_of(await live(room, "deployment", "app")) == 2
    await apply(room, manifest_of(room, boards=3, note="changed"))
    changed = await live(room, "deployment", "app")
    assert boards_of(changed) == 3
    assert changed["spec"]["template"]["metadata"]["annotations"] == {"note": "changed"}


async def test_a_cron_job_gets_another_size_for_its_next_run_and_its_former_one_back(room: Room) -> None:
    manifest = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly", "namespace": room.namespace},
        "spec": {
            "schedule": "0 2 1 1 *",
            "jobTemplate": {
                "spec": {"template": {"spec": {**room.pod_spec(4), "restartPolicy": "OnFailure"}}}
            },
        },
    }
    await client_side(room, manifest)
    before = await live(room, "cronjob", "nightly")
    planned = msgspec.structs.replace(
        await halving(room, "cronjob", "nightly"),
        target=WorkloadRef("batch", "CronJob", room.namespace, "nightly"),
    )
    async with at_the_desk(room) as (ledger, executor, writer):

        async def unchanged(action: Action) -> Action | Refusal:
            return action

        done = await executor.execute(planned, writer, actor="apply", recheck=unchanged)
        between = await live(room, "cronjob", "nightly")
        await undo_all(ledger, executor, writer)
        after = await live(room, "cronjob", "nightly")
    await server_side(room, {**manifest, "metadata": {**manifest["metadata"], "labels": {"mine": "still"}}})

    assert done.kind == "done"
    assert boards_of(between["spec"]["jobTemplate"]) == 1
    assert after["spec"] == before["spec"]
    assert "gpu-autoscaler" not in managers(after) | managers(between)
