"""An API server in memory, as far as acting meets it: versions, preconditions, patches and evictions; nothing runs.

What it does is what was seen of a real one: a stale version is 409, a wrong uid 422, data over 1 MiB is refused, a
patch by us leaves our name in `managedFields`. Controllers, scheduling and pods that come and go are the test's to play.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from autoscaler.act.contract import AuthorityLostError
from autoscaler.act.executor import Executor
from autoscaler.act.ledger import ConfigMapLedger
from autoscaler.act.requests import FIELD_MANAGER, workload_path
from autoscaler.act.shards import NAME, number_of
from autoscaler.act.writer import Writer
from autoscaler.kube.errors import Conflict, Invalid, KubeError, NotFound, UnexpectedBody
from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.ledger import Change, Entry, Record
from autoscaler.model.plan import Action, Lever, PodRef, Seat
from autoscaler.model.policy import Guards
from autoscaler.model.reasons import Reason

GPU = "nvidia.com/gpu"
NAMESPACE = "gpu-autoscaler"
NOW_MS = 1_800_000_000_000
CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
MOST_DATA = 2**20
WEB = WorkloadRef("apps", "Deployment", "team", "web")
SET = WorkloadRef("apps", "StatefulSet", "team", "set")
NIGHTLY = WorkloadRef("batch", "CronJob", "team", "nightly")
Hook = Callable[[str, str], None]
"""Called with verb and path; what it raises ends the request."""


@dataclass
class Clock:
    """The server's time, as the test sets it."""

    ms: int = NOW_MS

    def __call__(self) -> int:
        return self.ms

    def pass_ms(self, span_ms: int) -> None:
        self.ms += span_ms


@dataclass
class Right:
    """An authority that a test can take away; term 0 is a person's."""

    term: int = 1
    holder: str = "one"
    lost: bool = False

    def remaining_s(self) -> float:
        if self.lost:
            raise AuthorityLostError("the lease is gone")
        return 10.0


@dataclass
class FakeServer:
    """Objects by path. `before` and `after` are a test's chance to interfere with a changing request."""

    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    before: Hook = lambda _verb, _path: None
    after: Hook = lambda _verb, _path: None
    sent: list[str] = field(default_factory=list)
    version: int = 100

    def put(self, path: str, item: dict[str, Any]) -> None:
        """Stores an object as somebody else would: under a new version."""
        self.version += 1
        self.objects[path] = copy.deepcopy(item)
        self.objects[path]["metadata"]["resourceVersion"] = str(self.version)

    async def get_json(
        self,
        path: str,
        params: Mapping[str, str] | None,
        decoder: "msgspec.json.Decoder[Any]",
        *,
        retry: bool = True,
        timeout_s: float | None = None,
    ) -> Any:
        del params, retry, timeout_s
        return decoder.decode(msgspec.json.encode(self._found(path)))

    async def write(
        self,
        verb: Any,
        path: str,
        body: Any,
        decoder: "msgspec.json.Decoder[Any]",
        *,
        content_type: str = "application/json",
        params: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        before_send: Callable[[], None] | None = None,
    ) -> Any:
        del timeout_s
        if before_send is not None:
            before_send()
        dry = bool((params or {}).get("dryRun"))
        sent = msgspec.json.decode(msgspec.json.encode(body))
        if not dry:
            self.before(verb, path)
            self.sent.append(f"{verb} {path}")
        answer = self._answer(verb, path, sent, content_type, dict(params or {}), dry=dry)
        if not dry:
            self.after(verb, path)
        return decoder.decode(msgspec.json.encode(answer))

    def _found(self, path: str) -> dict[str, Any]:
        if path not in self.objects:
            raise NotFound(404, "NotFound", f"{path} not found")
        return self.objects[path]

    def _answer(
        self, verb: str, path: str, body: Any, content_type: str, params: dict[str, str], *, dry: bool
    ) -> dict[str, Any]:
        if path.endswith("/eviction"):
            self._evict(path.removesuffix("/eviction"), body, dry=dry)
        target, changed = path, dict[str, Any]()
        if verb == "POST":
            target = f"{path}/{body['metadata']['name']}"
            if target in self.objects:
                raise Conflict(409, "AlreadyExists", f"{target} already exists")
            changed = body
            changed["metadata"]["uid"] = f"uid-{body['metadata']['name']}"
        else:
            target = path.removesuffix("/scale").removesuffix("/status")
            found = self._found(target)
            _check(found, body)
            changed = body if verb == "PUT" else _patched(found, body, content_type)
            changed["metadata"].setdefault("uid", found["metadata"]["uid"])
            if "fieldManager" in params and isinstance(body, dict):
                _note(changed, params["fieldManager"])
        data = changed.get("data") or {}
        if sum(len(text.encode()) for text in data.values()) > MOST_DATA:
            raise Invalid(422, "Invalid", "data: Too long: must have at most 1048576 bytes")
        if dry:
            return changed
        self.put(target, changed)
        return self.objects[target]

    def _evict(self, path: str, body: Any, *, dry: bool) -> None:
        pod = self._found(path)
        if body["deleteOptions"]["preconditions"]["uid"] != pod["metadata"]["uid"]:
            raise Conflict(409, "Conflict", "the UID in the precondition does not match the UID in record")
        if not dry:
            del self.objects[path]
            self.after("POST", f"{path}/eviction")
        raise UnexpectedBody(201, "", "a Status object instead of an answer: Success")


def _check(found: Mapping[str, Any], body: Any) -> None:
    if not isinstance(body, dict):
        return
    meta, live = body.get("metadata", {}), found["metadata"]
    if meta.get("uid", live["uid"]) != live["uid"]:
        raise Invalid(422, "Invalid", "metadata.uid: field is immutable")
    if meta.get("resourceVersion", live["resourceVersion"]) != live["resourceVersion"]:
        raise Conflict(409, "Conflict", "the object has been modified")


def _patched(found: Mapping[str, Any], body: Any, content_type: str) -> dict[str, Any]:
    item = copy.deepcopy(dict(found))
    if content_type != "application/json-patch+json":
        return dict(_merged(item, body))
    for step in body:
        *parents, last = [part.replace("~1", "/") for part in step["path"].split("/")[1:]]
        at: Any = item
        try:
            for part in parents:
                at = at[int(part) if isinstance(at, list) else part]
            key = int(last) if isinstance(at, list) else last
            same = step["op"] != "test" or at[key] == step["value"]
            if step["op"] == "remove":
                del at[key]
        except (KeyError, IndexError):
            same = False
        if not same:
            raise Invalid(422, "Invalid", "the server rejected our request due to an error in our request")
    return item


def _merged(old: Any, new: Any) -> Any:
    """A strategic merge as far as it is used: named lists by their names, None removes."""
    if isinstance(old, list) and isinstance(new, list):
        by_name = {one["name"]: one for one in new}
        return [_merged(one, by_name.get(one["name"], {})) for one in old]
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    kept = {key: value for key, value in old.items() if new.get(key, value) is not None}
    return kept | {key: _merged(kept.get(key), value) for key, value in new.items() if value is not None}


def _note(item: dict[str, Any], manager: str) -> None:
    entries = item["metadata"].setdefault("managedFields", [])
    if all(entry["manager"] != manager for entry in entries):
        entries.append({"manager": manager})


def container(boards: int, name: str = "main") -> dict[str, Any]:
    """A container that states its boards as limits."""
    return {"name": name, "resources": {"limits": {GPU: str(boards)}}}


@dataclass
class ActWorld:
    """A server with workloads, and everything that acting on them takes."""

    server: FakeServer = field(default_factory=FakeServer)
    clock: Clock = field(default_factory=Clock)
    guards: Guards = field(default_factory=Guards)
    shards: int = 2

    def __post_init__(self) -> None:
        self.ledger = self.new_ledger()
        self.executor = self.new_executor(self.ledger)
        self.writer = self.writer_of(1, "one")
        self.person = self.writer_of(0, "alice")

    def new_ledger(self) -> ConfigMapLedger:
        """Another process' look at the same ConfigMaps."""
        return ConfigMapLedger(
            namespace=NAMESPACE, now_ms=self.clock, guards=lambda: self.guards, shards=self.shards
        )

    def new_executor(self, ledger: ConfigMapLedger) -> Executor:
        return Executor(ledger, now_ms=self.clock, acts_per_minute=1_000_000)

    def writer_of(self, term: int, holder: str) -> Writer:
        return Writer(self.server, Right(term, holder))

    def add(self, ref: WorkloadRef = WEB, *, boards: int = 4, replicas: int = 3, uid: str = "") -> None:
        """A workload; its uid follows from its name."""
        template = {"spec": {"containers": [container(boards), container(1, "aside")]}}
        spec: dict[str, Any] = {"replicas": replicas, "template": template}
        if ref.kind == "CronJob":
            spec = {"jobTemplate": {"spec": {"template": template}}}
        meta = {"name": ref.name, "namespace": ref.namespace, "uid": uid or uid_of(ref), "managedFields": []}
        self.server.put(workload_path(ref), {"metadata": meta, "spec": spec})

    def add_pod(self, pod: PodRef, *, node: str = "node-1", phase: str = "Running") -> None:
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
        meta = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
        spec = {"nodeName": node} if node else {}
        self.server.put(path, {"metadata": meta, "spec": spec, "status": {"phase": phase}})

    def value(self, lever: Lever = "template", ref: WorkloadRef = WEB) -> int:
        """What the workload states now."""
        spec = self.server.objects[workload_path(ref)]["spec"]
        if lever == "scale":
            return int(spec["replicas"])
        spec = spec["jobTemplate"]["spec"] if "jobTemplate" in spec else spec
        return int(spec["template"]["spec"]["containers"][0]["resources"]["limits"][GPU])

    def set_value(self, value: int, lever: Lever = "template", ref: WorkloadRef = WEB) -> None:
        """What the workload's owner does."""
        item = copy.deepcopy(self.server.objects[workload_path(ref)])
        spec = item["spec"]
        if lever == "scale":
            spec["replicas"] = value
        else:
            spec = spec["jobTemplate"]["spec"] if "jobTemplate" in spec else spec
            spec["template"]["spec"]["containers"][0]["resources"]["limits"][GPU] = str(value)
        self.server.put(workload_path(ref), item)

    def leave_trace(self, ref: WorkloadRef = WEB) -> None:
        """The change that is there came from us: our name is in managedFields until it is written down."""
        item = copy.deepcopy(self.server.objects[workload_path(ref)])
        item["metadata"].setdefault("managedFields", []).append({"manager": FIELD_MANAGER})
        self.server.put(workload_path(ref), item)

    def remove(self, ref: WorkloadRef = WEB) -> None:
        del self.server.objects[workload_path(ref)]

    def traces(self, ref: WorkloadRef = WEB) -> list[str]:
        """Who is named in the workload's managedFields."""
        fields = self.server.objects[workload_path(ref)]["metadata"]["managedFields"]
        return [entry["manager"] for entry in fields]

    async def act(self, after: int, lever: Lever = "template", ref: WorkloadRef = WEB, **more: Any) -> Any:
        """An act of the service from what is there now."""
        action = change_action(self.value(lever, ref), after, lever=lever, ref=ref)
        return await self.executor.execute(
            action, self.writer, actor="service", recheck=_as_planned, **({"undoes": ""} | more)
        )

    async def reload(self, ledger: ConfigMapLedger | None = None) -> Entry | None:
        """The entry of the Deployment as it is stored."""
        await (ledger or self.ledger).load(self.server)
        return (ledger or self.ledger).entries.get(uid_of(WEB))

    def shard_path(self, uid: str) -> str:
        return f"{CONFIG_MAPS}/{NAME}-{number_of(uid, self.shards)}"

    def store_text(self, uid: str, text: str) -> None:
        """Puts a text into the ledger past everything that writes it."""
        path = self.shard_path(uid)
        item = self.server.objects.get(path) or {
            "metadata": {"name": path.rpartition("/")[2], "uid": "uid-cm"}
        }
        self.server.put(path, {**item, "data": {**item.get("data", {}), uid: text}})

    def text(self, uid: str) -> str:
        """What is stored for a workload."""
        return str(self.server.objects[self.shard_path(uid)]["data"][uid])


async def _as_planned(action: Action) -> Action:
    return action


def uid_of(ref: WorkloadRef) -> str:
    return f"uid-{ref.name}"


def change_action(
    before: int, after: int, *, lever: Lever = "template", ref: WorkloadRef = WEB, **more: Any
) -> Action:
    """A change of a template's first container or of replicas."""
    sizes = (
        {"resource": GPU, "container": "main"} if lever == "template" else {"resource": GPU, "container": ""}
    )
    return Action(
        **{
            "id": f"{lever}-{before}-{after}",
            "method": "right-size" if lever == "template" else "scale-in",
            "reason": Reason.RIGHT_SIZED if lever == "template" else Reason.SCALED_IN,
            "lever": lever,
            "target": ref,
            "uid": uid_of(ref),
            "resource_version": "",
            "before": before,
            "after": after,
            "saved_milli_boards": (before - after) * 1000,
            "because": "it uses less",
            **sizes,
            **more,
        }
    )


def eviction(pod: PodRef, *, seat: Seat | None = None, ref: WorkloadRef = WEB, **more: Any) -> Action:
    """The eviction of one pod that holds a board."""
    return change_action(
        1,
        0,
        ref=ref,
        **{"lever": "evict", "id": f"evict-{pod.name}", "method": "make-room", "reason": Reason.MADE_ROOM}
        | {"pod": pod, "seat": seat, "saved_milli_boards": 1000}
        | more,
    )


def record_of(action: Action, state: Any = "intended", **more: Any) -> Record:
    """A record as it would be written by the service, accepted a minute after the beginning."""
    sent = state not in {"intended", "dropped"}
    return Record(
        **{
            "id": f"{action.id}-r",
            "action": action,
            "state": state,
            "actor": "service",
            "intended_ms": NOW_MS,
            "settle_ms": NOW_MS + 15_000,
            "acted_ms": NOW_MS if sent else -1,
            **more,
        }
    )


def entry_of(
    *records: Record, changes: tuple[Change, ...] = (), ref: WorkloadRef = WEB, **more: Any
) -> Entry:
    """An entry of a workload."""
    return Entry(ref=ref, uid=uid_of(ref), records=records, changes=changes, **more)


def fail_once(error: KubeError, *, on: str, after: bool = False) -> Callable[[FakeServer], None]:
    """Makes the next changing request whose verb and path contain a text end in an error, carried out or not."""

    def arm(server: FakeServer) -> None:
        def hook(verb: str, path: str) -> None:
            if on in f"{verb} {path}":
                server.before = server.after = lambda _verb, _path: None
                raise error

        if after:
            server.after = hook
        else:
            server.before = hook

    return arm


__all__ = [
    "CONFIG_MAPS",
    "GPU",
    "MOST_DATA",
    "NAMESPACE",
    "NIGHTLY",
    "NOW_MS",
    "SET",
    "WEB",
    "ActWorld",
    "Clock",
    "FakeServer",
    "Right",
    "change_action",
    "container",
    "entry_of",
    "eviction",
    "fail_once",
    "record_of",
    "uid_of",
]
