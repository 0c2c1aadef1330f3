"""The service under demonstration: a child process with the identity and the rights it would have in a cluster."""

import sys
from pathlib import Path

import aiohttp
import msgspec
import yaml

from autoscaler.model.plan import Plan
from devcluster.cluster import Cluster
from devcluster.ports import LOOPBACK, free_ports
from devcluster.processes import Command, Component

ROOT = Path(__file__).resolve().parents[2]
RIGHTS = ROOT / "k8s/base/read-only.yaml"
POLICY = ROOT / "config/policy/demo.yaml"
NAMESPACE = ACCOUNT = "gpu-autoscaler"


class PlanDocument(msgspec.Struct):
    """What `/api/v1/plan` answers, as far as the demo reads it."""

    generated_at: str
    plan: Plan


class DemoService:
    """The running service and its interface."""

    def __init__(self, component: Component, url: str) -> None:
        self.component = component
        self.url = url
        self._decoder = msgspec.json.Decoder(PlanDocument)

    async def plan(self, session: aiohttp.ClientSession) -> PlanDocument | None:
        """The newest plan; None while there is none yet."""
        try:
            async with session.get(f"{self.url}/api/v1/plan?limit=5000") as answer:
                return self._decoder.decode(await answer.read()) if answer.status == 200 else None
        except aiohttp.ClientError:
            return None

    async def readiness(self, session: aiohttp.ClientSession) -> str:
        """What `/readyz?verbose` says."""
        try:
            async with session.get(f"{self.url}/readyz?verbose") as answer:
                return await answer.text()
        except aiohttp.ClientError as error:
            return f"no answer: {error}\n"


async def start_service(cluster: Cluster) -> DemoService:
    """Grants the shipped read-only rights and starts `gpu-autoscaler run` under that ServiceAccount."""
    await cluster.apply([item for item in yaml.safe_load_all(RIGHTS.read_text()) if item])
    kubeconfig = await cluster.service_account_kubeconfig(NAMESPACE, ACCOUNT)
    (port,) = free_ports(1)
    cluster.scrape_autoscaler(port)
    component = Component(
        Command(
            name="gpu-autoscaler",
            arguments=[Path(sys.executable).parent / "gpu-autoscaler", "run"],
            log_path=cluster.logs_dir / "gpu-autoscaler.log",
            environment={
                "AUTOSCALER_KUBECONFIG": str(kubeconfig),
                "AUTOSCALER_PROMETHEUS_URL": cluster.prometheus_url,
                "AUTOSCALER_POLICY_FILE": str(POLICY),
                "AUTOSCALER_LISTEN": f"{LOOPBACK}:{port}",
                "AUTOSCALER_CYCLE": "3s",
                "AUTOSCALER_DEBOUNCE": "500ms",
            },
        )
    )
    component.start()
    return DemoService(component, f"http://{LOOPBACK}:{port}")
