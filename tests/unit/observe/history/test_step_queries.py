from unit.observe.observed import PROFILES

from autoscaler.observe.history.step_queries import labels_of, memory_query, step_queries

DCGM = PROFILES["dcgm"]
ENGINE = DCGM.signals[0]


def test_one_query_asks_for_the_whole_fleet_by_the_labels_that_are_read() -> None:
    found = step_queries(DCGM, ENGINE, step_ms=300_000, window_ms=1_800_000, source='job="dcgm"')

    labels = ", ".join(labels_of(DCGM))
    assert found.mean == f'max by ({labels}) (avg_over_time({ENGINE.metric}{{job="dcgm"}}[300000ms]))'
    assert found.peak == f'max by ({labels}) (max_over_time({ENGINE.metric}{{job="dcgm"}}[300000ms]))'
    assert found.count == f'max by ({labels}) (count_over_time({ENGINE.metric}{{job="dcgm"}}[300000ms]))'
    assert found.busiest == f'max by ({labels}) (avg_over_time({ENGINE.metric}{{job="dcgm"}}[1800000ms]))'


def test_where_a_step_is_the_evidence_window_its_mean_is_not_asked_for_twice() -> None:
    assert step_queries(DCGM, ENGINE, step_ms=1_800_000, window_ms=1_800_000).busiest is None


def test_memory_is_asked_for_where_a_profile_has_it() -> None:
    assert DCGM.memory is not None
    found = memory_query(DCGM, step_ms=300_000, source='job="dcgm"')

    assert found is not None
    assert f'max_over_time({DCGM.memory.used}{{job="dcgm"}}[300000ms])' in found
    without = next(profile for profile in PROFILES.values() if profile.memory is None)
    assert memory_query(without, step_ms=300_000) is None


def test_only_labels_that_tell_whose_a_series_is_are_asked_for() -> None:
    assert set(DCGM.labels) - set(labels_of(DCGM)) == {"Hostname", "hostname", "instance", "pod_uid"}
    for profile in PROFILES.values():
        asked = set(labels_of(profile))
        assert {label for key in profile.device_keys for label in key} <= asked
        assert {owner.pod for owner in profile.owners} <= asked
        assert {label for signal in profile.signals for label in signal.void} <= asked
