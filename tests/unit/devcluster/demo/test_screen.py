from io import StringIO
from typing import Any, get_args

import pytest
from rich.console import Console

from autoscaler.model.ledger import State
from devcluster.demo.screen import Facts, frame, latest_records
from tests.unit.devcluster.demo.stories import entry, plan, row

pytestmark = pytest.mark.unit

FACTS = Facts(
    api_server_url="https://api",
    prometheus_url="http://prometheus",
    service_url="http://service",
    elapsed_s=75,
    clock="02:30",
    phase="night",
    tells="training arrives",
    waits_for=("a seat", "an eviction"),
)


def drawn(*entries: Any, shown: Any = None, readiness: str = "", width: int = 150) -> str:
    text = StringIO()
    Console(width=width, file=text).print(frame(shown, entries, FACTS, readiness))
    return text.getvalue()


def test_the_head_says_which_phase_it_is_and_what_it_waits_for() -> None:
    text = drawn(shown=plan(row("server")))

    assert "mode apply  it is 02:30 in the story, 1m15s since the start" in text
    assert "night: training arrives  (waits for 2: a seat)" in text


def test_while_there_is_no_plan_only_what_is_lacking_is_shown() -> None:
    text = drawn(readiness="[+]api-server ok\n[-]lease failed: 403\n")

    assert "[-]lease failed: 403" in text
    assert "api-server ok" not in text


def test_an_eviction_names_its_pod_and_a_change_its_amounts() -> None:
    evicted = entry("helper", namespace="batch", lever="evict", record_id="r2", at_ms=2)
    text = drawn(entry(), evicted, shown=plan(row("server")))

    assert "evict pod helper-1 (2 boards)" in text
    assert "boards per pod 2 -> 1" in text


@pytest.mark.parametrize("state", get_args(State))
def test_every_state_of_a_record_is_drawn(state: State) -> None:
    assert state in drawn(entry(state=state), shown=plan(row("server")))


def test_a_ledger_without_records_takes_no_room() -> None:
    assert "LEDGER" not in drawn(shown=plan(row("server")))


def test_the_newest_records_come_first_and_no_more_than_fit() -> None:
    entries = [entry(record_id=f"r{number:02}", at_ms=number) for number in range(12)]

    assert [record.id for _, record in latest_records(entries)] == [f"r{n:02}" for n in range(11, 3, -1)]


@pytest.mark.parametrize("width", [80, 100, 150, 300])
def test_no_column_is_lost_on_a_narrow_terminal(width: int) -> None:
    evicted = entry("a-helper-with-a-long-name", namespace="batch", lever="evict", record_id="r2")
    text = drawn(evicted, shown=plan(row("a-server-with-quite-a-long-name"), row("server")), width=width)

    for column in (
        "LEDGER",
        "STATE",
        "BY",
        "KIND",
        "HELD",
        "USE",
        "NEED",
        "VERDICT",
        "REASON",
        "LEFT ALONE",
        "NO.",
    ):
        assert column in text
    assert "BelowSavingsFloor" in text
    assert "verified" in text
    assert max(map(len, text.splitlines())) <= width
