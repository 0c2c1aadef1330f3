"""The real service, whole, in this process, against a synthetic cluster and metrics store in processes of their own."""

import asyncio
import contextlib
import json
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp

from autoscaler.kube.config import ClusterAccess
from autoscaler.service import app
from autoscaler.service.logs import configure_logs
from autoscaler.service.settings import load_settings
from benchmarks.servers import server_process

DEADLINE_S: Final = 900.0
WINDOWS: Final = {"AUTOSCALER_EVIDENCE_WINDOW": "60m", "AUTOSCALER_METHODS_IDLE_FLOOR": "60m"}
"""Windows of 60 minutes; idleness is proven over no less."""

_KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: bench
contexts: [{{name: bench, context: {{cluster: bench, user: bench}}}}]
clusters: [{{name: bench, cluster: {{server: "{url}"}}}}]
users: [{{name: bench, user: {{token: bench}}}}]
"""


@dataclass(frozen=True)
class Peers:
    """Where the two servers listen, and the environment of a service that reads them."""

    api_url: str
    store_url: str
    folder: Path
    environ: Mapping[str, str]


@contextmanager
def peers(pods: int, **environ: str) -> Iterator[Peers]:
    """An API server and a metrics store of this many pods; ``environ`` is added to the service's."""
    with (
        server_process("cluster_server", str(pods)) as api_url,
        server_process("store_server", str(pods)) as store_url,
        tempfile.TemporaryDirectory() as name,
    ):
        folder = Path(name)
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(_KUBECONFIG.format(url=api_url))
        yield Peers(
            api_url,
            store_url,
            folder,
            {
                "AUTOSCALER_KUBECONFIG": str(kubeconfig),
                "AUTOSCALER_PROMETHEUS_URL": store_url,
                "AUTOSCALER_LISTEN": "127.0.0.1:0",
                "AUTOSCALER_API_QPS": "500",
                "AUTOSCALER_API_BURST": "500",
                **environ,
            },
        )


class Running:
    """A service that runs; asked over HTTP, as anybody would ask it."""

    def __init__(self, url: str, task: "asyncio.Task[int]", session: aiohttp.ClientSession) -> None:
        self._url = url
        self._task = task
        self._session = session
        self._deadline_s = time.monotonic() + DEADLINE_S
        self.plans: dict[str, dict[str, Any]] = {}
        """The head of every plan that was seen, by decision id, in order."""

    async def await_plans(self, count: int) -> None:
        """Returns once so many plans were seen since the service began; raises `RuntimeError` when none comes."""
        while len(self.plans) < count:
            if self._task.done() or time.monotonic() > self._deadline_s:
                raise RuntimeError(f"the service gave {len(self.plans)} of {count} plans")
            async with self._session.get(f"{self._url}/api/v1/plan?limit=1") as answer:
                document = json.loads(await answer.read()) if answer.status == 200 else None
            if document is not None:
                self.plans[document["decision_id"]] = document["plan"]
            await asyncio.sleep(0.25)


@asynccontextmanager
async def running(against: Peers) -> AsyncIterator[Running]:
    """The service, stopped at the end; what it logged is a note of the error that ends the run."""
    stop, address = asyncio.Event(), asyncio.get_running_loop().create_future()

    async def access(*_: object) -> ClusterAccess:
        """As a pod has it: without the client library, which only reads kubeconfigs and weighs 38 MiB."""
        return ClusterAccess(server=against.api_url)

    vars(app)["cluster_access"] = access
    environ = dict(against.environ)
    with (against.folder / "log").open("w") as log:
        configure_logs(stream=log)
        service = asyncio.create_task(
            app.run_service(load_settings(environ), environ, stop=stop, on_listening=address.set_result)
        )
        try:
            await asyncio.wait({service, address}, timeout=30, return_when=asyncio.FIRST_COMPLETED)
            host, port = _heard(address)
            async with aiohttp.ClientSession() as session:
                yield Running(f"http://{host}:{port}", service, session)
        except RuntimeError as error:
            error.add_note((against.folder / "log").read_text()[-4000:])
            raise
        finally:
            stop.set()
            with contextlib.suppress(asyncio.CancelledError):
                await service


def _heard(address: "asyncio.Future[app.Address]") -> app.Address:
    if not address.done():
        raise RuntimeError("the service does not listen")
    return address.result()
