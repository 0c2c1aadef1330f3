"""An entry moves on by a table; what it remembers of the owner's values is never lost."""

from typing import Any, get_args

import msgspec
import pytest
from act_worlds import GPU, NOW_MS, WEB, change_action, entry_of, eviction, record_of
from build import DAY_MS, HOUR_MS, MINUTE_MS
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.act.history import past_acts
from autoscaler.act.transitions import (
    ALLOWED,
    InHandError,
    TransitionError,
    advance,
    begin,
    change_by,
    departed,
    is_forgettable,
    pods_ready,
    reversed_by_others,
    settled,
    taken_over,
    without_old_acts,
)
from autoscaler.model.cluster import PastAct
from autoscaler.model.duration import LATEST_MS, Duration
from autoscaler.model.ledger import OPEN, RECORDS_KEPT, Change, Entry, Record, State
from autoscaler.model.plan import PodRef, Seat
from autoscaler.model.policy import Guards

GUARDS = Guards()
ONE = record_of(change_action(4, 2))
POD = PodRef("team", "web-1", "uid-web-1")
OURS = Change("template", original=4, current=2, resource=GPU, container="main")


def moved(entry: Entry, state: State, *, at_ms: int = NOW_MS, **more: Any) -> Entry:
    record = entry.open_record
    assert record is not None
    return advance(entry, record.id, state, at_ms=at_ms, guards=GUARDS, **more)


def done(entry: Entry | None, record: Record, *states: State, at_ms: int = NOW_MS) -> Entry:
    entry = begin(entry, record)
    for state in states:
        entry = moved(entry, state, at_ms=at_ms)
    return entry


def another(before: int, after: int, **more: Any) -> Record:
    return record_of(change_action(before, after), id=f"{before}-{after}", **more)


@pytest.mark.parametrize("before", get_args(State))
@pytest.mark.parametrize("after", get_args(State))
def test_a_record_moves_only_where_the_table_lets_it(before: State, after: State) -> None:
    entry = entry_of(record_of(change_action(4, 2), before))
    if after in ALLOWED[before]:
        result = advance(entry, entry.records[0].id, after, at_ms=NOW_MS + 1, guards=GUARDS)
        assert result.records[0].state == after
        assert (NOW_MS + 1 if after not in OPEN else -1) == result.records[0].closed_ms
    else:
        with pytest.raises(TransitionError):
            advance(entry, entry.records[0].id, after, at_ms=NOW_MS + 1, guards=GUARDS)


def test_the_open_states_are_those_that_lead_somewhere() -> None:
    assert {state for state, after in ALLOWED.items() if after} == OPEN
    assert set(get_args(State)) == set(ALLOWED)


def test_a_record_that_is_not_there_cannot_move() -> None:
    with pytest.raises(TransitionError, match="unknown"):
        advance(entry_of(), "r", "acted", at_ms=NOW_MS, guards=GUARDS)


@pytest.mark.parametrize("actor", ["service", "apply", "revert", "undo"])
def test_nothing_is_begun_while_an_act_may_be_under_way(actor: Any) -> None:
    with pytest.raises(InHandError, match="still open"):
        begin(begin(None, ONE), another(4, 1, actor=actor))


@pytest.mark.parametrize("actor", ["service", "apply", "revert"])
def test_nothing_but_a_persons_undo_is_begun_while_an_act_is_not_verified(actor: Any) -> None:
    with pytest.raises(InHandError, match="still open"):
        begin(done(None, ONE, "acted"), another(2, 4, actor=actor))


def test_a_persons_undo_closes_the_act_that_it_puts_back() -> None:
    entry = begin(done(None, ONE, "acted"), another(2, 4, actor="undo"))
    assert [record.state for record in entry.records] == ["undone", "intended"]
    assert entry.records[0].closed_ms == NOW_MS


def test_an_undo_that_is_dropped_leaves_the_act_to_be_verified() -> None:
    before = done(None, ONE, "acted")
    entry = done(before, another(2, 4, actor="undo"), "dropped")
    assert [record.state for record in entry.records] == ["acted", "dropped"]
    assert (entry.records[0], entry.changes) == (before.records[0], (OURS,))
    assert moved(entry, "verified").open_record is None


def test_a_dropped_undo_opens_nothing_that_it_did_not_close() -> None:
    entry = done(done(None, ONE, "acted", "verified"), another(2, 4, actor="undo"), "dropped")
    assert [record.state for record in entry.records] == ["verified", "dropped"]
    alone = done(None, another(2, 4, actor="undo"), "dropped")
    assert [record.state for record in alone.records] == ["dropped"]
    earlier = done(done(None, ONE, "acted"), another(2, 4, actor="undo"), "acted", "verified")
    later = done(earlier, another(2, 4, actor="undo", intended_ms=NOW_MS + 9), "dropped")
    assert [record.state for record in later.records] == ["undone", "verified", "dropped"]


def test_two_acts_of_the_same_millisecond_have_two_ids() -> None:
    entry = done(None, ONE, "dropped")
    entry = done(entry, ONE, "dropped")
    entry = begin(entry, ONE)
    assert [record.id for record in entry.records] == [ONE.id, f"{ONE.id}-2", f"{ONE.id}-3"]
    assert [record.state for record in moved(entry, "acted").records] == ["dropped", "dropped", "acted"]


def test_the_original_is_the_value_from_before_the_first_act() -> None:
    entry = done(None, ONE, "acted", "verified")
    entry = done(entry, another(2, 1), "acted", "verified")
    assert entry.changes == (Change("template", original=4, current=1, resource=GPU, container="main"),)


def test_a_change_that_is_back_at_the_original_is_none() -> None:
    entry = done(None, ONE, "acted", "verified")
    assert done(entry, another(2, 4, actor="undo"), "acted").changes == ()
    assert done(entry, another(2, 4), "acted").changes == (), "also where the service itself went back"


def test_a_revert_of_the_second_act_keeps_the_first_value() -> None:
    entry = done(None, ONE, "acted", "verified")
    entry = done(entry, another(2, 1), "acted", "failed")
    assert done(entry, another(1, 2, actor="revert"), "acted").changes == (OURS,)


def test_replicas_and_each_containers_amount_are_changes_of_their_own() -> None:
    aside = record_of(change_action(2, 1, container="aside"), id="aside")
    fewer = record_of(change_action(3, 1, lever="scale"), id="fewer")
    entry = done(None, ONE, "acted", "verified")
    entry = done(done(entry, aside, "acted", "verified"), fewer, "acted", "verified")
    assert entry.changes == (
        OURS,
        Change("template", original=2, current=1, resource=GPU, container="aside"),
        Change("scale", original=3, current=1),
    )


def test_an_act_that_never_happened_changes_nothing() -> None:
    assert done(None, ONE, "dropped").changes == ()
    assert done(None, ONE, "superseded").changes == ()


@pytest.mark.parametrize("path", [("superseded",), ("acted", "superseded")])
def test_a_third_value_is_its_owners(path: tuple[State, ...]) -> None:
    entry = done(done(None, ONE, "acted", "verified"), another(2, 1), *path)
    assert entry.changes == ()


def test_of_a_workload_that_is_gone_nothing_is_ours() -> None:
    entry = done(done(None, ONE, "acted", "verified"), record_of(change_action(3, 1, lever="scale")), "gone")
    assert entry.changes == ()


def test_a_pod_that_is_gone_says_nothing_of_its_workload() -> None:
    entry = done(done(None, ONE, "acted", "verified"), record_of(eviction(POD)), "gone")
    assert entry.changes == (OURS,)


def test_each_failure_in_a_row_doubles_the_back_off_up_to_a_day() -> None:
    entry, hours, at_ms = None, [], NOW_MS
    for n in range(7):
        entry = done(entry, another(4, 2, intended_ms=at_ms), "acted", at_ms=at_ms)
        entry = moved(entry, "failed", at_ms=at_ms, detail="no room")
        hours.append((entry.not_before_ms - at_ms) // HOUR_MS)
        assert entry.failures == n + 1
        at_ms = entry.not_before_ms
    assert hours == [1, 2, 4, 8, 16, 24, 24]
    assert entry is not None
    assert entry.why == "verification failed (7 in a row): no room"


def test_a_verified_act_ends_the_row_of_failures() -> None:
    entry = done(done(None, ONE, "acted", "failed"), another(4, 2), "acted", "verified")
    assert entry.failures == 0


def test_the_end_of_a_putting_back_says_nothing_of_failures() -> None:
    entry = done(None, ONE, "acted", "failed")
    assert done(entry, another(2, 4, actor="revert"), "acted", "verified").failures == 1
    assert done(entry, another(2, 4, actor="revert"), "acted", "failed").failures == 1


def test_evictions_within_a_day_double_the_back_off_and_make_no_change() -> None:
    entry, hours = None, []
    for at_ms in (NOW_MS, NOW_MS + HOUR_MS, NOW_MS + 4 * HOUR_MS, NOW_MS + 40 * HOUR_MS):
        record = record_of(eviction(POD), id=f"e{at_ms}", intended_ms=at_ms)
        entry = done(entry, record, "acted", "verified", at_ms=at_ms)
        hours.append((entry.not_before_ms - at_ms) // HOUR_MS)
    assert hours == [1, 2, 4, 1]
    assert entry is not None
    assert (entry.changes, entry.why) == ((), "a pod of it was evicted once within a day")


def test_a_shorter_back_off_does_not_end_a_longer_one() -> None:
    entry = msgspec.structs.replace(done(None, ONE, "acted"), not_before_ms=NOW_MS + DAY_MS, why="a day")
    entry = moved(entry, "failed")
    assert (entry.not_before_ms, entry.why, entry.failures) == (NOW_MS + DAY_MS, "a day", 1)


def test_a_back_off_never_ends_after_the_last_moment_that_has_a_date() -> None:
    endless = Guards(backoff=Duration(2**53), max_backoff=Duration(2**53))
    entry = done(None, ONE, "acted")
    entry = advance(entry, ONE.id, "failed", at_ms=NOW_MS, guards=endless)
    assert entry.not_before_ms == LATEST_MS


def test_reversals_by_others_are_counted_and_not_fought() -> None:
    entry = reversed_by_others(done(None, ONE, "acted", "verified"), OURS, at_ms=NOW_MS, guards=GUARDS)
    assert (entry.changes, entry.reversals, entry.not_before_ms) == ((), 1, NOW_MS + HOUR_MS)
    again = done(entry, another(4, 2), "acted", "verified")
    again = reversed_by_others(again, OURS, at_ms=NOW_MS, guards=GUARDS)
    assert (again.reversals, again.not_before_ms) == (2, NOW_MS + 2 * HOUR_MS)
    assert "2 of 2 times before it counts as contested" in again.why


def test_what_a_person_put_back_is_left_alone_for_a_day() -> None:
    entry = done(done(None, ONE, "acted", "failed"), another(2, 4, actor="undo"), "acted")
    assert (entry.not_before_ms, entry.why) == (NOW_MS + DAY_MS, "put back by a person")
    assert (entry.failures, entry.reversals) == (0, 0)


def test_a_value_that_was_taken_over_is_no_longer_ours() -> None:
    entry = taken_over(done(None, ONE, "acted", "verified"), OURS, detail="it is at 3")
    assert (entry.changes, entry.why, entry.reversals) == ((), "it is at 3", 0)


def test_a_person_or_a_deletion_ends_every_back_off() -> None:
    entry = entry_of(changes=(OURS,), reversals=2, failures=3, not_before_ms=LATEST_MS, why="words")
    assert settled(entry) == entry_of(changes=(OURS,))
    assert departed(entry) == entry_of()


def test_the_moment_of_readiness_is_written_once() -> None:
    entry = pods_ready(done(None, ONE, "acted"), ONE.id, at_ms=NOW_MS + 5)
    assert pods_ready(entry, ONE.id, at_ms=NOW_MS + 9).records[0].ready_ms == NOW_MS + 5


def test_only_the_newest_records_are_kept_and_the_open_one_always() -> None:
    entry = begin(None, ONE)
    many = tuple(another(4, 2, state="dropped", acted_ms=-1) for _ in range(RECORDS_KEPT + 5))
    entry = msgspec.structs.replace(entry, records=(*entry.records, *many))
    entry = msgspec.structs.replace(entry, records=(entry.records[0], *many))
    with pytest.raises(InHandError):
        begin(entry, another(4, 1))
    closed = msgspec.structs.replace(entry, records=many)
    assert len(begin(closed, ONE).records) == RECORDS_KEPT
    assert begin(closed, ONE).records[-1] == ONE
    taken = begin(moved(entry, "acted"), another(2, 4, actor="undo"))
    assert taken.open_record is not None
    assert taken.open_record.actor == "undo"


def test_a_full_shard_keeps_the_last_act_and_what_budgets_look_at() -> None:
    old = record_of(change_action(4, 2), "verified", id="old", intended_ms=NOW_MS - 26 * HOUR_MS)
    new = record_of(change_action(2, 1), "verified", id="new", intended_ms=NOW_MS - 24 * HOUR_MS)
    opened = msgspec.structs.replace(old, id="open", state="acted")
    assert [r.id for r in without_old_acts(entry_of(old, opened, new, old), NOW_MS).records] == [
        "open",
        "new",
        "old",
    ]


@pytest.mark.parametrize(
    ("changes", "kept"),
    [
        ({}, False),
        ({"changes": (OURS,)}, True),
        ({"reversals": 1}, True),
        ({"failures": 1}, True),
        ({"not_before_ms": NOW_MS + 1}, True),
        ({"not_before_ms": NOW_MS - 31 * DAY_MS}, False),
        ({"records": (ONE,)}, True),
    ],
)
def test_only_what_cannot_matter_is_forgotten(changes: dict[str, Any], kept: bool) -> None:
    over = record_of(change_action(4, 2), "verified", closed_ms=NOW_MS - 31 * DAY_MS, intended_ms=0)
    entry = entry_of(over)
    assert is_forgettable(msgspec.structs.replace(entry, **changes), NOW_MS) is not kept
    assert not is_forgettable(entry, NOW_MS - 2 * DAY_MS)


def test_the_planner_hears_of_every_act_that_may_have_been_sent_within_a_day() -> None:
    seat = Seat(PodRef("lab", "waiting", "uid-w"), "node-1")
    entry = entry_of(
        record_of(change_action(4, 2), "verified", id="old", intended_ms=NOW_MS - 26 * HOUR_MS),
        record_of(change_action(4, 2), "verified", id="a", intended_ms=NOW_MS - 24 * HOUR_MS),
        record_of(change_action(4, 2), "dropped", id="never", intended_ms=NOW_MS - 9),
        record_of(change_action(2, 4), "acted", id="c", actor="undo", intended_ms=NOW_MS - 3),
        record_of(eviction(POD, seat=seat), "failed", id="d", intended_ms=NOW_MS - 2),
        failures=1,
        not_before_ms=NOW_MS + 7,
        why="words",
    )
    every = {"failures": 1, "not_before_ms": NOW_MS + 7, "why": "words"}
    assert past_acts([entry], now_ms=NOW_MS) == (
        PastAct(WEB, NOW_MS - 24 * HOUR_MS, 2000, verified=True, method="right-size", pods=1, **every),
        PastAct(WEB, NOW_MS - 3, 0, verified=False, method="", **every),
        PastAct(WEB, NOW_MS - 2, 1000, verified=True, method="make-room", given_to="lab", pods=1, **every),
    )


def test_an_intent_counts_however_old_it_is() -> None:
    stale = record_of(change_action(4, 2), intended_ms=NOW_MS - 40 * DAY_MS)
    (row,) = past_acts([entry_of(stale)], now_ms=NOW_MS)
    assert (row.verified, row.boards_milli) == (False, 2000)


@pytest.mark.parametrize("held", [{"reversals": 2}, {"failures": 1}, {"not_before_ms": NOW_MS + 1}])
def test_who_is_left_alone_is_told_when_all_acts_are_long_ago(held: dict[str, Any]) -> None:
    old = record_of(change_action(4, 2), "verified", intended_ms=NOW_MS - 3 * DAY_MS)
    (row,) = past_acts([entry_of(old, **held)], now_ms=NOW_MS)
    assert row == PastAct(WEB, NOW_MS - 3 * DAY_MS, **held)
    assert past_acts([entry_of(old)], now_ms=NOW_MS) == ()


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["service", "apply", "revert", "undo"]),
        st.sampled_from(["template", "scale", "evict"]),
        st.integers(0, 4),
        st.lists(st.sampled_from(get_args(State)), max_size=3),
        st.integers(0, 3 * HOUR_MS),
    ),
    max_size=40,
)


@given(STEPS)
def test_whatever_happens_at_most_one_act_is_open_and_originals_and_back_offs_stand(steps: Any) -> None:
    entry, at_ms, live, owner = entry_of(), NOW_MS, {"template": 4, "scale": 3}, {"template": 4, "scale": 3}
    for number, (actor, lever, after, states, span_ms) in enumerate(steps):
        at_ms += span_ms
        restoring = actor in {"revert", "undo"}
        action = eviction(POD) if lever == "evict" else change_action(live[lever], after, lever=lever)
        try:
            entry = begin(entry, record_of(action, id=f"r{number}", actor=actor, intended_ms=at_ms))
        except InHandError:
            assert entry.open_record is not None
        for state in states:
            record, before = entry.open_record, entry
            if record is None or state not in ALLOWED[record.state]:
                continue
            entry = advance(entry, record.id, state, at_ms=at_ms, guards=GUARDS)
            assert entry.not_before_ms >= before.not_before_ms
            name = record.action.lever
            if state == "acted" and name != "evict":
                live[name] = record.action.after
            if state == "gone" and name != "evict":
                owner = dict(live)
            if state == "superseded" and name != "evict":
                live[name] = owner[name] = 9
            if state in {"undone", "verified", "failed", "dropped"} and not restoring:
                assert entry.changes == before.changes
        assert sum(record.is_open for record in entry.records) <= 1
        assert len({record.id for record in entry.records}) == len(entry.records) <= RECORDS_KEPT
        ours = {change.lever: (change.original, change.current) for change in entry.changes}
        assert ours == {
            name: (owner[name], live[name]) for name in ("template", "scale") if live[name] != owner[name]
        }


def test_our_value_is_what_the_act_sets() -> None:
    assert change_by(change_action(4, 2), 4) == OURS
    assert change_by(change_action(3, 1, lever="scale"), 3) == Change("scale", original=3, current=1)


def test_details_are_bounded() -> None:
    entry = moved(done(None, ONE, "acted"), "failed", detail="x" * 5_000)
    assert (len(entry.records[0].detail), len(entry.why)) == (300, 300)
    assert entry.not_before_ms - NOW_MS > MINUTE_MS
