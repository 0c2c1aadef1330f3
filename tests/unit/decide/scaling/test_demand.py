import pytest

from autoscaler.decide.scaling.demand import Capacity, Load, ReplicaSample, load_of

CAPACITY = Capacity(running=8, tokens=1000)


def test_the_load_is_the_sum_of_the_replicas_work() -> None:
    load = load_of([ReplicaSample(tokens=500), ReplicaSample(tokens=250)], CAPACITY)

    assert load == Load(lower=0.75, upper=0.75, signal="tokens")


def test_requests_that_wait_are_work_too() -> None:
    load = load_of([ReplicaSample(running=8, waiting=4)], CAPACITY)

    assert load == Load(lower=1.5, upper=1.5, signal="running")


def test_a_silent_replica_is_empty_at_the_lower_end_and_full_at_the_upper() -> None:
    load = load_of([ReplicaSample(tokens=500), ReplicaSample()], CAPACITY)

    assert load == Load(lower=0.5, upper=1.5, signal="tokens")


def test_the_highest_signal_decides() -> None:
    load = load_of([ReplicaSample(activity=0.9, cache=0.95, running=1, tokens=100)], CAPACITY)

    assert load == Load(lower=0.95, upper=0.95, signal="cache")


def test_activity_alone_is_no_demand() -> None:
    load = load_of([ReplicaSample(activity=0.9)], CAPACITY)

    assert load == Load(lower=0.9, upper=0.9, signal="activity", grows=False)


def test_of_equal_signals_one_of_demand_decides() -> None:
    load = load_of([ReplicaSample(activity=0.5, cache=0.5)], CAPACITY)

    assert load is not None
    assert load.signal == "cache"


@pytest.mark.parametrize(
    "sample", [ReplicaSample(tokens=5), ReplicaSample(running=5), ReplicaSample(waiting=5)]
)
def test_counts_without_a_known_capacity_say_nothing(sample: ReplicaSample) -> None:
    assert load_of([sample], Capacity()) is None


def test_no_replica_and_no_figure_is_no_load() -> None:
    assert load_of([], CAPACITY) is None
    assert load_of([ReplicaSample()], CAPACITY) is None


@pytest.mark.parametrize("value", [-1.0, float("inf"), float("nan")])
def test_a_figure_that_is_no_amount_is_unknown(value: float) -> None:
    load = load_of([ReplicaSample(tokens=500), ReplicaSample(tokens=value)], CAPACITY)

    assert load == Load(lower=0.5, upper=1.5, signal="tokens")
