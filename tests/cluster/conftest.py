"""One real control plane per test run; every test has a room of its own in it."""

import os
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from devcluster import Cluster, running_cluster
from devcluster.binaries import ensure_binaries, ensure_on_demand
from devcluster.kueue import running_kueue
from devcluster.pinsets import KUEUE
from devcluster.rooms import Room, open_room
from tests.cluster.live_service import (
    ACCOUNT,
    NAMESPACE,
    LiveService,
    grant_shipped_rights,
    running_service,
)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build before the first test, in sight, so that no test's time limit has to cover a build."""
    has_cluster_tests = any(item.get_closest_marker("cluster") for item in session.items)
    if has_cluster_tests and not session.config.option.collectonly:
        capture = session.config.pluginmanager.getplugin("capturemanager")
        with capture.global_and_fixture_disabled():
            ensure_binaries()
            if any("kueue_cluster" in getattr(item, "fixturenames", ()) for item in session.items):
                ensure_on_demand(KUEUE)


@pytest.fixture(scope="session", autouse=True)
def no_settings_of_another_cluster() -> Iterator[None]:
    """Whoever runs the tests may have settings of a cluster of theirs."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AUTOSCALER_")]:
            patch.delenv(name)
        yield


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    """The run's shared cluster; its logs are kept when a test failed."""
    async with running_cluster() as started:
        yield started
        started.keep_run_dir = request.session.testsfailed > 0


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def kueue_cluster() -> AsyncIterator[Cluster]:
    """A control plane of its own with the real Kueue: its webhooks see every Job of the cluster."""
    async with running_cluster() as started, running_kueue(started):
        yield started


@pytest_asyncio.fixture
async def room(cluster: Cluster) -> AsyncIterator[Room]:
    """A namespace of the test's own, with node pools of its own when it asks for them."""
    async with open_room(cluster) as opened:
        yield opened


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def service(cluster: Cluster) -> AsyncIterator[LiveService]:
    """The run's shared service, under the shipped ServiceAccount; whatever the tests did, it has written nothing."""
    kubeconfig = await grant_shipped_rights(cluster)
    async with running_service(cluster, kubeconfig, name="gpu-autoscaler") as started:
        yield started
    assert started.component.exit_code == 0
    assert cluster.writes_by_service_account(NAMESPACE, ACCOUNT) == []
