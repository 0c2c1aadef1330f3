"""A small API server on a real socket that keeps objects, checks preconditions and fails where a test says so."""

import asyncio
import copy
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from blockbuster import BlockBuster, blockbuster_ctx

from autoscaler.act.contract import AuthorityLostError
from autoscaler.act.executor import Executor
from autoscaler.act.ledger import LedgerConflictError
from autoscaler.act.requests import DELETION_COST
from autoscaler.act.writer import Writer
from autoscaler.kube.config import ClusterAccess
from autoscaler.kube.session import KubeSession, SessionLimits
from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.ledger import Entry, Freed, Record
from autoscaler.model.plan import Action, PodRef, Seat
from autoscaler.model.reasons import Reason

GPU = "nvidia.com/gpu"
NOW_MS = 1_800_000_000_000
DEPLOYMENT = "/apis/apps/v1/namespaces/team/deployments/web"
CRON_JOB = "/apis/batch/v1/namespaces/team/cronjobs/web"
STATEFUL_SET = "/apis/apps/v1/namespaces/team/statefulsets/web"
PODS = "/api/v1/namespaces/team/pods/"
Fault = Callable[[web.Request], Awaitable[web.StreamResponse]]


def failure(code: int, reason: str = "", message: str = "words", **fields: Any) -> web.Response:
    body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}
    return web.json_response({**body, **fields}, status=code)


def container(name: str = "main", **resources: Any) -> dict[str, Any]:
    return {"name": name, "image": "app:1", "resources": resources}


def workload(*containers: dict[str, Any], replicas: int = 2, **meta: Any) -> dict[str, Any]:
    spec = {"template": {"spec": {"containers": list(containers or [container(limits={GPU: "2"})])}}}
    return {"metadata": metadata("web", **meta), "spec": {"replicas": replicas, **spec}}


def pod(name: str, *, node: str = "node-1", phase: str = "Running", **meta: Any) -> dict[str, Any]:
    return {
        "metadata": metadata(name, **meta),
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": phase},
    }


def metadata(name: str, **meta: Any) -> dict[str, Any]:
    return {"name": name, "namespace": "team", "uid": f"uid-{name}", "resourceVersion": "7", **meta}


class FakeApi:
    """Objects by path. A fault is looked up by verb, path and whether it is a dry run, and repeats.

    A JSON Patch, by which something of ours is taken away, has a verb of its own: UNPATCH.
    """

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.faults: dict[str, Fault] = {}
        self.sent: list[str] = []
        self.raw_paths: list[str] = []
        self.bodies: dict[str, Any] = {}
        self.headers: dict[str, dict[str, str]] = {}
        self.over = asyncio.Event()
        self.url = ""

    def fail(self, what: str, *args: Any, **fields: Any) -> None:
        """`what` is as in `sent`, for instance `dry PATCH /path`."""

        async def answer(_: web.Request) -> web.StreamResponse:
            return failure(*args, **fields)

        self.faults[what] = answer

    def fall_silent(self, what: str, *, carry_out: bool = False) -> None:
        async def answer(request: web.Request) -> web.StreamResponse:
            if carry_out:
                await self._answer(request, await request.json())
            await self.over.wait()
            return web.Response()

        self.faults[what] = answer

    def cut(self, what: str) -> None:
        async def answer(request: web.Request) -> web.StreamResponse:
            assert request.transport is not None
            request.transport.close()
            return web.Response()

        self.faults[what] = answer

    @property
    def changes(self) -> list[str]:
        """Requests that would have changed something."""
        return [one for one in self.sent if not one.startswith(("GET", "dry"))]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        taking = request.content_type == "application/json-patch+json"
        what = f"{'UNPATCH' if taking else request.method} {request.path}"
        if request.query.get("dryRun"):
            what = f"dry {what}"
        self.sent.append(what)
        self.raw_paths.append(request.rel_url.raw_path)
        body = await request.json() if request.can_read_body else None
        self.bodies[what] = body
        self.headers[what] = {
            "type": request.content_type,
            "manager": request.query.get("fieldManager", ""),
        }
        fault = self.faults.get(what)
        return await (fault(request) if fault is not None else self._answer(request, body))

    async def _answer(self, request: web.Request, body: Any) -> web.StreamResponse:
        path, dry = request.path, bool(request.query.get("dryRun"))
        evicting = path.endswith("/eviction")
        path = path.removesuffix("/eviction").removesuffix("/scale").removesuffix("/status")
        found = self.objects.get(path)
        if found is None:
            return failure(404, "NotFound")
        if request.method == "GET":
            return web.json_response(found)
        if evicting:
            if body["deleteOptions"]["preconditions"]["uid"] != found["metadata"]["uid"]:
                message = "the UID in the precondition (a) does not match the UID in record (b)"
                return failure(409, "Conflict", message)
            if not dry:
                del self.objects[path]
            return web.json_response({"kind": "Status", "status": "Success", "code": 201}, status=201)
        changed = copy.deepcopy(found)
        refused = _json_patch(changed, body) if isinstance(body, list) else _merge_patch(changed, body)
        if refused is not None:
            return refused
        if not dry:
            changed["metadata"]["resourceVersion"] = str(int(changed["metadata"]["resourceVersion"]) + 1)
            if not isinstance(body, list):
                entries = changed["metadata"].setdefault("managedFields", [{"manager": "owner"}])
                subresource = "status" if request.path.endswith("/status") else ""
                entries.append({"manager": "gpu-autoscaler", "subresource": subresource})
            self.objects[path] = changed
        return web.json_response(changed)


def _merge_patch(found: dict[str, Any], body: dict[str, Any]) -> web.Response | None:
    stated = body["metadata"]
    if (
        stated.get("resourceVersion", found["metadata"]["resourceVersion"])
        != found["metadata"]["resourceVersion"]
    ):
        return failure(409, "Conflict", "the object has been modified")
    if stated["uid"] != found["metadata"]["uid"]:
        return failure(422, "Invalid", "uid", details={"causes": [{"field": "metadata.uid"}]})
    _merge(found, body)
    return None


def _merge(found: dict[str, Any], body: dict[str, Any]) -> None:
    for key, value in body.items():
        if key == "containers":
            for one in value:
                _merge(next(other for other in found[key] if other["name"] == one["name"]), one)
        elif isinstance(value, dict):
            _merge(found.setdefault(key, {}), value)
        else:
            found[key] = value


def _json_patch(found: dict[str, Any], steps: list[dict[str, Any]]) -> web.Response | None:
    for step in steps:
        *way, last = [part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/")[1:]]
        at: Any = found
        try:
            for part in way:
                at = at[int(part) if isinstance(at, list) else part]
            key = int(last) if isinstance(at, list) else last
            if step["op"] == "test" and at[key] != step["value"]:
                return failure(422, "Invalid", "the server rejected our request")
            if step["op"] == "remove":
                del at[key]
        except (KeyError, IndexError):
            return failure(422, "Invalid", "the server rejected our request")
    return None


class Notebook:
    """A ledger in memory. `on_intend` runs once an intent is written; `broken` makes writing outcomes fail."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.entries: dict[str, Entry] = {}
        self.on_intend: Callable[[], None] = lambda: None
        self.refuses: Exception | None = None
        self.broken = False

    async def intend(
        self,
        _: Writer,
        action: Action,
        *,
        actor: Any,
        settle_ms: int,
        undoes: str = "",
        held: tuple[Freed, ...] = (),
    ) -> Record:
        if self.refuses is not None:
            raise self.refuses
        record = Record(
            id=f"r-{len(self.records)}",
            action=action,
            state="intended",
            actor=actor,
            intended_ms=NOW_MS,
            settle_ms=settle_ms,
            undoes=undoes,
            freed=held,
        )
        self.records.append(record)
        self.on_intend()
        return record

    async def advance(self, _: Writer, record: Record, state: Any, *, detail: str = "") -> Record:
        if self.broken:
            raise LedgerConflictError("written by others")
        moved = msgspec.structs.replace(record, state=state, detail=detail)
        self.records.append(moved)
        return moved

    @property
    def states(self) -> list[str]:
        return [record.state for record in self.records]


class Lease:
    """An authority that a test can take away."""

    term = 3
    holder = "me"

    def __init__(self) -> None:
        self.left_s = 100.0

    def remaining_s(self) -> float:
        if self.left_s <= 0:
            raise AuthorityLostError("the lease is gone")
        return self.left_s


class Scene:
    """A server with one workload, and everything that acting on it takes."""

    def __init__(self, api: FakeApi, session: KubeSession) -> None:
        self.api = api
        self.session = session
        self.lease = Lease()
        self.notebook = Notebook()
        self.probed: list[str] = []
        self.writer = self.new_writer()
        self.executor = Executor(self.notebook, now_ms=lambda: NOW_MS, acts_per_minute=1000)

    def new_writer(self, *, timeout_s: float = 5.0) -> Writer:
        return Writer(
            self.session,
            self.lease,
            probe=lambda site, when: self.probed.append(f"{when} {site}"),
            timeout_s=timeout_s,
        )

    def hold(self, path: str, item: dict[str, Any]) -> None:
        self.api.objects[path] = item

    async def execute(
        self, action: Action, *, actor: Any = "service", recheck: Any = None, writer: Writer | None = None
    ) -> Any:
        return await self.executor.execute(action, writer or self.writer, actor=actor, recheck=recheck)


def act(lever: str = "template", *, kind: str = "Deployment", **changes: Any) -> Action:
    """A change of the workload `web`: 2 boards to 1, 2 replicas to 1, or the eviction of pod `victim`."""
    group = "batch" if kind == "CronJob" else "apps"
    more: dict[str, Any] = {}
    if lever == "evict":
        more = {
            "after": 0,
            "pod": PodRef("team", "victim", "uid-victim"),
            "seat": Seat(PodRef("team", "waiting", "uid-waiting"), "node-1"),
        }
    return Action(
        **{
            "id": "a1",
            "method": "right-size",
            "reason": Reason.RIGHT_SIZED,
            "lever": lever,
            "target": WorkloadRef(group, kind, "team", "web"),
            "uid": "uid-web",
            "resource_version": "7",
            "resource": GPU,
            "container": "main",
            "before": 2,
            "after": 1,
            "saved_milli_boards": 1000,
            "because": "it uses one",
            **more,
            **changes,
        }
    )


class Words:
    """What tests say, without importing from a conftest."""

    gpu = GPU
    cost = DELETION_COST
    deployment, stateful_set, cron_job, pods = DEPLOYMENT, STATEFUL_SET, CRON_JOB, PODS
    act = staticmethod(act)
    container = staticmethod(container)
    workload = staticmethod(workload)
    pod = staticmethod(pod)


@pytest.fixture(autouse=True)
def no_blocking_call() -> Iterator[BlockBuster]:
    """A blocking call made by the act room inside the loop raises."""
    with blockbuster_ctx("autoscaler.act") as buster:
        yield buster


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    made = FakeApi()
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", made.handle)
    server = TestServer(app)
    await server.start_server()
    made.url = str(server.make_url("")).rstrip("/")
    yield made
    made.over.set()
    await server.close()


@pytest.fixture
async def scene(api: FakeApi) -> AsyncIterator[Scene]:
    limits = SessionLimits(
        reads_per_s=1e6, reads_burst=10**6, writes_per_s=1e6, writes_burst=10**6, attempts=1
    )
    async with open_session(api, limits) as session:
        yield Scene(api, session)


@asynccontextmanager
async def open_session(api: FakeApi, limits: SessionLimits) -> AsyncIterator[KubeSession]:
    async with KubeSession(ClusterAccess(server=api.url), limits=limits) as session:
        yield session


@pytest.fixture
def words() -> type[Words]:
    return Words
