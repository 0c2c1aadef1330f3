from pathlib import Path
from typing import Any

from service_worlds import ScriptedApi, ScriptedStore, dcgm_series, deployment_objects, running

from autoscaler.model.policy import Policy
from autoscaler.service.once import read_live
from autoscaler.service.settings import load_settings


def objects_with_nodes(count: int) -> dict[str, list[dict[str, Any]]]:
    objects = deployment_objects()
    node = objects["Node"][0]
    objects["Node"] = [
        {**node, "metadata": {**node["metadata"], "name": f"node-{index}", "uid": f"uid-{index}"}}
        for index in range(count)
    ]
    return objects


async def test_a_long_list_is_read_page_by_page_and_said(tmp_path: Path) -> None:
    api = ScriptedApi(objects=objects_with_nodes(7), page_size=3)
    said: list[str] = []
    async with running(api, ScriptedStore(series=dcgm_series(1.0, 0.0)), tmp_path) as world:
        taken = await read_live(load_settings(world.environ), world.environ, Policy(), show=said.append)

    assert [node.name for node in taken.nodes] == [f"node-{index}" for index in range(7)]
    assert [words for words in said if words.startswith("Node ")] == ["Node 0", "Node 3", "Node 6"]
    assert {row.state for row in taken.access} == {"available"}
    assert taken.server_version == "v1.36.3"


async def test_a_list_whose_token_expired_is_begun_again_and_holds_nothing_twice(tmp_path: Path) -> None:
    api = ScriptedApi(objects=objects_with_nodes(7), page_size=3, expire_next_token=True)
    async with running(api, ScriptedStore(), tmp_path) as world:
        taken = await read_live(load_settings(world.environ), world.environ, Policy(), show=lambda _: None)

    assert len(taken.nodes) == 7


async def test_two_reads_of_the_same_world_differ_in_nothing_but_the_clocks(tmp_path: Path) -> None:
    async with running(ScriptedApi(objects=objects_with_nodes(2)), ScriptedStore(), tmp_path) as world:
        settings = load_settings(world.environ)
        first = await read_live(settings, world.environ, Policy(), show=lambda _: None)
        second = await read_live(settings, world.environ, Policy(), show=lambda _: None)

    assert (first.shapes, first.pods, first.nodes, first.workloads) == (
        second.shapes,
        second.pods,
        second.nodes,
        second.workloads,
    )
