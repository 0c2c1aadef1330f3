"""Every shipped query parses, groups by what its profile reads, and their number is fixed."""

import re
from collections.abc import Iterator

import msgspec
import promql_parser
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.observe.observed import HISTORY_MS, PROFILES, WINDOW_MS

from autoscaler.observe.profiles import Profile
from autoscaler.observe.queries import (
    board_activity_query,
    board_history_queries,
    board_queries,
    busiest_step_ms,
    history_queries,
    jobs_query,
    one_job,
    pinned_jobs,
    selector,
    signal_queries,
    traffic_queries,
)

pytestmark = pytest.mark.unit

PINNED = msgspec.structs.replace(PROFILES["dcgm"], match={"job": 'dcgm "exporter"\\'})


def shipped(profile: Profile, source: str = "") -> Iterator[str]:
    window = {"window_ms": WINDOW_MS, "source": source}
    for signal in profile.signals:
        yield from msgspec.structs.astuple(signal_queries(profile, signal, **window))
        yield from msgspec.structs.astuple(history_queries(profile, signal, history_ms=HISTORY_MS, **window))
    yield from filter(None, msgspec.structs.astuple(board_queries(profile, **window)))
    yield from traffic_queries(profile, **window)
    past = board_history_queries(profile, history_ms=HISTORY_MS, source=source)
    yield from filter(None, msgspec.structs.astuple(past))


@pytest.mark.parametrize("profile", [*PROFILES.values(), PINNED], ids=lambda p: f"{p.name}{len(p.match)}")
def test_every_query_parses(profile: Profile) -> None:
    for text in shipped(profile):
        tree = promql_parser.parse(text)

        assert isinstance(tree, promql_parser.AggregateExpr)


def mentions(profile: Profile, text: str) -> int:
    """How often a metric of the profile stands in a query."""
    return len(re.findall(rf"(?<![\w:])(?:{'|'.join(map(re.escape, profile.metrics))})(?![\w:])", text))


def test_every_query_of_rows_groups_by_the_labels_of_its_profile() -> None:
    for profile in PROFILES.values():
        for text in shipped(profile):
            tree = promql_parser.parse(text)
            assert isinstance(tree, promql_parser.AggregateExpr)
            if tree.modifier is not None:
                assert sorted(tree.modifier.labels) == list(profile.labels)
            else:
                assert text.startswith(("max(max_over_time(count_over_time(", "max(count_over_time("))


def test_the_number_of_queries_is_fixed_by_the_profile_alone() -> None:
    counts = {name: len(list(shipped(PROFILES[name]))) for name in ("dcgm", "seed", "nvidia-gpu-exporter")}

    assert counts == {"dcgm": 3 * 15 + 17, "seed": 15, "nvidia-gpu-exporter": 15 + 7}


def test_what_a_profile_matches_is_in_every_selector() -> None:
    for text in (*shipped(PINNED), jobs_query(PINNED, window_ms=WINDOW_MS)):
        assert mentions(PINNED, text) == text.count('{job="dcgm \\"exporter\\"\\\\"')


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda p: p.name)
def test_the_trusted_job_is_in_every_selector(profile: Profile) -> None:
    matcher = pinned_jobs('gpu|dcgm-"x"')
    for text in (*shipped(profile, matcher), jobs_query(profile, window_ms=WINDOW_MS, source=matcher)):
        promql_parser.parse(text)
        assert mentions(profile, text) == text.count('{job=~"gpu|dcgm-\\"x\\""')


def test_jobs_are_counted_for_every_metric_of_a_profile_in_one_query() -> None:
    for profile in PROFILES.values():
        text = jobs_query(profile, window_ms=WINDOW_MS)

        assert text.count("count by (job)") == len(profile.metrics) == mentions(profile, text)


def test_groups_of_owner_labels_that_share_a_pod_label_are_counted_together() -> None:
    profile = PROFILES["ascend"]
    text = signal_queries(profile, profile.signals[0], window_ms=WINDOW_MS).covered

    old, older = text.split(" or ")
    assert "exported_namespace" in old
    assert '{pod_name!=""}' in old
    assert '{pod_name="",podName!=""}' in older


def test_boards_without_owner_labels_are_counted_by_device() -> None:
    profile = PROFILES["nvidia-gpu-exporter"]
    text = signal_queries(profile, profile.signals[0], window_ms=WINDOW_MS).covered

    assert "max by (uuid) (count_over_time(nvidia_smi_utilization_gpu_ratio[" in text


def test_a_board_s_own_series_are_asked_for_by_device() -> None:
    assert board_activity_query(PROFILES["hami"], window_ms=60_000, source='job="x"') == (
        'max by (device_uuid) (max_over_time(hami_host_gpu_utilization_ratio{job="x"}[60000ms]))'
    )
    assert board_activity_query(PROFILES["dcgm"], window_ms=60_000) is None


def test_the_owner_is_counted_by_the_first_group_of_labels_that_names_a_pod() -> None:
    profile = PROFILES["dcgm"]
    text = signal_queries(profile, profile.signals[0], window_ms=WINDOW_MS).covered

    exported, plain = text.split(" or ")
    assert '{exported_pod!=""}' in exported
    assert '{exported_pod="",pod!=""}' in plain
    assert "instance" not in exported.partition("sum_over_time")[2]


def test_no_part_of_the_history_is_missed_by_the_means_and_their_number_is_bounded() -> None:
    for window_ms in (10_000, 600_000, WINDOW_MS, 7_200_000):
        for history_ms in (60_000, HISTORY_MS, 7 * HISTORY_MS, 30 * HISTORY_MS):
            step = busiest_step_ms(window_ms, history_ms=history_ms)

            assert history_ms / step <= 673
            signal = PROFILES["dcgm"].signals[0]
            text = history_queries(
                PROFILES["dcgm"], signal, history_ms=history_ms, window_ms=window_ms
            ).busiest
            assert f"[{max(window_ms, step)}ms])[{history_ms}ms:{step}ms]" in text


@given(st.text(max_size=50))
def test_any_label_value_is_escaped(value: str) -> None:
    promql_parser.parse(selector("up", {"job": value}, one_job(value)))
