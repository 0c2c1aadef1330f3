from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from devcluster.exporter.allocation import BoundPod, NodeBoards
from devcluster.exporter.exposition import board_uuid
from devcluster.exporter.fleet import Fleet, KeptState
from devcluster.exporter.load import Constant, Gap, OfferedLoad, Phase, Phases, WorkloadLoad
from devcluster.exporter.wire import Node as WireNode
from devcluster.exporter.wire import Pod, bound_pod, node_boards

pytestmark = pytest.mark.unit

GPU = "gpuconfig.com/gpu"


def node(name: str = "n", boards: int = 4) -> NodeBoards:
    return node_boards(
        msgspec.convert(
            {
                "metadata": {
                    "name": name,
                    "annotations": {
                        "devcluster.gpu-autoscaler.io/accelerators": GPU,
                        "devcluster.gpu-autoscaler.io/gpu-model": "A100",
                        "devcluster.gpu-autoscaler.io/gpu-memory-mib": "81920",
                    },
                },
                "status": {"capacity": {GPU: str(boards), "cpu": "96"}},
            },
            WireNode,
        )
    )


def bound(content: dict[str, Any]) -> BoundPod:
    taken = bound_pod(msgspec.convert(content, Pod), frozenset({GPU}))
    assert taken is not None
    return taken


def pod(name: str, boards: int = 1, owner: str = "app", phase: str = "Running") -> BoundPod:
    return bound(
        {
            "metadata": {
                "name": name,
                "uid": f"uid-{name}",
                "namespace": "ns",
                "labels": {"pod-template-hash": "abc"},
                "ownerReferences": [{"kind": "ReplicaSet", "name": f"{owner}-abc", "controller": True}],
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {
                "nodeName": "n",
                "containers": [{"name": "main", "resources": {"limits": {GPU: str(boards), "cpu": "1"}}}],
            },
            "status": {"phase": phase},
        }
    )


def fleet(
    *pods: BoundPod,
    loads: Sequence[WorkloadLoad] = (),
    time_scale: float = 1.0,
    kept: KeptState | None = None,
) -> Fleet:
    one = Fleet(kept or KeptState())
    one.allocation.node_seen(node())
    for one_pod in pods:
        one.allocation.pod_seen(one_pod)
    one.declare(loads, now_s=100.0, time_scale=time_scale)
    return one


def load(offered: OfferedLoad | None = None, **settings: Any) -> WorkloadLoad:
    return WorkloadLoad(
        namespace="ns", kind="Deployment", name="app", offered=offered or Constant(1.0), **settings
    )


def engines(one: Fleet, now_s: float = 100.0) -> dict[int, float]:
    return {reading.index: reading.engine for reading in one.readings(now_s)}


def test_a_workloads_load_is_divided_over_all_its_running_pods() -> None:
    one = fleet(pod("a"), pod("b"), loads=[load()])

    assert engines(one) == {0: 0.5, 1: 0.5, 2: 0.0, 3: 0.0}


def test_a_pod_that_does_not_run_yet_holds_its_board_and_does_nothing() -> None:
    one = fleet(pod("a"), pod("b", phase="Pending"), loads=[load()])

    assert engines(one)[0] == 1.0
    assert engines(one)[1] == 0.0
    assert [reading.holder is not None for reading in one.readings(100.0)] == [True, True, False, False]


def test_the_boards_of_a_silent_workload_have_no_series_and_free_boards_have() -> None:
    one = fleet(pod("a", boards=2), loads=[load(silent=True)])

    assert set(engines(one)) == {2, 3}


def test_boards_are_without_series_in_a_gap() -> None:
    one = fleet(pod("a"), loads=[load(gaps=(Gap(10, 5),))])

    assert [0 in engines(one, now_s) for now_s in (109.0, 112.0, 115.0)] == [True, False, True]


def test_scenario_time_runs_as_fast_as_its_scale() -> None:
    phases = Phases((Phase(60, 1.0), Phase(60, 0.0)))
    one = fleet(pod("a"), loads=[load(phases)], time_scale=60)

    assert [engines(one, now_s)[0] for now_s in (100.0, 100.9, 101.1)] == [1.0, 1.0, 0.0]


def test_a_load_of_a_pod_goes_before_the_load_of_its_owner() -> None:
    own = WorkloadLoad(namespace="ns", kind="Pod", name="b", offered=Constant(0.25))
    one = fleet(pod("a"), pod("b"), loads=[load(), own])

    assert engines(one) == {0: 1.0, 1: 0.25, 2: 0.0, 3: 0.0}


def test_a_pod_without_a_load_is_idle_and_visible() -> None:
    one = fleet(pod("a", owner="other"), loads=[load()])

    assert engines(one)[0] == 0.0
    assert [view.pod for view in one.board_views()] == ["a"]


def test_energy_is_power_over_time_and_goes_on_after_a_restart() -> None:
    one = fleet(pod("a"), loads=[load(memory_mib=20000)])
    one.readings(100.0)
    counted = one.readings(110.0)[0].energy_mj

    again = fleet(pod("a"), kept=msgspec.json.decode(msgspec.json.encode(one.keep()), type=KeptState))

    assert counted == pytest.approx(397.0 * 10 * 1000)
    assert again.readings(200.0)[0].energy_mj == counted


def test_boards_and_loads_survive_a_restart() -> None:
    one = fleet(pod("gone"), pod("a"), loads=[load()])
    kept = msgspec.json.decode(msgspec.json.encode(one.keep()), type=KeptState)

    again = Fleet(kept)
    again.allocation.node_seen(node())
    again.allocation.relisted([pod("a")])

    assert engines(again)[1] == 1.0
    assert [(view.pod, view.uuid) for view in again.board_views()] == [("a", board_uuid("n", 1))]


@pytest.mark.parametrize(("phase", "boards"), [("Succeeded", "1"), ("Failed", "1"), ("Running", "0")])
def test_an_ended_pod_and_a_pod_without_accelerators_hold_nothing(phase: str, boards: str) -> None:
    container = {"name": "main", "resources": {"limits": {GPU: boards}}}
    spec = {"nodeName": "n", "containers": [container]}
    content = {"metadata": {"name": "p"}, "spec": spec, "status": {"phase": phase}}

    assert bound_pod(msgspec.convert(content, Pod), frozenset({GPU})) is None


def test_the_job_of_a_cron_job_carries_the_load_of_both() -> None:
    metadata = {"name": "p", "ownerReferences": [{"kind": "Job", "name": "train-29", "controller": True}]}
    spec = {"nodeName": "n", "containers": [{"name": "c", "resources": {"limits": {GPU: "1"}}}]}

    assert bound({"metadata": metadata, "spec": spec}).workloads == (
        ("Pod", "p"),
        ("Job", "train-29"),
        ("CronJob", "train"),
    )


def test_a_sidecar_holds_its_boards_and_an_init_container_gives_them_back() -> None:
    limits = {"resources": {"limits": {GPU: "1"}}}
    spec = {
        "nodeName": "n",
        "initContainers": [{"name": "fetch"} | limits, {"name": "proxy", "restartPolicy": "Always"} | limits],
        "containers": [{"name": "main"} | limits],
    }

    claims = bound({"metadata": {"name": "p"}, "spec": spec}).claims

    assert [claim.container for claim in claims] == ["proxy", "main"]
