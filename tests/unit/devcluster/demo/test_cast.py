from typing import Any

import pytest

from devcluster.demo.cast import cast_of
from devcluster.errors import ScenarioError
from devcluster.scenario import Scenario, load_scenario
from tests.unit.devcluster.test_scenario import SCENARIOS

pytestmark = pytest.mark.unit


def shipped() -> Scenario:
    return load_scenario(SCENARIOS / "ml-workloads.yaml")


def test_the_parts_are_read_from_the_scenario() -> None:
    cast = cast_of(shipped())

    assert cast.training == ("ml-workloads", "high-priority-ml-training")
    assert cast.visitors - cast.idlers == {("batch", "burst-render"), ("batch", "burst-thumbnails")}
    assert cast.idlers == {("research", "sandbox")}
    assert cast.yielding == {"gpu-burst"}
    assert cast.peaking == {
        ("ml-workloads", "inference"),
        ("ml-workloads", "embedder"),
        ("research", "search"),
    }
    assert (cast.resource, cast.seat_boards) == ("gpuconfig.com/gpu", 2)
    assert cast.capacity == {f"gpu-a100-{number}": 8 for number in range(4)}
    assert cast.most_per_container == {"ml-workloads": 4}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"stages": {}}, "no stage day, noon, night, dawn"),
        ({"objects": ()}, "a day needs one CronJob and one accelerator resource"),
    ],
)
def test_a_scenario_without_a_day_is_refused(changes: dict[str, Any], told: str) -> None:
    whole = shipped()
    fields = {"name": whole.name, "nodes": whole.nodes, "objects": whole.objects, "loads": whole.loads}

    with pytest.raises(ScenarioError, match=told):
        cast_of(Scenario(**{**fields, "stages": whole.stages, **changes}))


def boards_of(item: dict[str, Any]) -> int:
    limits = item["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    return int(limits["gpuconfig.com/gpu"])


def asked_in(stage: str) -> list[int]:
    """Boards of each pod."""
    found = [one for one in shipped().stages[stage].objects if one["kind"] == "Deployment"]
    return [boards_of(one) for one in found for _ in range(one["spec"]["replicas"])]


FREE_AFTER_THE_ACTS = 32 - 15


def test_the_large_visitors_find_places_however_the_free_boards_lie_on_the_nodes() -> None:
    odd_nodes = 3  # at most: 17 is odd, so they cannot be 4

    assert set(asked_in("day")) == {cast_of(shipped()).seat_boards}
    assert len(asked_in("day")) == (FREE_AFTER_THE_ACTS - odd_nodes) // 2


def test_the_visitors_fill_the_cluster() -> None:
    assert set(asked_in("noon")) == {1}
    assert sum(asked_in("day")) + sum(asked_in("noon")) == FREE_AFTER_THE_ACTS
