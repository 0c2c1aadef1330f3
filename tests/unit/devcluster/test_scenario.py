from pathlib import Path
from typing import Any

import pytest

from devcluster.errors import ScenarioError
from devcluster.exporter.load import Constant, Draws, OfferedLoad, Phase, Phases, Samples
from devcluster.fake_nodes import node_manifests
from devcluster.scenario import load_scenario, parse_scenario
from devcluster.scenario_loads import parse_duration_s

pytestmark = pytest.mark.unit

SCENARIOS = Path(__file__).parents[3] / "config" / "scenarios"
SHIPPED = sorted(path for path in SCENARIOS.glob("*.yaml") if not path.name.endswith(".expected.yaml"))


def content(**changes: Any) -> dict[str, Any]:
    return {
        "apiVersion": "devcluster.gpu-autoscaler.io/v1",
        "kind": "Scenario",
        "name": "test",
        "nodes": [{"name": "gpu", "count": 2, "accelerators": {"gpuconfig.com/gpu": 4}}],
    } | changes


def load(**offered: Any) -> dict[str, Any]:
    return {"workload": {"namespace": "ns", "kind": "Deployment", "name": "app"}, "offered": offered}


def refused(tmp_path: Path, **changes: Any) -> str:
    with pytest.raises(ScenarioError) as raised:
        parse_scenario(content(**changes), origin=tmp_path / "scenario.yaml")
    return str(raised.value)


def offered_of(tmp_path: Path, **offered: Any) -> OfferedLoad:
    scenario = parse_scenario(content(loads=[load(**offered)]), origin=tmp_path / "scenario.yaml")
    return scenario.loads[0].offered


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_shipped_scenario_is_valid(path: Path) -> None:
    scenario = load_scenario(path)

    assert scenario.nodes
    assert scenario.objects


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_load_of_a_shipped_scenario_is_of_a_workload_in_it(path: Path) -> None:
    scenario = load_scenario(path)
    stages = scenario.stages.values()
    objects = [*scenario.objects, *(one for stage in stages for one in stage.objects)]
    present = {(one["metadata"].get("namespace"), one["kind"], one["metadata"]["name"]) for one in objects}
    loads = [*scenario.loads, *(one for stage in stages for one in stage.loads)]

    assert {(one.namespace, one.kind, one.name) for one in loads} <= present


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"nods": []}, "the file: unknown key nods (allowed: apiVersion, description, kind, loads"),
        (
            {"nodes": [{"name": "gpu", "gpus": 4}]},
            "nodes[0]: unknown key gpus (allowed: accelerators, annotations, capacity, count",
        ),
        ({"nodes": [{"name": "gpu", "count": "2"}]}, "nodes[0].count: Input should be a valid integer"),
        ({"nodes": []}, "nodes: List should have at least 1 item"),
        ({"nodes": [{"name": "Not a name"}]}, "nodes[0].name: String should match pattern"),
        ({"kind": "Policy"}, "kind: Input should be 'Scenario'"),
        ({"time_scale": 0}, "time_scale: Input should be greater than 0"),
        ({"objects": [{"kind": "Pod"}]}, "objects[0]: no apiVersion, metadata"),
        (
            {"loads": [load(kind="wave", boards=1)]},
            "'constant', 'phases', 'trace', 'distribution', 'silence'",
        ),
        ({"loads": [load(kind="constant", boards=-1)]}, "boards: Input should be greater than or equal to 0"),
        (
            {"loads": [load(kind="phases", phases=[{"for": 90, "boards": 1}])]},
            "90 is no duration (write a number and ms, s, m, h or d, such as 90s)",
        ),
        ({"loads": [load(kind="constant", boards=1)] * 2}, "Deployment ns/app has two loads"),
        (
            {"stages": {"day": {"loads": [load(kind="constant", boards=1)] * 2}}},
            "stages.day.loads: Deployment ns/app has two loads",
        ),
        (
            {"stages": {"day": {"objects": [{"kind": "Pod"}]}}},
            "stages.day.objects[0]: no apiVersion, metadata",
        ),
        ({"stages": {"day": {"nodes": []}}}, "stages.day: unknown key nodes (allowed: loads, objects)"),
        ({"loads": [load(kind="trace", path="none.csv", column="x", step="1s")]}, "none.csv"),
    ],
)
def test_a_mistake_is_refused_with_its_place_and_what_is_allowed(
    tmp_path: Path, changes: dict[str, Any], told: str
) -> None:
    message = refused(tmp_path, **changes)

    assert told in message
    assert str(tmp_path / "scenario.yaml") in message


def test_every_mistake_is_told_at_once(tmp_path: Path) -> None:
    message = refused(tmp_path, time_scale=0, nodes=[{"name": "gpu", "gpus": 4}])

    assert len(message.splitlines()) == 2


def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text("- a\n")

    with pytest.raises(ScenarioError, match="a scenario is a mapping"):
        load_scenario(path)


def test_objects_may_live_in_a_file_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "objects.yaml").write_text(
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\n"
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: b}\n"
    )

    scenario = parse_scenario(content(objects="objects.yaml"), origin=tmp_path / "scenario.yaml")

    assert [one["metadata"]["name"] for one in scenario.objects] == ["a", "b"]


def test_a_stage_has_objects_and_loads_of_its_own(tmp_path: Path) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}
    stages = {"day": {"objects": [namespace], "loads": [load(kind="constant", boards=1)]}}
    scenario = parse_scenario(
        content(stages=stages, loads=[load(kind="constant", boards=0)]), origin=tmp_path / "scenario.yaml"
    )

    assert list(scenario.stages["day"].objects) == [namespace]
    assert [one.offered for one in scenario.stages["day"].loads] == [Constant(1.0)]
    assert [one.offered for one in scenario.loads] == [Constant(0.0)]


def test_constant_and_phased_loads_are_taken_as_written(tmp_path: Path) -> None:
    assert offered_of(tmp_path, kind="constant", boards=1) == Constant(1.0)
    assert offered_of(tmp_path, kind="phases", repeat=True, phases=[{"for": "2m", "boards": 1.5}]) == Phases(
        (Phase(120.0, 1.5),), repeat=True
    )


def test_a_trace_is_one_scaled_column_and_an_empty_cell_repeats_the_last_value(tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text("t,duty\n0,50\n1,\n2,100\n")

    offered = offered_of(tmp_path, kind="trace", path="trace.csv", column="duty", step="57s", scale=0.01)

    assert offered == Samples(57.0, (0.5, 0.5, 1.0))


def test_a_distribution_is_read_from_its_cumulative_percents(tmp_path: Path) -> None:
    (tmp_path / "cdf.csv").write_text("c0,c1\n0,0\n0,60\n100,100\n")

    offered = offered_of(tmp_path, kind="distribution", path="cdf.csv", step="1m", seed=3, scale=0.01)

    assert offered == Draws(60.0, 3, ((0.0, 0.0), (0.0, 0.6), (1.0, 1.0)))


def test_a_missing_column_is_told_with_the_columns_there_are(tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text("t,duty\n0,50\n")

    message = refused(tmp_path, loads=[load(kind="trace", path="trace.csv", column="load", step="1s")])

    assert "no column load (has: t, duty)" in message


def test_a_silent_workload_is_silent(tmp_path: Path) -> None:
    scenario = parse_scenario(content(loads=[load(kind="silence")]), origin=tmp_path / "scenario.yaml")

    assert scenario.loads[0].silent


def test_a_pool_becomes_numbered_nodes_with_its_boards_as_capacity() -> None:
    pool = parse_scenario(content(), origin=Path("scenario.yaml")).nodes[0]

    manifests = node_manifests(pool)

    assert [one["metadata"]["name"] for one in manifests] == ["gpu-0", "gpu-1"]
    assert manifests[0]["status"]["capacity"]["gpuconfig.com/gpu"] == "4"


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("10m", 600), ("1.5h", 5400), ("250ms", 0.25)])
def test_durations_have_a_number_and_a_unit(text: str, seconds: float) -> None:
    assert parse_duration_s(text) == seconds
