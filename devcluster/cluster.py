"""A running devcluster: what tests and demos hold in their hands.

`running_cluster` starts everything in the order of its needs and stops exactly what it started.  The object
it gives is bound to no event loop: one cluster serves a whole test run.
"""

import asyncio
import functools
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp

from devcluster import audit, prometheus
from devcluster.api_client import ApiClient
from devcluster.binaries import Binaries, ensure_binaries
from devcluster.control_plane import CommandLines, Layout
from devcluster.errors import DevclusterError
from devcluster.exporter.client import ExporterClient
from devcluster.fake_nodes import create_nodes, ready_node_names
from devcluster.identities import (
    ADMIN_USER,
    CONTROLLER_MANAGER_USER,
    EXPORTER_USER,
    KUEUE_USER,
    KWOK_USER,
    SCHEDULER_USER,
    make_identities,
    write_kubeconfig,
    write_signing_keys,
    write_token_file,
)
from devcluster.kubectl import Kubectl
from devcluster.ports import LOOPBACK, choose_ports
from devcluster.processes import Component, fail_if_dead
from devcluster.scenario import NodePool, Scenario

_START_TIMEOUT_S = 60.0
_STOP_GRACE_S = 5.0
_POLL_INTERVAL_S = 0.05
_CONTROLLERS = ("kube-controller-manager", "kube-scheduler", "kwok")

_KUBECONFIG_USERS = {
    "admin": ADMIN_USER,
    "kube-controller-manager": CONTROLLER_MANAGER_USER,
    "kube-scheduler": SCHEDULER_USER,
    "kwok": KWOK_USER,
    "kueue": KUEUE_USER,
}


class Cluster:
    """A control plane with fake nodes, and its URLs, files and levers."""

    def __init__(
        self, run_dir: Path, binaries: Binaries, *, with_prometheus: bool, with_exporter: bool
    ) -> None:
        self.run_dir = run_dir
        self.keep_run_dir = False
        self.binaries = binaries
        self._layout = Layout(run_dir)
        self._ports = choose_ports()
        commands = CommandLines(binaries, self._layout, self._ports)
        self.server_url = commands.server_url
        self._etcd_url = commands.etcd_url
        wanted = [commands.etcd(), commands.api_server()]
        wanted += [commands.controller_manager(), commands.scheduler(), commands.kwok()]
        wanted += [commands.exporter()] if with_exporter else []
        wanted += [commands.prometheus()] if with_prometheus else []
        self._components = {command.name: Component(command) for command in wanted}
        identities = make_identities()
        self._admin = ApiClient(self.server_url, self.ca_path, identities[ADMIN_USER].token)
        self._kubectl = Kubectl(binaries.path("kubectl"), self.admin_kubeconfig, run_dir / "kubectl-cache")
        write_token_file(self._layout.token_file, identities.values())
        write_signing_keys(self._layout.signing_key, self._layout.verifying_key)
        audit.write_policy(self._layout.audit_policy)
        self._layout.exporter_token.write_text(identities[EXPORTER_USER].token)
        for name, user in _KUBECONFIG_USERS.items():
            self._write_kubeconfig(name, {"token": identities[user].token})
        prometheus.write_configuration(
            self._layout.prometheus_config,
            exporter_port=self._ports.exporter if with_exporter else None,
            targets_dir=self._layout.prometheus_targets,
        )

    @property
    def ca_path(self) -> Path:
        """The certificate that clients of the API server trust."""
        return self._layout.ca_path

    @property
    def admin_kubeconfig(self) -> Path:
        """A kubeconfig that may do everything."""
        return self._layout.kubeconfig("admin")

    @property
    def audit_log(self) -> Path:
        """The API server's audit log."""
        return self._layout.audit_log

    @property
    def logs_dir(self) -> Path:
        """One log per component."""
        return self._layout.logs

    @property
    def prometheus_url(self) -> str:
        """Where Prometheus answers queries."""
        return f"http://{LOOPBACK}:{self._ports.prometheus}"

    @property
    def exporter(self) -> ExporterClient:
        """The GPU exporter's own interface: loads in, boards and series out."""
        return ExporterClient(f"http://{LOOPBACK}:{self._ports.exporter}")

    @property
    def api(self) -> ApiClient:
        """A plain client with all rights."""
        return self._admin

    async def kubectl(self, *arguments: str, input: str | None = None) -> str:  # noqa: A002 - as in subprocess
        """Run kubectl with all rights and return what it printed."""
        return await self._kubectl.run(*arguments, stdin=input)

    async def apply(self, objects: Iterable[Mapping[str, Any]], *, server_side: bool = False) -> None:
        """Apply manifests with kubectl, as their owner would."""
        await self._kubectl.apply(objects, server_side=server_side)

    async def add_nodes(self, pools: Sequence[NodePool], *, timeout_s: float = 30) -> list[str]:
        """Create fake nodes, wait until they are ready and return their names."""
        names = await create_nodes(self._admin, pools)
        await self.until(
            lambda: self._are_ready(names), what=f"{len(names)} nodes being ready", timeout_s=timeout_s
        )
        return names

    async def play(self, scenario: Scenario) -> None:
        """Create a scenario's nodes and objects and hand its loads to the exporter."""
        await self.exporter.declare(scenario.loads, time_scale=scenario.time_scale)
        await self.add_nodes(scenario.nodes)
        await self.apply(scenario.objects)

    async def service_account_kubeconfig(
        self, namespace: str, name: str, duration: timedelta = timedelta(hours=1)
    ) -> Path:
        """A kubeconfig whose token file holds a fresh token of a ServiceAccount that exists."""
        answer = await self._admin.post(
            f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token",
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {"expirationSeconds": int(duration.total_seconds())},
            },
        )
        token_path = self._layout.keys / f"{namespace}.{name}.token"
        _write_secret(token_path, answer["status"]["token"])
        return self._write_kubeconfig(
            f"{namespace}.{name}", {"tokenFile": str(token_path)}, namespace=namespace
        )

    def kubeconfig_of(self, user: str) -> Path:
        """The kubeconfig of one of the control plane's own identities."""
        names = {known: name for name, known in _KUBECONFIG_USERS.items()}
        return self._layout.kubeconfig(names[user])

    def audit_events(self) -> list[audit.AuditEvent]:
        """Every audited request so far, in the order of the log."""
        return audit.read_events(self.audit_log)

    def writes_by_service_account(self, namespace: str, name: str) -> list[audit.AuditEvent]:
        """All writes a ServiceAccount attempted, refused ones and dry runs too."""
        return audit.writes_by(self.audit_events(), audit.service_account_user(namespace, name))

    def rights_used_by_service_account(self, namespace: str, name: str) -> set[tuple[str, str, str]]:
        """Group, resource and verb of all that a ServiceAccount did and was allowed to."""
        return audit.rights_used_by(self.audit_events(), audit.service_account_user(namespace, name))

    async def query(self, promql: str) -> list[dict[str, Any]]:
        """The result rows of an instant query."""
        async with aiohttp.ClientSession() as session:
            url = f"{self.prometheus_url}/api/v1/query"
            async with session.post(url, data={"query": promql}) as answer:
                content = await answer.json()
        if content["status"] != "success":
            raise DevclusterError(f"Prometheus refused {promql!r}: {content.get('error')}")
        rows: list[dict[str, Any]] = content["data"]["result"]
        return rows

    def scrape_autoscaler(self, port: int) -> None:
        """Let Prometheus scrape the autoscaler on a loopback port from now on."""
        prometheus.write_target(self._layout.prometheus_targets, prometheus.AUTOSCALER_JOB, port)

    def scrape_other(self, name: str, port: int, labels: Mapping[str, str] | None = None) -> None:
        """Let Prometheus scrape one more exporter on a loopback port; `labels` are the target's own."""
        prometheus.write_target(
            self._layout.prometheus_targets, prometheus.OTHER_JOB, port, name=name, labels=labels
        )

    def component(self, name: str) -> Component:
        """One component by name, such as `kube-scheduler` or `gpu-exporter`."""
        return self._components[name]

    def components(self) -> list[Component]:
        """All components in the order of their start."""
        return list(self._components.values())

    async def kill(self, name: str) -> None:
        """Kill one component as a crash would."""
        component = self.component(name)
        component.kill()
        await self.until(lambda: _now(not component.is_running), what=f"the end of {name}", timeout_s=5)

    async def start(self, name: str) -> None:
        """Start one component on its old port and data, and wait until it serves."""
        component = self.component(name)
        component.start()
        check = self._readiness().get(name)
        if check is not None:
            await self.until(check, what=f"{name} being ready", needs=[component])

    async def kill_apiserver(self) -> None:
        """Kill the API server; etcd keeps its data."""
        await self.kill("kube-apiserver")

    async def start_apiserver(self) -> None:
        """Start the API server again under the same address, and its controllers anew.

        After an outage client-go waits up to a minute before it lists a kind again, each kind by itself; until then
        the controller-manager leaves what it cannot see undone ("read version is not as new as written version").
        """
        await self.start("kube-apiserver")
        running = [name for name in _CONTROLLERS if self.component(name).is_running]
        await asyncio.gather(*(self.kill(name) for name in running))
        await asyncio.gather(*(self.start(name) for name in running))

    async def compact(self) -> None:
        """Let etcd forget all history: watches from an earlier version are told 410."""
        async with aiohttp.ClientSession(self._etcd_url) as session:
            head = await _ask_etcd(session, "/v3/kv/range", {"key": "AA=="})
            await _ask_etcd(
                session, "/v3/kv/compaction", {"revision": head["header"]["revision"], "physical": True}
            )

    async def until(
        self,
        condition: Callable[[], Awaitable[bool]],
        *,
        what: str,
        timeout_s: float = _START_TIMEOUT_S,
        needs: Sequence[Component] = (),
    ) -> None:
        """Poll a condition until it holds; raise with `what` when it does not in time or a needed component died."""
        deadline_s = time.monotonic() + timeout_s
        while not await condition():
            fail_if_dead(needs)
            if time.monotonic() > deadline_s:
                raise DevclusterError(f"waited {timeout_s:.0f} s in vain for {what}; logs in {self.logs_dir}")
            await asyncio.sleep(_POLL_INTERVAL_S)

    async def answers(self, url: str) -> bool:
        """Whether a URL answers with 200 now."""
        return await _answers(url)

    async def start_all(self) -> None:
        """Start every component: the store, then the API server, then all others at once."""
        await self.start("etcd")
        await self.start("kube-apiserver")
        others = [name for name in self._components if name not in {"etcd", "kube-apiserver"}]
        await asyncio.gather(*(self.start(name) for name in others))

    async def stop_all(self) -> None:
        """Stop every component: clients first, then the API server, then the store."""
        last = ("kube-apiserver", "etcd")
        clients = [part for name, part in self._components.items() if name not in last]
        await asyncio.gather(*(component.stop(_STOP_GRACE_S) for component in clients))
        for name in last:
            await self._components[name].stop(_STOP_GRACE_S)

    def kill_all(self) -> None:
        """Kill every component at once; for the case that an orderly stop is cut short."""
        for component in self._components.values():
            component.kill()

    def _readiness(self) -> dict[str, Callable[[], Awaitable[bool]]]:
        urls = {
            "etcd": f"{self._etcd_url}/health",
            "kwok": f"http://{LOOPBACK}:{self._ports.kwok}/healthz",
            "gpu-exporter": f"http://{LOOPBACK}:{self._ports.exporter}/healthz",
            "prometheus": f"{self.prometheus_url}/-/ready",
        }
        checks: dict[str, Callable[[], Awaitable[bool]]] = {
            name: functools.partial(_answers, url) for name, url in urls.items()
        }
        checks["kube-apiserver"] = self._admin.is_ready
        checks["kube-controller-manager"] = self._controllers_work
        return checks

    async def _controllers_work(self) -> bool:
        accounts = await self._admin.get("/api/v1/namespaces/default/serviceaccounts")
        return any(one["metadata"]["name"] == "default" for one in accounts["items"])

    async def _are_ready(self, names: Sequence[str]) -> bool:
        return set(names) <= await ready_node_names(self._admin)

    def _write_kubeconfig(self, name: str, user: dict[str, str], namespace: str = "default") -> Path:
        path = self._layout.kubeconfig(name)
        write_kubeconfig(
            path, server_url=self.server_url, ca_path=self.ca_path, user=user, namespace=namespace
        )
        return path


@asynccontextmanager
async def running_cluster(
    *,
    run_dir: Path | None = None,
    prometheus: bool = True,
    exporter: bool = True,
    keep_run_dir: bool = False,
) -> AsyncIterator[Cluster]:
    """A started cluster; everything it started is gone afterwards.

    The run folder must be new or empty.  It is removed after a clean end, and kept with its logs after an
    error or when `keep_run_dir` (or the cluster's attribute of that name) says so.
    """
    binaries = await asyncio.to_thread(ensure_binaries)
    cluster = Cluster(_fresh_run_dir(run_dir), binaries, with_prometheus=prometheus, with_exporter=exporter)
    cluster.keep_run_dir = keep_run_dir
    try:
        await cluster.start_all()
        yield cluster
    except BaseException as error:
        cluster.keep_run_dir = cluster.keep_run_dir or isinstance(error, Exception)
        raise
    finally:
        try:
            await cluster.stop_all()
        finally:
            cluster.kill_all()
            _leave(cluster)


def _fresh_run_dir(run_dir: Path | None) -> Path:
    if run_dir is None:
        return Path(tempfile.mkdtemp(prefix="gpu-autoscaler-devcluster-"))
    run_dir.mkdir(parents=True, exist_ok=True)
    if any(run_dir.iterdir()):
        raise DevclusterError(f"the run folder {run_dir} is not empty")
    return run_dir.resolve()


def _leave(cluster: Cluster) -> None:
    if cluster.keep_run_dir:
        print(f"devcluster: logs and state are kept in {cluster.run_dir}", file=sys.stderr)
    else:
        shutil.rmtree(cluster.run_dir, ignore_errors=True)


def _write_secret(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)


async def _answers(url: str) -> bool:
    try:
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            return answer.status == 200
    except (aiohttp.ClientError, TimeoutError, OSError):
        return False


async def _ask_etcd(session: aiohttp.ClientSession, path: str, body: Mapping[str, Any]) -> Any:
    async with session.post(path, json=body) as answer:
        answer.raise_for_status()
        return await answer.json()


async def _now(value: bool) -> bool:  # noqa: FBT001 - lifts a plain truth into a condition
    return value
