import gzip
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import ClientSession
from aiohttp.test_utils import TestClient, TestServer
from build import Spec, boards, cluster
from prometheus_client import CollectorRegistry, Gauge

from autoscaler.decide import plan
from autoscaler.model.cluster import Control, WorkloadRef
from autoscaler.model.ledger import Entry, Record
from autoscaler.model.plan import Action
from autoscaler.model.policy import Policy
from autoscaler.model.reasons import Reason
from autoscaler.model.snapshot import decode_snapshot
from autoscaler.service.cycle import Outcome
from autoscaler.service.http import HEADERS, LedgerView, Views, build_app
from autoscaler.service.policy_file import default_policy
from autoscaler.service.readiness import CheckResult

SNAPSHOT = cluster(
    *(Spec(name=f"app-{index}", namespace=f"team-{index % 2}", seen=(boards(0.5),)) for index in range(5))
)
OUTCOME = Outcome(
    sequence=1,
    decision_id="1-abc",
    plan=plan(SNAPSHOT, Policy(), SNAPSHOT.taken_ms),
    snapshot=SNAPSHOT,
    policy=default_policy({}),
    generated_ms=1_800_000_000_000,
    generated_s=0.0,
)


@dataclass
class World:
    latest: Outcome | None = OUTCOME
    checks: list[CheckResult] = field(default_factory=list)
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    ledger: LedgerView = field(default_factory=LedgerView)
    leader: str = ""


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
async def client(world: World) -> AsyncIterator[TestClient[Any, Any]]:
    views = Views(
        latest=lambda: world.latest,
        checks=lambda: world.checks,
        registry=world.registry,
        urls=lambda: {"prometheus": "http://prom"},
        ledger=lambda: world.ledger,
        standby_for=lambda: world.leader,
    )
    async with TestClient(TestServer(build_app(views, loopback_only=True))) as opened:
        yield opened


def check(name: str, *, ok: bool, required: bool = True, detail: str = "words") -> CheckResult:
    return CheckResult(name=name, ok=ok, required=required, detail=detail)


async def test_livez_answers_whatever_the_world_is_like(world: World, client: TestClient[Any, Any]) -> None:
    world.latest, world.checks = None, [check("prometheus", ok=False)]

    answer = await client.get("/livez")

    assert (answer.status, await answer.text()) == (200, "ok\n")


async def test_readyz_names_what_failed(world: World, client: TestClient[Any, Any]) -> None:
    world.checks = [check("watch/Pod", ok=False, detail="cut"), check("series", ok=False, required=False)]

    answer = await client.get("/readyz")

    assert (answer.status, await answer.text()) == (503, "not ready: watch/Pod: cut\n")


async def test_readyz_verbose_lists_every_check(world: World, client: TestClient[Any, Any]) -> None:
    world.checks = [check("watch/Pod", ok=True), check("series", ok=False, required=False)]

    answer = await client.get("/readyz?verbose")

    assert answer.status == 200
    assert (await answer.text()).splitlines() == [
        "[+]watch/Pod ok: words",
        "[!]series degraded: words",
        "readyz check passed",
    ]


async def test_foreign_words_cannot_forge_a_check(world: World, client: TestClient[Any, Any]) -> None:
    world.checks = [check("watch/Pod", ok=False, detail="x\n[+]watch/Pod ok\x1b[2J")]

    lines = (await (await client.get("/readyz?verbose")).text()).splitlines()

    assert lines == ["[-]watch/Pod failed: x [+]watch/Pod ok [2J", "readyz check failed"]


async def test_metrics_come_in_prometheus_text(world: World, client: TestClient[Any, Any]) -> None:
    Gauge("gpu_autoscaler_x", "X.", registry=world.registry).set(3)

    answer = await client.get("/metrics")

    assert answer.headers["Content-Type"].startswith("text/plain")
    assert "gpu_autoscaler_x 3.0" in await answer.text()


async def test_the_plan_comes_with_the_facts_about_its_making(client: TestClient[Any, Any]) -> None:
    document = await (await client.get("/api/v1/plan")).json()

    assert document["mode"] == "recommend"
    assert document["generated_at"] == "2027-01-15T08:00:00+00:00"
    assert document["urls"] == {"prometheus": "http://prom"}
    assert len(document["plan"]["rows"]) == 5
    assert sum(document["refusals_by_reason"].values()) == 5


async def test_output_is_bounded_and_says_what_is_left_out(client: TestClient[Any, Any]) -> None:
    document = await (await client.get("/api/v1/plan?limit=2")).json()

    assert len(document["plan"]["rows"]) == 2
    assert document["left_out"]["rows"] == 3


async def test_workloads_come_in_pages_and_by_namespace(client: TestClient[Any, Any]) -> None:
    document = await (await client.get("/api/v1/workloads?namespace=team-0&limit=2&offset=1")).json()

    assert document["total"] == 3
    assert [row["workload"]["name"] for row in document["workloads"]] == ["app-2", "app-4"]


@pytest.mark.parametrize("query", ["limit=-1", "limit=9999999", "limit=x", "offset=1e3", "limit=%D9%A1"])
async def test_a_bad_number_is_refused_with_what_is_allowed(client: TestClient[Any, Any], query: str) -> None:
    answer = await client.get(f"/api/v1/workloads?{query}")

    assert answer.status == 400
    assert "must be a whole number from 0 to" in (await answer.json())["error"]


async def test_explain_answers_one_workload_and_404_for_an_unknown_one(client: TestClient[Any, Any]) -> None:
    found = await (await client.get("/api/v1/explain/team-1/app-1")).json()
    missing = await client.get("/api/v1/explain/team-1/nobody")

    assert [row["workload"]["name"] for row in found["workloads"]] == ["app-1"]
    assert missing.status == 404


async def test_the_snapshot_is_what_the_plan_was_made_of(client: TestClient[Any, Any]) -> None:
    answer = await client.get("/api/v1/snapshot")
    body = await answer.read()

    assert decode_snapshot(body) == SNAPSHOT
    assert json.loads(gzip.decompress(body))["format"] == 1
    assert 'filename="snapshot-1-abc.json.gz"' in answer.headers["Content-Disposition"]


@pytest.mark.parametrize("path", ["plan", "workloads", "explain/a/b", "snapshot"])
async def test_before_the_first_plan_the_api_says_what_is_waited_for(
    world: World, client: TestClient[Any, Any], path: str
) -> None:
    world.latest, world.checks = None, [check("watch/Pod", ok=False, detail="cut")]

    answer = await client.get(f"/api/v1/{path}")

    assert answer.status == 503
    assert (await answer.json())["waiting_for"] == ["watch/Pod: cut"]


@pytest.mark.parametrize(
    "path", ["/livez", "/readyz", "/metrics", "/api/v1/plan", "/nowhere", "/api/v1/explain/a/b"]
)
async def test_every_answer_carries_the_security_headers(client: TestClient[Any, Any], path: str) -> None:
    answer = await client.get(path)

    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_no_route_changes_anything(client: TestClient[Any, Any], method: str) -> None:
    assert (await client.request(method, "/api/v1/plan")).status == 405


@pytest.mark.parametrize(
    ("host", "status"), [("evil.example", 403), ("localhost:80", 200), ("[::1]:1", 200), ("127.0.0.1", 200)]
)
async def test_a_rebound_name_is_refused_on_the_loopback(
    client: TestClient[Any, Any], host: str, status: int
) -> None:
    async with ClientSession() as session:
        answer = await session.get(client.make_url("/api/v1/plan"), headers={"Host": host})

        assert answer.status == status


def entry(name: str, *, at_ms: int, namespace: str = "team") -> Entry:
    ref = WorkloadRef("apps", "Deployment", namespace, name)
    action = Action(
        id=name,
        method="right-size",
        reason=Reason.RIGHT_SIZED,
        lever="template",
        target=ref,
        uid=f"uid-{name}",
        resource_version="1",
        resource="nvidia.com/gpu",
        container="main",
        before=2,
        after=1,
        saved_milli_boards=1000,
        because="",
    )
    record = Record(
        id=name, action=action, state="verified", actor="service", intended_ms=at_ms, settle_ms=at_ms
    )
    return Entry(ref=ref, uid=f"uid-{name}", records=(record,))


async def test_the_ledger_shows_the_latest_act_first(world: World, client: TestClient[Any, Any]) -> None:
    world.ledger = LedgerView(
        entries=[entry("older", at_ms=1), entry("newer", at_ms=2), entry("else", at_ms=3, namespace="b")],
        control=Control(paused="paused by ops"),
    )

    everything = await (await client.get("/api/v1/ledger")).json()
    of_team = await (await client.get("/api/v1/ledger?namespace=team&limit=1")).json()

    assert [one["ref"]["name"] for one in everything["entries"]] == ["else", "newer", "older"]
    assert (everything["total"], everything["paused"], everything["fault"]) == (3, "paused by ops", "")
    assert [one["ref"]["name"] for one in of_team["entries"]] == ["newer"]
    assert of_team["total"] == 2


@pytest.mark.parametrize("path", ["plan", "workloads", "explain/team/web", "snapshot", "ledger"])
async def test_a_standby_names_the_leader_instead_of_answering(
    path: str, world: World, client: TestClient[Any, Any]
) -> None:
    world.leader = "pod-b"

    answer = await client.get(f"/api/v1/{path}")

    assert answer.status == 503
    assert await answer.json() == {"error": "this process stands by, pod-b leads", "leader": "pod-b"}
