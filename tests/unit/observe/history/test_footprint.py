from autoscaler.observe.history.footprint import memory_of

MIB = 1024 * 1024


def test_a_week_of_ten_thousand_workloads_stays_within_its_memory() -> None:
    assert memory_of(workloads=10_000) <= 10 * MIB
