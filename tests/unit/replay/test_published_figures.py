"""The replay is trusted because it gives what an independent tool measured on the same pods, within a few points.

The trace may be used but not copied, so it is read from beside the project, and the test is skipped where it is not there.
"""

from functools import cache
from pathlib import Path

import pytest

from autoscaler.model.backtest import VerticalReport, VerticalRow
from autoscaler.replay.baselines import VERTICAL
from autoscaler.replay.report import run_vertical
from autoscaler.replay.traces import DirectoryTraces

TRACE = Path(__file__).parents[4] / "shared" / "traces" / "alibaba-v2026-genai"

pytestmark = pytest.mark.skipif(
    not TRACE.is_dir(),
    reason="the public trace alibaba-v2026-genai is not beside the project (../shared/traces)",
)


@cache
def report(*, gaps: bool = False) -> VerticalReport:
    return run_vertical(DirectoryTraces(TRACE), VERTICAL, board_gib=48.0, gaps=gaps)


def row(policy: str, *, gaps: bool = False) -> VerticalRow:
    (found,) = (row for row in report(gaps=gaps).rows if row.policy == policy)
    return found


def test_the_oracle_frees_31_9_percent() -> None:
    assert report().oracle_freed_pct == pytest.approx(31.9, abs=0.5)


def test_of_that_56_percent_are_left_if_nothing_may_be_wrong() -> None:
    assert report().ceiling_pct == pytest.approx(56, abs=4)


@pytest.mark.parametrize(
    ("policy", "of_oracle", "wrong"),
    [("gpu-pruner", 52, 204), ("idle-45min", 40, 72), ("idle-60min", 33, 38), ("idle-90min", 25, 12)],
)
def test_idle_windows_save_and_harm_as_measured(policy: str, of_oracle: float, wrong: float) -> None:
    found = row(policy)

    assert found.oracle_pct == pytest.approx(of_oracle, abs=2)
    assert found.wrong_per_1000_pod_hours == pytest.approx(wrong, rel=0.05, abs=3)
    assert found.oom == 0


def test_gpu_pruner_loses_one_percent_and_acts_blindly_where_samples_are_missing() -> None:
    assert row("gpu-pruner").lost_pct == pytest.approx(1.0, abs=0.1)
    assert row("gpu-pruner", gaps=True).blind == pytest.approx(57, abs=10)


def test_kruize_saves_53_percent_over_a_thousand_deaths() -> None:
    assert row("kruize-cost").oracle_pct == pytest.approx(53, abs=3)
    assert 1_000 < row("kruize-cost").oom < 1_500


def test_the_vpa_saves_6_percent_with_a_few_deaths() -> None:
    assert row("vpa-like").oracle_pct == pytest.approx(6, abs=2)
    assert 1 <= row("vpa-like").oom <= 10


def test_the_seed_script_destroys_everything() -> None:
    assert row("seed-script").lost_pct == pytest.approx(99.99, abs=0.02)
