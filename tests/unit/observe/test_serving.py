"""What inference servers say: names that were changed, counters that stand still, samples that are missing."""

import json
from collections.abc import Mapping
from pathlib import Path

import promql_parser
import pytest
from unit.observe.observed import NOW_S, WINDOW_MS, pod, reading, snapshot

from autoscaler.model.evidence import ServingUse
from autoscaler.observe.answers import Answer, AnswerError
from autoscaler.observe.profiles import ProfileError
from autoscaler.observe.serving import (
    ServingProfile,
    by_owner,
    live_query,
    load_serving_profiles,
    names_of,
    serving_queries,
    serving_rows,
)

pytestmark = pytest.mark.unit

SHIPPED = load_serving_profiles(Path(__file__).parents[3] / "config" / "profiles" / "serving")
VLLM = next(profile for profile in SHIPPED if profile.name == "vllm")
A = ("ml", "a")


def vector(*rows: tuple[Mapping[str, str], str]) -> Answer:
    result = [{"metric": labels, "value": [NOW_S, text]} for labels, text in rows]
    return Answer(kind="vector", result=json.dumps(result).encode())


def test_the_shipped_servers_are_read_by_these_names() -> None:
    assert {p.name: (p.queue, p.running, p.cache, p.counters[0]) for p in SHIPPED} == {
        "sglang": (
            ("sglang:num_queue_reqs",),
            ("sglang:num_running_reqs",),
            ("sglang:token_usage",),
            "sglang:generation_tokens_total",
        ),
        "tgi": (("tgi_queue_size",), ("tgi_batch_current_size",), (), "tgi_request_count"),
        "triton": (("nv_inference_pending_request_count",), (), (), "nv_inference_request_success"),
        "vllm": (
            ("vllm:num_requests_waiting",),
            ("vllm:num_requests_running",),
            ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
            "vllm:request_success_total",
        ),
    }


@pytest.mark.parametrize("profile", SHIPPED, ids=lambda p: p.name)
def test_every_query_parses_and_groups_by_pod(profile: ServingProfile) -> None:
    queries = serving_queries(profile, window_ms=WINDOW_MS)
    for text in (queries.count, queries.pace, queries.queue, queries.running, queries.cache, queries.counter):
        if text is not None:
            promql_parser.parse(text)
            assert text.count("by (namespace, pod)") == text.count(" or ") + 1
    promql_parser.parse(live_query(SHIPPED, window_ms=WINDOW_MS))


def test_an_older_name_of_a_signal_is_an_alternative() -> None:
    assert serving_queries(VLLM, window_ms=60_000).cache == (
        "max by (namespace, pod) (max_over_time(vllm:kv_cache_usage_perc[60000ms])) or "
        "max by (namespace, pod) (max_over_time(vllm:gpu_cache_usage_perc[60000ms]))"
    )


def test_only_values_that_name_a_pod_are_taken() -> None:
    rows = [
        ({"namespace": "ml", "pod": "a"}, "3"),
        ({"pod": "b"}, "1"),
        ({"namespace": "ml", "pod": "c"}, "NaN"),
    ]

    assert by_owner(VLLM, vector(*rows)) == {A: 3.0, ("", "b"): 1.0, ("ml", "c"): -1.0}
    assert names_of(vector(({"__name__": "up"}, "1"))) == {"up"}
    with pytest.raises(AnswerError, match="labels"):
        names_of(Answer(kind="vector", result=b'[{"metric": [1], "value": [1, "2"]}]'))


def test_a_row_has_what_the_server_says_and_none_where_it_has_no_such_series() -> None:
    (row,) = serving_rows(
        VLLM, {"count": {A: 114.0}, "pace": {A: 30.0}, "queue": {A: 60.0}, "cache": {A: 0.93}, "counter": {}}
    )

    assert (row.samples, row.expected) == (114, 114)
    assert (row.queue_peak, row.running_peak, row.cache_peak, row.counter_moves) == (60.0, None, 9300, None)


def test_a_gauge_that_is_no_number_was_not_seen() -> None:
    counts = {"count": {A: 120.0}, "pace": {A: 30.0}}
    (row,) = serving_rows(VLLM, {**counts, "queue": {A: 0.0}, "running": {A: -1.0}})

    assert (row.samples, row.running_peak, row.queue_peak) == (0, None, 0.0)


@pytest.mark.parametrize(
    ("samples", "most", "series", "moves"),
    [(240, 120, 2, 0), (130, 120, 2, 1), (60, 60, 1, 1), (120, 120, 1, 0)],
)
def test_a_counter_that_began_inside_the_window_has_moved(
    samples: float, most: float, series: float, moves: int
) -> None:
    told = {"count": 120.0, "pace": 30.0, "running": 0.0, "counter": 0.0}
    told |= {"counter_samples": samples, "counter_most": most, "counter_series": series}
    (row,) = serving_rows(VLLM, {name: {A: value} for name, value in told.items()})

    assert row.counter_moves == moves


def test_what_belongs_to_no_pod_with_accelerators_is_left_out() -> None:
    rows = serving_rows(VLLM, {name: {A: 1.0, ("ml", "x"): 1.0} for name in ("count", "pace", "running")})
    seen = snapshot(pod("a"), series=reading(serving=rows))

    assert [(use.pod, use.server, use.running_peak) for use in seen.telemetry.serving] == [(0, "vllm", 1.0)]


def use(**values: float | None) -> ServingUse:
    known = {"queue_peak": 0.0, "running_peak": 0.0, "counter_moves": 0, "samples": 120, "expected": 114}
    return ServingUse(pod=0, server="vllm", **{**known, **values})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "active", "idle"),
    [
        ({}, False, True),
        ({"running_peak": None}, False, True),
        ({"running_peak": None, "queue_peak": None}, False, False),
        ({"counter_moves": None}, False, False),
        ({"counter_moves": 480}, True, False),
        ({"queue_peak": 1.0}, True, False),
        ({"running_peak": 2.0}, True, False),
        ({"samples": 100}, False, False),
        ({"samples": 0, "expected": 0}, False, False),
    ],
)
def test_idle_needs_gauges_at_zero_and_a_counter_that_stood_still(
    values: dict[str, float | None], active: bool, idle: bool
) -> None:
    assert (use(**values).is_active, use(**values).proves_idle) == (active, idle)


def test_a_server_without_any_gauge_or_a_repeated_name_is_refused(tmp_path: Path) -> None:
    text = "name: mine\nowner: {pod: pod, namespace: namespace}\n"
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ProfileError, match="queue or running"):
        load_serving_profiles(tmp_path)
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(text + "queue: [q]\n", encoding="utf-8")
    with pytest.raises(ProfileError, match="another file"):
        load_serving_profiles(tmp_path)

    assert load_serving_profiles(tmp_path / "none") == ()


def test_without_a_namespace_a_server_speaks_of_every_pod_of_that_name() -> None:
    rows = serving_rows(VLLM, {name: {("", "a"): 1.0} for name in ("count", "pace", "running")})
    seen = snapshot(pod("a"), pod("a", namespace="other"), series=reading(serving=rows))

    assert [use.pod for use in seen.telemetry.serving] == [0, 1]
