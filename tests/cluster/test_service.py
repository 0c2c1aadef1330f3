import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families

from autoscaler.model.reasons import Reason
from devcluster import Cluster
from devcluster.audit import READS, service_account_user
from devcluster.rooms import Room, open_room
from tests.cluster.live_service import (
    ACCOUNT,
    NAMESPACE,
    LiveService,
    grant_shipped_rights,
    only_row,
    running_service,
)
from tests.cluster.polling import eventually
from tests.cluster.stories import half_used, play

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def judged_room(cluster: Cluster, service: LiveService) -> AsyncIterator[Room]:
    """A Deployment that holds two boards and uses one, already recommended for one."""
    async with open_room(cluster) as opened:
        await opened.add_nodes()
        await play(opened, opened.deployment("app", boards=2), load=half_used(opened))
        await service.until_reason(opened, "app", Reason.RIGHT_SIZED)
        yield opened


async def test_a_deployment_that_uses_one_of_two_boards_is_recommended_one(
    service: LiveService, judged_room: Room
) -> None:
    document = await service.plan()
    row = only_row(document.plan, judged_room, "app")

    assert document.mode == "recommend"
    assert row.action in document.plan.actions
    assert row.action is not None
    assert (row.action.lever, row.action.before, row.action.after) == ("template", 2, 1)
    assert row.action.held_by == (Reason.MODE_RECOMMEND,)
    assert (row.units, row.held, row.verdict) == (1, 2, "under-used")


async def test_the_shipped_account_writes_nothing_in_several_cycles(
    cluster: Cluster, service: LiveService, judged_room: Room
) -> None:
    await service.pass_cycles(5)
    user = service_account_user(NAMESPACE, ACCOUNT)
    audited = {
        event["objectRef"]["resource"]
        for event in cluster.audit_events()
        if event["user"]["username"] == user and event["verb"] not in READS
    }

    assert service.decisions(judged_room)
    assert audited == {"selfsubjectaccessreviews"}
    assert cluster.writes_by_service_account(NAMESPACE, ACCOUNT) == []


async def test_every_readiness_check_holds_on_a_healthy_cluster(
    service: LiveService, judged_room: Room
) -> None:
    lines = (await service.until_ready()).splitlines()
    names = {line.partition("]")[2].partition(" ")[0] for line in lines[:-1]}

    assert [line for line in lines[:-1] if not line.startswith("[+]")] == []
    assert lines[-1] == "readyz check passed"
    assert {"api-server", "access/Pod", "watch/Pod", "watch/ResourceQuota", "prometheus", "cycle"} <= names
    assert judged_room.namespace not in "".join(lines)


async def test_metrics_parse_and_name_no_pod(service: LiveService, judged_room: Room) -> None:
    _, text = await service.get("/metrics")
    families = list(text_string_to_metric_families(text))
    samples = [sample for family in families for sample in family.samples]
    labels = {label for sample in samples for label in sample.labels}
    values = {value for sample in samples for value in sample.labels.values()}
    pods = {pod["metadata"][key] for pod in await judged_room.pods() for key in ("name", "uid")}

    assert "gpu_autoscaler_cycles" in {family.name for family in families}
    assert labels.isdisjoint({"pod", "pod_name", "uid", "pod_uid", "exported_pod"})
    assert values.isdisjoint(pods)


async def test_prometheus_scrapes_the_service(cluster: Cluster, service: LiveService) -> None:
    cluster.scrape_autoscaler(int(service.url.rpartition(":")[2]))

    rows = await eventually(
        lambda: cluster.query('gpu_autoscaler_ready{check="prometheus",job="gpu-autoscaler"}'),
        lambda seen: [row["value"][1] for row in seen] == ["1"],
        what="the service's own series",
    )

    assert rows[0]["metric"]["instance"] == service.url.removeprefix("http://")


async def test_sigterm_ends_the_service_within_five_seconds(cluster: Cluster) -> None:
    kubeconfig = await grant_shipped_rights(cluster)
    async with running_service(cluster, kubeconfig, name="ended-service") as ended:
        await ended.until_ready()
        asked_s = time.monotonic()
        await ended.component.stop(grace_s=5)  # SIGTERM, and SIGKILL after five seconds
        took_s = time.monotonic() - asked_s

    assert ended.component.exit_code == 0
    assert took_s < 5
    assert [entry["exit_code"] for entry in ended.logged("stopped")] == [0]
