"""Joins: which use belongs to whom, and what is not said of anybody."""

import pytest
from unit.observe.observed import (
    ENGINE,
    FULL,
    INTERVAL_MS,
    NOW_MS,
    UTIL,
    Scrape,
    Seen,
    board,
    node,
    pod,
    reading,
    snapshot,
)

from autoscaler.model.evidence import (
    CONTRADICTORY,
    DROPPED,
    MISSING_ACTIVITY,
    MISSING_MIB,
    POD_SCOPE,
    SHARED,
)

pytestmark = pytest.mark.unit


def engine(*rows: Seen, **boards: list[Seen]) -> Scrape:
    return Scrape("dcgm", {ENGINE: rows}, **boards)


def test_a_series_is_joined_by_namespace_and_pod_name() -> None:
    seen = snapshot(
        pod("trainer", namespace="a"),
        pod("trainer", namespace="b"),
        series=reading(engine(Seen(board("x", "trainer", namespace="b"), "0.9", mean=0.5))),
    )

    assert [seen.pods[i].namespace for i in seen.holders.pod] == ["b"]
    assert (seen.holders.device, seen.holders.container) == (("x",), ("main",))
    assert (seen.holders.mean[0], seen.holders.peak[0], seen.holders.samples[0]) == (5000, 9000, FULL)
    assert seen.holders.last_ms[0] == NOW_MS


def test_no_series_and_a_series_of_zeros_are_different() -> None:
    nothing = snapshot(pod("p"), series=reading(engine()))
    zeros = snapshot(pod("p"), series=reading(engine(Seen(board("x", "p"), "0"))))

    assert len(nothing.holders) == 0
    assert (zeros.holders.peak[0], zeros.holders.samples[0]) == (0, FULL)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (Seen(board("x", "p"), "NaN"), "not-a-number"),
        (Seen(board("x", "p"), "0.5", mean="NaN"), "not-a-number"),
        (Seen(board("x", "p"), "+Inf"), "infinite"),
        (Seen(board("x", "p"), "0.5", mean="+Inf"), "infinite"),
        (Seen(board("x", "p"), "0.5", low="-1"), "negative"),
        (Seen(board("x", "p"), "9223372036854775794"), "out-of-range"),
        (Seen(board("x", "p"), "1.5"), "out-of-range"),
        (Seen(board("x", "p"), "soon", mean=0.1), "not-a-number"),
    ],
)
def test_a_bad_value_is_dropped_by_name_and_never_zero(row: Seen, reason: str) -> None:
    seen = snapshot(pod("p"), series=reading(engine(row)))

    assert seen.telemetry.dropped == {reason: 1}
    assert (seen.holders.peak[0], seen.holders.mean[0], seen.holders.samples[0]) == (
        MISSING_ACTIVITY,
        MISSING_ACTIVITY,
        0,
    )
    assert seen.holders.flags[0] & DROPPED


def test_a_bad_history_is_missing_and_leaves_the_window_alone() -> None:
    row = Seen(board("x", "p"), "0.5")
    broken = reading(engine(row))
    signal = broken.profiles[0].signals[0]
    signal.history.total.values[:] = float("nan")
    seen = snapshot(pod("p"), series=broken)

    assert seen.holders.history_p95[0] == MISSING_ACTIVITY
    assert seen.holders.peak[0] == 5000


def test_exported_labels_win_over_the_plain_ones_which_are_the_exporter() -> None:
    target = {"pod": "dcgm-exporter-q", "namespace": "monitoring", "container": "exporter"}
    exported = {"exported_pod": "p", "exported_namespace": "ml", "exported_container": "main"}
    seen = snapshot(
        pod("p"),
        node("node-1"),
        series=reading(
            engine(
                Seen({**board("x"), **target, **exported}, "0.9"),
                Seen({**board("y"), **target}, "0.8"),
            )
        ),
    )

    assert (seen.holders.device, seen.holders.container) == (("x",), ("main",))
    assert [(d.device, d.node, d.peak) for d in seen.telemetry.unowned] == [("y", "node-1", 8000)]
    assert seen.telemetry.ghosts == 0


def test_an_exported_pod_never_takes_the_scrape_targets_namespace() -> None:
    labels = {"exported_pod": "p", "pod": "exporter", "namespace": "ml"}
    seen = snapshot(
        pod("p"),
        pod("p", namespace="other"),
        series=reading(Scrape("seed", {"gpu_gpu_utilization": [Seen(labels, "50")]})),
    )

    assert len(seen.holders) == 0


def test_a_series_of_a_pod_that_holds_no_accelerator_is_un_owned() -> None:
    labels = board("x", "dcgm-exporter-q", namespace="monitoring")
    seen = snapshot(
        pod("dcgm-exporter-q", namespace="monitoring", gpus=0), series=reading(engine(Seen(labels, "0.7")))
    )

    assert [(d.device, d.node, d.peak) for d in seen.telemetry.unowned] == [("x", "", 7000)]


def test_empty_owner_labels_name_nobody() -> None:
    labels = {**board("x"), "pod": "", "namespace": "", "container": ""}
    seen = snapshot(pod("p"), node("node-1"), series=reading(engine(Seen(labels, "0.2"))))

    assert [d.device for d in seen.telemetry.unowned] == ["x"]


def test_the_row_of_a_device_without_owner_gives_way_to_its_owner() -> None:
    seen = snapshot(
        pod("p"),
        series=reading(
            engine(
                Seen(board("x"), "0.9", count=40, newest_ms=NOW_MS - 600_000),
                Seen(board("x", "p"), "0.5", count=80),
            )
        ),
    )

    assert seen.telemetry.unowned == ()
    assert seen.holders.device == ("x",)


def test_a_pod_that_the_api_server_does_not_know_is_a_ghost() -> None:
    seen = snapshot(pod("p"), series=reading(engine(Seen(board("x", "gone"), "0.9"))))

    assert seen.telemetry.ghosts == 1
    assert len(seen.holders) == 0
    assert seen.telemetry.unowned == ()


def test_a_series_of_another_uid_is_a_ghost() -> None:
    seen = snapshot(pod("p", uid="new"), series=reading(engine(Seen(board("x", "p", pod_uid="old"), "0.9"))))

    assert (seen.telemetry.ghosts, len(seen.holders)) == (1, 0)


def test_a_series_that_ended_before_the_pod_started_is_a_ghost() -> None:
    start_ms = NOW_MS - 300_000
    seen = snapshot(
        pod("p", start_ms=start_ms),
        series=reading(engine(Seen(board("x", "p"), "0.9", count=80, newest_ms=start_ms - 1000))),
    )

    assert (seen.telemetry.ghosts, len(seen.holders)) == (1, 0)


def test_samples_before_the_pods_start_do_not_count() -> None:
    age_ms = 300_000
    seen = snapshot(
        pod("p", start_ms=NOW_MS - age_ms), series=reading(engine(Seen(board("x", "p"), "0.9", count=FULL)))
    )

    assert seen.holders.samples[0] == age_ms // INTERVAL_MS + 1
    assert seen.holders.history_samples[0] == age_ms // INTERVAL_MS + 1
    assert seen.holders.history_first_ms[0] == NOW_MS - age_ms


def test_a_finished_pod_is_neither_holder_nor_ghost_nor_nobody() -> None:
    seen = snapshot(pod("p", phase="Succeeded"), series=reading(engine(Seen(board("x", "p"), "0.9"))))

    assert (len(seen.pods), len(seen.holders)) == (0, 0)
    assert (seen.telemetry.ghosts, seen.telemetry.unowned) == (0, ())


def test_series_of_one_device_and_pod_are_merged_after_an_exporter_restart() -> None:
    before = {**board("x", "p"), "instance": "10.0.0.1:9400"}
    after = {**board("x", "p"), "instance": "10.0.0.2:9400"}
    seen = snapshot(
        pod("p"),
        series=reading(
            engine(
                Seen(before, "0.8", mean=0.4, count=90, newest_ms=NOW_MS - 450_000),
                Seen(after, "0.2", mean=0.1, count=30, covered=117),
            )
        ),
    )

    assert len(seen.holders) == 1
    assert (seen.holders.samples[0], seen.holders.peak[0]) == (117, 8000)
    assert seen.holders.mean[0] == 4000
    assert seen.holders.last_ms[0] == NOW_MS


def test_two_scrapers_of_one_device_do_not_double_its_samples() -> None:
    first, second = ({**board("x", "p"), "instance": f"10.0.0.{i}:9400"} for i in (1, 2))
    seen = snapshot(
        pod("p"), series=reading(engine(Seen(first, "0.4", count=60), Seen(second, "0.4", count=60)))
    )

    assert (seen.holders.samples[0], seen.holders.mean[0]) == (60, 4000)


def test_two_scrapers_that_miss_the_same_half_are_no_whole_window() -> None:
    """One of them is back: 121 samples of 120, and the truth is 61."""
    first, second = ({**board("x", "p"), "instance": f"10.0.0.{i}:9400"} for i in (1, 2))
    half = Seen(first, "0.4", count=60, covered=61, newest_ms=NOW_MS - 900_000)
    seen = snapshot(pod("p"), series=reading(engine(half, Seen(second, "0.4", count=61))))

    assert seen.holders.samples[0] == 61


def test_no_more_samples_count_than_fit_into_the_window() -> None:
    row = Seen(board("x", "p"), "0.4", count=300, covered=300)
    seen = snapshot(pod("p"), series=reading(engine(row)))

    assert seen.holders.samples[0] == FULL + 1


def test_samples_in_no_covered_part_are_no_more_than_one_part_holds() -> None:
    series = reading(engine(Seen(board("x", "p"), "0.4")))
    series.profiles[0].signals[0].window.covered.seen[:] = False
    seen = snapshot(pod("p"), series=series)

    assert seen.holders.samples[0] == 11


def test_the_history_has_at_least_the_windows_samples() -> None:
    seen = snapshot(pod("p"), series=reading(engine(Seen(board("x", "p"), "0.4", history_count=3))))

    assert seen.holders.history_samples[0] == FULL


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        (("window", "count"), float("nan"), "no-count"),
        (("window", "count"), -1.0, "no-count"),
        (("window", "count"), 1e300, "no-count"),
        (("window", "newest"), float("nan"), "no-time"),
        (("window", "newest"), -1.0, "no-time"),
        (("window", "newest"), 1e300, "no-time"),
        (("window", "covered"), float("inf"), "no-count"),
        (("history", "count"), float("nan"), "no-count"),
        (("history", "count"), 1e300, "no-count"),
        (("history", "first"), -1e300, "no-time"),
    ],
)
def test_an_impossible_count_or_time_was_not_seen_and_is_counted(
    column: tuple[str, str], value: float, reason: str
) -> None:
    series = reading(engine(Seen(board("x", "p"), "0.4")))
    part, name = column
    getattr(getattr(series.profiles[0].signals[0], part), name).values[:] = value
    seen = snapshot(pod("p"), series=series)

    assert seen.telemetry.dropped == {reason: 1}
    if column == ("window", "count"):
        assert len(seen.holders) == 0


def test_several_live_pods_on_one_device_share_it() -> None:
    seen = snapshot(
        pod("p"), pod("q"), series=reading(engine(Seen(board("x", "p"), "0.9"), Seen(board("x", "q"), "0.9")))
    )

    assert [bool(flag & SHARED) for flag in seen.holders.flags] == [True, True]


def test_a_device_handed_over_by_a_pod_that_is_gone_is_not_shared() -> None:
    start_ms = NOW_MS - 600_000
    seen = snapshot(
        pod("new", start_ms=start_ms),
        series=reading(
            engine(
                Seen(board("x", "old"), "0.9", count=60, newest_ms=start_ms - 5000),
                Seen(board("x", "new"), "0.1", count=40),
            )
        ),
    )

    assert seen.holders.flags.tolist() == [0]
    assert seen.telemetry.ghosts == 1


def test_a_gone_pod_that_overlapped_the_present_one_shared_its_device() -> None:
    start_ms = NOW_MS - 600_000
    seen = snapshot(
        pod("new", start_ms=start_ms),
        series=reading(
            engine(
                Seen(board("x", "old"), "0.9", count=60, newest_ms=start_ms + 300_000),
                Seen(board("x", "new"), "0.1", count=40),
            )
        ),
    )

    assert seen.holders.flags.tolist() == [SHARED]


def test_no_activity_at_high_power_is_a_contradiction() -> None:
    def flags(activity: str, watts: str) -> int:
        scrape = engine(Seen(board("x", "p"), activity), power=[Seen(board("x", "p"), watts)])
        return int(snapshot(pod("p"), series=reading(scrape)).holders.flags[0])

    assert flags("0", "310") == CONTRADICTORY
    assert flags("0.01", "310") == CONTRADICTORY
    assert flags("0.02", "310") == 0
    assert flags("0", "60") == 0
    assert flags("0.9", "310") == 0


@pytest.mark.parametrize(("neighbour", "flags"), [("0.5", [0, 0]), ("0", [CONTRADICTORY, CONTRADICTORY])])
def test_a_boards_power_is_charged_to_its_slices_only_if_all_of_them_rest(
    neighbour: str, flags: list[int]
) -> None:
    rows = [Seen(board("x", "p", GPU_I_ID="7"), "0"), Seen(board("x", "q", GPU_I_ID="8"), neighbour)]
    scrape = engine(*rows, power=[Seen(board("x"), "310")])

    assert snapshot(pod("p"), pod("q"), series=reading(scrape)).holders.flags.tolist() == flags


def test_a_bad_power_value_is_counted_and_proves_nothing() -> None:
    scrape = engine(Seen(board("x", "p"), "0"), power=[Seen(board("x", "p"), "9223372036854775794")])
    seen = snapshot(pod("p"), series=reading(scrape))

    assert (seen.holders.flags.tolist(), seen.telemetry.dropped) == ([0], {"out-of-range": 1})


def test_utilisation_is_void_on_a_slice_and_engine_activity_is_not() -> None:
    whole, part = board("x", "p"), board("y", "q", GPU_I_ID="7")
    scrape = Scrape("dcgm", {ENGINE: [Seen(part, "0.4")], UTIL: [Seen(whole, "90"), Seen(part, "80")]})
    seen = snapshot(pod("p"), pod("q"), series=reading(scrape))

    found = {(seen.holders.device[i], int(seen.holders.source[i])) for i in range(len(seen.holders))}
    assert found == {("y/7", 0), ("x", 1)}


def test_each_signal_is_a_source_of_its_own_with_its_own_scale() -> None:
    labels = board("x", "p")
    seen = snapshot(
        pod("p"), series=reading(Scrape("dcgm", {ENGINE: [Seen(labels, "0.5")], UTIL: [Seen(labels, "97")]}))
    )

    assert [source.signal for source in seen.telemetry.sources] == [ENGINE, UTIL]
    assert seen.holders.peak.tolist() == [5000, 9700]
    assert seen.holders.source.tolist() == [0, 1]


def test_memory_is_peak_used_and_least_used_plus_most_free() -> None:
    labels = board("x", "p")
    scrape = engine(Seen(labels, "0.5"), used=[Seen(labels, "30000.5")], free=[Seen(labels, "10000")])
    seen = snapshot(pod("p"), series=reading(scrape))

    assert seen.holders.memory_peak_mib[0] == 30_001
    assert seen.holders.memory_total_mib[0] == 40_000


def test_the_memory_peak_is_of_the_history_too() -> None:
    labels = board("x", "p")
    scrape = engine(Seen(labels, "0.5"), used=[Seen(labels, "300")], past_used=[Seen(labels, "7000")])
    seen = snapshot(pod("p"), series=reading(scrape))

    assert seen.holders.memory_peak_mib[0] == 7000


def test_a_memory_history_that_cannot_be_read_makes_the_peak_unknown_and_nothing_else() -> None:
    labels = board("x", "p")
    scrape = engine(
        Seen(labels, "0.5"), used=[Seen(labels, "300")], past_used=[Seen(labels, "9223372036854775794")]
    )
    seen = snapshot(pod("p"), series=reading(scrape))

    assert (seen.holders.memory_peak_mib[0], seen.holders.flags[0]) == (MISSING_MIB, 0)
    assert seen.telemetry.dropped == {}


def test_the_busiest_window_of_the_history_is_kept() -> None:
    seen = snapshot(pod("p"), series=reading(engine(Seen(board("x", "p"), "0.9", mean=0.1, busiest="0.6"))))

    assert seen.holders.history_busiest[0] == 6000


def test_without_a_window_of_its_own_the_history_is_as_busy_as_the_window() -> None:
    series = reading(engine(Seen(board("x", "p"), "0.9", mean=0.1)))
    series.profiles[0].signals[0].history.busiest.seen[:] = False
    seen = snapshot(pod("p"), series=series)

    assert seen.holders.history_busiest[0] == 1000


def test_an_unreadable_busiest_window_makes_the_history_unreadable() -> None:
    row = Seen(board("x", "p"), "0.9", mean=0.1, busiest="NaN")
    seen = snapshot(pod("p"), series=reading(engine(row)))

    assert (seen.holders.history_busiest[0], seen.holders.history_p95[0]) == (
        MISSING_ACTIVITY,
        MISSING_ACTIVITY,
    )


@pytest.mark.parametrize(
    ("nodes", "label", "found"),
    [
        (["n1", "n2"], "n1", "n1"),
        (["n1", "n2"], "n1.example.com", "n1"),
        (["n1.example.com", "n2.example.com"], "N1", "n1.example.com"),
        (["n1.a.example", "n1.b.example"], "n1", ""),
        (["n1.a.example", "n1.b.example"], "n1.b.example", "n1.b.example"),
        (["10", "n1"], "10.0.0.1:9400", ""),
        (["n1"], "other", ""),
    ],
)
def test_an_un_owned_board_is_looked_for_on_its_node_by_full_or_unique_short_name(
    nodes: list[str], label: str, found: str
) -> None:
    labels = {"UUID": "GPU-x", "Hostname": label}
    seen = snapshot(*(node(name) for name in nodes), series=reading(engine(Seen(labels, "0.9"))))

    assert [device.node for device in seen.telemetry.unowned] == [found]
    assert seen.telemetry.dropped == ({} if found else {"un-owned, on a node that is not known": 1})


def test_memory_that_was_not_seen_is_missing_not_zero() -> None:
    seen = snapshot(pod("p"), series=reading(engine(Seen(board("x", "p"), "0.5"))))

    assert seen.holders.memory_peak_mib[0] == MISSING_MIB
    assert seen.holders.memory_total_mib[0] == MISSING_MIB


def seed(labels: dict[str, str], peak: str = "60") -> Scrape:
    return Scrape("seed", {"gpu_gpu_utilization": [Seen(labels, peak)]})


def test_a_value_per_pod_names_no_device_and_says_so() -> None:
    seen = snapshot(pod("p"), series=reading(seed({"pod": "p", "namespace": "ml"})))

    assert (seen.holders.device, seen.holders.peak[0]) == (("",), 6000)
    assert seen.holders.flags[0] == POD_SCOPE


def test_without_a_namespace_a_unique_pod_name_is_enough() -> None:
    plain = pod("p", namespace="other", gpus=0)
    seen = snapshot(pod("p"), plain, series=reading(seed({"pod": "p"})))

    assert [seen.pods[i].namespace for i in seen.holders.pod] == ["ml"]


def test_without_a_namespace_a_repeated_pod_name_is_nobody() -> None:
    seen = snapshot(
        pod("p", namespace="a", node="n1"),
        pod("p", namespace="b", node="n2"),
        series=reading(seed({"pod": "p"})),
    )

    assert len(seen.holders) == 0
    assert [(d.device, d.node, d.peak) for d in seen.telemetry.unowned] == [
        ("p", "n1", 6000),
        ("p", "n2", 6000),
    ]


def test_lag_is_the_age_of_the_newest_sample_of_the_fleet() -> None:
    rows = [
        Seen(board("x", "p"), newest_ms=NOW_MS - 90_000),
        Seen(board("y", "q"), newest_ms=NOW_MS - 40_000),
    ]
    seen = snapshot(pod("p"), pod("q"), series=reading(engine(*rows)))

    assert seen.telemetry.lag_ms == 40_000


def test_a_device_id_is_compared_without_prefix_and_case() -> None:
    scrape = engine(
        Seen({**board("x", "p"), "UUID": "GPU-AB-1"}, "0.5"),
        used=[Seen({**board("x", "p"), "UUID": "gpu-ab-1"}, "5")],
    )
    seen = snapshot(pod("p"), series=reading(scrape))

    assert (seen.holders.device, seen.holders.memory_peak_mib[0]) == (("ab-1",), 5)


def test_the_order_in_which_series_arrive_changes_nothing() -> None:
    rows = [Seen(board(f"d{i}", f"p{i % 3}"), str(i / 10)) for i in range(9)] + [Seen(board("z"), "0.1")]
    pods = [pod(f"p{i}", gpus=3) for i in range(3)]

    assert snapshot(*pods, series=reading(engine(*rows))) == snapshot(
        *reversed(pods), series=reading(engine(*reversed(rows)))
    )


def test_memory_without_activity_is_no_row() -> None:
    seen = snapshot(pod("p"), series=reading(Scrape("dcgm", {ENGINE: []}, used=[Seen(board("x", "p"), "5")])))

    assert len(seen.holders) == 0


def test_faults_and_warnings_reach_the_snapshot() -> None:
    told = snapshot(
        pod("p"), series=reading(fault="unreachable: x", warnings=("partial",), skew_ms=-7)
    ).telemetry

    assert (told.fault, told.warnings, told.skew_ms, told.store_ms) == (
        "unreachable: x",
        ("partial",),
        -7,
        NOW_MS,
    )


def test_a_pod_seen_in_history_only_is_no_ghost() -> None:
    row = Seen(board("x", "gone"), "0.9")
    series = reading(engine(row))
    series.profiles[0].signals[0].window.newest.seen[:] = False
    told = snapshot(pod("p"), series=series).telemetry

    assert told.ghosts == 0
