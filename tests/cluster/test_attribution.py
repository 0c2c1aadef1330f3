"""From live pods to the workload that owns them, through the owner references that real controllers write."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from autoscaler.model.plan import ExplainRow
from autoscaler.model.reasons import Reason
from devcluster import Cluster
from devcluster.rooms import Room
from tests.cluster.live_service import LiveService
from tests.cluster.polling import eventually
from tests.cluster.stories import half_used, play, staged

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(150)]

KEEPS_RUNNING = {"devcluster.gpu-autoscaler.io/keeps-running": "true"}


def template(room: Room, **fields: Any) -> dict[str, Any]:
    return {
        "metadata": {"labels": {"app": "app"}, "annotations": KEEPS_RUNNING},
        "spec": room.pod_spec(2, **fields),
    }


def workload(room: Room, api: str, kind: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": "app", "namespace": room.namespace},
        "spec": spec,
    }


async def stateful_set(room: Room) -> None:
    await room.add_nodes()
    selector = {"matchLabels": {"app": "app"}}
    spec = {"serviceName": "app", "replicas": 2, "selector": selector, "template": template(room)}
    await play(
        room,
        workload(room, "apps/v1", "StatefulSet", **spec),
        load=half_used(room, kind="StatefulSet"),
        pods=2,
    )


async def daemon_set(room: Room) -> None:
    await room.add_nodes()
    spec = {"selector": {"matchLabels": {"app": "app"}}, "template": template(room)}
    await play(room, workload(room, "apps/v1", "DaemonSet", **spec), load=half_used(room, kind="DaemonSet"))


async def job(room: Room) -> None:
    await room.add_nodes()
    spec = {"template": template(room, restartPolicy="Never")}
    await play(room, workload(room, "batch/v1", "Job", **spec), load=half_used(room, kind="Job"))


async def cron_job(room: Room) -> None:
    """A run of a CronJob, started by hand as `kubectl create job --from` does it."""
    await room.add_nodes()
    spec = {
        "schedule": "0 0 1 1 *",
        "jobTemplate": {"spec": {"template": template(room, restartPolicy="Never")}},
    }
    await room.cluster.exporter.declare([half_used(room, kind="Job", name="run")])
    await room.cluster.apply([workload(room, "batch/v1", "CronJob", **spec)])
    await room.cluster.kubectl("-n", room.namespace, "create", "job", "run", "--from=cronjob/app")
    await room.until_running(1)


async def replica_set(room: Room) -> None:
    """Without a Deployment above it."""
    await room.add_nodes()
    spec = {"selector": {"matchLabels": {"app": "app"}}, "template": template(room)}
    await play(room, workload(room, "apps/v1", "ReplicaSet", **spec), load=half_used(room, kind="ReplicaSet"))


STAGES = (stateful_set, daemon_set, job, cron_job, replica_set)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def rooms(cluster: Cluster) -> AsyncIterator[dict[str, Room]]:
    stages = {stage.__name__.replace("_", "-"): stage for stage in STAGES}
    async with staged(cluster, stages) as opened:
        yield opened


async def settled(service: LiveService, room: Room) -> ExplainRow:
    """The room's only row, once the window is full and so evidence is not what holds it back."""

    async def look() -> list[ExplainRow]:
        rows = (await service.plan()).plan.rows
        return [row for row in rows if row.workload.namespace == room.namespace]

    (row,) = await eventually(
        look, lambda rows: [row.verdict for row in rows] == ["under-used"], what=f"{room.namespace}'s row"
    )
    return row


@pytest.mark.parametrize(
    ("story", "kind", "units", "reason"),
    [
        ("daemon-set", "apps/DaemonSet", 1, Reason.SYSTEM_POD),
        ("job", "batch/Job", 1, Reason.NO_LEVER),
        ("cron-job", "batch/CronJob", 1, Reason.THIN_HISTORY),
        ("replica-set", "apps/ReplicaSet", 1, Reason.NO_LEVER),
    ],
)
async def test_pods_belong_to_their_topmost_owner_and_its_kind_decides(
    service: LiveService, rooms: dict[str, Room], story: str, kind: str, units: int, reason: Reason
) -> None:
    row = await settled(service, rooms[story])

    assert (f"{row.workload.group}/{row.workload.kind}", row.workload.name) == (kind, "app")
    assert (row.units, row.held, row.reason) == (units, 2 * units, reason)
    assert service.decisions(rooms[story]) == []


async def test_a_stateful_set_is_one_workload_of_all_its_ordinals(
    service: LiveService, rooms: dict[str, Room]
) -> None:
    room = rooms["stateful-set"]
    await settled(service, room)
    row = await service.until_reason(room, "app", Reason.RIGHT_SIZED)

    assert (row.workload.group, row.workload.kind) == ("apps", "StatefulSet")
    assert (row.units, row.held) == (2, 4)
    assert row.action is not None
    assert (row.action.lever, row.action.before, row.action.after) == ("template", 2, 1)
