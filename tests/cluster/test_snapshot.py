"""A snapshot is the whole truth of a plan: it gives the same answer anywhere, byte for byte."""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from autoscaler.model.plan import Plan
from autoscaler.model.reasons import Reason
from devcluster import Cluster
from devcluster.rooms import Room, open_room
from tests.cluster.live_service import (
    ACCOUNT,
    NAMESPACE,
    QUICK_POLICY,
    LiveService,
    PlanDocument,
    grant_shipped_rights,
    run_command,
)
from tests.cluster.polling import eventually
from tests.cluster.stories import half_used, lightly_used, play

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def judged_room(cluster: Cluster, service: LiveService) -> AsyncIterator[Room]:
    """A room with two actions and a refusal."""
    async with open_room(cluster) as opened:
        await opened.add_nodes(boards=8)
        await cluster.exporter.declare([lightly_used(opened, name="many")])
        await play(
            opened,
            opened.deployment("app", boards=2),
            opened.deployment("many", replicas=3),
            opened.pod("bare"),
            load=half_used(opened),
            pods=5,
        )
        await service.until_reason(opened, "app", Reason.RIGHT_SIZED)
        await service.until_reason(opened, "many", Reason.SCALED_IN)
        yield opened


def nowhere(home: Path) -> dict[str, str]:
    """An environment that knows no cluster and no metrics store, only the policy."""
    return {**QUICK_POLICY, "HOME": str(home)}


async def test_a_saved_snapshot_gives_the_live_plan_twice_without_a_cluster(
    cluster: Cluster, service: LiveService, judged_room: Room, tmp_path: Path
) -> None:
    room, file = judged_room, tmp_path / "saved.json.gz"
    scope = {"AUTOSCALER_NAMESPACES": room.namespace}
    live = {
        **QUICK_POLICY,
        **scope,
        "AUTOSCALER_KUBECONFIG": str(await grant_shipped_rights(cluster)),
        "AUTOSCALER_PROMETHEUS_URL": cluster.prometheus_url,
    }
    _, told = await run_command("snapshot", "-o", file, environment=live)
    live_output, _ = await run_command("plan", "-o", "json", environment=live)
    away = nowhere(tmp_path) | scope
    once, _ = await run_command("plan", "-f", file, "-o", "json", environment=away, alone=True)
    again, _ = await run_command("plan", "-f", file, "-o", "json", environment=away, alone=True)

    served = {one.id for one in (await service.plan()).plan.actions if one.target.namespace == room.namespace}
    saved_plan, live_plan = (msgspec.json.decode(text, type=Plan) for text in (once, live_output))
    assert once == again
    assert f"wrote {file}" in told
    assert [(one.id, one.before, one.after) for one in saved_plan.actions] == [
        (one.id, one.before, one.after) for one in live_plan.actions
    ]
    assert {one.id for one in saved_plan.actions} == served
    assert {row.workload.name: row.reason for row in saved_plan.rows} == {
        "app": Reason.RIGHT_SIZED,
        "many": Reason.SCALED_IN,
        "bare": Reason.NO_LEVER,
    }


async def test_the_snapshot_the_service_serves_gives_exactly_the_plan_it_serves(
    service: LiveService, judged_room: Room, tmp_path: Path
) -> None:
    async def both() -> tuple[PlanDocument, str, bytes]:
        name, content = await service.download("/api/v1/snapshot")
        return await service.plan(), name, content

    document, name, content = await eventually(
        both, lambda seen: seen[1] == f"snapshot-{seen[0].decision_id}.json.gz", what="both of one cycle"
    )
    file = tmp_path / name
    file.write_bytes(content)
    output, _ = await run_command("plan", "-f", file, "-o", "json", environment=nowhere(tmp_path), alone=True)

    assert {row.workload.namespace for row in document.plan.rows} >= {judged_room.namespace}
    assert msgspec.json.decode(output, type=Plan) == document.plan


async def test_one_shot_commands_write_nothing(cluster: Cluster, judged_room: Room) -> None:
    live = {
        **QUICK_POLICY,
        "AUTOSCALER_KUBECONFIG": str(await grant_shipped_rights(cluster)),
        "AUTOSCALER_PROMETHEUS_URL": cluster.prometheus_url,
    }
    reported, _ = await run_command("report", environment=live)
    explained, _ = await run_command("explain", f"{judged_room.namespace}/app", environment=live)

    assert judged_room.namespace in reported.decode()
    assert "RightSized" in explained.decode()
    assert cluster.writes_by_service_account(NAMESPACE, ACCOUNT) == []
