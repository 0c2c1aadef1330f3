"""A service that may act, in a room of its own: lease, ledger and everything it may touch are in the room's namespace."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from autoscaler.act.contract import Site
from autoscaler.model.ledger import Entry, Record
from devcluster import Cluster
from devcluster.ports import LOOPBACK, free_ports
from devcluster.processes import Command, Component
from devcluster.rooms import Room, open_room
from tests import audit_law
from tests.cluster.live_service import ACCOUNT, PROGRAM, QUICK_POLICY, LiveService
from tests.cluster.polling import at_once, eventually

AT_ONCE = 5
"""Services that two cores carry beside a control plane."""
COOLDOWN_S = 60.0
SHORT = {
    "AUTOSCALER_MODE": "apply",
    "AUTOSCALER_LEADER_ELECTION": "true",
    "AUTOSCALER_GUARDS_QUIET_PERIOD": "0s",
    "AUTOSCALER_GUARDS_PROBATION": "2s",
    "AUTOSCALER_GUARDS_READY_DEADLINE": "40s",
    "AUTOSCALER_GUARDS_COOLDOWN": f"{COOLDOWN_S:g}s",
    "AUTOSCALER_GUARDS_BACKOFF": f"{COOLDOWN_S:g}s",
}
"""The demonstration's policy with the waits of acting cut to seconds."""


@dataclass(frozen=True)
class Actor:
    """An acting service and its room."""

    service: LiveService
    room: Room

    async def entries(self) -> list[Entry]:
        """The ledger's entries as the API shows them; none while nobody leads."""
        status, text = await self.service.get("/api/v1/ledger")
        return msgspec.json.decode(text, type=_Ledger).entries if status == 200 else []

    async def records(self, name: str) -> list[Record]:
        """The acts on one workload, oldest first."""
        return [
            record for entry in await self.entries() if entry.ref.name == name for record in entry.records
        ]

    async def until_state(self, name: str, state: str, *, timeout_s: float = 120) -> Record:
        """The newest act on a workload once it is in a state."""
        found = await eventually(
            lambda: self.records(name),
            lambda records: bool(records) and records[-1].state == state,
            what=f"{self.room.namespace}/{name} to be {state}",
            timeout_s=timeout_s,
        )
        return found[-1]


class _Ledger(msgspec.Struct):
    entries: list[Entry] = []


async def grant_everything(room: Room) -> Path:
    """A ServiceAccount of the room that may do everything; what the shipped rights allow is another test's business."""
    where = {"namespace": room.namespace, "name": ACCOUNT}
    api = "rbac.authorization.k8s.io"
    binding = {
        "apiVersion": f"{api}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"{ACCOUNT}-{room.namespace}"},
        "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount"} | where],
    }
    await room.cluster.apply([{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": where}, binding])
    return await room.cluster.service_account_kubeconfig(room.namespace, ACCOUNT)


def acting_environment(room: Room, kubeconfig: Path, port: int, **more: str) -> dict[str, str]:
    """The settings of an acting service that sees one room."""
    return {
        **QUICK_POLICY,
        **SHORT,
        "AUTOSCALER_KUBECONFIG": str(kubeconfig),
        "AUTOSCALER_PROMETHEUS_URL": room.cluster.prometheus_url,
        "AUTOSCALER_LISTEN": f"{LOOPBACK}:{port}",
        "AUTOSCALER_CYCLE": "1s",
        "AUTOSCALER_DEBOUNCE": "100ms",
        "AUTOSCALER_NAMESPACES": room.namespace,
        "AUTOSCALER_NAMESPACE": room.namespace,
        **more,
    }


def acting_component(
    room: Room, kubeconfig: Path, *, name: str, die_at: str = "", environment: Mapping[str, str] | None = None
) -> tuple[Component, str]:
    """A service process, not yet started, and its address; `die_at` ends it as by kill -9 at one of its requests."""
    (port,) = free_ports(1)
    settings = acting_environment(room, kubeconfig, port, AUTOSCALER_IDENTITY=name, **(environment or {}))
    arguments: list[str | Path] = [PROGRAM, "run"]
    if die_at:
        settings["DIE_AT"] = die_at
        arguments = [sys.executable, "-m", "tests.cluster.dying_service"]
    command = Command(
        name=name,
        arguments=arguments,
        log_path=room.cluster.logs_dir / f"{name}.log",
        environment=settings,
    )
    return Component(command), f"http://{LOOPBACK}:{port}"


@asynccontextmanager
async def acting(
    room: Room, kubeconfig: Path, *, name: str, environment: Mapping[str, str] | None = None
) -> AsyncIterator[Actor]:
    """A service that acts; stopped afterwards as a kubelet would."""
    component, url = acting_component(room, kubeconfig, name=name, environment=environment)
    component.start()
    try:
        yield Actor(LiveService(component, url), room)
    finally:
        await component.stop(grace_s=25)


async def live(room: Room, kind: str, name: str) -> dict[str, Any]:
    """An object as it is now, managedFields and all."""
    text = await room.cluster.kubectl(
        "-n", room.namespace, "get", kind, name, "-o", "json", "--show-managed-fields"
    )
    return dict(json.loads(text))


def boards_of(item: Mapping[str, Any]) -> int:
    """The boards that an object's template states in its first container."""
    (amount,) = item["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"].values()
    return int(amount)


def managers(item: Mapping[str, Any]) -> set[str]:
    """Who is named in managedFields."""
    return {entry["manager"] for entry in item["metadata"].get("managedFields", [])}


def writes(cluster: Cluster, room: Room) -> list[audit_law.Write]:
    """Every changing request of the room's service, in the order in which the server received them."""
    user = f"system:serviceaccount:{room.namespace}:{ACCOUNT}"
    return audit_law.writes_of(cluster.audit_events(), user)


def changes(
    cluster: Cluster, room: Room, accepts: Callable[[audit_law.Write], bool]
) -> list[audit_law.Write]:
    """The accepted ones that were no rehearsal and are of the kind that is asked for."""
    return [one for one in writes(cluster, room) if one.accepted and not one.dry_run and accepts(one)]


def assert_lawful(cluster: Cluster, room: Room, *, cooldown_s: float = COOLDOWN_S) -> None:
    """The whole history of the room's service keeps the law."""
    history = writes(cluster, room)
    assert history, "the service wrote nothing at all"
    assert audit_law.violations(history, cooldown_s=cooldown_s) == []


@dataclass(frozen=True)
class Case:
    """Where the processes die, one after the other, and which lever they were pulling."""

    deaths: tuple[str, ...]
    lever: str = "template"

    def __str__(self) -> str:
        return f"{self.lever} {' then '.join(self.deaths)}"


def at(site: Site, when: str, count: int = 1) -> str:
    return f"{site.value}:{when}:{count}"


async def played(
    cluster: Cluster, cases: Iterable[Case], play: Callable[[Room, Case], Awaitable[None]]
) -> dict[str, str]:
    """What went wrong in each case, empty where nothing did; each has a room, a few are played at a time."""
    gate, found = asyncio.Semaphore(AT_ONCE), dict[str, str]()

    async def one(case: Case) -> None:
        async with gate, open_room(cluster, "kill") as room:
            try:
                await play(room, case)
            except AssertionError as error:
                found[str(case)] = f"{room.namespace}: {error}"
            else:
                found[str(case)] = ""

    async with asyncio.TaskGroup() as group:
        for case in cases:
            group.create_task(one(case), name=str(case))
    return found


async def run_until_death(
    room: Room, kubeconfig: Path, *, name: str, death: str, environment: Mapping[str, str] | None = None
) -> None:
    """Runs a service until it has killed itself at its moment."""
    component, _ = acting_component(room, kubeconfig, name=name, die_at=death, environment=environment)
    component.start()
    try:
        await eventually(
            at_once(lambda: component.exit_code),
            lambda code: code is not None,
            what=f"death at {death}",
            timeout_s=180,
        )
    finally:
        component.kill()
    assert component.exit_code == -9, component.exit_code
