from autoscaler.observe.history.footprint import memory_of

MIB = 1024 * 1024


def test_the_largest_cluster_stays_within_its_memory() -> None:
    found = memory_of(boards=64_000, intervals=60, workloads=10_000)

    assert found.total_bytes <= 40 * MIB
    assert found.ring_bytes / (64_000 * 62) <= 6.1
    assert found.workload_bytes <= 10 * MIB
    assert found.total_bytes == found.ring_bytes + found.workload_bytes
