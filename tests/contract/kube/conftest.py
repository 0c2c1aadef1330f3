"""A scripted API server on a real socket, and the clocks and stores the driver is given in tests."""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
import stamina
from aiohttp import web
from aiohttp.test_utils import TestServer
from blockbuster import BlockBuster, blockbuster_ctx

from autoscaler.kube import wire
from autoscaler.kube.config import ClusterAccess
from autoscaler.kube.credentials import Credentials, FixedCredentials
from autoscaler.kube.session import KubeSession, SessionLimits

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ScriptedApi:
    """Answers each path with its script, one answer per request; the last one repeats."""

    def __init__(self) -> None:
        self.scripts: dict[tuple[str, str], list[Answer]] = {}
        self.requests: list[web.Request] = []
        self.bodies: list[Any] = []
        self.seen: dict[str, int] = defaultdict(int)
        self.over = asyncio.Event()
        self.url = ""

    def on(self, path: str, *answers: Answer, watch: bool = False) -> None:
        """Lists and watches of one path have scripts of their own."""
        self.scripts[(path, "watch" if watch else "")] = list(answers)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        self.bodies.append(await request.json() if request.can_read_body else None)
        script = self.scripts.get((request.path, "watch" if request.query.get("watch") else ""))
        if not script:
            return web.json_response(
                {"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound"}, status=404
            )
        answer = script.pop(0) if len(script) > 1 else script[0]
        return await answer(request)

    def of(self, *, watch: bool) -> list[web.Request]:
        """The requests that were watches, or that were not."""
        return [request for request in self.requests if bool(request.query.get("watch")) is watch]


class Answers:
    """The vocabulary of scripts."""

    def __init__(self, api: ScriptedApi) -> None:
        self._api = api

    @staticmethod
    def json(body: object, *, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
        async def answer(_: web.Request) -> web.StreamResponse:
            return web.json_response(body, status=status, headers=headers)

        return answer

    @staticmethod
    def text(body: str, *, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
        async def answer(_: web.Request) -> web.StreamResponse:
            return web.Response(text=body, status=status, headers=headers)

        return answer

    def failure(self, code: int, reason: str = "", *, as_status: int | None = None, **fields: Any) -> Answer:
        body = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "code": code,
            "reason": reason,
            **fields,
        }
        return self.json(body, status=as_status or code)

    def pods(self, *names: str, version: int = 100, token: str = "") -> Answer:
        items = [pod(name, version) for name in names]
        meta = {"resourceVersion": str(version), "continue": token}
        return self.json({"kind": "PodList", "apiVersion": "v1", "metadata": meta, "items": items or None})

    def stream(self, *parts: bytes, end: str = "hang") -> Answer:
        """Parts as they are, then ``hang`` (until the test is over), ``clean`` or ``cut``."""

        async def answer(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            for part in parts:
                await response.write(part)
            if end == "hang":
                await self._api.over.wait()
            if end == "cut":
                assert request.transport is not None
                request.transport.close()
            return response

        return answer

    def silence(self) -> Answer:
        async def answer(_: web.Request) -> web.StreamResponse:
            await self._api.over.wait()
            return web.Response()

        return answer


def pod(name: str, version: int, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "n", "uid": name, "resourceVersion": str(version)},
        "spec": spec,
    }


def line(event_type: str, obj: object) -> bytes:
    return json.dumps({"type": event_type, "object": obj}).encode() + b"\n"


class Story:
    """What tests say about pods and lines, without importing from a conftest."""

    pod = staticmethod(pod)
    line = staticmethod(line)


class Clock:
    """Time that only passes when somebody sleeps."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now_s

    async def sleep(self, delay_s: float) -> None:
        self.slept.append(delay_s)
        self.now_s += delay_s
        await asyncio.sleep(0)


class PodStore:
    """What readers would see, by name and version."""

    def __init__(self) -> None:
        self.visible: dict[str, str] = {}
        self.buffer: dict[str, str] | None = None
        self.begun = 0
        self.commits: list[str] = []

    def begin_relist(self) -> None:
        self.buffer = {}
        self.begun += 1

    def relist_page(self, items: Sequence[wire.Pod], /) -> None:
        assert self.buffer is not None
        self.buffer.update({item.metadata.name: item.metadata.resource_version for item in items})

    def commit_relist(self, resource_version: str, /) -> None:
        assert self.buffer is not None
        self.visible, self.buffer = self.buffer, None
        self.commits.append(resource_version)

    def apply(self, obj: wire.Pod, /) -> None:
        self.visible[obj.metadata.name] = obj.metadata.resource_version

    def delete(self, obj: wire.Pod, /) -> None:
        self.visible.pop(obj.metadata.name, None)


@pytest.fixture(autouse=True)
def no_blocking_call() -> Iterator[BlockBuster]:
    """A blocking call made by the kube room inside the loop raises."""
    with blockbuster_ctx("autoscaler.kube") as buster:
        for function in buster.functions.values():
            # Runs in a thread of its own, with a loop of its own for the client library's coroutines.
            function.can_block_in("autoscaler/kube/config.py", "_run_loader")
        yield buster


@pytest.fixture(autouse=True)
def no_retry_waits() -> Iterator[None]:
    """Retries happen as in production, without their waits.

    stamina's default hooks would import prometheus_client inside the loop at the first retry: the shell sets its own.
    """
    stamina.instrumentation.set_on_retry_hooks([])
    stamina.set_testing(True, attempts=4)
    yield
    stamina.set_testing(False)


@pytest.fixture
async def api() -> AsyncIterator[ScriptedApi]:
    made = ScriptedApi()
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", made.handle)
    server = TestServer(app)
    await server.start_server()
    made.url = str(server.make_url("")).rstrip("/")
    yield made
    made.over.set()
    await server.close()


@pytest.fixture
def answers(api: ScriptedApi) -> Answers:
    return Answers(api)


@pytest.fixture
def story() -> type[Story]:
    return Story


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store() -> PodStore:
    return PodStore()


@pytest.fixture
def connect(api: ScriptedApi) -> Callable[..., AbstractAsyncContextManager[KubeSession]]:
    @asynccontextmanager
    async def open_session(
        *, credentials: Credentials | None = None, server: str | None = None, **options: Any
    ) -> AsyncIterator[KubeSession]:
        access = ClusterAccess(server=server or api.url, credentials=credentials or FixedCredentials())
        limits = SessionLimits(**{"reads_per_s": 1e6, "reads_burst": 10**6, **options.pop("limits", {})})
        async with KubeSession(access, limits=limits, **options) as session:
            yield session

    return open_session


@pytest.fixture
def until() -> Callable[[Callable[[], object]], Awaitable[None]]:
    async def wait(condition: Callable[[], object]) -> None:
        async with asyncio.timeout(10):
            while not condition():  # noqa: ASYNC110 - any condition, over stores and scripts alike
                await asyncio.sleep(0.001)

    return wait
