"""Days without harm, as the ledger tells them: whole days in UTC, in a row, up to yesterday."""

from typing import Any

import pytest
from act_worlds import NOW_MS, change_action, entry_of, eviction, record_of
from build import DAY_MS

from autoscaler.act.history import clean_days, past_acts
from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.ledger import Entry, Record
from autoscaler.model.plan import PodRef

TODAY_MS = NOW_MS // DAY_MS * DAY_MS
OTHER = WorkloadRef("apps", "Deployment", "team", "other")


def on(days_ago: int, state: str = "verified", **more: Any) -> Record:
    """An act that began and ended at the noon of a day."""
    at_ms = TODAY_MS - days_ago * DAY_MS + DAY_MS // 2
    return record_of(change_action(4, 2), state, **{"intended_ms": at_ms, "closed_ms": at_ms, **more})


def counted(*entries: Entry) -> int:
    return clean_days(entries, now_ms=TODAY_MS + DAY_MS - 1)


@pytest.mark.parametrize(
    ("records", "days"),
    [
        ((), 0),
        ((on(0),), 0),
        ((on(1),), 1),
        ((on(2), on(1)), 2),
        ((on(3), on(1)), 1),
        ((on(2),), 0),
        ((on(2), on(1), on(1, "failed")), 0),
        ((on(2), on(2, "failed"), on(1)), 1),
        ((on(2), on(1), on(0, "failed")), 0),
        ((on(2), on(1), on(0, "undone")), 0),
        ((on(2), on(1), on(0, "superseded")), 0),
        ((on(2), on(1), on(0, "acted", actor="undo", closed_ms=-1)), 0),
        ((on(2), on(1), on(0, "verified", actor="revert")), 0),
        ((on(2), on(1), on(0, "dropped", actor="undo")), 2),
        ((on(2), on(1), on(0, "dropped")), 2),
        ((on(2), on(1), on(-5, "failed")), 0),
        ((on(1, "acted", closed_ms=-1),), 0),
        ((on(1, "gone"),), 0),
    ],
)
def test_a_day_is_clean_when_acts_were_verified_and_none_went_wrong(
    records: tuple[Record, ...], days: int
) -> None:
    assert days == counted(entry_of(*records))


def test_harm_to_one_workload_ends_the_row_of_all() -> None:
    assert counted(entry_of(on(2), on(1)), entry_of(on(1, "failed"), ref=OTHER)) == 0


def test_a_change_that_others_put_back_is_no_clean_day() -> None:
    assert counted(entry_of(on(2)), entry_of(on(1), ref=OTHER)) == 2
    assert counted(entry_of(on(2)), entry_of(on(1), ref=OTHER, reversals=1)) == 0


@pytest.mark.parametrize(
    ("record", "pods"),
    [
        (record_of(change_action(4, 2, saved_milli_boards=6000), "verified"), 3),
        (record_of(change_action(5, 2, lever="scale"), "verified"), 3),
        (record_of(eviction(PodRef("team", "web-1", "uid-web-1")), "verified"), 1),
        (record_of(change_action(4, 2, ref=WorkloadRef("batch", "CronJob", "team", "n")), "verified"), 0),
        (record_of(change_action(2, 4, saved_milli_boards=-6000), "acted", actor="undo"), 0),
    ],
)
def test_the_planner_hears_how_many_pods_an_act_ended(record: Record, pods: int) -> None:
    (row,) = past_acts([entry_of(record, ref=record.action.target)], now_ms=NOW_MS)
    assert row.pods == pods
