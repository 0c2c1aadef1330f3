"""The control plane dies, forgets and comes back: stores end in the server's state, and readiness says what is known.

These tests kill a control plane, so it is their own.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from autoscaler.kube import KINDS, KubeSession
from autoscaler.model.policy import Policy
from autoscaler.model.reasons import Reason
from autoscaler.observe.pods import PodEntry
from autoscaler.observe.stores import Stores, StoresView
from autoscaler.service.cluster import ClusterWatch
from autoscaler.service.logs import get_log
from autoscaler.service.peers import cluster_access, kube_session
from autoscaler.service.readiness import LOST_AFTER_S, all_ready, kind_checks
from autoscaler.service.settings import load_settings
from autoscaler.service.telemetry import Metrics
from devcluster import Cluster, running_cluster
from devcluster.rooms import Room, open_room
from tests.cluster.live_service import grant_shipped_rights, running_service
from tests.cluster.polling import at_once, eventually
from tests.cluster.stories import half_used, play

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def own_cluster(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    async with running_cluster() as started:
        yield started
        started.keep_run_dir = request.session.testsfailed > 0


@pytest_asyncio.fixture
async def own_room(own_cluster: Cluster) -> AsyncIterator[Room]:
    async with open_room(own_cluster) as opened:
        await opened.add_nodes()
        yield opened


class HeldClock:
    """The machine's clock, but who waits can be held, and time can leap."""

    def __init__(self) -> None:
        self._ahead_s = 0.0
        self._released = asyncio.Event()
        self._released.set()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + round(self._ahead_s * 1000)

    def monotonic_s(self) -> float:
        return time.monotonic() + self._ahead_s

    def leap(self, seconds: float) -> None:
        self._ahead_s += seconds

    def hold(self) -> None:
        """Whoever waits from now on waits until `release`."""
        self._released.clear()

    def release(self) -> None:
        self._released.set()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, 0.1))
        await self._released.wait()


@dataclass(frozen=True)
class Watched:
    """Stores that are kept equal to a server."""

    stores: Stores
    watch: ClusterWatch
    session: KubeSession
    clock: HeldClock

    def restarts(self, kind: str) -> dict[str, int]:
        return next(dict(one.restarts) for one in self.watch.readings() if one.resource == KINDS[kind].plural)

    def failed_checks(self) -> dict[str, str]:
        return {check.name: check.detail for check in kind_checks(self.watch.states()) if not check.ok}

    def still_watched(self) -> list[str]:
        """Kinds that are served and whose watch has not been lost."""
        return [
            state.kind for state in self.watch.states() if state.access != "absent" and not state.lost_for_s
        ]

    def is_ready(self) -> bool:
        return all_ready(kind_checks(self.watch.states()))

    async def read_anew(self) -> StoresView:
        """What a first full list of every kind gives now."""
        fresh = Stores(Policy().resources)
        absent = {state.kind for state in self.watch.states() if state.access == "absent"}
        for name, writer in fresh.writers.items():
            if name in absent:
                continue
            page = await self.session.list_page(KINDS[name], limit=5000)
            writer.begin_relist()
            writer.relist_page(page.items or [])
            writer.commit_relist(page.metadata.resource_version)
        return fresh.freeze()

    async def until_equal(self) -> StoresView:
        """The stores once they are what a full list gives."""

        async def difference() -> list[str]:
            await asyncio.sleep(0.2)  # a watch has what a list has a moment later
            truth, kept = await self.read_anew(), self.stores.freeze()
            return [name for name in truth.__struct_fields__ if getattr(truth, name) != getattr(kept, name)]

        await eventually(difference, lambda names: not names, what="stores equal to the server's state")
        return self.stores.freeze()


@asynccontextmanager
async def watched(cluster: Cluster) -> AsyncIterator[Watched]:
    """All kinds of a cluster, watched under the shipped rights."""
    settings = load_settings({"AUTOSCALER_KUBECONFIG": str(await grant_shipped_rights(cluster))})
    clock, stores = HeldClock(), Stores(Policy().resources)
    metrics = Metrics(clock=clock.monotonic_s)
    async with kube_session(settings, await cluster_access(settings, {})) as session:
        watch = ClusterWatch(
            session, writers=stores.writers, sensors={}, clock=clock, metrics=metrics, log=get_log()
        )
        running = asyncio.create_task(watch.run(), name="watch")
        try:
            yield Watched(stores, watch, session, clock)
        finally:
            clock.release()
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running


async def held_pods(cluster: Cluster) -> dict[str, tuple[str, str]]:
    """Uid and node of every pod of the cluster, as its administrator sees them."""
    pods = (await cluster.api.get("/api/v1/pods"))["items"]
    return {
        f"{pod['metadata']['namespace']}/{pod['metadata']['name']}": (
            pod["metadata"]["uid"],
            pod["spec"].get("nodeName", ""),
        )
        for pod in pods
    }


def kept_pods(view: StoresView) -> dict[str, tuple[str, str]]:
    """The same, as the stores have it."""
    return {
        key: (entry.uid, entry.node) for key, entry in view.pods.pods.items() if isinstance(entry, PodEntry)
    }


def quota(room: Room, boards: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "quota", "namespace": room.namespace},
        "spec": {"hard": {"requests.gpuconfig.com/gpu": str(boards)}},
    }


async def test_after_a_restart_and_a_compaction_the_stores_have_what_happened_meanwhile(
    own_cluster: Cluster, own_room: Room
) -> None:
    room = own_room
    await own_cluster.apply([quota(room, 8), room.deployment("stays"), room.deployment("goes")])
    before = {pod["metadata"]["name"] for pod in await room.until_running(2)}
    async with watched(own_cluster) as world:
        await eventually(at_once(world.is_ready), bool, what="readiness before the outage")
        await world.until_equal()

        world.clock.hold()
        await own_cluster.kill_apiserver()
        await eventually(
            at_once(world.still_watched),
            lambda reading: not reading,
            what="the loss of every watch",
        )
        was_ready_at_once = world.is_ready()
        world.clock.leap(LOST_AFTER_S + 1)
        lost = world.failed_checks()
        was_ready_later = world.is_ready()

        await own_cluster.start_apiserver()
        await own_cluster.kubectl("-n", room.namespace, "delete", "deployment/goes", "--wait=false")
        await own_cluster.apply(
            [quota(room, 6), room.deployment("comes", boards=2), room.deployment("stays", replicas=2)]
        )
        await own_cluster.kubectl(
            "-n", room.namespace, "wait", "--for=delete", "pod", "-l", "app=goes", "--timeout=60s"
        )
        await room.until_running(3, timeout_s=60)
        enforced = r"--for=jsonpath={.status.hard.requests\.gpuconfig\.com/gpu}=6"
        await own_cluster.kubectl(
            "-n", room.namespace, "wait", enforced, "resourcequota/quota", "--timeout=60s"
        )
        await own_cluster.compact()
        await own_cluster.kill_apiserver()
        await own_cluster.start_apiserver()  # only now its cache begins after what the watches saw last
        world.clock.release()
        view = await world.until_equal()
        truth = await held_pods(own_cluster)

        pods = {key for key in kept_pods(view) if key.startswith(f"{room.namespace}/")}
        assert was_ready_at_once
        assert not was_ready_later
        served = {state.kind for state in world.watch.states() if state.access != "absent"}
        foreign = {"karpenter.sh", "kueue.x-k8s.io"}
        assert served == {name for name, kind in KINDS.items() if kind.group not in foreign}
        assert lost.keys() == {f"watch/{kind}" for kind in served}
        assert all("not read for 2m" in detail for detail in lost.values())
        assert world.is_ready()
        assert world.failed_checks() == {}
        assert world.restarts("Pod")["expired"] >= 1
        assert world.restarts("ResourceQuota")["expired"] >= 1
        assert kept_pods(view) == truth
        assert len(pods) == 3
        assert len({key.partition("/")[2] for key in pods} & before) == 1
        assert view.quotas[f"{room.namespace}/quota"].hard == {"requests.gpuconfig.com/gpu": 6}
        assert f"{room.namespace}/goes" not in view.workloads["Deployment"]


async def test_a_compaction_alone_disturbs_nobody(own_cluster: Cluster, own_room: Room) -> None:
    async with watched(own_cluster) as world:
        await eventually(at_once(world.is_ready), bool, what="readiness")
        await own_cluster.compact()
        await own_cluster.apply([own_room.deployment("app", replicas=2)])
        await own_room.until_running(2)

        view = await world.until_equal()

        assert kept_pods(view) == await held_pods(own_cluster)
        assert world.restarts("Pod") == {}


async def test_the_service_outlives_its_api_server_and_plans_on_what_is_there_afterwards(
    own_cluster: Cluster, own_room: Room
) -> None:
    room = own_room
    await own_cluster.exporter.declare([half_used(room, name="goes")])
    await play(
        room,
        room.deployment("app", boards=2),
        room.deployment("goes", boards=1),
        load=half_used(room),
        pods=2,
    )
    kubeconfig = await grant_shipped_rights(own_cluster)
    async with running_service(own_cluster, kubeconfig, name="outage") as service:
        await service.until_reason(room, "app", Reason.RIGHT_SIZED)
        pid = service.component.pid

        await own_cluster.kill_apiserver()
        await service.pass_cycles(2)
        alive = await service.get("/livez")
        await own_cluster.start_apiserver()
        await own_cluster.kubectl("-n", room.namespace, "delete", "deployment/goes")
        await eventually(
            lambda: service.rows(room.namespace, "goes"),
            lambda rows: not rows,
            what="the deleted Deployment to be gone",
        )
        await service.until_ready()
        row = await service.until_reason(room, "app", Reason.RIGHT_SIZED)

    assert alive == (200, "ok\n")
    assert row.action is not None
    assert service.component.exit_code == 0
    assert pid is not None
    assert len(list(service.logged("stopped"))) == 1


@pytest.mark.slow
@pytest.mark.timeout(LOST_AFTER_S + 120)
async def test_a_service_without_its_api_server_says_after_two_minutes_that_it_is_not_ready(
    own_cluster: Cluster, own_room: Room
) -> None:
    kubeconfig = await grant_shipped_rights(own_cluster)
    async with running_service(own_cluster, kubeconfig, name="long-outage") as service:
        await service.until_ready()
        await own_cluster.kill_apiserver()
        _, text = await eventually(
            lambda: service.get("/readyz"),
            lambda seen: seen[0] == 503,
            what="a service that is not ready",
            timeout_s=LOST_AFTER_S + 20,
        )
        status, _ = await service.get("/livez")
        await own_cluster.start_apiserver()
        await service.until_ready()

    assert "not ready: watch/Pod: not read for 2m" in text
    assert status == 200
    assert own_room.namespace not in text
