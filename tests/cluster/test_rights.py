"""What the service may not read is named, never guessed; a right that is granted later heals without a restart."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from autoscaler.model.reasons import Reason
from devcluster import Cluster
from devcluster.rooms import Room
from tests.cluster.live_service import ACCOUNT, LiveService, rights_without, running_service
from tests.cluster.polling import eventually
from tests.cluster.stories import half_used, play

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(150)]

HEALING_S = 60  # a kind that is denied is asked for with up to 30 s in between


@pytest_asyncio.fixture
async def played_room(cluster: Cluster, room: Room) -> AsyncIterator[Room]:
    """A Deployment that would be right-sized if everything could be read; its cluster-wide rights go with it."""
    await room.add_nodes()
    await play(room, room.deployment("app", boards=2), load=half_used(room))
    yield room
    own = f"{ACCOUNT}-{room.namespace}"
    await cluster.kubectl("delete", "--ignore-not-found", f"clusterrole/{own}", f"clusterrolebinding/{own}")


async def readiness_lines(service: LiveService) -> tuple[int, list[str]]:
    status, text = await service.get("/readyz?verbose")
    return status, text.splitlines()


def faults(lines: list[str]) -> list[str]:
    return [line for line in lines[:-1] if not line.startswith("[+]")]


async def test_without_quotas_the_service_works_and_refuses_what_quotas_could_forbid(
    cluster: Cluster, played_room: Room
) -> None:
    room = played_room
    await cluster.apply(rights_without(room, "resourcequotas"))
    kubeconfig = await cluster.service_account_kubeconfig(room.namespace, ACCOUNT)
    scope = {"AUTOSCALER_NAMESPACES": room.namespace}
    async with running_service(
        cluster, kubeconfig, name=f"service-{room.namespace}", environment=scope
    ) as service:
        refused = await service.until_reason(room, "app", Reason.FORBIDDEN)
        status, lines = await readiness_lines(service)
        actions_before = service.decisions(room)

        await cluster.apply(rights_without(room))
        healed = await service.until_reason(room, "app", Reason.RIGHT_SIZED, timeout_s=HEALING_S)
        healed_status, healed_lines = await readiness_lines(service)

    assert refused.detail.startswith("may not read ResourceQuota: ")
    assert refused.remedy == "grant list and watch on ResourceQuota"
    assert status == 200
    assert [line.partition(":")[0] for line in faults(lines)] == ["[!]access/ResourceQuota degraded"]
    assert "resourcequotas" in faults(lines)[0]
    assert actions_before == []
    assert healed.action is not None
    assert (healed_status, faults(healed_lines)) == (200, [])
    assert service.component.exit_code == 0


async def test_without_pods_the_service_is_not_ready_and_says_so_until_it_may_read_them(
    cluster: Cluster, played_room: Room
) -> None:
    room = played_room
    await cluster.apply(rights_without(room, "pods"))
    kubeconfig = await cluster.service_account_kubeconfig(room.namespace, ACCOUNT)
    async with running_service(cluster, kubeconfig, name=f"service-{room.namespace}") as service:
        status, lines = await eventually(
            lambda: readiness_lines(service),
            lambda seen: any(line.startswith("[+]watch/Node") for line in seen[1]),
            what="the first answers of the API server",
        )
        plan_status, _ = await eventually(
            lambda: service.get("/api/v1/plan"),
            lambda seen: "cycle: watch/Pod: forbidden" in seen[1],
            what="the plan's answer to name what it waits for",
        )
        alive, _ = await service.get("/livez")

        await cluster.apply(rights_without(room))
        healed_lines = await service.until_ready(timeout_s=HEALING_S)
        await service.until_reason(room, "app", Reason.RIGHT_SIZED)

    named = [line for line in faults(lines) if line.startswith("[-]access/")]
    assert status == 503
    assert [line.partition(":")[0] for line in named] == ["[-]access/Pod failed"]
    assert "pods" in named[0]
    assert lines[-1] == "readyz check failed"
    assert (plan_status, alive) == (503, 200)
    assert "[+]access/Pod ok: available" in healed_lines
    assert service.component.exit_code == 0
