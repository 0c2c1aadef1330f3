"""The synthetic cluster has the size that the bars are about, and its metrics store answers what the service asks."""

import json
from typing import Any

import msgspec
import pytest

from autoscaler.observe.profiles import Profile, load_profiles
from autoscaler.observe.queries import board_queries, history_queries, jobs_query, signal_queries
from autoscaler.service.config_root import shipped_config
from benchmarks.store_server import INTERVAL_S, MetricsStore, question_of
from benchmarks.synthetic import gpus_of, node_boards, pending_pod_document

PODS = 150
BOARDS = 64
NOW_S = 1_800_000_000.0
WINDOW_MS, HISTORY_MS = 3_600_000, 604_800_000


def dcgm() -> Profile:
    return next(one for one in load_profiles(shipped_config() / "profiles") if one.name == "dcgm")


def rows(query: str) -> list[dict[str, Any]]:
    return list(json.loads(MetricsStore(PODS).vector(query, NOW_S)))


def values(query: str) -> dict[str, float]:
    return {row["metric"]["UUID"]: float(row["value"][1]) for row in rows(query)}


def test_the_whole_cluster_has_40000_pods_that_hold_64000_boards() -> None:
    held = [gpus_of(index) for index in range(150_000)]

    assert sum(1 for boards in held if boards) == 40_000
    assert sum(held) == 64_000


def test_no_node_has_a_board_to_spare() -> None:
    assert sum(node_boards(node) for node in range(5)) == BOARDS == sum(gpus_of(i) for i in range(PODS))


def test_a_pending_pod_has_no_node_and_is_said_to_be_unschedulable() -> None:
    pod = pending_pod_document(0, gpus=2)

    assert "nodeName" not in pod["spec"]
    assert pod["status"]["conditions"][0]["reason"] == "Unschedulable"


def test_every_query_of_a_device_signal_has_a_row_for_each_board() -> None:
    signal = dcgm().signals[0]
    asked = signal_queries(dcgm(), signal, window_ms=WINDOW_MS)
    past = history_queries(dcgm(), signal, history_ms=HISTORY_MS, window_ms=WINDOW_MS)
    boards = board_queries(dcgm(), window_ms=WINDOW_MS)
    texts = {
        **msgspec.structs.asdict(asked),
        **msgspec.structs.asdict(past),
        **msgspec.structs.asdict(boards),
    }
    by_board = [text for text in texts.values() if text and " by (" in text and question_of(text)]

    assert len(by_board) > 10
    assert {len(rows(text)) for text in by_board} == {BOARDS}


def test_the_answers_agree_with_each_other() -> None:
    asked = signal_queries(dcgm(), dcgm().signals[0], window_ms=WINDOW_MS)
    samples = WINDOW_MS / 1000 / INTERVAL_S
    counts, totals = values(asked.count), values(asked.total)
    peaks, lows = values(asked.maximum), values(asked.minimum)

    assert set(counts.values()) == {samples} == set(values(asked.covered).values())
    assert all(lows[board] <= totals[board] / samples <= peaks[board] for board in counts)
    assert [float(row["value"][1]) for row in rows(asked.best)] == [samples]


def test_a_range_query_has_a_point_for_each_step() -> None:
    asked = signal_queries(dcgm(), dcgm().signals[0], window_ms=WINDOW_MS)
    answer = json.loads(MetricsStore(PODS).matrix(asked.maximum, NOW_S, NOW_S + 120, 60))

    assert [[at_s for at_s, _ in row["values"]] for row in answer] == [
        [NOW_S, NOW_S + 60, NOW_S + 120]
    ] * BOARDS


def test_one_scrape_job_publishes_the_series() -> None:
    assert [row["metric"] for row in rows(jobs_query(dcgm(), window_ms=WINDOW_MS))] == [
        {"job": "dcgm-exporter"}
    ]


@pytest.mark.parametrize("query", ["max(nobody_has_this)", 'max(DCGM_FI_DEV_GPU_UTIL{job="other"})'])
def test_what_is_not_published_has_no_rows(query: str) -> None:
    assert question_of(query) is None
    assert rows(query) == []
