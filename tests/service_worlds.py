"""A tiny API server and metrics store on real sockets, with one workload, to be broken one way at a time."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer
from service_fakes import HastyClock

from autoscaler.kube.kinds import KINDS
from autoscaler.service.app import run_service
from autoscaler.service.settings import load_settings

GPU = "nvidia.com/gpu"
TOKEN = "let-me-in"
STAMP = "2026-01-01T00:00:00Z"


@dataclass
class ScriptedApi:
    """The API server. Change the fields, then start it."""

    absent: set[str] = field(default_factory=set)
    """Kinds the server does not have."""
    denied: set[str] = field(default_factory=set)
    """Kinds that RBAC keeps from us."""
    token: str = TOKEN
    ahead_s: float = 0.0
    """How far its clock is ahead."""
    page_size: int = 0
    """When set, lists come in pages of this size."""
    expire_next_token: bool = False
    """The next continue token that is used has expired."""
    objects: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    writes: list[str] = field(default_factory=list)
    """Every request that is no read (access reviews aside)."""
    streams: dict[str, list[asyncio.Queue[bytes]]] = field(default_factory=dict)

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._door])
        app.router.add_route("*", "/{path:.*}", self._answer)
        return app

    @web.middleware
    async def _door(self, request: web.Request, handler: Callable[..., Any]) -> web.StreamResponse:
        allowed = request.headers.get("Authorization") == f"Bearer {self.token}"
        response = await handler(request) if allowed else _status(401, "Unauthorized", "Unauthorized")
        if not response.prepared:
            response.headers["Date"] = self.date()
        return response

    def date(self) -> str:
        return formatdate(time.time_ns() / 1e9 + self.ahead_s, usegmt=True)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        if path.endswith("/selfsubjectaccessreviews"):
            asked = (await request.json())["spec"]["resourceAttributes"]["resource"]
            denied = any(KINDS[name].plural == asked for name in self.denied)
            return web.json_response(
                {"status": {"allowed": not denied, "reason": "no RBAC policy matched" if denied else ""}}
            )
        if request.method != "GET":
            self.writes.append(f"{request.method} {path}")
            return _status(405, "MethodNotAllowed", "this world is read only")
        if path == "/version":
            return web.json_response({"gitVersion": "v1.36.3"})
        if path in {"/api", "/apis"}:
            return web.json_response(self._discovery(core=path == "/api"))
        for name, kind in KINDS.items():
            if path == kind.path and name not in self.absent:
                return await self._kind(request, name)
        return _status(404, "NotFound", "the server could not find the requested resource")

    def _discovery(self, *, core: bool) -> dict[str, Any]:
        groups: dict[str, dict[str, list[dict[str, Any]]]] = {}
        for name, kind in KINDS.items():
            if name not in self.absent and (kind.group == "") == core:
                versions = groups.setdefault(kind.group, {})
                versions.setdefault(kind.version, []).append(
                    {"resource": kind.plural, "verbs": ["list", "watch"]}
                )
        items = [
            {
                "metadata": {"name": group},
                "versions": [{"version": version, "resources": found} for version, found in versions.items()],
            }
            for group, versions in groups.items()
        ]
        return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items}

    async def _kind(self, request: web.Request, name: str) -> web.StreamResponse:
        if name in self.denied:
            return _status(403, "Forbidden", f"{KINDS[name].plural} is forbidden: User cannot list resource")
        if request.query.get("watch") == "true":
            return await self._stream(request, name)
        items, token = self.objects.get(name, []), request.query.get("continue", "")
        if token and self.expire_next_token:
            self.expire_next_token = False
            return _status(410, "Expired", "The provided continue parameter is too old")
        start, size = int(token or 0), self.page_size or len(items)
        meta: dict[str, Any] = {"resourceVersion": "10"}
        if start + size < len(items):
            meta["continue"] = str(start + size)
        return web.json_response(
            {"kind": f"{name}List", "metadata": meta, "items": items[start : start + size]}
        )

    async def _stream(self, request: web.Request, name: str) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Date": self.date(), "Content-Type": "application/json"})
        await response.prepare(request)
        lines: asyncio.Queue[bytes] = asyncio.Queue()
        self.streams.setdefault(name, []).append(lines)
        while line := await lines.get():
            await response.write(line)
        return response

    async def stream_of(self, name: str) -> None:
        """Returns when the kind is being watched."""
        for _ in range(500):
            if self.streams.get(name):
                return
            await asyncio.sleep(0.01)
        raise AssertionError(f"nobody watches {name}")

    def end_streams(self) -> None:
        for queues in self.streams.values():
            for lines in queues:
                lines.put_nowait(b"")


@dataclass
class ScriptedStore:
    """The metrics store: constant series, each seen once an interval over every window that is asked for."""

    token: str = ""
    status: int = 200
    body: str = ""
    """When set, the answer to everything."""
    ahead_s: float = 0.0
    warnings: list[str] = field(default_factory=list)
    series: dict[str, list[tuple[dict[str, str], float]]] = field(default_factory=dict)
    jobs: list[str] = field(default_factory=lambda: ["dcgm-exporter"])
    """The scrape jobs that publish each of the series."""
    interval_s: float = 15.0
    queries: int = 0

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        return app

    async def _answer(self, request: web.Request) -> web.Response:
        self.queries += 1
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.Response(status=401, text="token refused")
        if self.body or self.status != 200:
            return web.Response(status=self.status, text=self.body)
        if request.path != "/api/v1/query":
            return web.Response(status=404, text="404 page not found")
        form = await request.post()
        now_s = time.time_ns() / 1e9 + self.ahead_s
        if form["query"] == "time()":
            data: dict[str, Any] = {"resultType": "scalar", "result": [now_s, f"{now_s:.3f}"]}
        else:
            data = {"resultType": "vector", "result": self._vector(str(form["query"]), now_s)}
        return web.json_response({"status": "success", "data": data, "warnings": self.warnings})

    def _vector(self, query: str, now_s: float) -> list[dict[str, Any]]:
        metric = next((name for name in self.series if re.search(rf"\b{name}\b", query)), None)
        pin = re.search(r'job=~?"(.*?)"', query)
        jobs = [job for job in self.jobs if pin is None or re.fullmatch(pin.group(1), job)]
        if metric is None or not jobs:
            return []
        if query.startswith("count by (job)"):
            return [{"metric": {"job": job}, "value": [now_s, "1"]} for job in jobs]
        grouped = re.match(r"\w+ by \((.*?)\)", query)
        labels = [label.strip() for label in grouped.group(1).split(",")] if grouped else []
        spans_s = [int(text) / 1000 for text in re.findall(r"\[(\d+)ms", query)]
        span_s = spans_s[0] if query.startswith("max(") else max(spans_s, default=0.0)
        samples = max(1, round(span_s / self.interval_s)) if spans_s else 1
        return [
            {
                "metric": {label: owner[label] for label in labels if label in owner},
                "value": [now_s, str(_value(query, value, samples=samples, now_s=now_s, span_s=span_s))],
            }
            for owner, value in self.series[metric]
        ]


def _value(query: str, value: float, *, samples: int, now_s: float, span_s: float) -> float:
    if "min_over_time(timestamp" in query:
        return now_s - span_s
    if "timestamp(" in query:
        return now_s
    if "count_over_time" in query:
        return samples
    if "sum_over_time" in query:
        return value * samples
    return value


@dataclass
class World:
    """Both servers, running, and the way to them."""

    api: ScriptedApi
    store: ScriptedStore
    environ: dict[str, str]


@asynccontextmanager
async def running(
    api: ScriptedApi, store: ScriptedStore, folder: Path, *, token: str = TOKEN
) -> AsyncIterator[World]:
    """Both servers on free ports, with a kubeconfig in the folder."""
    async with TestServer(api.app()) as api_server, TestServer(store.app()) as store_server:
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(kubeconfig_text(str(api_server.make_url("")).rstrip("/"), token))
        environ = {
            "AUTOSCALER_KUBECONFIG": str(kubeconfig),
            "AUTOSCALER_PROMETHEUS_URL": str(store_server.make_url("")).rstrip("/"),
            "AUTOSCALER_LISTEN": "127.0.0.1:0",
            "AUTOSCALER_API_QPS": "1000",
            "AUTOSCALER_API_BURST": "1000",
        }
        try:
            yield World(api, store, environ)
        finally:
            api.end_streams()


def kubeconfig_text(server: str, token: str = TOKEN) -> str:
    """A kubeconfig with one context."""
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
            "clusters": [{"name": "here", "cluster": {"server": server}}],
            "users": [{"name": "me", "user": {"token": token}}],
        }
    )


def deployment_objects(
    *, memory: str = "1Gi", annotations: dict[str, str] | None = None
) -> dict[str, list[dict[str, Any]]]:
    """A Deployment `team/web` of one pod that asks for accelerators, with all that stands around it."""
    container = {
        "name": "main",
        "image": "app:1",
        "resources": {"limits": {GPU: "2"}, "requests": {GPU: "2", "cpu": "1", "memory": memory}},
    }
    spec: dict[str, Any] = {
        "containers": [container],
        "schedulerName": "default-scheduler",
        "restartPolicy": "Always",
    }
    labels = {"app": "web"}

    def meta(name: str, **more: Any) -> dict[str, Any]:
        stamped = {
            "name": name,
            "uid": f"uid-{name}",
            "resourceVersion": "5",
            "creationTimestamp": STAMP,
            "generation": 1,
        }
        return {**stamped, **more}

    deployment = {
        "metadata": meta("web", namespace="team", labels=labels, annotations=annotations or {}),
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
            },
        },
        "status": {
            "observedGeneration": 1,
            "replicas": 1,
            "updatedReplicas": 1,
            "readyReplicas": 1,
            "availableReplicas": 1,
        },
    }
    owned_by_deployment = _owner("apps/v1", "Deployment", "web")
    replica_set = {
        "metadata": meta("web-1", namespace="team", labels=labels, ownerReferences=[owned_by_deployment]),
        "spec": {"replicas": 1},
    }
    pod = {
        "metadata": meta(
            "web-1-a",
            namespace="team",
            labels=labels,
            ownerReferences=[_owner("apps/v1", "ReplicaSet", "web-1")],
        ),
        "spec": {**spec, "nodeName": "node-1", "priority": 0},
        "status": {
            "phase": "Running",
            "startTime": STAMP,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": STAMP}],
            "containerStatuses": [{"name": "main", "ready": True}],
        },
    }
    amounts = {GPU: "8", "cpu": "64", "memory": "256Gi", "pods": "110"}
    node = {
        "metadata": meta("node-1"),
        "spec": {},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    return {
        "Deployment": [deployment],
        "ReplicaSet": [replica_set],
        "Pod": [pod],
        "Node": [node],
        "Namespace": [{"metadata": meta("team"), "status": {"phase": "Active"}}],
    }


def dcgm_series(*activities: float) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Series of the pod `team/web-1-a`, one board for each activity in percent."""
    rows = [
        (
            {
                "UUID": f"GPU-{index}",
                "gpu": str(index),
                "Hostname": "node-1",
                "namespace": "team",
                "pod": "web-1-a",
                "container": "main",
            },
            value,
        )
        for index, value in enumerate(activities)
    ]
    memory = [(labels, 1_000.0) for labels, _ in rows]
    free = [(labels, 80_000.0) for labels, _ in rows]
    return {"DCGM_FI_DEV_GPU_UTIL": rows, "DCGM_FI_DEV_FB_USED": memory, "DCGM_FI_DEV_FB_FREE": free}


def _owner(version: str, kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}


def _status(code: int, reason: str, message: str) -> web.Response:
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    }
    return web.json_response(body, status=code)


@asynccontextmanager
async def serving(world: World) -> AsyncIterator[str]:
    """The service over a world; its base URL. It must stop cleanly and promptly."""
    stop, listening = asyncio.Event(), asyncio.get_running_loop().create_future()
    settings = load_settings(world.environ)
    service = asyncio.ensure_future(
        run_service(settings, world.environ, clock=HastyClock(), stop=stop, on_listening=listening.set_result)
    )
    done, _ = await asyncio.wait({service, listening}, return_when=asyncio.FIRST_COMPLETED)
    if service in done:
        service.result()
    host, port = listening.result()
    try:
        yield f"http://{host}:{port}"
    finally:
        stop.set()
        code = await asyncio.wait_for(service, 5.0)
        assert code == 0
