"""A process that serves the synthetic cluster as an API server does: lists, watches that stay silent, every right granted.

It is as large as asked and never changes; it exists to load the service, not to prove anything about Kubernetes. A POST to
/bench/expire ends every watch as one whose version is too old, so that everything is listed again.
"""

import asyncio
import json
import sys
from collections.abc import Iterator
from typing import Any, Final

from aiohttp import web

from autoscaler.kube.kinds import KINDS
from benchmarks.synthetic import (
    GPU,
    NAMESPACES,
    PAGE,
    PODS_PER_NODE,
    REPLICAS_PER_OWNER,
    gpus_of,
    node_boards,
    pod_document,
    pod_json,
)

VERSION: Final = "5000000"
EXPIRED: Final = {
    "kind": "Status",
    "apiVersion": "v1",
    "status": "Failure",
    "message": "too old resource version",
    "reason": "Expired",
    "code": 410,
}


def _meta(name: str, namespace: str = "", **more: Any) -> dict[str, Any]:
    place = {"namespace": namespace} if namespace else {}
    return {"name": name, **place, "uid": f"uid-{namespace}-{name}", "resourceVersion": "1000", **more}


def _owner_names(owner: int) -> tuple[str, str]:
    return f"app-{owner}", f"team-{owner % NAMESPACES}"


def objects_of(kind: str, pods: int) -> Iterator[dict[str, Any]]:
    """The objects of a kind in a cluster of this many pods."""
    owners = range(-(-pods // REPLICAS_PER_OWNER))
    if kind == "Node":
        for number in range(-(-pods // PODS_PER_NODE)):
            room = {"cpu": "512", "memory": "4Ti", "pods": "250", GPU: str(node_boards(number))}
            status = {
                "allocatable": room,
                "capacity": room,
                "conditions": [{"type": "Ready", "status": "True"}],
            }
            yield {
                "metadata": _meta(f"node-{number}", labels={"gpu-type": "a100"}),
                "spec": {},
                "status": status,
            }
    elif kind == "Namespace":
        yield from ({"metadata": _meta(f"team-{number}")} for number in range(NAMESPACES))
    elif kind == "ReplicaSet":
        for owner in owners:
            name, namespace = _owner_names(owner)
            above = {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "name": name,
                "uid": f"uid-{namespace}-{name}",
            }
            meta = _meta(f"{name}-7c9f8d6b5", namespace, ownerReferences=[{**above, "controller": True}])
            meta["uid"] = f"10000000-0000-4000-8000-{owner:012d}"
            yield {"metadata": meta, "spec": {"replicas": REPLICAS_PER_OWNER}}
    elif kind == "Deployment":
        for owner in owners:
            yield _deployment(owner)


def _deployment(owner: int) -> dict[str, Any]:
    name, namespace = _owner_names(owner)
    first = owner * REPLICAS_PER_OWNER
    pod = pod_document(first, gpus=gpus_of(first))
    status = dict.fromkeys(
        ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), REPLICAS_PER_OWNER
    )
    return {
        "metadata": _meta(name, namespace, generation=1),
        "spec": {
            "replicas": REPLICAS_PER_OWNER,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": pod["metadata"]["labels"]}, "spec": pod["spec"]},
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
            },
        },
        "status": {**status, "observedGeneration": 1},
    }


class ApiServer:
    """Lists in pages, watches that stay silent, every right granted."""

    def __init__(self, pods: int) -> None:
        self._pages = {kind: list(self._paged(kind, pods)) for kind in KINDS}
        self._lists = dict.fromkeys(KINDS, 0)
        self._expiry = asyncio.Event()

    @staticmethod
    def _paged(kind: str, pods: int) -> Iterator[bytes]:
        if kind == "Pod":
            items = [pod_json(index) for index in range(pods)]
        else:
            items = [json.dumps(found, separators=(",", ":")).encode() for found in objects_of(kind, pods)]
        for first in range(0, max(1, len(items)), PAGE):
            more = f'"continue":"{first + PAGE}",' if first + PAGE < len(items) else ""
            head = f'{{"kind":"{kind}List","apiVersion":"v1","metadata":{{{more}"resourceVersion":"{VERSION}"}},"items":['
            yield head.encode() + b",".join(items[first : first + PAGE]) + b"]}"

    def routes(self) -> list[web.RouteDef]:
        """Discovery, reviews, lists and watches."""
        lists = [web.get(kind.path, self._list_or_watch(name)) for name, kind in KINDS.items()]
        review = {"kind": "SelfSubjectAccessReview", "status": {"allowed": True}}
        return [
            web.get("/version", _fixed({"gitVersion": "v1.36.3", "major": "1", "minor": "36"})),
            web.get("/api", _fixed({"kind": "APIVersions", "versions": ["v1"]})),
            web.get("/apis", _fixed({"kind": "APIGroupList", "groups": _groups()})),
            web.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", _fixed(review)),
            *[
                web.get(path, _fixed({"kind": "APIResourceList", "resources": found}))
                for path, found in _resources()
            ],
            *lists,
            web.get("/bench/lists", self._count_lists),
            web.post("/bench/expire", self._expire),
        ]

    async def _count_lists(self, _request: web.Request) -> web.Response:
        """How many full lists of each kind were served to their end."""
        return web.json_response(self._lists)

    async def _expire(self, _request: web.Request) -> web.Response:
        self._expiry.set()
        self._expiry = asyncio.Event()
        return web.Response()

    def _list_or_watch(self, kind: str) -> Any:
        async def handle(request: web.Request) -> web.StreamResponse:
            if "watch" in request.query:
                response = web.StreamResponse(headers={"Content-Type": "application/json"})
                await response.prepare(request)
                await self._expiry.wait()
                await response.write(json.dumps({"type": "ERROR", "object": EXPIRED}).encode() + b"\n")
                return response
            page = int(request.query.get("continue") or 0) // PAGE
            self._lists[kind] += page == len(self._pages[kind]) - 1
            return web.Response(body=self._pages[kind][page], content_type="application/json")

        return handle


def _fixed(document: dict[str, Any]) -> Any:
    async def handle(_request: web.Request) -> web.Response:
        return web.json_response(document)

    return handle


def _groups() -> list[dict[str, Any]]:
    versions = sorted({(kind.group, kind.version) for kind in KINDS.values() if kind.group})
    return [
        {"name": group, "versions": [{"groupVersion": f"{group}/{version}"}]} for group, version in versions
    ]


def _resources() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for path in sorted({kind.base_path for kind in KINDS.values()}):
        yield path, [{"name": kind.plural} for kind in KINDS.values() if kind.base_path == path]


async def _serve(pods: int) -> None:
    app = web.Application()
    app.add_routes(ApiServer(pods).routes())
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
