import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.model.resources import maximum, total
from autoscaler.model.shapes import ContainerShape, scheduler_demand

GPU = "nvidia.com/gpu"


def asks(role: str, gpus: int) -> ContainerShape:
    return ContainerShape(f"{role}-{gpus}", role, limits={GPU: gpus})  # type: ignore[arg-type]


CONTAINERS = st.lists(
    st.builds(asks, st.sampled_from(["main", "sidecar", "init"]), st.integers(0, 8)), max_size=6
)


@pytest.mark.parametrize(
    ("containers", "demand"),
    [
        ([], 0),
        ([asks("main", 1)], 1),
        ([asks("main", 1), asks("main", 2)], 3),
        ([asks("init", 4), asks("main", 1)], 4),
        ([asks("init", 1), asks("init", 3), asks("main", 2)], 3),
        ([asks("sidecar", 1), asks("main", 1)], 2),
        ([asks("sidecar", 2), asks("init", 4), asks("main", 1)], 6),
        ([asks("init", 4), asks("sidecar", 2), asks("main", 1)], 4),
        ([asks("sidecar", 1), asks("init", 2), asks("sidecar", 3), asks("main", 1)], 5),
    ],
)
def test_a_pod_counts_as_the_scheduler_counts_it(containers: list[ContainerShape], demand: int) -> None:
    assert demand == scheduler_demand(containers, {}).get(GPU, 0)


def test_a_limit_without_a_request_counts_as_the_request() -> None:
    container = ContainerShape("main", requests={"cpu": 100}, limits={"cpu": 900, GPU: 1})

    assert scheduler_demand([container], {}) == {"cpu": 100, GPU: 1}


def test_overhead_comes_on_top() -> None:
    assert scheduler_demand([asks("init", 4), asks("main", 1)], {"cpu": 250}) == {GPU: 4, "cpu": 250}


@given(CONTAINERS)
def test_demand_covers_what_runs_together_and_every_init_container(containers: list[ContainerShape]) -> None:
    running = total(c.limits for c in containers if c.role != "init")
    floor = maximum(running, {GPU: max((c.limits[GPU] for c in containers), default=0)})

    assert floor.get(GPU, 0) <= scheduler_demand(containers, {}).get(GPU, 0)
    assert scheduler_demand(containers, {}).get(GPU, 0) <= sum(c.limits[GPU] for c in containers)
