from collections import Counter

from autoscaler.model.evidence import UNATTRIBUTED
from autoscaler.observe.assemble import assemble
from autoscaler.observe.attribution import Roster, attribute
from autoscaler.observe.hosts import Hosts
from autoscaler.observe.series import SeriesReading
from autoscaler.observe.unattributed import count_unattributed
from tests.unit.observe.observed import (
    ENGINE,
    NOW_MS,
    Scrape,
    Seen,
    board,
    deployment,
    node,
    pod,
    series_of,
    stores,
)


def counted(*seen: Seen) -> Counter[str]:
    view = stores(
        pod("web-0"),
        pod("twin", namespace="a"),
        pod("twin", namespace="b"),
        pod("over", phase="Succeeded"),
        pod("exporter", gpus=0),
        deployment("web"),
        node("node-1"),
    ).freeze()
    rows = assemble(view, SeriesReading(), now_ms=NOW_MS).pods
    series = series_of(Scrape("dcgm", signals={ENGINE: seen}))
    owners = attribute(
        series, Roster.of(rows, view.pods.pods), handover_ms=30_000, hosts=Hosts.of(frozenset({"node-1"}))
    )
    return count_unattributed(series, owners)


def test_each_series_without_a_pod_is_counted_by_its_reason() -> None:
    found = counted(
        Seen(board("1", "web-0")),
        Seen(board("2")),
        Seen(board("3")),
        Seen({"UUID": "GPU-4", "hostname": "elsewhere"}),
        Seen(board("5", "exporter")),
        Seen(board("6", "gone")),
        Seen(board("7", "over")),
        Seen({"UUID": "GPU-8", "pod": "twin"}),
    )

    assert found == {
        "unowned": 2,
        "unknown_node": 1,
        "exporter": 1,
        "ghost": 1,
        "finished": 1,
        "ambiguous": 1,
    }
    assert set(found) < set(UNATTRIBUTED)


def test_series_that_are_owned_or_have_no_sample_in_the_window_are_not_counted() -> None:
    assert counted(Seen(board("1", "web-0"))) == Counter()
    assert counted(Seen(board("2"), newest_ms=-1000)) == Counter()
