"""Every shipped query parses, groups by what its profile reads, and their number is fixed."""

from collections.abc import Iterator

import msgspec
import promql_parser
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.observe.observed import HISTORY_MS, PROFILES, WINDOW_MS

from autoscaler.observe.profiles import Profile
from autoscaler.observe.queries import (
    board_history_queries,
    board_queries,
    busiest_step_ms,
    history_queries,
    jobs_query,
    one_job,
    pinned_jobs,
    selector,
    signal_queries,
)

pytestmark = pytest.mark.unit

PINNED = msgspec.structs.replace(PROFILES["dcgm"], match={"job": 'dcgm "exporter"\\'})


def shipped(profile: Profile, source: str = "") -> Iterator[str]:
    window = {"window_ms": WINDOW_MS, "source": source}
    for signal in profile.signals:
        yield from msgspec.structs.astuple(signal_queries(profile, signal, **window))
        yield from msgspec.structs.astuple(history_queries(profile, signal, history_ms=HISTORY_MS, **window))
    yield from filter(None, msgspec.structs.astuple(board_queries(profile, **window)))
    past = board_history_queries(profile, history_ms=HISTORY_MS, source=source)
    yield from filter(None, msgspec.structs.astuple(past))


@pytest.mark.parametrize("profile", [*PROFILES.values(), PINNED], ids=lambda p: f"{p.name}{len(p.match)}")
def test_every_query_parses(profile: Profile) -> None:
    for text in shipped(profile):
        tree = promql_parser.parse(text)

        assert isinstance(tree, promql_parser.AggregateExpr)


def test_every_query_of_rows_groups_by_the_labels_of_its_profile() -> None:
    for profile in PROFILES.values():
        for text in shipped(profile):
            tree = promql_parser.parse(text)
            assert isinstance(tree, promql_parser.AggregateExpr)
            if tree.modifier is not None:
                assert sorted(tree.modifier.labels) == list(profile.labels)
            else:
                assert text.startswith(("max(max_over_time(count_over_time(", "max(count_over_time("))


def test_the_number_of_queries_is_fixed() -> None:
    assert {name: len(list(shipped(profile))) for name, profile in PROFILES.items()} == {
        "dcgm": 33,
        "seed": 14,
    }


def test_what_a_profile_matches_is_in_every_selector() -> None:
    for text in (*shipped(PINNED), jobs_query(PINNED, window_ms=WINDOW_MS)):
        assert text.count("DCGM_FI_") == text.count('{job="dcgm \\"exporter\\"\\\\"')


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda p: p.name)
def test_the_trusted_job_is_in_every_selector(profile: Profile) -> None:
    matcher = pinned_jobs('gpu|dcgm-"x"')
    for text in (*shipped(profile, matcher), jobs_query(profile, window_ms=WINDOW_MS, source=matcher)):
        promql_parser.parse(text)
        metrics = text.count("DCGM_FI_") + text.count("gpu_gpu_utilization")
        assert metrics == text.count('{job=~"gpu|dcgm-\\"x\\""')


def test_jobs_are_counted_for_every_metric_of_a_profile_in_one_query() -> None:
    text = jobs_query(PROFILES["dcgm"], window_ms=WINDOW_MS)

    assert text.count("count by (job)") == 5
    assert all(
        metric in text for metric in ("ENGINE_ACTIVE", "GPU_UTIL", "FB_USED", "FB_FREE", "POWER_USAGE")
    )


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
