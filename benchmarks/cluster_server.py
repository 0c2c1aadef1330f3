"""A process that serves a synthetic cluster: an API server's lists and quiet watches, and a metrics store's answers.

It is as large as asked and never changes; it exists to load the service, not to prove anything about Kubernetes.
"""

import asyncio
import json
import re
import sys
import time
from collections.abc import Iterator
from typing import Any, Final

from aiohttp import web

from autoscaler.kube.kinds import KINDS
from benchmarks.synthetic import GPU, NAMESPACES, PAGE, REPLICAS_PER_OWNER, gpus_of, pod_document, pod_json

GPU_SHARE: Final = 0.27
PODS_PER_NODE: Final = 30
WINDOW_SAMPLES: Final = 120
HISTORY_SAMPLES: Final = 40_320
VERSION: Final = "5000000"


def _meta(name: str, namespace: str = "", **more: Any) -> dict[str, Any]:
    place = {"namespace": namespace} if namespace else {}
    return {"name": name, **place, "uid": f"uid-{namespace}-{name}", "resourceVersion": "1000", **more}


def _owner_names(owner: int) -> tuple[str, str]:
    return f"app-{owner}", f"team-{owner % NAMESPACES}"


def objects_of(kind: str, pods: int) -> Iterator[dict[str, Any]]:
    """The objects of a kind in a cluster of this many pods."""
    owners = range(-(-pods // REPLICAS_PER_OWNER))
    if kind == "Node":
        room = {"cpu": "512", "memory": "4Ti", "pods": "250", GPU: "64"}
        for number in range(-(-pods // PODS_PER_NODE)):
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
    pod = pod_document(first, gpus=gpus_of(first, gpu_share=GPU_SHARE))
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

    @staticmethod
    def _paged(kind: str, pods: int) -> Iterator[bytes]:
        if kind == "Pod":
            items = [pod_json(index, gpu_share=GPU_SHARE) for index in range(pods)]
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
        ]

    def _list_or_watch(self, kind: str) -> Any:
        async def handle(request: web.Request) -> web.StreamResponse:
            if "watch" in request.query:
                response = web.StreamResponse(headers={"Content-Type": "application/json"})
                await response.prepare(request)
                await asyncio.sleep(3600)
                return response
            page = int(request.query.get("continue") or 0) // PAGE
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


class MetricsStore:
    """Answers the service's queries from their text: the same series each time, with a value by function."""

    def __init__(self, pods: int) -> None:
        self._labels = list(self._series(pods))
        self._bodies: dict[tuple[float, bool], bytes] = {}

    @staticmethod
    def _series(pods: int) -> Iterator[tuple[str, int]]:
        for index in range(pods):
            meta: dict[str, Any] = {}
            for board in range(gpus_of(index, gpu_share=GPU_SHARE)):
                meta = meta or pod_document(index, gpus=1)["metadata"]
                owner = {"namespace": meta["namespace"], "pod": meta["name"], "container": "server"}
                device = {
                    "UUID": f"GPU-{index:08x}-{board:04x}",
                    "hostname": f"node-{index // PODS_PER_NODE}",
                }
                yield json.dumps({**owner, **device}, separators=(",", ":")), index % 7

    async def query(self, request: web.Request) -> web.Response:
        """An instant query."""
        text = str((await request.post()).get("query", ""))
        now_s = time.time()  # noqa: TID251 - a server's own clock
        if text.strip() == "time()":
            return self._answer("scalar", f'[{now_s:.3f},"{now_s:.3f}"]'.encode())
        if not re.search("DCGM_FI_PROF_GR_ENGINE_ACTIVE|DCGM_FI_DEV_FB|DCGM_FI_DEV_POWER", text):
            return self._answer("vector", b"[]")
        value = _value(text, now_s)
        if " by (" not in text or text.startswith("count by (job)"):
            return self._answer("vector", f'[{{"metric":{{}},"value":[{now_s:.3f},"{value}"]}}]'.encode())
        rows = (f'{{"metric":{labels},"value":[{now_s:.3f},"{value}"]}}' for labels, _ in self._labels)
        return self._answer("vector", ("[" + ",".join(rows) + "]").encode())

    @staticmethod
    def _answer(kind: str, result: bytes) -> web.Response:
        head = f'{{"status":"success","data":{{"resultType":"{kind}","result":'
        return web.Response(body=head.encode() + result + b"}}", content_type="application/json")


def _value(text: str, now_s: float) -> float:
    """A board at 12 %, 20 of 80 GiB and 110 W, sampled every 15 s without a gap."""
    history = "604800000ms" in text
    samples = HISTORY_SAMPLES if history else WINDOW_SAMPLES
    if "FB_USED" in text or "FB_FREE" in text:
        return 20_480 if "FB_USED" in text else 61_440
    if "POWER" in text:
        return 110
    if text.startswith("count by"):
        return 1
    if "timestamp" in text:
        return now_s - 604_000 if history else now_s - 5
    if "count_over_time" in text:
        return samples / 4 if "max_over_time(count" in text else samples
    if "sum_over_time" in text:
        return 0.12 * samples
    return 0.12


async def _serve(pods: int) -> None:
    app = web.Application()
    app.add_routes(ApiServer(pods).routes())
    app.router.add_post("/prometheus/api/v1/query", MetricsStore(pods).query)
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
