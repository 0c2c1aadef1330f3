import asyncio
import io
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession
from service_fakes import HastyClock
from service_worlds import (
    ScriptedApi,
    ScriptedStore,
    dcgm_series,
    deployment_objects,
    running,
    serving,
)

from autoscaler.service import exit_codes
from autoscaler.service.app import Service, run_service
from autoscaler.service.faults import ServiceError
from autoscaler.service.policy_file import PolicySource
from autoscaler.service.settings import load_settings

CONSENT = {"gpu-autoscaler.io/allowed-gpus": "1,2"}


def good_world() -> tuple[ScriptedApi, ScriptedStore]:
    return ScriptedApi(objects=deployment_objects(annotations=CONSENT)), ScriptedStore(
        series=dcgm_series(10.0, 0.0)
    )


async def wait_for(url: str, path: str, part: str) -> str:
    """Asks until the answer contains the part."""
    text = ""
    async with ClientSession() as session:
        for _ in range(300):
            async with session.get(f"{url}{path}") as answer:
                text = await answer.text()
            if part in text:
                return text
            await asyncio.sleep(0.01)
    raise AssertionError(f"{part!r} never came: {text}")


def stuck_pod() -> dict[str, Any]:
    pod = deployment_objects()["Pod"][0]
    return {
        "type": "ADDED",
        "object": {
            "metadata": {**pod["metadata"], "name": "waiting", "uid": "uid-waiting", "resourceVersion": "11"},
            "spec": {**pod["spec"], "nodeName": ""},
            "status": {
                "phase": "Pending",
                "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
            },
        },
    }


async def test_the_whole_road_from_sockets_to_the_plan(tmp_path: Path) -> None:
    async with running(*good_world(), tmp_path) as world, serving(world) as url:
        plan = json.loads(await wait_for(url, "/api/v1/plan", "decision_id"))
        metrics = await wait_for(url, "/metrics", "gpu_autoscaler_cycles_total")

    (action,) = plan["plan"]["actions"]
    assert (action["before"], action["after"], action["held_by"]) == (2, 1, ["ModeRecommend"])
    assert plan["urls"]["api_server"].startswith("http://127.0.0.1")
    assert world.api.writes == []
    for line in (
        'gpu_autoscaler_ready{check="prometheus"} 1.0',
        'gpu_autoscaler_cache_objects{resource="pods"} 1.0',
        'gpu_autoscaler_watch_events_total{resource="pods",type="relist"} 1.0',
        'gpu_autoscaler_api_requests_total{code="200",resource="deployments",verb="GET"}',
        'gpu_autoscaler_prom_queries_total{outcome="ok",query="max_over_time"}',
        'gpu_autoscaler_decisions_total{action="right-size",mode="recommend",reason="RightSized"} 1.0',
        'gpu_autoscaler_metric_coverage_ratio{resource="nvidia.com/gpu"} 1.0',
        'gpu_autoscaler_breaker_open{name="fleet"} 0.0',
        "gpu_autoscaler_event_loop_lag_seconds_count",
    ):
        assert line in metrics


async def test_a_stuck_gpu_pod_starts_a_cycle_before_the_timer(tmp_path: Path) -> None:
    async with running(*good_world(), tmp_path) as world:
        world.environ["AUTOSCALER_CYCLE"] = "1d"
        async with serving(world) as url:
            await wait_for(url, "/api/v1/plan", "decision_id")
            await wait_for(url, "/readyz", "ok")
            await world.api.stream_of("Pod")

            world.api.streams["Pod"][0].put_nowait(json.dumps(stuck_pod()).encode() + b"\n")
            metrics = await wait_for(url, "/metrics", 'gpu_autoscaler_cycles_total{trigger="event"} 1.0')

    assert 'gpu_autoscaler_watch_events_total{resource="pods",type="apply"} 1.0' in metrics


async def test_readiness_returns_when_the_metrics_store_does(tmp_path: Path) -> None:
    async with running(*good_world(), tmp_path) as world:
        world.store.status, world.store.body = 503, "down"
        async with serving(world) as url:
            await wait_for(url, "/readyz", "not ready: prometheus: server_error: 503: down")
            world.store.status, world.store.body = 200, ""
            await wait_for(url, "/readyz", "ok")


async def test_readiness_returns_when_the_right_is_granted(tmp_path: Path) -> None:
    async with running(*good_world(), tmp_path) as world:
        world.api.denied = {"Pod"}
        async with serving(world) as url:
            await wait_for(url, "/readyz", "not ready: access/Pod: forbidden")
            world.api.denied = set()
            await wait_for(url, "/readyz", "ok")


async def test_the_served_snapshot_gives_the_same_plan_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from autoscaler.cli import main  # noqa: PLC0415 - only this test needs the command

    async with running(*good_world(), tmp_path) as world:
        world.environ["AUTOSCALER_CYCLE"] = "1d"
        async with serving(world) as url, ClientSession() as session:
            live = json.loads(await wait_for(url, "/api/v1/plan", "decision_id"))["plan"]
            saved = tmp_path / "cluster.json.gz"
            saved.write_bytes(await (await session.get(f"{url}/api/v1/snapshot")).read())
    monkeypatch.delenv("AUTOSCALER_KUBECONFIG", raising=False)
    capsys.readouterr()

    await asyncio.to_thread(main, ["plan", "-f", str(saved), "-o", "json"])

    assert json.loads(capsys.readouterr().out) == live


async def test_the_snapshot_command_writes_what_plan_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from autoscaler.cli import main  # noqa: PLC0415 - only this test needs the command

    saved = tmp_path / "cluster.json.gz"
    async with running(*good_world(), tmp_path) as world:
        for name, value in world.environ.items():
            monkeypatch.setenv(name, value)

        assert await asyncio.to_thread(main, ["snapshot", "-o", str(saved)]) == exit_codes.OK

    assert "1 workloads, 1 pods, 1 nodes" in capsys.readouterr().err
    assert await asyncio.to_thread(main, ["explain", "team/web", "-f", str(saved)]) == exit_codes.OK
    assert "boards per pod 2 -> 1" in capsys.readouterr().out


async def test_a_taken_port_stops_the_start_with_one_sentence(tmp_path: Path) -> None:
    async with running(*good_world(), tmp_path) as world, serving(world) as url:
        world.environ["AUTOSCALER_LISTEN"] = url.removeprefix("http://")

        with pytest.raises(ServiceError, match=r"cannot listen on 127.0.0.1:\d+: "):
            await run_service(
                load_settings(world.environ), world.environ, clock=HastyClock(), stop=asyncio.Event()
            )


async def test_a_dying_task_is_logged_and_ends_the_process_with_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logs: io.StringIO
) -> None:
    async def dies(_self: Service) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(Service, "_tell_readiness", dies)
    async with running(*good_world(), tmp_path) as world:
        settings = load_settings(world.environ)
        code = await run_service(settings, world.environ, clock=HastyClock(), stop=asyncio.Event())

    assert code == exit_codes.FAILED
    died = [line for line in map(json.loads, logs.getvalue().splitlines()) if line["msg"] == "task_died"]
    assert [(line["task"], line["error"]) for line in died] == [("readiness", "RuntimeError: a defect")]


async def test_secrets_appear_in_no_log_and_no_answer(tmp_path: Path, logs: io.StringIO) -> None:
    api, store = good_world()
    api.token = store.token = "canary-token"
    (tmp_path / "token").write_text("canary-token")
    async with running(api, store, tmp_path, token="canary-token") as world:
        world.environ["AUTOSCALER_PROMETHEUS_TOKEN_FILE"] = str(tmp_path / "token")
        world.environ["AUTOSCALER_PROMETHEUS_HEADERS"] = "X-Scope-OrgID=canary-tenant"
        async with serving(world) as url:
            said = await wait_for(url, "/readyz?verbose", "readyz check passed")
            for path in ("/metrics", "/api/v1/plan", "/api/v1/workloads"):
                said += await wait_for(url, path, "gpu")

    assert '"msg":"configuration"' in logs.getvalue()
    assert "canary" not in logs.getvalue() + said


async def test_sigterm_stops_the_real_process_with_json_logs_and_code_0(tmp_path: Path) -> None:
    async with running(*good_world(), tmp_path) as world:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "autoscaler.cli",
            "run",
            env={**os.environ, **world.environ},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stderr is not None
        assert process.stdout is not None
        lines: list[dict[str, Any]] = []
        async with asyncio.timeout(15):
            while not lines or lines[-1]["msg"] != "ready":
                lines.append(json.loads(await process.stderr.readline()))
            began_s = asyncio.get_running_loop().time()
            process.send_signal(signal.SIGTERM)
            rest = (await process.stderr.read()).splitlines()
            code = await process.wait()
            took_s = asyncio.get_running_loop().time() - began_s

        lines += [json.loads(line) for line in rest]
        assert code == 0
        assert took_s < 5
        assert await process.stdout.read() == b""
    assert list(lines[0])[:3] == ["ts", "level", "msg"]
    assert [line["msg"] for line in lines].count("configuration") == 1
    decision = next(line for line in lines if line["msg"] == "decision")
    assert (decision["ns"], decision["name"], decision["reason"]) == ("team", "web", "RightSized")
    assert decision["decision_id"].startswith("1-")
    assert lines[-1]["msg"] == "stopped"


def test_a_policy_source_is_read_before_any_socket_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text("nonsense")

    with pytest.raises(ServiceError):
        PolicySource(path, {})
