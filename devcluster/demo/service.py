"""The service under demonstration: a child process with the identity and the rights it would have in a cluster."""

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import msgspec

from autoscaler.model.ledger import Entry
from autoscaler.model.plan import Plan
from devcluster.cluster import Cluster
from devcluster.errors import DevclusterError
from devcluster.manifests import shipped_rights
from devcluster.ports import LOOPBACK, free_ports
from devcluster.processes import Command, Component

ROOT = Path(__file__).resolve().parents[2]
POLICY = ROOT / "config/policy/demo.yaml"
PROGRAM = Path(sys.executable).parent / "gpu-autoscaler"
NAMESPACE = ACCOUNT = "gpu-autoscaler"
_COMMAND_TIMEOUT_S = 60.0


class PlanDocument(msgspec.Struct):
    """What `/api/v1/plan` answers, as far as the demo reads it."""

    generated_at: str
    plan: Plan


class LedgerDocument(msgspec.Struct):
    """What `/api/v1/ledger` answers, as far as the demo reads it."""

    entries: tuple[Entry, ...] = ()


@dataclass(frozen=True)
class CommandResult:
    """How a command of the service's command line ended."""

    exit_code: int
    output: str
    errors: str


class DemoService:
    """The running service and its interface."""

    def __init__(self, component: Component, url: str) -> None:
        self.component = component
        self.url = url
        self._plans = msgspec.json.Decoder(PlanDocument)
        self._ledgers = msgspec.json.Decoder(LedgerDocument)

    async def plan(self, session: aiohttp.ClientSession) -> PlanDocument | None:
        """The newest plan; None while there is none yet."""
        body = await self._body(session, "/api/v1/plan?limit=5000")
        return None if body is None else self._plans.decode(body)

    async def ledger(self, session: aiohttp.ClientSession) -> tuple[Entry, ...] | None:
        """What the ledger holds; None while nobody says."""
        body = await self._body(session, "/api/v1/ledger")
        return None if body is None else self._ledgers.decode(body).entries

    async def readiness(self, session: aiohttp.ClientSession) -> str:
        """What `/readyz?verbose` says."""
        try:
            async with session.get(f"{self.url}/readyz?verbose") as answer:
                return await answer.text()
        except aiohttp.ClientError as error:
            return f"no answer: {error}\n"

    async def _body(self, session: aiohttp.ClientSession, path: str) -> bytes | None:
        try:
            async with session.get(f"{self.url}{path}") as answer:
                return await answer.read() if answer.status == 200 else None
        except aiohttp.ClientError:
            return None


async def start_service(cluster: Cluster, policy_file: Path) -> DemoService:
    """Grants the rights of an acting installation and starts `gpu-autoscaler run` under that ServiceAccount."""
    await cluster.apply(shipped_rights("apply"))
    kubeconfig = await cluster.service_account_kubeconfig(NAMESPACE, ACCOUNT)
    (port,) = free_ports(1)
    cluster.scrape_autoscaler(port)
    component = Component(
        Command(
            name="gpu-autoscaler",
            arguments=[PROGRAM, "run"],
            log_path=cluster.logs_dir / "gpu-autoscaler.log",
            environment={
                "AUTOSCALER_KUBECONFIG": str(kubeconfig),
                "AUTOSCALER_NAMESPACE": NAMESPACE,
                "AUTOSCALER_PROMETHEUS_URL": cluster.prometheus_url,
                "AUTOSCALER_POLICY_FILE": str(policy_file),
                "AUTOSCALER_LISTEN": f"{LOOPBACK}:{port}",
                "AUTOSCALER_CYCLE": "2s",
                "AUTOSCALER_DEBOUNCE": "500ms",
            },
        )
    )
    component.start()
    return DemoService(component, f"http://{LOOPBACK}:{port}")


async def run_command(cluster: Cluster, policy_file: Path, *arguments: str) -> CommandResult:
    """Runs a command of the service's command line under the operator's own kubeconfig."""
    process = await asyncio.create_subprocess_exec(
        PROGRAM,
        *arguments,
        env=os.environ
        | {
            "AUTOSCALER_KUBECONFIG": str(cluster.admin_kubeconfig),
            "AUTOSCALER_NAMESPACE": NAMESPACE,
            "AUTOSCALER_POLICY_FILE": str(policy_file),
        },
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        output, errors = await asyncio.wait_for(process.communicate(), _COMMAND_TIMEOUT_S)
    except BaseException:
        if process.returncode is None:
            process.kill()
        await process.wait()
        raise
    return CommandResult(process.returncode or 0, output.decode(), errors.decode())


async def read_ledger(cluster: Cluster, policy_file: Path) -> tuple[Entry, ...]:
    """What the ledger holds, by the command line: a service in mode recommend does not read it."""
    result = await run_command(cluster, policy_file, "ledger", "-o", "json")
    if result.exit_code:
        raise DevclusterError(f"ledger ended with {result.exit_code}: {result.errors.strip()}")
    return msgspec.json.decode(result.output, type=LedgerDocument).entries
