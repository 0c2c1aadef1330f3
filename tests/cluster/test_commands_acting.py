"""What a person approves is done once, judged again, written down, and can be put back."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from devcluster import Cluster
from devcluster.rooms import Room
from tests.cluster.acting import acting, acting_environment, boards_of, grant_everything, live, managers
from tests.cluster.live_service import PROGRAM
from tests.cluster.polling import eventually
from tests.cluster.stories import half_used, staged

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]
PROTECTED = "karpenter.sh/do-not-disrupt=true"


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    def results(self) -> list[tuple[str, str]]:
        """What became of each act, with the reason code."""
        return [(one["result"], one["reason"]) for one in json.loads(self.out)]


@dataclass(frozen=True)
class Person:
    """Somebody at a shell, with all rights in a room and a policy that only recommends."""

    room: Room
    environment: Mapping[str, str]

    async def types(self, *arguments: str | Path) -> Ended:
        """Runs a command with no terminal."""
        process = await asyncio.create_subprocess_exec(
            PROGRAM,
            *map(str, arguments),
            env={**os.environ, **self.environment},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        return Ended(process.returncode or 0, out.decode(), err.decode())

    async def plans(self, path: Path) -> Path:
        """A plan file with the one change that the room's load calls for."""

        async def plan() -> Ended:
            return await self.types("plan", "-o", "yaml")

        made = await eventually(
            plan,
            lambda ended: bool(yaml.safe_load(ended.out or "{}").get("actions")),
            what="a planned change",
        )
        await asyncio.to_thread(path.write_text, made.out)
        return path

    async def ours(self) -> list[dict[str, Any]]:
        """The values of ours in the room, as `ledger` tells."""
        ended = await self.types("ledger", "-o", "json")
        assert ended.code == 0, ended.err
        return [change for entry in json.loads(ended.out)["entries"] for change in entry["changes"]]

    async def deployment(self) -> dict[str, Any]:
        """The Deployment as it is now."""
        return await live(self.room, "deployment", "app")


async def stage(room: Room) -> None:
    """A Deployment that uses one of its two boards."""
    await room.add_nodes(1, boards=4)
    await room.cluster.exporter.declare([half_used(room)])
    await room.cluster.apply([room.deployment("app", boards=2)])
    await room.until_running(1)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def people(cluster: Cluster) -> AsyncIterator[dict[str, Person]]:
    stories = ["approved", "changed", "again", "served", "verified", "protected", "patched"]
    async with staged(cluster, dict.fromkeys(stories, stage)) as rooms:
        found = {}
        for name, room in rooms.items():
            environment = acting_environment(room, await grant_everything(room), 0)
            found[name] = Person(room, {**environment, "AUTOSCALER_MODE": "recommend"})
        yield found


async def test_an_approved_plan_is_done_and_undo_leaves_the_object_as_it_was(
    people: dict[str, Person], tmp_path: Path
) -> None:
    person = people["approved"]
    before = await person.deployment()
    plan = await person.plans(tmp_path / "plan.yaml")

    unasked = await person.types("apply", "-f", plan)
    await person.types("pause", "--because", "a look first")
    paused = await person.types("apply", "-f", plan, "--yes", "-o", "json")
    untouched = await person.deployment()
    await person.types("resume")
    applied = await person.types("apply", "-f", plan, "--yes")
    after, ours = await person.deployment(), await person.ours()
    twice = await person.types("apply", "-f", plan, "--yes", "-o", "json")
    undone = await person.types("undo", f"{person.room.namespace}/app", "--yes", "-o", "json")
    restored = await person.deployment()

    assert (unasked.code, unasked.out) == (2, "")
    assert "say --yes" in unasked.err
    assert (paused.code, paused.results()) == (1, [("refused", "Paused")])
    assert "a look first" in paused.out
    assert untouched["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    assert applied.code == 0, applied.out + applied.err
    assert applied.out == f"done       Deployment {person.room.namespace}/app  boards per pod 2 -> 1\n"
    assert "no service leads in mode apply" in applied.err
    assert boards_of(after) == 1
    assert [(one["original"], one["current"]) for one in ours] == [(2, 1)]
    assert twice.code == 1
    assert [result for result, _ in twice.results()] == ["conflict"]
    assert (undone.code, undone.results()) == (0, [("done", "")])
    assert restored["spec"] == before["spec"]
    assert "gpu-autoscaler" not in managers(after) | managers(restored)
    assert await person.ours() == []


async def test_what_changed_since_the_plan_is_refused_with_the_guards_reason(
    people: dict[str, Person], tmp_path: Path
) -> None:
    person = people["changed"]
    room = person.room
    plan = await person.plans(tmp_path / "plan.yaml")

    await room.cluster.kubectl("-n", room.namespace, "annotate", "deployment", "app", PROTECTED)
    protected = await person.types("apply", "-f", plan, "--yes", "-o", "json")
    await room.cluster.kubectl("-n", room.namespace, "delete", "deployment", "app", "--wait=true")
    await room.cluster.apply([room.deployment("app", boards=2)])
    other = await person.types("apply", "-f", plan, "--yes", "-o", "json")

    assert (protected.code, protected.results()) == (1, [("refused", "Protected")])
    assert (other.code, other.results()) == (1, [("gone", "")])
    assert boards_of(await person.deployment()) == 2
    assert await person.ours() == []


async def test_what_its_owner_applied_again_is_not_put_back(
    people: dict[str, Person], tmp_path: Path
) -> None:
    person = people["again"]
    room = person.room
    plan = await person.plans(tmp_path / "plan.yaml")
    applied = await person.types("apply", "-f", plan, "--yes")
    assert applied.code == 0, applied.out + applied.err

    await room.cluster.apply([room.deployment("app", boards=3)])
    undone = await person.types("undo", "--all", "--yes", "-o", "json")

    assert (undone.code, undone.results()) == (0, [("superseded", "Superseded")])
    assert boards_of(await person.deployment()) == 3
    assert await person.ours() == []


async def test_undo_works_beside_a_service_that_acts_and_then_leaves_it_alone(
    people: dict[str, Person],
) -> None:
    person = people["served"]
    room = person.room
    before = await person.deployment()
    kubeconfig = await grant_everything(room)
    async with acting(room, kubeconfig, name=f"served-{room.namespace}") as actor:
        await actor.until_state("app", "verified")
        undone = await person.types("undo", f"{room.namespace}/app", "--yes", "-o", "json")
        await actor.service.pass_cycles(4)
        records = await actor.records("app")
    after = await person.deployment()

    assert (undone.code, undone.results()) == (0, [("done", "")])
    assert after["spec"] == before["spec"]
    assert [(one.actor, one.state, one.term == 0) for one in records] == [
        ("service", "verified", False),
        ("undo", "verified", True),
    ]
    assert await person.ours() == []


async def test_what_a_person_applied_is_verified_by_the_service_that_leads(
    people: dict[str, Person], tmp_path: Path
) -> None:
    person = people["verified"]
    room = person.room
    plan = await person.plans(tmp_path / "plan.yaml")
    kubeconfig = await grant_everything(room)
    # It leads and acts, only not with what is applied here.
    environment = {"AUTOSCALER_MODE": "recommend", "AUTOSCALER_MODES_SCALE_IN": "apply"}
    async with acting(room, kubeconfig, name=f"verifying-{room.namespace}", environment=environment) as actor:
        await eventually(
            lambda: asyncio.to_thread(list, actor.service.logged("ledger_ours")),
            bool,
            what="a leader that acts",
        )
        applied = await person.types("apply", "-f", plan, "--yes")
        record = await actor.until_state("app", "verified")
        table = await person.types("ledger")

    assert (applied.code, applied.err) == (0, "")
    assert (record.actor, record.action.before, record.action.after) == ("apply", 2, 1)
    assert "boards per pod 1 (was 2)" in table.out
    assert record.ready_ms > 0


async def test_a_protected_workload_is_left_alone_until_the_word_is_taken_back(
    people: dict[str, Person], tmp_path: Path
) -> None:
    person = people["protected"]
    name = f"{person.room.namespace}/app"
    await person.plans(tmp_path / "plan.yaml")

    async def row() -> dict[str, Any]:
        return dict(json.loads((await person.types("explain", name, "-o", "json")).out))

    set_ = await person.types("protect", name, "--for", "4h", "--because", "a release")
    protected = await row()
    annotations = (await person.deployment())["metadata"]["annotations"]
    taken_back = await person.types("protect", name, "--off")
    free, left = await row(), (await person.deployment())["metadata"].get("annotations", {})
    nobody = await person.types("protect", f"{person.room.namespace}/nobody")

    until = annotations["gpu-autoscaler.io/do-not-disrupt"]
    assert (set_.code, set_.out) == (0, f"Deployment {name} is left alone until {until}\n"), set_.err
    assert protected["reason"] == "Protected"
    assert protected["detail"].endswith("(a release)")
    assert (
        taken_back.out
        == f"Deployment {name} is no longer protected (it had gpu-autoscaler.io/do-not-disrupt={until})\n"
    )
    assert free["action"] is not None
    assert not any(key.startswith("gpu-autoscaler.io/") for key in left)
    assert nobody.code == 3


async def test_a_plan_as_patches_is_what_kubectl_takes(people: dict[str, Person], tmp_path: Path) -> None:
    person = people["patched"]
    room = person.room
    await person.plans(tmp_path / "plan.yaml")
    patch = tmp_path / "patch.yaml"
    patched = await person.types("plan", "-o", "patch")
    await asyncio.to_thread(patch.write_text, patched.out)

    await room.cluster.kubectl("-n", room.namespace, "patch", "deployment", "app", "--patch-file", str(patch))

    assert patched.code == 0
    assert boards_of(await person.deployment()) == 1
