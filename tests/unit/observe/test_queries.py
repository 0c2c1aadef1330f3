"""Every shipped query parses, groups by what its profile reads, and their number is fixed."""

from collections.abc import Iterator

import msgspec
import promql_parser
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.observe.observed import HISTORY_MS, PROFILES, WINDOW_MS

from autoscaler.observe.profiles import Profile
from autoscaler.observe.queries import board_queries, history_queries, selector, signal_queries

pytestmark = pytest.mark.unit

PINNED = msgspec.structs.replace(PROFILES["dcgm"], match={"job": 'dcgm "exporter"\\'})


def shipped(profile: Profile) -> Iterator[str]:
    for signal in profile.signals:
        yield from msgspec.structs.astuple(signal_queries(profile, signal, window_ms=WINDOW_MS))
        yield from msgspec.structs.astuple(history_queries(profile, signal, history_ms=HISTORY_MS))
    yield from filter(None, msgspec.structs.astuple(board_queries(profile, window_ms=WINDOW_MS)))


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
        "dcgm": 30,
        "seed": 13,
    }


def test_a_pinned_source_is_in_every_selector() -> None:
    for text in shipped(PINNED):
        assert text.count("DCGM_FI_") == text.count('{job="dcgm \\"exporter\\"\\\\"}')


@given(st.text(max_size=50))
def test_any_label_value_is_escaped(value: str) -> None:
    promql_parser.parse(selector("up", {"job": value}))
