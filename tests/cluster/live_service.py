"""The product as its users have it: `gpu-autoscaler` as a child process, its HTTP interface, its log and its commands."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from autoscaler.model.plan import ExplainRow, Plan
from autoscaler.model.reasons import Reason
from devcluster import Cluster
from devcluster.manifests import ShippedMode, shipped_rights
from devcluster.ports import LOOPBACK, free_ports
from devcluster.processes import Command, Component
from devcluster.prometheus import EXPORTER_JOB, OTHER_JOB
from devcluster.rooms import Room
from tests.cluster.polling import eventually

ROOT = Path(__file__).parents[2]
PROGRAM = Path(sys.executable).parent / "gpu-autoscaler"
NAMESPACE = ACCOUNT = "gpu-autoscaler"

QUICK_POLICY = {
    "AUTOSCALER_POLICY_FILE": str(ROOT / "config/policy/demo.yaml"),
    "AUTOSCALER_EVIDENCE_WINDOW": "10s",
    "AUTOSCALER_EVIDENCE_INTERVAL": "1s",
    # The tests' own exporters publish beside the scenario's.
    "AUTOSCALER_EVIDENCE_SOURCE_JOB": f"{EXPORTER_JOB}|{OTHER_JOB}",
    "AUTOSCALER_EVIDENCE_MIN_COVERAGE": "0.8",  # a busy machine loses a scrape now and then
    "AUTOSCALER_EVIDENCE_FLEET_COVERAGE": "0",  # rooms without evidence must not blind the others
    "AUTOSCALER_EVIDENCE_FLEET_FALL": "1",  # nor rooms that lose theirs
    "AUTOSCALER_EVIDENCE_FLEET_FALL_WITHIN": "5s",
    "AUTOSCALER_METHODS_IDLE_FLOOR": "10s",
    "AUTOSCALER_METHODS_START_GRACE": "1s",
    "AUTOSCALER_NEED_CONFIDENCE_UNIT": "1s",
}
"""The demonstration's policy with windows as short as one scrape a second allows."""


class PlanDocument(msgspec.Struct):
    """What `/api/v1/plan` answers."""

    decision_id: str
    mode: str
    plan: Plan


class _RowsDocument(msgspec.Struct):
    workloads: list[ExplainRow] = []


@dataclass(frozen=True)
class LiveService:
    """A service process."""

    component: Component
    url: str

    async def get(self, path: str) -> tuple[int, str]:
        """Status and text of an answer; status 0 when nobody answers."""
        try:
            async with aiohttp.ClientSession(self.url) as session, session.get(path) as answer:
                return answer.status, await answer.text()
        except aiohttp.ClientConnectionError as error:
            return 0, str(error)

    async def download(self, path: str) -> tuple[str, bytes]:
        """File name and content of an answer that is a file."""
        async with aiohttp.ClientSession(self.url) as session, session.get(path) as answer:
            answer.raise_for_status()
            named = answer.content_disposition
            return (named.filename if named else None) or "", await answer.read()

    async def plan(self) -> PlanDocument:
        """The newest plan; waits for the first."""
        _, text = await eventually(
            lambda: self.get("/api/v1/plan?limit=5000"), lambda seen: seen[0] == 200, what="a plan"
        )
        return msgspec.json.decode(text, type=PlanDocument)

    async def rows(self, namespace: str, name: str) -> list[ExplainRow]:
        """What `explain` says of a name."""
        status, text = await self.get(f"/api/v1/explain/{namespace}/{name}")
        return msgspec.json.decode(text, type=_RowsDocument).workloads if status == 200 else []

    async def until_reason(
        self, room: Room, name: str, reason: Reason, *, timeout_s: float = 60
    ) -> ExplainRow:
        """The only row of a name once its reason is the one given."""

        def has_reason(rows: list[ExplainRow]) -> bool:
            return [row.reason for row in rows] == [reason]

        found = await eventually(
            lambda: self.rows(room.namespace, name),
            has_reason,
            what=f"{reason} of {room.namespace}/{name}",
            timeout_s=timeout_s,
        )
        return found[0]

    async def until_ready(self, *, timeout_s: float = 60) -> str:
        """What `/readyz?verbose` says once it says yes."""
        _, text = await eventually(
            lambda: self.get("/readyz?verbose"),
            lambda seen: seen[0] == 200,
            what="a ready service",
            timeout_s=timeout_s,
        )
        return text

    async def pass_cycles(self, count: int) -> None:
        """Waits until so many more plans were made."""

        async def number() -> int:
            return int((await self.plan()).decision_id.partition("-")[0])

        first = await number()
        await eventually(number, lambda seen: seen >= first + count, what=f"{count} more cycles")

    def logged(self, message: str) -> Iterator[dict[str, Any]]:
        """The log's lines with a message."""
        for line in self.component.command.log_path.read_text().splitlines():
            if line.startswith("{") and (entry := json.loads(line))["msg"] == message:
                yield entry

    def decisions(self, room: Room) -> list[dict[str, Any]]:
        """Every action ever planned for a room."""
        return [entry for entry in self.logged("decision") if entry["ns"] == room.namespace]


@asynccontextmanager
async def running_service(
    cluster: Cluster, kubeconfig: Path, *, name: str, environment: Mapping[str, str] | None = None
) -> AsyncIterator[LiveService]:
    """`gpu-autoscaler run` under a kubeconfig; stopped afterwards as a kubelet would."""
    (port,) = free_ports(1)
    component = Component(
        Command(
            name=name,
            arguments=[PROGRAM, "run"],
            log_path=cluster.logs_dir / f"{name}.log",
            environment={
                **QUICK_POLICY,
                "AUTOSCALER_KUBECONFIG": str(kubeconfig),
                "AUTOSCALER_PROMETHEUS_URL": cluster.prometheus_url,
                "AUTOSCALER_LISTEN": f"{LOOPBACK}:{port}",
                "AUTOSCALER_CYCLE": "1s",
                "AUTOSCALER_DEBOUNCE": "100ms",
                **(environment or {}),
            },
        )
    )
    component.start()
    try:
        yield LiveService(component, f"http://{LOOPBACK}:{port}")
    finally:
        await component.stop(grace_s=10)


async def grant_shipped_rights(cluster: Cluster, mode: ShippedMode = "recommend") -> Path:
    """Applies the rights that are shipped for a mode; a kubeconfig of the ServiceAccount that has them."""
    await cluster.apply(shipped_rights(mode))
    return await cluster.service_account_kubeconfig(NAMESPACE, ACCOUNT)


def rights_without(room: Room, *resources: str) -> list[dict[str, Any]]:
    """The shipped rights less some resources, under names of the room's own."""
    where = {"namespace": room.namespace, "name": ACCOUNT}
    own = {"name": f"{ACCOUNT}-{room.namespace}"}
    shipped = next(item for item in shipped_rights("recommend") if item["kind"] == "ClusterRole")
    rules = [
        {**rule, "resources": [one for one in rule["resources"] if one not in resources]}
        for rule in shipped["rules"]
    ]
    api = "rbac.authorization.k8s.io"
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": where},
        {"apiVersion": f"{api}/v1", "kind": "ClusterRole", "metadata": own, "rules": rules},
        {
            "apiVersion": f"{api}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": own,
            "roleRef": {"apiGroup": api, "kind": "ClusterRole"} | own,
            "subjects": [{"kind": "ServiceAccount"} | where],
        },
    ]


async def run_command(
    *arguments: str | Path, environment: Mapping[str, str], alone: bool = False
) -> tuple[bytes, str]:
    """Stdout and stderr of a `gpu-autoscaler` command that succeeds; `alone`: with no other variables at all."""
    process = await asyncio.create_subprocess_exec(
        PROGRAM,
        *map(str, arguments),
        env=dict(environment) if alone else {**os.environ, **environment},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return output, errors.decode()


def only_row(plan: Plan, room: Room, name: str) -> ExplainRow:
    """The one row of a name in a plan."""
    (row,) = rows_of(plan.rows, room, name)
    return row


def rows_of(rows: Iterable[ExplainRow], room: Room, name: str) -> list[ExplainRow]:
    """The rows of a name."""
    return [row for row in rows if (row.workload.namespace, row.workload.name) == (room.namespace, name)]
