import json
from typing import Any

import msgspec
import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.ledger import Change, Entry, Freed, Record
from autoscaler.model.plan import Action, PodRef, Seat
from autoscaler.model.reasons import Reason
from autoscaler.ui import figures
from autoscaler.ui.ledger_views import LedgerSheet, Result, ledger_view, result_line, results_view
from autoscaler.ui.views import Screen

GPU = "gpuconfig.com/gpu"
NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
HOSTILE = "evil[bold red]x[/]\x1b[2J\u202e\u009b31m\u2028end\n"
SIZE = Change("template", original=2, current=1, resource=GPU, container="server")


def act(name: str = "inference", **changes: Any) -> Action:
    values: dict[str, Any] = {
        "id": "a1b2c3",
        "method": "right-size",
        "reason": Reason.RIGHT_SIZED,
        "lever": "template",
        "target": WorkloadRef("apps", "Deployment", "ml-workloads", name),
        "uid": f"uid-{name}",
        "resource_version": "5",
        "resource": GPU,
        "container": "server",
        "before": 2,
        "after": 1,
        "saved_milli_boards": 1000,
        "because": "needs at most 0.9 boards, holds 2",
    }
    return Action(**{**values, **changes})


def record(action: Action, *, ago_ms: int = HOUR_MS, **changes: Any) -> Record:
    values: dict[str, Any] = {
        "id": f"{action.id}-1",
        "action": action,
        "state": "verified",
        "actor": "service",
        "intended_ms": NOW_MS - ago_ms,
        "settle_ms": NOW_MS - ago_ms + 15_000,
        "term": 3,
        "acted_ms": NOW_MS - ago_ms + 1_000,
    }
    return Record(**{**values, **changes})


def entry(*records: Record, name: str = "inference", **changes: Any) -> Entry:
    return Entry(
        **{
            "ref": WorkloadRef("apps", "Deployment", "ml-workloads", name),
            "uid": f"uid-{name}",
            "records": records,
            **changes,
        }
    )


def sheet(*entries: Entry, **changes: Any) -> LedgerSheet:
    return LedgerSheet(**{"read_ms": NOW_MS, "entries": entries, **changes})


def full() -> LedgerSheet:
    """A verified change, one that failed and was put back, and an eviction."""
    failed = record(act("search", id="f1"), state="failed", ago_ms=3 * HOUR_MS, detail="pod x is not ready")
    revert = act("search", id="r1", reason=Reason.REVERTED, before=1, after=2, because="2 was there before")
    victim = act(
        "batch",
        id="e1",
        method="make-room",
        reason=Reason.MADE_ROOM,
        lever="evict",
        container="",
        after=0,
        pod=PodRef("ml-workloads", "batch-1", "uid-batch-1"),
        seat=Seat(PodRef("ml-workloads", "urgent", "uid-urgent"), "node-1"),
    )
    return sheet(
        entry(record(act()), changes=(SIZE,)),
        entry(
            failed,
            record(revert, actor="revert", ago_ms=2 * HOUR_MS, undoes="f1-1"),
            name="search",
            failures=1,
            not_before_ms=NOW_MS + HOUR_MS,
            why="verification failed (1 in a row): pod x is not ready",
        ),
        entry(record(victim, state="acted", ago_ms=60_000), name="batch"),
        paused="paused by me@here at 2027-01-15T08:00:00+00:00: an incident",
        unreadable={"uid-other": "entry uid-other has a form that this version does not know"},
    )


@pytest.mark.parametrize("columns", [80, 120])
def test_the_ledger_reads_well(columns: int, snapshot: SnapshotAssertion) -> None:
    assert ledger_view(full(), screen=Screen(columns=columns)) == snapshot(name="ledger")


def test_wide_tells_everything_of_an_act(snapshot: SnapshotAssertion) -> None:
    assert ledger_view(full(), form="wide") == snapshot(name="wide")


@pytest.mark.parametrize("columns", [80, 100, 120])
def test_the_ledger_fits_the_screen(columns: int) -> None:
    text = ledger_view(full(), screen=Screen(columns=columns))

    assert max(map(len, text.splitlines())) <= columns


def test_acts_are_told_the_newest_first() -> None:
    acts = ledger_view(full(), form="wide").split("ACTS")[1].splitlines()[3:]

    assert [line.split("  ")[0] for line in acts] == [
        "2027-01-15 07:59:00 UTC",
        "2027-01-15 07:00:00 UTC",
        "2027-01-15 06:00:00 UTC",
        "2027-01-15 05:00:00 UTC",
    ]


def test_only_what_still_matters_is_listed_as_ours() -> None:
    over = entry(record(act()), not_before_ms=NOW_MS, why="put back by a person")

    assert "nothing" in ledger_view(sheet(over)).split("ACTS")[0]
    assert "inference" in ledger_view(sheet(msgspec.structs.replace(over, reversals=1))).split("ACTS")[0]


def test_a_back_off_that_is_over_is_not_shown_as_running() -> None:
    text = ledger_view(sheet(entry(changes=(SIZE,), not_before_ms=NOW_MS - 1)), form="wide")

    assert "UTC" not in text


def test_an_empty_ledger_says_so() -> None:
    text = ledger_view(sheet())

    assert "nothing" in text
    assert "none" in text


@pytest.mark.parametrize("form", ["table", "wide", "json", "yaml"])
def test_hostile_words_of_the_ledger_cannot_write_to_the_terminal(form: Any) -> None:
    nasty = entry(
        record(act(HOSTILE, container=HOSTILE, resource=HOSTILE), detail=HOSTILE, undoes=HOSTILE),
        name=HOSTILE,
        changes=(Change("template", 2, 1, HOSTILE, HOSTILE),),
        why=HOSTILE,
        not_before_ms=NOW_MS + 1,
    )
    text = ledger_view(sheet(nasty, paused=HOSTILE, unreadable={HOSTILE: HOSTILE}), form=form)

    assert all(character.isprintable() or character == "\n" for character in text)


def test_the_result_of_an_act_is_one_line_whatever_it_says() -> None:
    ref = WorkloadRef("apps", "Deployment", "ml-workloads", HOSTILE)
    line = result_line(Result(ref, "replicas 3 -> 1", "refused", Reason.PAUSED, HOSTILE))

    assert line.startswith("refused    Deployment ml-workloads/evil")
    assert all(character.isprintable() for character in line.removesuffix("\n"))


@pytest.mark.parametrize(
    ("result", "line"),
    [
        (Result(act().target, "replicas 3 -> 1", "done"), "done       Deployment ml-workloads/inference  replicas 3 -> 1\n"),
        (
            Result(act().target, "replicas 3 -> 1", "refused", Reason.PAUSED, "paused by you"),
            "refused    Deployment ml-workloads/inference  replicas 3 -> 1  Paused: paused by you\n",
        ),
        (
            Result(act().target, "replicas 3 -> 1", "conflict", because="it is at 4"),
            "conflict   Deployment ml-workloads/inference  replicas 3 -> 1  it is at 4\n",
        ),
    ],
)  # fmt: skip
def test_a_result_names_act_end_and_cause(result: Result, line: str) -> None:
    assert result_line(result) == line


def test_structured_forms_read_back_as_what_they_tell() -> None:
    whole = full()
    plain = msgspec.to_builtins(whole)

    assert json.loads(ledger_view(whole, form="json")) == json.loads(json.dumps(plain))
    assert msgspec.convert(yaml.safe_load(ledger_view(whole, form="yaml")), type=LedgerSheet) == whole
    result = Result(act().target, "replicas 3 -> 1", "done", action_id="a1b2c3")
    assert json.loads(results_view([result], "json")) == [msgspec.to_builtins(result)]


def test_an_eviction_names_its_pod_and_what_it_frees() -> None:
    evict = act(lever="evict", after=0, pod=PodRef("ml-workloads", "batch-1", "uid-batch-1"))

    assert figures.change(evict) == "evict pod batch-1 (2 boards)"
    assert figures.change(act(lever="evict", after=0)) == "evict pod - (2 boards)"


def test_a_value_of_ours_is_told_with_the_owners() -> None:
    replicas = Change("scale", original=3, current=1)

    assert (figures.ours(replicas), figures.restored(replicas)) == ("replicas 1 (was 3)", "replicas 1 -> 3")
    assert figures.ours(SIZE) == "boards per pod 1 (was 2)"


@pytest.mark.parametrize("columns", [80, 100, 120])
def test_no_word_of_an_act_is_cut_off(columns: int) -> None:
    words = "alpha bravo charlie delta echo foxtrot golf hotel india"
    text = ledger_view(
        sheet(entry(record(act(), detail=words), why=words, reversals=1)), screen=Screen(columns=columns)
    )

    assert [text.count(word) for word in words.split()] == [2] * 9


def test_freed_boards_are_told_with_who_took_them_and_only_of_verified_acts() -> None:
    taker = WorkloadRef("apps", "Deployment", "ml-workloads", "trainer")
    rows = (Freed("node-7", 1, "used", by=taker, at_ms=NOW_MS), Freed("node-8", 2, "waiting", at_ms=NOW_MS))
    told = ledger_view(sheet(entry(record(act(), freed=rows))), form="wide").split("FREED BOARDS")[1]

    assert [line.split()[1:4] for line in told.splitlines() if "node-" in line] == [
        ["1", "node-7", "used"],
        ["2", "node-8", "waiting"],
    ]
    assert "ml-workloads/trainer" in told
    untold = ledger_view(sheet(entry(record(act(), state="failed", freed=rows))), form="wide")
    assert "FREED BOARDS" not in untold
    held = (Freed("node-7", 2, "held"),)
    assert "FREED BOARDS" not in ledger_view(sheet(entry(record(act(), freed=held))), form="wide")
