import pytest

from autoscaler.model.backtest import COMPUTE, MEMORY, RELEASED
from autoscaler.replay.catalogue import VERTICAL
from autoscaler.replay.ours import LADDER
from autoscaler.replay.report import run_vertical
from autoscaler.replay.traces import DirectoryTraces, TraceError
from tests.unit.replay.recorded import STORED, Recorded
from tests.unit.replay.scripted import Scripted


def test_the_same_trace_gives_the_same_report() -> None:
    first = run_vertical(DirectoryTraces(STORED), VERTICAL, board_gib=48.0, gaps=True, keep=True)

    assert first == run_vertical(DirectoryTraces(STORED), VERTICAL, board_gib=48.0, gaps=True, keep=True)


def test_a_policy_does_the_same_alone_and_beside_others() -> None:
    together = run_vertical(DirectoryTraces(STORED), VERTICAL, board_gib=80.0).rows

    for name, row in zip(VERTICAL, together, strict=True):
        assert run_vertical(DirectoryTraces(STORED), {name: VERTICAL[name]}, board_gib=80.0).rows == (row,)


def test_rows_come_in_the_order_of_the_policies_ours_first() -> None:
    rows = run_vertical(DirectoryTraces(STORED), VERTICAL, board_gib=48.0).rows

    assert [row.policy for row in rows] == list(VERTICAL)
    assert [row.policy for row in rows][:2] == ["autoscaler-careful", "autoscaler-saving"]


def test_figures_are_means_over_all_time_held_not_over_pods() -> None:
    source = Recorded({"long": [0.0] * 300, "short": [0.6] * 100})
    (row,) = run_vertical(source, {"x": lambda _: Scripted({0: RELEASED})}, board_gib=48.0).rows

    assert row.freed_pct == round(100 * 299 / 400, 2)
    assert row.oracle_pct == round(100 * 299 / 300, 1)


def test_where_the_oracle_frees_nothing_no_share_of_it_is_told() -> None:
    report = run_vertical(Recorded({"a": [1.0] * 50}), {"x": lambda _: Scripted({})}, board_gib=48.0)

    assert (report.oracle_freed_pct, report.ceiling_pct, report.rows[0].oracle_pct) == (0.0, 0.0, 0.0)
    assert report.rows[0].lost_pct == 0.0


def test_a_trace_without_pods_is_a_fault() -> None:
    with pytest.raises(TraceError, match="no pod"):
        run_vertical(Recorded({}), {}, board_gib=48.0)


def test_a_long_trace_is_drawn_with_as_many_points_as_a_short_one() -> None:
    source = Recorded({"a": [0.1] * 999 + [0.7] + [0.1] * 1000})
    (load,) = run_vertical(source, {}, board_gib=48.0, keep=True).loads

    assert load.bucket_steps == 7
    assert len(load.duty) == 286
    assert max(load.duty) == 0.7


def test_the_rules_ladder_is_the_one_that_is_scored() -> None:
    assert (LADDER.compute, LADDER.memory) == (COMPUTE, MEMORY)
