"""The exporter as a process: watches, a state file and a small HTTP interface on the loopback address."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec
from aiohttp import web

from devcluster.api_client import ApiClient
from devcluster.exporter.exposition import render
from devcluster.exporter.fleet import Fleet, KeptState
from devcluster.exporter.load import WorkloadLoad
from devcluster.exporter.watch import Gone, Listed, Seen, follow
from devcluster.exporter.wire import Node, Pod, bound_pod, node_boards
from devcluster.ports import LOOPBACK

Clock = Callable[[], float]

_EXPOSITION_TYPE = "text/plain; version=0.0.4"


class LoadsMessage(msgspec.Struct):
    """What a client posts to declare loads."""

    loads: list[WorkloadLoad]
    time_scale: float = 1.0


class ExporterServer:
    """Feeds a fleet from the API server and serves its readings."""

    def __init__(self, api: ApiClient, state_path: Path, clock: Clock) -> None:
        self._api = api
        self._state_path = state_path
        self._clock = clock
        self._fleet = Fleet(read_state(state_path))
        self._accelerators: frozenset[str] = frozenset()
        self._raw_pods: dict[str, Pod] = {}
        self._has_listed = {"nodes": asyncio.Event(), "pods": asyncio.Event()}

    async def serve(self, port: int) -> None:
        """Serve until cancelled."""
        app = web.Application()
        app.add_routes(
            [
                web.get("/metrics", self._metrics),
                web.get("/healthz", self._healthz),
                web.get("/boards", self._boards),
                web.post("/loads", self._loads),
            ]
        )
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, LOOPBACK, port).start()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._follow_nodes(), name="nodes")
                tasks.create_task(self._follow_pods(), name="pods")
        finally:
            self._save()
            await runner.cleanup()

    async def _follow_nodes(self) -> None:
        decoder = msgspec.json.Decoder(Node)
        async for event in follow(self._api, "/api/v1/nodes", decoder.decode):
            match event:
                case Listed(objects=nodes):
                    live = {node.metadata.name for node in nodes}
                    for name in set(self._fleet.allocation.nodes) - live:
                        self._fleet.allocation.node_gone(name)
                    for node in nodes:
                        self._node_seen(node)
                    self._has_listed["nodes"].set()
                case Seen(object=node):
                    self._node_seen(node)
                case Gone(object=node):
                    self._fleet.allocation.node_gone(node.metadata.name)

    def _node_seen(self, node: Node) -> None:
        boards = node_boards(node)
        self._fleet.allocation.node_seen(boards)
        added = frozenset(name for name, _ in boards.counts) - self._accelerators
        if added:
            self._accelerators |= added
            if self._has_listed["pods"].is_set():
                self._replace_pods()

    async def _follow_pods(self) -> None:
        await self._has_listed["nodes"].wait()
        decoder = msgspec.json.Decoder(Pod)
        async for event in follow(self._api, "/api/v1/pods", decoder.decode):
            match event:
                case Listed(objects=pods):
                    self._raw_pods = {pod.metadata.uid: pod for pod in pods}
                    self._replace_pods()
                    self._has_listed["pods"].set()
                case Seen(object=pod):
                    self._pod_seen(pod)
                case Gone(object=pod):
                    self._raw_pods.pop(pod.metadata.uid, None)
                    self._fleet.allocation.pod_gone(pod.metadata.uid)

    def _pod_seen(self, pod: Pod) -> None:
        self._raw_pods[pod.metadata.uid] = pod
        bound = bound_pod(pod, self._accelerators)
        if bound is not None:
            self._fleet.allocation.pod_seen(bound)
        else:
            self._fleet.allocation.pod_gone(pod.metadata.uid)

    def _replace_pods(self) -> None:
        bound = (bound_pod(pod, self._accelerators) for pod in self._raw_pods.values())
        self._fleet.allocation.relisted(pod for pod in bound if pod is not None)

    def _save(self) -> None:
        """Comes before every answer: what anybody has seen is what a later exporter goes on with."""
        pending = self._state_path.with_suffix(".pending")
        pending.write_bytes(msgspec.json.encode(self._fleet.keep()))
        pending.replace(self._state_path)

    def _has_seen_all(self) -> bool:
        return all(event.is_set() for event in self._has_listed.values())

    async def _metrics(self, _: web.Request) -> web.Response:
        if not self._has_seen_all():
            return web.Response(status=503, text="boards without their holders would mislead")
        text = render(self._fleet.readings(self._clock()))
        self._save()
        return web.Response(body=text.encode(), headers={"Content-Type": _EXPOSITION_TYPE})

    async def _healthz(self, _: web.Request) -> web.Response:
        return web.Response(status=200 if self._has_seen_all() else 503)

    async def _boards(self, _: web.Request) -> web.Response:
        self._save()
        body = msgspec.json.encode(self._fleet.board_views())
        return web.Response(body=body, content_type="application/json")

    async def _loads(self, request: web.Request) -> web.Response:
        message = msgspec.json.decode(await request.read(), type=LoadsMessage)
        self._fleet.declare(message.loads, now_s=self._clock(), time_scale=message.time_scale)
        self._save()
        return web.Response(status=204)


def read_state(path: Path) -> KeptState:
    """The state of an earlier exporter in the same run, or an empty one."""
    if not path.exists():
        return KeptState()
    return msgspec.json.decode(path.read_bytes(), type=KeptState)
