"""Bad worlds, one row each: what a command says and exits with, and what readiness says of the running service.

A row breaks one thing in a world where all else works. The rule of the table: never a crash, never a guess.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import ClientSession
from service_fakes import HastyClock
from service_worlds import (
    GPU,
    ScriptedApi,
    ScriptedStore,
    World,
    dcgm_series,
    deployment_objects,
    kubeconfig_text,
    running,
    serving,
)

from autoscaler.cli import main
from autoscaler.service.app import run_service
from autoscaler.service.faults import ServiceError
from autoscaler.service.settings import load_settings

CONSENT = {"gpu-autoscaler.io/allowed-gpus": "1,2"}
DEAD = "http://127.0.0.1:9"
"""The discard port: nothing listens there."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One bad world. `told` is on stderr or stdout of `plan`; `ready` are parts of `/readyz?verbose`."""

    break_it: Callable[[World, Path], None] = lambda _world, _folder: None
    objects: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=lambda: dict(CONSENT))
    exit_code: int = 0
    told: tuple[str, ...] = ()
    starts: bool = True
    status: int = 200
    ready: tuple[str, ...] = ()
    reason: str = ""
    """Why the one workload is left alone; empty: it is not judged, or acted on."""


def env(**changes: str) -> Callable[[World, Path], None]:
    return lambda world, _: world.environ.update(
        {f"AUTOSCALER_{key}": value for key, value in changes.items()}
    )


def store(**changes: object) -> Callable[[World, Path], None]:
    return lambda world, _: world.store.__dict__.update(changes)


def pinned(job: str) -> Callable[[World, Path], None]:
    def pin(world: World, folder: Path) -> None:
        del folder
        world.store.jobs = ["dcgm-exporter", "tenant"]
        world.environ["AUTOSCALER_EVIDENCE_SOURCE_JOB"] = job

    return pin


def api(**changes: object) -> Callable[[World, Path], None]:
    return lambda world, _: world.api.__dict__.update(changes)


def policy_text(text: str) -> Callable[[World, Path], None]:
    def write(world: World, folder: Path) -> None:
        (folder / "policy.yaml").write_text(text)
        world.environ["AUTOSCALER_POLICY_FILE"] = str(folder / "policy.yaml")

    return write


def quota_of(amount: str) -> Callable[[World, Path], None]:
    def add(world: World, folder: Path) -> None:
        del folder
        key = f"requests.{GPU}"
        meta = {"name": "gpus", "namespace": "team", "uid": "uid-quota", "resourceVersion": "5"}
        status = {"hard": {key: amount}, "used": {key: "2"}}
        world.api.objects["ResourceQuota"] = [
            {"metadata": meta, "spec": {"hard": {key: amount}}, "status": status}
        ]

    return add


def dead_api(world: World, folder: Path) -> None:
    Path(world.environ["AUTOSCALER_KUBECONFIG"]).write_text(kubeconfig_text(DEAD))
    del folder


ROWS = {
    "a good world": Row(
        told=("boards per pod 2 -> 1",), ready=("[+]prometheus ok", "[+]series ok: series: dcgm 2")
    ),
    "no metrics store configured": Row(
        break_it=env(PROMETHEUS_URL=""),
        exit_code=2,
        told=("AUTOSCALER_PROMETHEUS_URL is not set",),
        starts=False,
    ),
    "an unreachable metrics store": Row(
        break_it=env(PROMETHEUS_URL=DEAD),
        exit_code=1,
        told=("the metrics store failed: unreachable: 127.0.0.1",),
        status=503,
        ready=("[-]prometheus failed: unreachable: 127.0.0.1", "[+]watch/Pod ok: 1 objects"),
        reason="EvidenceAbsent",
    ),
    "a URL that is no metrics store": Row(
        break_it=store(body="<html>hello</html>"),
        exit_code=1,
        told=("the metrics store failed: not_prometheus",),
        status=503,
        ready=("[-]prometheus failed: not_prometheus",),
        reason="EvidenceAbsent",
    ),
    "a metrics store that answers other JSON": Row(
        break_it=store(body='{"status": "fine"}'),
        exit_code=1,
        told=("the metrics store failed: not_prometheus",),
        status=503,
        ready=("[-]prometheus failed: not_prometheus",),
        reason="EvidenceAbsent",
    ),
    "a token that the metrics store refuses": Row(
        break_it=store(token="another"),
        exit_code=1,
        told=("the metrics store failed: refused: 401 Unauthorized: token refused",),
        status=503,
        ready=("[-]prometheus failed: refused: 401 Unauthorized: token refused",),
        reason="EvidenceAbsent",
    ),
    "a metrics store that fails": Row(
        break_it=store(status=503, body="overloaded"),
        exit_code=1,
        told=("the metrics store failed: server_error: 503: overloaded",),
        status=503,
        ready=("[-]prometheus failed: server_error",),
        reason="EvidenceAbsent",
    ),
    "a metrics store that warns": Row(
        break_it=store(warnings=["a store is down"]),
        told=("metrics store warned: a store is down",),
        ready=("[+]prometheus ok",),
        reason="EvidencePartial",
    ),
    "a metrics store without our series": Row(
        break_it=store(series={}),
        ready=("[!]series degraded: no accelerator series of any profile: unknown is not idle",),
        reason="EvidenceAbsent",
    ),
    "two scrape jobs that publish the same metrics": Row(
        break_it=store(jobs=["dcgm-exporter", "tenant"]),
        told=("several scrape jobs publish GPU series", "set evidence.sourceJob"),
        ready=(
            "[!]series degraded: several scrape jobs",
            "(dcgm: dcgm-exporter, tenant): set evidence.sourceJob",
        ),
        reason="EvidenceUnattributed",
    ),
    "two scrape jobs of which one is pinned": Row(
        break_it=pinned("dcgm-exporter"),
        told=("boards per pod 2 -> 1",),
        ready=("[+]series ok: series: dcgm 2; scrape jobs pinned by dcgm-exporter: dcgm-exporter",),
    ),
    "a pin that matches no job": Row(
        break_it=pinned("typo"),
        ready=("[!]series degraded: no accelerator series of any profile from scrape job typo",),
        reason="EvidenceAbsent",
    ),
    "an unreachable API server": Row(
        break_it=dead_api,
        exit_code=1,
        told=("http://127.0.0.1:9: API server unreachable (refused)",),
        status=503,
        ready=(
            "[-]api-server failed: API server unreachable (refused)",
            "[-]cycle failed: api-server: API server",
        ),
    ),
    "a token that the API server refuses": Row(
        break_it=api(token="another"),
        exit_code=1,
        told=("401 Unauthorized",),
        status=503,
        ready=("[-]api-server failed: 401 Unauthorized",),
    ),
    "no kubeconfig": Row(
        break_it=env(KUBECONFIG="/nowhere/kubeconfig"),
        exit_code=2,
        told=("the way to the API server cannot be worked out: no kubeconfig at /nowhere/kubeconfig",),
        starts=False,
    ),
    "no right to read pods": Row(
        break_it=api(denied={"Pod"}),
        exit_code=1,
        told=("Pod is forbidden: may not list", "no RBAC policy matched"),
        status=503,
        ready=("[-]access/Pod failed: forbidden: pods is forbidden", "[-]cycle failed: watch/Pod: forbidden"),
    ),
    "no right to read quotas": Row(
        break_it=api(denied={"ResourceQuota"}),
        told=("may not read ResourceQuota: may not list",),
        ready=("[!]access/ResourceQuota degraded: forbidden", "readyz check passed"),
        reason="Forbidden",
    ),
    "no right to read disruption budgets": Row(
        break_it=api(denied={"PodDisruptionBudget"}),
        told=("may not read PodDisruptionBudget",),
        ready=("[!]access/PodDisruptionBudget degraded: forbidden",),
        reason="Forbidden",
    ),
    "no right to read autoscalers": Row(
        break_it=api(denied={"HorizontalPodAutoscaler"}),
        told=("may not read HorizontalPodAutoscaler",),
        ready=("[!]access/HorizontalPodAutoscaler degraded: forbidden",),
        reason="Forbidden",
    ),
    "a server without CronJobs and autoscalers": Row(
        break_it=api(absent={"CronJob", "HorizontalPodAutoscaler"}),
        told=("boards per pod 2 -> 1",),
        ready=("[+]access/CronJob ok: absent", "readyz check passed"),
    ),
    "a server without pods": Row(
        break_it=api(absent={"Pod"}),
        exit_code=1,
        told=("Pod is absent: the server has no pods in v1",),
        status=503,
        ready=("[-]access/Pod failed: absent",),
    ),
    "a malformed policy": Row(
        break_it=policy_text("apiVersion: gpu-autoscaler.io/v1alpha1\nkind: Policy\nevidence: {windw: 5m}\n"),
        exit_code=2,
        told=(
            "policy.yaml: Object contains unknown field `windw` - at `$.evidence` (allowed: window, interval",
        ),
        starts=False,
    ),
    "a policy that is no YAML": Row(
        break_it=policy_text("{"), exit_code=2, told=("policy.yaml: not YAML",), starts=False
    ),
    "a misspelt variable": Row(
        break_it=env(PROMETHEUS_ULR="x"),
        exit_code=2,
        told=("AUTOSCALER_PROMETHEUS_ULR is not a setting; did you mean AUTOSCALER_PROMETHEUS_URL?",),
        starts=False,
    ),
    "no exporter profile": Row(
        break_it=env(PROFILES_DIR="/nowhere"),
        exit_code=2,
        told=("exporter profiles: /nowhere is not a folder",),
        starts=False,
    ),
    "an unparsable quantity of a pod": Row(
        objects={"memory": "plenty"},
        ready=("readyz check passed",),
        told=("unreadable", "'plenty'"),
        reason="NoLever",
    ),
    "an unparsable quantity of a quota": Row(
        break_it=quota_of("eight"),
        ready=("[+]watch/ResourceQuota ok: 1 objects",),
        told=("'eight'",),
        reason="QuotaShort",
    ),
    "an unparsable annotation": Row(
        annotations={"gpu-autoscaler.io/allowed-gpus": "1,banana"},
        ready=("readyz check passed",),
        told=("banana",),
        reason="NeedsConsent",
    ),
    "clocks that disagree": Row(
        break_it=store(ahead_s=600.0),
        ready=("[-]clock failed: metrics store minus API server: ",),
        status=503,
        reason="ClockSkew",
    ),
    "an API server whose clock is behind": Row(
        break_it=api(ahead_s=-600.0), ready=("[-]clock failed",), status=503, reason="ClockSkew"
    ),
}


def scripted_world(row: Row) -> World:
    objects = deployment_objects(annotations=row.annotations, **row.objects)
    return World(ScriptedApi(objects=objects), ScriptedStore(series=dcgm_series(10.0, 0.0)), {})


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
async def test_a_command_says_what_is_wrong_and_exits_accordingly(
    row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted = scripted_world(row)
    async with running(scripted.api, scripted.store, tmp_path) as world:
        row.break_it(world, tmp_path)
        for name, value in world.environ.items():
            monkeypatch.setenv(name, value)

        code = await asyncio.to_thread(main, ["report", "-o", "wide"])
        planned = await asyncio.to_thread(main, ["plan", "-o", "wide"])

    out, err = capsys.readouterr()
    assert code == planned == row.exit_code
    for part in row.told:
        assert part in out + err
    if row.reason:
        line = next(line for line in out.splitlines() if line.startswith("team/web"))
        assert row.reason in line
    assert "Traceback" not in out + err
    if row.exit_code:
        assert err.startswith("gpu-autoscaler: ")
    assert world.api.writes == []


@pytest.mark.parametrize(
    "row", [row for row in ROWS.values() if row.starts], ids=[n for n, row in ROWS.items() if row.starts]
)
async def test_a_running_service_names_it_in_readiness_and_lives_on(row: Row, tmp_path: Path) -> None:
    scripted = scripted_world(row)
    async with running(scripted.api, scripted.store, tmp_path) as world:
        row.break_it(world, tmp_path)
        text, status = "", 0
        async with serving(world) as url, ClientSession() as session:
            for _ in range(200):
                answer = await session.get(f"{url}/readyz?verbose")
                text, status = await answer.text(), answer.status
                if status == row.status and all(part in text for part in row.ready):
                    break
                await asyncio.sleep(0.02)
            alive = (await session.get(f"{url}/livez")).status
            if row.reason:
                explained = await (await session.get(f"{url}/api/v1/explain/team/web")).json()
                assert explained["workloads"][0]["reason"] == row.reason
                assert explained["workloads"][0]["action"] is None

    assert [part for part in row.ready if part not in text] == [], text
    assert (status, alive) == (row.status, 200)
    assert world.api.writes == []


@pytest.mark.parametrize(
    "row",
    [row for row in ROWS.values() if not row.starts],
    ids=[n for n, row in ROWS.items() if not row.starts],
)
async def test_a_service_that_cannot_start_says_why(row: Row, tmp_path: Path) -> None:
    scripted = scripted_world(row)
    async with running(scripted.api, scripted.store, tmp_path) as world:
        row.break_it(world, tmp_path)

        with pytest.raises(ServiceError) as caught:
            await run_service(load_settings(world.environ), world.environ, clock=HastyClock())

    assert caught.value.exit_code == row.exit_code
    for part in row.told:
        assert part in str(caught.value)
