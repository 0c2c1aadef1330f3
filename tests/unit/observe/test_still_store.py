import math
from typing import Any

import msgspec
import pytest

from autoscaler.observe.exposition import Sample
from autoscaler.observe.profiles import load_profiles
from autoscaler.observe.prometheus import BadQuery
from autoscaler.observe.queries import (
    board_activity_query,
    board_history_queries,
    board_queries,
    history_queries,
    jobs_query,
    signal_queries,
    traffic_queries,
)
from autoscaler.observe.serving import live_query, load_serving_profiles, serving_queries
from autoscaler.observe.still_store import StillStore
from autoscaler.service.config_root import shipped_config

pytestmark = pytest.mark.unit

NOW_MS = 1_767_225_600_000
"""A multiple of every step and interval used here."""
NOW_S = NOW_MS / 1000
PROFILES = shipped_config() / "profiles"
A = Sample("use", {"gpu": "a", "pod": "p"}, 40.0)
B = Sample("use", {"gpu": "b"}, 8.0)


def values(promql: str, *samples: Sample, at_ms: int = NOW_MS) -> dict[str, float]:
    """The answer, by the labels as text."""
    store = StillStore(samples or (A, B), now_ms=NOW_MS, interval_ms=15_000)
    answer = store.answer(promql, at_ms=at_ms)
    rows: list[dict[str, Any]] = msgspec.json.decode(answer.result)
    return {",".join(f"{k}={v}" for k, v in sorted(r["metric"].items())): float(r["value"][1]) for r in rows}


@pytest.mark.parametrize(
    ("promql", "expected"),
    [
        ("use", {"__name__=use,gpu=a,pod=p": 40, "__name__=use,gpu=b": 8}),
        ('use{gpu="a"}', {"__name__=use,gpu=a,pod=p": 40}),
        ('use{pod=""}', {"__name__=use,gpu=b": 8}),
        ('use{pod!=""}', {"__name__=use,gpu=a,pod=p": 40}),
        ('use{gpu=~"a|x"}', {"__name__=use,gpu=a,pod=p": 40}),
        ('use{gpu!~"a.*"}', {"__name__=use,gpu=b": 8}),
        ('use{gpu=~"a",pod=""}', {}),
        ("other", {}),
        ('count by (__name__) (last_over_time({__name__=~"use|x"}[60s]))', {"__name__=use": 2}),
        ("max by (gpu) (use)", {"gpu=a": 40, "gpu=b": 8}),
        ("max by (pod) (use)", {"pod=p": 40, "": 8}),
        ("max(use)", {"": 40}),
        ("min(use)", {"": 8}),
        ("sum(use)", {"": 48}),
        ("avg(use)", {"": 24}),
        ("count(use)", {"": 2}),
        ('use{gpu="a"} or use', {"__name__=use,gpu=a,pod=p": 40, "__name__=use,gpu=b": 8}),
        ('use unless use{gpu="a"}', {"__name__=use,gpu=b": 8}),
        ('use and use{gpu="a"}', {"__name__=use,gpu=a,pod=p": 40}),
        ("max(use) - min(use)", {"": 32}),
        ("max(use) + min(use) * 2", {"": 56}),
        ("use >= 40", {"__name__=use,gpu=a,pod=p": 40}),
        ("use < 3 + 6", {"__name__=use,gpu=b": 8}),
        ('use == use{gpu="a"}', {"__name__=use,gpu=a,pod=p": 40}),
        ("use != use", {}),
        ("use and count_over_time(use[60s]) > 3", {"__name__=use,gpu=a,pod=p": 40, "__name__=use,gpu=b": 8}),
        ("2 / max(use)", {"": 0.05}),
    ],
)
def test_an_instant_query_has_the_stores_answer(promql: str, expected: dict[str, float]) -> None:
    assert values(promql) == expected


@pytest.mark.parametrize(
    ("promql", "expected"),
    [
        ("max_over_time(use[30m])", 8),
        ("min_over_time(use[30m])", 8),
        ("avg_over_time(use[30m])", 8),
        ("quantile_over_time(0.95, use[30m])", 8),
        ("last_over_time(use[30m])", 8),
        ("count_over_time(use[30m])", 120),
        ("count_over_time(use[1800000ms])", 120),
        ("sum_over_time(use[30m])", 960),
        ("changes(use[30m])", 0),
        ("increase(use[30m])", 0),
        ("delta(use[30m])", 0),
        ("max_over_time(use[30m]) - min_over_time(use[30m])", 0),
        ("timestamp(use)", NOW_S),
        # A subquery's steps: the oldest lies inside the range, the range's beginning does not.
        ("min_over_time(timestamp(use)[30m:1m])", NOW_S - 29 * 60),
        ("max_over_time(timestamp(use)[30m:1m])", NOW_S),
        ("avg_over_time(timestamp(use)[2m:1m])", NOW_S - 30),
        ("changes(timestamp(use)[30m:1m])", 29),
        ("increase(timestamp(use)[30m:1m])", 29 * 60),
        ("sum_over_time(count_over_time(use[150s])[30m:150s])", 120),
        ("max_over_time(count_over_time(use[450s])[30m:450s])", 30),
    ],
)
def test_a_window_holds_the_one_value_at_the_stores_pace(promql: str, expected: float) -> None:
    assert list(values(promql, B).values()) == [expected]


def test_samples_lie_on_the_grid_wherever_it_is_asked() -> None:
    assert list(values("timestamp(use)", B, at_ms=NOW_MS + 14_999).values()) == [NOW_S]
    assert list(values("count_over_time(use[20s])", B, at_ms=NOW_MS + 4_000).values()) == [2]
    assert list(values("count_over_time(use[15s])", B, at_ms=NOW_MS + 6_000).values()) == [1]
    assert values("count_over_time(use[5s])", B, at_ms=NOW_MS + 6_000) == {}


def test_a_subquery_without_a_step_in_its_range_is_empty() -> None:
    assert values("max_over_time(use[30s:10m])", B, at_ms=NOW_MS + 60_000) == {}


def test_not_a_number_and_infinity_stay_visible() -> None:
    strange = (Sample("use", {"gpu": "a"}, math.nan), Sample("use", {"gpu": "b"}, -math.inf))

    totals = values("sum_over_time(use[30m])", *strange)

    assert math.isnan(totals["gpu=a"])
    assert totals["gpu=b"] == -math.inf
    assert list(values("max(use)", *strange).values()) == [-math.inf]
    assert math.isnan(values("changes(use[30m])", strange[0])["gpu=a"]) is False
    assert math.isnan(values("max(use)", strange[0])[""])
    assert list(values("quantile_over_time(0.95, use[30m])", strange[1]).values()) == [-math.inf]
    assert values("1 / max(use)", Sample("use", {}, 0.0)) == {"": math.inf}
    assert math.isnan(values("max(use) / 0", Sample("use", {}, 0.0))[""])


def test_time_is_a_scalar() -> None:
    store = StillStore((), now_ms=NOW_MS, interval_ms=15_000)

    answer = store.answer("time()")

    assert (answer.kind, msgspec.json.decode(answer.result)) == ("scalar", [NOW_S, f"{NOW_S}"])
    assert store.answer("1 + 2 * 3").result == store.answer("7").result


@pytest.mark.parametrize(
    ("promql", "told"),
    [
        ("holt_winters(use[5m], 0.1, 0.1)", "function holt_winters"),
        ("timestamp(max(use))", "function timestamp"),
        ("use[5m]", "a range is no value"),
        ("use offset 5m", "not read here: 'offset"),
        ("max_over_time(use)", "needs a range"),
        ("max_over_time(max(use)[5m])", "not read here"),
        ("max by (gpu (use)", "not read here"),
        ("use{gpu=a}", "not read here"),
        ('use{gpu="a"', "not read here: 'the end'"),
        ("(use", "not read here: 'the end'"),
        ("use +", "ends too early"),
        ("use )", "not read here: ')'"),
        ("use[x]", "not read here"),
        ('use{gpu=~"("}', "no regular expression"),
        ("use{gpu='a'}", "unreadable"),
        ('use{gpu="\\x"}', "unknown escape"),
        ("max(1)", "a number stands where series"),
        ("max by (1) (use)", "not read here"),
        ("+", "not read here"),
        ("(" * 5000, "nested too deeply"),
    ],
)
def test_what_is_not_understood_is_a_bad_query_that_names_it(promql: str, told: str) -> None:
    with pytest.raises(BadQuery, match=told.replace("(", r"\(").replace(")", r"\)")):
        values(promql)


def test_escapes_of_a_label_value_are_undone() -> None:
    hostile = 'a"b\\c\nd'
    text = hostile.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    assert len(values(f'use{{gpu="{text}"}}', Sample("use", {"gpu": hostile}, 1.0))) == 1


def test_every_query_that_is_asked_of_the_built_in_profiles_is_understood() -> None:
    window_ms, history_ms = 1_800_000, 604_800_000
    texts: list[str] = []
    for profile in load_profiles(PROFILES):
        texts += [jobs_query(profile, window_ms=window_ms, source='job=~"a|b"')]
        for signal in profile.signals:
            own = signal_queries(profile, signal, window_ms=window_ms)
            past = history_queries(profile, signal, history_ms=history_ms, window_ms=window_ms)
            texts += [*msgspec.structs.astuple(own), *msgspec.structs.astuple(past)]
        texts += filter(None, msgspec.structs.astuple(board_queries(profile, window_ms=window_ms)))
        texts += filter(None, msgspec.structs.astuple(board_history_queries(profile, history_ms=history_ms)))
        texts += traffic_queries(profile, window_ms=window_ms)
        texts += filter(None, [board_activity_query(profile, window_ms=window_ms)])
    serving = load_serving_profiles(PROFILES / "serving")
    texts.append(live_query(serving, window_ms=window_ms))
    for server in serving:
        texts += filter(None, msgspec.structs.astuple(serving_queries(server, window_ms=window_ms)))

    store = StillStore((), now_ms=NOW_MS, interval_ms=15_000)

    assert {store.answer(text).kind for text in texts} == {"vector"}
    assert len(texts) > 300
