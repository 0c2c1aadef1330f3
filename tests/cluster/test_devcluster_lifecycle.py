import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from devcluster import Cluster, DevclusterError, running_cluster
from devcluster.exporter.fleet import BoardView
from devcluster.scenario import load_scenario
from tests.cluster.child_processes import are_gone, children_of, wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
SCENARIO = ROOT / "config" / "scenarios" / "ml-workloads.yaml"
HELD_BOARDS = 20
QUOTA_PATH = "/api/v1/namespaces/ml-workloads/resourcequotas/gpu-quota"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def own_cluster() -> AsyncIterator[Cluster]:
    async with running_cluster() as started:
        await started.play(load_scenario(SCENARIO))
        yield started


async def running_boards(cluster: Cluster) -> list[BoardView]:
    pods = (await cluster.api.get("/api/v1/pods"))["items"]
    assert all(pod["status"].get("phase") != "Failed" for pod in pods)
    running = {pod["metadata"]["uid"] for pod in pods if pod["status"].get("phase") == "Running"}
    return [board for board in await cluster.exporter.boards() if board.pod_uid in running]


async def test_an_exporter_that_is_started_again_keeps_boards_and_loads(own_cluster: Cluster) -> None:
    async def trainer_is_seated() -> bool:
        return any(board.pod.startswith("trainer-") for board in await own_cluster.exporter.boards())

    await own_cluster.until(trainer_is_seated, what="the trainer's boards", timeout_s=120)
    before = await own_cluster.exporter.boards()
    await own_cluster.kill("gpu-exporter")
    await own_cluster.start("gpu-exporter")
    after = await own_cluster.exporter.boards()

    async def load_is_shown() -> bool:
        return "0.950000" in await own_cluster.exporter.metrics()

    still_live = {board.pod_uid for board in after}
    assert {board for board in before if board.pod_uid in still_live} <= set(after)
    await own_cluster.until(load_is_shown, what="the trainer's load", timeout_s=60)


async def test_an_api_server_that_is_started_again_has_its_objects(own_cluster: Cluster) -> None:
    before = {node["metadata"]["uid"] for node in (await own_cluster.api.get("/api/v1/nodes"))["items"]}
    await own_cluster.kill_apiserver()
    assert not await own_cluster.api.is_ready()
    await own_cluster.start_apiserver()

    after = {node["metadata"]["uid"] for node in (await own_cluster.api.get("/api/v1/nodes"))["items"]}

    assert after == before


async def test_the_seeds_story_runs_inside_its_quota_and_both_shrinks_roll_out_at_once(
    own_cluster: Cluster,
) -> None:
    async def all_run() -> bool:
        return len(await running_boards(own_cluster)) == HELD_BOARDS

    async def used_boards() -> str:
        quota = await own_cluster.api.get(QUOTA_PATH)
        return str(quota["status"].get("used", {}).get("requests.gpuconfig.com/gpu"))

    async def quota_is_freed() -> bool:
        return await used_boards() == "4"

    await own_cluster.until(all_run, what="all boards of the scenario in use", timeout_s=120)
    assert await used_boards() == "6"

    one_board = ("--requests=gpuconfig.com/gpu=1", "--limits=gpuconfig.com/gpu=1")
    for name in ("deployment/inference", "deployment/embedder"):
        await own_cluster.kubectl("-n", "ml-workloads", "set", "resources", name, *one_board)
    for name in ("deployment/inference", "deployment/embedder"):
        await own_cluster.kubectl("-n", "ml-workloads", "rollout", "status", name, "--timeout=60s")

    await own_cluster.until(quota_is_freed, what="the freed quota", timeout_s=120)


async def test_the_end_of_a_cluster_leaves_no_process_and_no_folder(tmp_path: Path) -> None:
    async with running_cluster(run_dir=tmp_path / "run") as started:
        processes = [Path(f"/proc/{component.pid}") for component in started.components()]
        assert all(one.exists() for one in processes)

    assert are_gone(processes)
    assert not (tmp_path / "run").exists()


async def test_logs_are_kept_after_an_error(tmp_path: Path) -> None:
    async def fail() -> None:
        async with running_cluster(run_dir=tmp_path / "run", prometheus=False, exporter=False) as started:
            processes.extend(Path(f"/proc/{component.pid}") for component in started.components())
            raise DevclusterError("as a test would fail")

    processes: list[Path] = []
    with pytest.raises(DevclusterError, match="as a test would fail"):
        await fail()

    assert are_gone(processes)
    assert (tmp_path / "run" / "logs" / "kube-apiserver.log").exists()


async def test_a_run_folder_with_foreign_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")

    with pytest.raises(DevclusterError, match="is not empty"):
        async with running_cluster(run_dir=tmp_path):
            pass

    assert (tmp_path / "mine").read_text() == "precious"


def start_up_command(run_dir: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "devcluster", "up", f"--scenario={SCENARIO}", f"--run-dir={run_dir}"]
    log_path = run_dir.with_suffix(".log")
    with log_path.open("w") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT)

    def is_up() -> bool:
        assert process.poll() is None, log_path.read_text()
        return "Ctrl-C" in log_path.read_text()

    wait_until(is_up, timeout_s=90)
    return process


def test_ctrl_c_ends_the_up_command_cleanly(tmp_path: Path) -> None:
    process = start_up_command(tmp_path / "run")
    children = children_of(process.pid)
    process.send_signal(signal.SIGINT)

    assert process.wait(timeout=30) == 0
    assert len(children) >= 7
    assert are_gone(children)
    assert not (tmp_path / "run").exists()


def test_a_killed_parent_takes_its_components_with_it(tmp_path: Path) -> None:
    process = start_up_command(tmp_path / "run")
    children = children_of(process.pid)
    process.kill()
    process.wait(timeout=30)

    assert len(children) >= 7
    wait_until(lambda: are_gone(children), timeout_s=10)
