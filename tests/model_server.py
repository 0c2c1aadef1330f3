"""A small model of the API server: the few objects that acting touches, with versions, uids and preconditions.

It answers as the real one was seen to answer (the contract and cluster tests hold both to the same words), keeps every
changing request as an audit event, and can be told to lose answers. Its controllers are instant: a changed template means
new pods, fewer replicas mean fewer pods.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec

from autoscaler.kube.errors import ApiError, Conflict, Invalid, NotFound, TooManyRequests, Unreachable
from autoscaler.kube.session import WriteVerb

GPU = "nvidia.com/gpu"
_WORKLOAD = re.compile(r"/apis/apps/v1/namespaces/([^/]+)/(deployments|statefulsets)/([^/]+?)(/scale)?")
_POD = re.compile(r"/api/v1/namespaces/([^/]+)/pods/([^/]+?)(/status|/eviction)?")
_CONFIG_MAP = re.compile(r"/api/v1/namespaces/([^/]+)/configmaps(?:/([^/]+))?")


@dataclass
class ModelWorkload:
    """A Deployment or StatefulSet."""

    name: str
    uid: str
    boards: int
    replicas: int
    plural: str = "deployments"
    version: int = 1
    born_ms: int = 0
    """When its present pods were made."""
    healthy: bool = True
    """Whether new pods become ready."""
    ours: list[str] = field(default_factory=list)
    """Our entries in managedFields."""

    def document(self, namespace: str) -> dict[str, Any]:
        amount = {GPU: str(self.boards)}
        container = {"name": "main", "resources": {"limits": amount, "requests": amount}}
        return {
            "metadata": {
                "name": self.name,
                "namespace": namespace,
                "uid": self.uid,
                "resourceVersion": str(self.version),
                "managedFields": [{"manager": "kubectl"}, *({"manager": name} for name in self.ours)],
            },
            "spec": {"replicas": self.replicas, "template": {"spec": {"containers": [container]}}},
        }


@dataclass
class ModelServer:
    """One namespace `team` of workloads and one of ConfigMaps; `agent` is who asks now."""

    now_ms: Callable[[], int]
    workloads: dict[str, ModelWorkload] = field(default_factory=dict)
    pods: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Pods that bear a mark of ours or may be evicted, by name; others need no object."""
    config_maps: dict[str, dict[str, Any]] = field(default_factory=dict)
    agent: str = "process-0"
    lose_answers: int = 0
    """So many accepted changes are not answered."""
    events: list[dict[str, Any]] = field(default_factory=list)
    version: int = 1
    budget: Callable[[str], bool] = lambda _name: True
    """Whether the disruption budgets let a pod go."""

    async def get_json(
        self,
        path: str,
        params: Mapping[str, str] | None,
        decoder: msgspec.json.Decoder[Any],
        *,
        retry: bool = True,
        timeout_s: float | None = None,
    ) -> Any:
        """The object at a path."""
        del params, retry, timeout_s
        return decoder.decode(json.dumps(self._find(path)))

    async def write(
        self,
        verb: WriteVerb,
        path: str,
        body: Any,
        decoder: msgspec.json.Decoder[Any],
        *,
        content_type: str = "application/json",
        params: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        before_send: Callable[[], None] | None = None,
    ) -> Any:
        """Changes an object, or says why not; either way the request is in the audit log."""
        del content_type, timeout_s
        if before_send is not None:
            before_send()
        body = json.loads(msgspec.json.encode(body))
        dry_run = (params or {}).get("dryRun") == "All"
        code = 200
        try:
            answer = self._change(verb, path, body, dry_run=dry_run)
        except ApiError as error:
            code = error.status
            raise
        finally:
            self._record(verb, path, body, code, dry_run=dry_run)
        if self.lose_answers and not dry_run:
            self.lose_answers -= 1
            raise Unreachable("timeout", "the answer was lost")
        return decoder.decode(json.dumps(answer))

    def owner_sets(self, name: str, *, boards: int | None = None, replicas: int | None = None) -> None:
        """The owner applies another value."""
        item = self.workloads[name]
        if boards is not None and boards != item.boards:
            item.boards, item.born_ms, item.ours = boards, self.now_ms(), []
        if replicas is not None and replicas != item.replicas:
            item.replicas, item.ours = replicas, []
        self._touch(item)

    def replace(self, name: str) -> None:
        """The owner deletes a workload and makes it anew under the same name."""
        former = self.workloads[name]
        self.version += 1
        self.workloads[name] = ModelWorkload(
            name,
            f"uid-{name}-{self.version}",
            former.boards,
            former.replicas,
            former.plural,
            self.version,
            self.now_ms(),
        )

    def _touch(self, item: ModelWorkload) -> None:
        self.version += 1
        item.version = self.version

    def _find(self, path: str) -> dict[str, Any]:
        if found := _WORKLOAD.fullmatch(path):
            item = self.workloads.get(found[3])
            if item is not None and item.plural == found[2]:
                return item.document(found[1])
        elif found := _POD.fullmatch(path):
            if found[2] in self.pods:
                return self.pods[found[2]]
        elif (found := _CONFIG_MAP.fullmatch(path)) and found[2] in self.config_maps:
            return self.config_maps[found[2]]
        raise NotFound(404, "NotFound", f"{path} not found")

    def _change(self, verb: str, path: str, body: Any, *, dry_run: bool) -> Any:
        if found := _CONFIG_MAP.fullmatch(path):
            return self._write_config_map(verb, found[2] or body["metadata"]["name"], body)
        if found := _WORKLOAD.fullmatch(path):
            self._find(path)
            return self._patch_workload(
                self.workloads[found[3]], found[1], body, scale=bool(found[4]), dry_run=dry_run
            )
        if found := _POD.fullmatch(path):
            self._find(path.removesuffix(found[3] or ""))
            return self._patch_pod(found[2], found[3] or "", body, dry_run=dry_run)
        raise NotFound(404, "NotFound", f"{path} not found")

    def _write_config_map(self, verb: str, name: str, body: dict[str, Any]) -> dict[str, Any]:
        present = self.config_maps.get(name)
        if verb == "POST" and present is not None:
            raise Conflict(409, "AlreadyExists", f"configmap {name} already exists")
        if verb == "PUT":
            if present is None:
                raise NotFound(404, "NotFound", f"configmap {name} not found")
            if body["metadata"].get("resourceVersion") != present["metadata"]["resourceVersion"]:
                raise Conflict(409, "Conflict", "the object has been modified")
        self.version += 1
        stored = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        self.config_maps[name] = stored
        return stored

    def _patch_workload(
        self, item: ModelWorkload, namespace: str, body: Any, *, scale: bool, dry_run: bool
    ) -> dict[str, Any]:
        changed = ModelWorkload(**vars(item))
        changed.ours = list(item.ours)
        if isinstance(body, list):
            self._json_patch(changed, body)
        else:
            _hold_preconditions(item, body["metadata"])
            if scale:
                changed.replicas = body["spec"]["replicas"]
            else:
                (container,) = body["spec"]["template"]["spec"]["containers"]
                changed.boards = int(container["resources"]["limits"][GPU])
                changed.born_ms = self.now_ms()
            changed.ours = ["gpu-autoscaler"]
        if not dry_run:
            vars(item).update(vars(changed))
            self._touch(item)
        return changed.document(namespace)

    def _json_patch(self, item: ModelWorkload, steps: list[dict[str, Any]]) -> None:
        document = item.document("team")
        for step in steps:
            parts = step["path"].strip("/").split("/")
            if step["op"] == "test":
                value: Any = document
                for part in parts:
                    value = value[int(part)] if isinstance(value, list) else value.get(part)
                if value != step["value"]:
                    raise Invalid(422, "Invalid", f"test of {step['path']} failed")
            else:
                removed = document["metadata"]["managedFields"].pop(int(parts[-1]))
                item.ours.remove(removed["manager"])

    def _patch_pod(self, name: str, sub: str, body: Any, *, dry_run: bool) -> Any:
        pod = self.pods[name]
        if sub == "/eviction":
            return self._evict(name, body, dry_run=dry_run)
        if not isinstance(body, list) and body["metadata"].get("uid") != pod["metadata"]["uid"]:
            raise Invalid(422, "Invalid", "metadata.uid: field is immutable")
        if isinstance(body, list):
            _hold_tests(pod, body)
        if not dry_run:
            for step in body if isinstance(body, list) else ():
                _remove(pod, step)
            if not isinstance(body, list):
                pod["metadata"].setdefault("annotations", {}).update(
                    body["metadata"].get("annotations") or {}
                )
                pod.setdefault("status", {}).update(body.get("status") or {})
                if sub == "/status":
                    ours = {"manager": "gpu-autoscaler", "subresource": "status"}
                    pod["metadata"]["managedFields"] = [ours]
        return pod

    def _evict(self, name: str, body: Any, *, dry_run: bool) -> Any:
        if body["deleteOptions"]["preconditions"]["uid"] != self.pods[name]["metadata"]["uid"]:
            raise Conflict(409, "Conflict", "the UID in the precondition does not match")
        if not self.budget(name):
            raise TooManyRequests(429, "TooManyRequests", "the pod's disruption budget does not let it go")
        if not dry_run:
            del self.pods[name]
        return {}

    def _record(self, verb: str, path: str, body: Any, code: int, *, dry_run: bool) -> None:
        at = datetime.fromtimestamp(self.now_ms() / 1000, tz=UTC)
        target: dict[str, str] = {}
        if found := _WORKLOAD.fullmatch(path):
            target = {"namespace": found[1], "resource": found[2], "name": found[3]}
            target |= {"subresource": "scale"} if found[4] else {}
        elif found := _POD.fullmatch(path):
            target = {"namespace": found[1], "resource": "pods", "name": found[2]}
            target |= {"subresource": found[3].strip("/")} if found[3] else {}
        elif found := _CONFIG_MAP.fullmatch(path):
            target = {"namespace": found[1], "resource": "configmaps", "name": body["metadata"]["name"]}
        self.events.append(
            {
                "verb": {"POST": "create", "PUT": "update", "PATCH": "patch"}.get(verb, verb.lower()),
                "objectRef": target,
                "requestURI": path + ("?dryRun=All" if dry_run else ""),
                "requestReceivedTimestamp": at.isoformat(),
                "responseStatus": {"code": code},
                "requestObject": body,
                "userAgent": self.agent,
                "user": {"username": "service"},
            }
        )

    def lease_taken(self, holder: str) -> None:
        """Notes a leadership in the audit log: who holds the lease from now on."""
        at = datetime.fromtimestamp(self.now_ms() / 1000, tz=UTC)
        self.events.append(
            {
                "verb": "update",
                "objectRef": {"namespace": "own", "resource": "leases", "name": "gpu-autoscaler"},
                "requestURI": "",
                "requestReceivedTimestamp": at.isoformat(),
                "responseStatus": {"code": 200},
                "requestObject": {"spec": {"holderIdentity": holder}},
                "userAgent": self.agent,
                "user": {"username": "service"},
            }
        )


def _hold_preconditions(item: ModelWorkload, metadata: Mapping[str, Any]) -> None:
    if metadata.get("resourceVersion", str(item.version)) != str(item.version):
        raise Conflict(409, "Conflict", "the object has been modified")
    if metadata.get("uid", item.uid) != item.uid:
        raise Invalid(422, "Invalid", "metadata.uid: field is immutable")


def _hold_tests(document: Mapping[str, Any], steps: list[dict[str, Any]]) -> None:
    for step in steps:
        value: Any = document
        for part in _parts(step) if step["op"] == "test" else ():
            value = value.get(part) if isinstance(value, Mapping) else None
        if step["op"] == "test" and value != step["value"]:
            raise Invalid(422, "Invalid", f"test of {step['path']} failed")


def _remove(document: dict[str, Any], step: dict[str, Any]) -> None:
    if step["op"] == "remove":
        *way, last = _parts(step)
        for part in way:
            document = document[part]
        del document[last]


def _parts(step: dict[str, Any]) -> list[str]:
    return [part.replace("~1", "/") for part in step["path"].strip("/").split("/")]
