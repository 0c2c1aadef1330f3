"""What the doctor hears from real sockets: each way a peer can fail is another finding, and stops nothing else."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from service_worlds import (
    ScriptedApi,
    ScriptedStore,
    World,
    dcgm_series,
    deployment_objects,
    kubeconfig_text,
    running,
)

from autoscaler.model.findings import Examination, Finding
from autoscaler.model.policy import Policy
from autoscaler.service.doctor.checks import examine
from autoscaler.service.doctor.gathering import gather
from autoscaler.service.settings import load_settings

BOARDS = dcgm_series(1.0, 0.0)


class NamingStore(ScriptedStore):
    """The store, which also answers what the doctor alone asks: which metrics and targets there are."""

    def _vector(self, query: str, now_s: float) -> list[dict[str, Any]]:
        if query.startswith("count by (job) (up =="):
            up = query.endswith("== 1)")
            return [{"metric": {"job": job}, "value": [now_s, "2"]} for job in self.jobs if up]
        if re.match(r"(max|min) by \(job\)", query):
            seconds = now_s - (0 if query.startswith("max") else 30 * 86_400)
            return [{"metric": {"job": job}, "value": [now_s, str(seconds)]} for job in self.jobs]
        named = re.search('__name__=~"(.*?)"', query)
        if named is None:
            return super()._vector(query, now_s)
        return [
            {"metric": {"__name__": name, "job": job}, "value": [now_s, str(len(rows))]}
            for name, rows in self.series.items()
            for job in self.jobs
            if re.fullmatch(named.group(1), name)
        ]


async def examined(world: World, **environ: str) -> Examination:
    everything = {**world.environ, **environ}
    settings = load_settings({k: v for k, v in everything.items() if k.startswith("AUTOSCALER_")})
    return examine(await gather(settings, everything, Policy(), show=lambda _: None))


def of(examination: Examination, number: str) -> Finding:
    return next(one for one in examination.findings if one.id == number)


def healthy() -> tuple[ScriptedApi, ScriptedStore]:
    return ScriptedApi(objects=deployment_objects()), NamingStore(series=BOARDS)


@pytest.mark.parametrize(
    ("broken", "words", "fix"),
    [
        ({"status": 503, "body": "no space left"}, "the store fails: 503: no space left", "own log"),
        ({"token": "other"}, "our credentials are not accepted: 401", "AUTOSCALER_PROMETHEUS_TOKEN_FILE"),
        ({"status": 403}, "our credentials are not accepted: 403", "AUTOSCALER_PROMETHEUS_HEADERS"),
        ({"status": 429, "body": "slow down"}, "we are throttled: 429: slow down", "query limits"),
        ({"body": "<html>Sign in</html>"}, "something answers there that is not the query API", "login page"),
    ],
)
async def test_a_store_that_fails_is_named_and_the_cluster_is_examined_all_the_same(
    tmp_path: Path, broken: dict[str, Any], words: str, fix: str
) -> None:
    store = NamingStore(series=BOARDS, **broken)
    async with running(ScriptedApi(objects=deployment_objects()), store, tmp_path) as world:
        found = await examined(world)

    assert found.failed == ("D1",)
    assert of(found, "D1").found.startswith(words)
    assert fix in of(found, "D1").fix
    assert {n: of(found, n).state for n in ("D6", "D7", "D11", "D12")} == {
        **dict.fromkeys(("D6", "D7", "D11", "D12"), "ok")
    }


async def test_nobody_at_the_address_is_told_apart_from_no_such_host_and_from_a_wrong_protocol(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    async with running(*healthy(), tmp_path) as world:
        plain = world.environ["AUTOSCALER_PROMETHEUS_URL"]
        refused = await examined(world, AUTOSCALER_PROMETHEUS_URL=f"http://127.0.0.1:{unused_tcp_port}")
        unresolved = await examined(world, AUTOSCALER_PROMETHEUS_URL="http://store.invalid:9090")
        encrypted = await examined(world, AUTOSCALER_PROMETHEUS_URL=plain.replace("http:", "https:"))
        unset = await examined(world, AUTOSCALER_PROMETHEUS_URL="")

    assert of(refused, "D1").found.startswith("the connection was refused: ")
    assert of(unresolved, "D1").found.startswith("its name does not resolve: ")
    assert of(encrypted, "D1").found.startswith("TLS failed: ")
    assert of(unset, "D1").found == "AUTOSCALER_PROMETHEUS_URL is not set"


async def test_a_certificate_file_that_holds_none_is_a_finding(tmp_path: Path) -> None:
    empty = tmp_path / "ca.pem"
    empty.write_text("")
    async with running(*healthy(), tmp_path) as world:
        found = await examined(world, AUTOSCALER_PROMETHEUS_CA_FILE=str(empty))

    assert found.failed == ("D1",)
    assert of(found, "D1").fix.startswith("AUTOSCALER_PROMETHEUS_CA_FILE=")


async def test_a_healthy_world_is_told_with_its_numbers(tmp_path: Path) -> None:
    async with running(*healthy(), tmp_path) as world:
        found = await examined(world)

    assert found.failed == ()
    assert of(found, "D2").found.startswith(
        "dcgm: 2 series of DCGM_FI_DEV_GPU_UTIL from job dcgm-exporter, newest "
    )
    assert of(found, "D3").found == "1 of 1 pods with accelerators have a series (100%)"
    assert of(found, "D4").found == "2 devices, each from one place"


async def test_without_series_names_that_look_like_an_exporters_are_told(tmp_path: Path) -> None:
    api, store = healthy()
    store.series = {"nvidia_gpu_duty_cycle": [({}, 5.0)] * 3}
    async with running(api, store, tmp_path) as world:
        found = await examined(world)

    assert "look like a GPU exporter's: nvidia_gpu_duty_cycle (3)" in of(found, "D2").found


async def test_a_wrong_path_is_answered_with_the_right_one(tmp_path: Path) -> None:
    async with running(*healthy(), tmp_path) as world:
        url = world.environ["AUTOSCALER_PROMETHEUS_URL"]
        found = await examined(world, AUTOSCALER_PROMETHEUS_URL=f"{url}/graph")

    assert of(found, "D1").fix == f"AUTOSCALER_PROMETHEUS_URL={url}"


async def test_a_dead_api_server_leaves_the_store_examined(tmp_path: Path, unused_tcp_port: int) -> None:
    async with running(*healthy(), tmp_path) as world:
        elsewhere = tmp_path / "elsewhere"
        await asyncio.to_thread(elsewhere.write_text, kubeconfig_text(f"http://127.0.0.1:{unused_tcp_port}"))
        found = await examined(world, AUTOSCALER_KUBECONFIG=str(elsewhere))
        nowhere = await examined(world, AUTOSCALER_KUBECONFIG=str(tmp_path / "absent"))

    assert found.failed == ("D6",)
    assert "unreachable (refused)" in of(found, "D6").found
    assert of(found, "D1").state == "ok"
    assert nowhere.failed == ("D6",)
    assert "no kubeconfig at" in of(nowhere, "D6").found


async def test_pods_that_may_not_be_read_are_a_missing_right(tmp_path: Path) -> None:
    api, store = healthy()
    api.denied = {"Pod"}
    async with running(api, store, tmp_path) as world:
        found = await examined(world)

    assert found.failed == ("D6",)
    assert "list/watch pods in all namespaces" in of(found, "D6").found
    assert "resources: [pods], verbs: [list, watch]" in of(found, "D6").fix
    assert of(found, "D3").state == "skipped"


async def test_clocks_that_differ_are_a_finding(tmp_path: Path) -> None:
    api, store = healthy()
    store.ahead_s = 60.0
    async with running(api, store, tmp_path) as world:
        found = await examined(world)

    assert of(found, "D9").state == "failed"
    assert of(found, "D9").found.startswith("metrics store minus API server: +")


async def test_nothing_is_written_but_reviews(tmp_path: Path) -> None:
    api, store = healthy()
    async with running(api, store, tmp_path) as world:
        await examined(world)

    assert api.writes == ["POST /apis/authentication.k8s.io/v1/selfsubjectreviews"]


MONITORS = {
    "": {"resources": [{"name": "servicemonitors"}, {"name": "podmonitors"}, {"name": "prometheuses"}]},
    "servicemonitors": {
        "items": [
            {
                "metadata": {"name": "dcgm", "namespace": "gpu", "labels": {"app": "dcgm"}},
                "spec": {"selector": {"matchLabels": {"app": "dcgm-exporter"}}, "endpoints": [{}]},
            }
        ]
    },
    "podmonitors": {"items": None},
    "prometheuses": {
        "items": [
            {
                "metadata": {"name": "k8s", "namespace": "monitoring"},
                "spec": {
                    "serviceMonitorSelector": {"matchLabels": {"release": "kps"}},
                    "serviceMonitorNamespaceSelector": {},
                },
            }
        ]
    },
}


async def test_monitors_are_read_where_there_are_any(tmp_path: Path) -> None:
    api, store = healthy()
    inner = api._answer

    async def answer(request: web.Request) -> web.StreamResponse:
        root = "/apis/monitoring.coreos.com/v1"
        if request.path.startswith(root):
            return web.json_response(MONITORS[request.path.removeprefix(root).strip("/")])
        return await inner(request)

    api._answer = answer  # type: ignore[method-assign]
    async with running(api, store, tmp_path) as world:
        found = await examined(world)

    assert of(found, "D8").fix == "kubectl -n gpu label servicemonitor dcgm release=kps --overwrite"


async def test_a_store_that_breaks_off_keeps_what_was_heard(tmp_path: Path) -> None:
    async def answer(request: web.Request) -> web.Response:
        form = await request.post()
        if form.get("query") == "time()":
            body = {"status": "success", "data": {"resultType": "scalar", "result": [1.8e9, "1800000000"]}}
            return web.json_response(body)
        error = {
            "status": "error",
            "errorType": "execution",
            "error": "query processing would load too many samples",
        }
        return web.Response(status=422, text=json.dumps(error))

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with running(*healthy(), tmp_path) as world, TestServer(app) as server:
        found = await examined(world, AUTOSCALER_PROMETHEUS_URL=str(server.make_url("")).rstrip("/"))

    assert of(found, "D1").found.startswith("it does not evaluate a query: 422 execution: query processing")
    assert "metrics store minus" in of(found, "D9").found
    assert of(found, "D2").state == "skipped"
