"""Missing, stale, partial and zero are different things, and only the last one is a measurement."""

import pytest
from build import DAY_MS, HOUR_MS, NOW_MS, Board, Spec, boards, cluster, judge, node, policy
from hypothesis import given
from hypothesis import strategies as st
from worlds import LOSSES, degrade, worlds

from autoscaler.decide.evidence import coverage_of, divided_boards, observe_unit, reason_of
from autoscaler.decide.world import World
from autoscaler.model.evidence import (
    CONTRADICTORY,
    DROPPED,
    POD_SCOPE,
    SHARED,
    Absent,
    Contradictory,
    Measured,
    Observation,
    Partial,
    Shared,
    Source,
    Stale,
    Unattributed,
    UnownedDevice,
)
from autoscaler.model.snapshot import Snapshot

ENGINE = Source("dcgm", "engine", 15_000, interval_measured=True)
SEED = Source("seed", "gpu util", 15_000, interval_measured=True)
TWO = {"sources": (ENGINE, SEED)}


def look(snapshot: Snapshot, **sections: object) -> Observation:
    _, judged = judge(snapshot, policy(**sections))
    return judged.assessment.observations[0]


def seen(*found: Board, gpus: int | None = None, **more: object) -> Snapshot:
    return cluster(Spec(gpus=len(found) if gpus is None else gpus, seen=(found,)), **more)


def test_a_full_window_of_every_board_is_measured() -> None:
    found = look(seen(Board(0.5, peak=0.9, history_ms=3 * DAY_MS), Board(0.0)))

    assert isinstance(found, Measured)
    assert (found.coverage, found.age_ms, found.history_ms, found.signal) == (1.0, 0, 3 * DAY_MS, "engine")
    assert [(board.mean, board.peak) for board in found.boards] == [(5000, 9000), (0, 0)]


@pytest.mark.parametrize(
    ("snapshot", "kind", "why"),
    [
        (cluster(Spec(seen=(None,))), Absent, "no sample in 30m"),
        (seen(Board(), telemetry={"fault": "refused"}), Absent, "the metrics store: refused"),
        (seen(Board(), telemetry={"store_ms": -1}), Absent, "it never answered"),
        (seen(Board(), telemetry={"warnings": ("partial",)}), Partial, "the metrics store warned: partial"),
        (cluster(Spec(seen=(None,)), telemetry={"untrusted": ("a", "b")}), Unattributed, "several scrape jobs publish GPU series (a; b)"),
        (seen(Board(), gpus=2), Partial, "1 of 2 boards seen"),
        (seen(Board(), Board(), gpus=1), Contradictory, "2 boards seen, 1 held"),
        (seen(Board(coverage=0.94)), Partial, "94% of the samples of 30m, 95% needed"),
        (seen(Board(), Board(coverage=0.5)), Partial, "50% of the samples"),
        (seen(Board(coverage=0)), Partial, "a board has no sample in the window"),
        (seen(Board(), telemetry={"window_ms": 60_000}), Partial, "the snapshot covers 1m, the policy asks for 30m"),
        (seen(Board(age_ms=30_001)), Stale, "newest sample is 30s1ms old, 30s allowed"),
        (seen(Board(), Board(age_ms=HOUR_MS)), Stale, "newest sample is 1h old"),
        (seen(Board(age_ms=20_000), telemetry={"read_ms": 10_001}), Stale, "newest sample is 30s1ms old"),
        (seen(Board(age_ms=-HOUR_MS), telemetry={"read_ms": HOUR_MS}), Contradictory, "newest sample is 1h ahead"),
        (seen(Board(history_busiest=6.5535)), Partial, "a board has no readable activity"),
        (seen(Board(age_ms=-HOUR_MS)), Contradictory, "newest sample is 1h ahead of the store's clock"),
        (seen(Board(flags=SHARED)), Shared, "several pods"),
        (seen(Board(flags=CONTRADICTORY)), Contradictory, "activity is 0 while power"),
        (seen(Board(flags=DROPPED)), Partial, "no numbers or out of range"),
        (seen(Board(flags=POD_SCOPE), gpus=2), Partial, "one value for 2 boards"),
        (seen(Board(mean=6.5535)), Partial, "a board has no readable activity"),
        (seen(Board(), Board(history_peak=6.5535)), Partial, "a board has no readable activity"),
        (seen(Board(device="a"), Board(device="a")), Contradictory, "one board is reported twice"),
        (seen(Board(mean=0.9, peak=0.0)), Contradictory, "the mean is over the peak"),
        (seen(Board(history_p95=0.9)), Contradictory, "the percentile is over the peak"),
        (seen(Board(), telemetry={"unowned": (UnownedDevice("x", "node-1", 500),)}), Contradictory, "busy board without owner on node-1: x"),
        (cluster(Spec(pod={"started_ms": -1})), Partial, "the pod has no start time"),
        (seen(Board(), sources=(Source("s", "s", HOUR_MS, interval_measured=True),)), Partial, "cannot be covered by samples every 1h"),
        (seen(Board(), nodes=(node(labels={"nvidia.com/gpu.product": "A100-SHARED"}),)), Shared, "on node-1 a unit is no whole board"),
    ],
)  # fmt: skip
def test_anything_less_is_not_measured_and_says_why(snapshot: Snapshot, kind: type, why: str) -> None:
    found = look(snapshot)

    assert isinstance(found, kind)
    assert why in found.why  # type: ignore[union-attr]


def test_the_time_that_reading_took_is_part_of_the_age() -> None:
    found = look(seen(Board(age_ms=5_000), telemetry={"read_ms": 7_000}))

    assert isinstance(found, Measured)
    assert found.age_ms == 12_000


def test_a_busiest_window_is_never_under_the_present_one() -> None:
    found = look(seen(Board(0.5, history_busiest=0.2), Board(0.1, history_busiest=0.8)))

    assert isinstance(found, Measured)
    assert [board.history_busiest for board in found.boards] == [5000, 8000]


def test_lag_of_the_store_is_forgiven_up_to_the_policy_s_limit() -> None:
    late = seen(Board(age_ms=90_000), telemetry={"lag_ms": 60_000})

    assert isinstance(look(late), Measured)
    assert isinstance(look(late, evidence={"maxLag": "30s"}), Stale)


def test_a_whole_pod_s_value_is_enough_for_one_board() -> None:
    assert isinstance(look(seen(Board(flags=POD_SCOPE))), Measured)


def test_unowned_boards_over_the_free_ones_are_told_from_no_sample_at_all() -> None:
    spec, lost = Spec(seen=(None,)), UnownedDevice("x", "node-1", 0)

    assert isinstance(
        look(cluster(spec, nodes=(node(gpus=1),), telemetry={"unowned": (lost,)})), Unattributed
    )
    assert isinstance(look(cluster(spec, nodes=(node(gpus=2),), telemetry={"unowned": (lost,)})), Absent)
    assert isinstance(
        look(cluster(spec.but(node="gone"), telemetry={"unowned": (UnownedDevice("x", "gone", 0),)})),
        Unattributed,
    )


def test_a_busy_board_elsewhere_is_not_held_against_a_unit() -> None:
    assert isinstance(
        look(seen(Board(), telemetry={"unowned": (UnownedDevice("x", "node-2", 9999),)})), Measured
    )


def test_an_idle_board_without_owner_is_not_held_against_a_unit() -> None:
    assert isinstance(
        look(seen(Board(), telemetry={"unowned": (UnownedDevice("x", "node-1", 499),)})), Measured
    )


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        (0.0, 0.0, Measured),
        (0.0, 0.06, Contradictory),
        (0.0, 0.03, Contradictory),
        (0.02, 0.04, Measured),
        (0.02, 0.9, Contradictory),
        (0.2, 0.9, Measured),
        (0.9, 0.0, Measured),
        (0.0, 6.5535, Measured),
    ],
)
def test_a_positive_sign_of_any_signal_vetoes_idle(first: float, second: float, kind: type) -> None:
    both = seen(Board(first, device="a"), Board(second, device="a", source=1), gpus=1, **TWO)

    assert isinstance(look(both), kind)


def test_the_first_source_that_names_every_board_is_used() -> None:
    both = seen(
        Board(0.1, device="a"),
        Board(0.2, source=1, device="a"),
        Board(0.2, source=1, device="b"),
        gpus=2,
        **TWO,
    )
    found = look(both)

    assert isinstance(found, Measured)
    assert found.signal == "gpu util"


def test_a_source_that_names_boards_goes_before_one_that_names_the_pod() -> None:
    both = seen(Board(0.5, flags=POD_SCOPE), Board(0.5, source=1), gpus=1, **TWO)

    assert isinstance(found := look(both), Measured)
    assert found.signal == "gpu util"


def test_a_board_seen_at_two_pods_is_shared() -> None:
    spec = Spec(seen=(boards(0.0, device="uuid"), boards(0.0, device="uuid")))

    assert Shared("another pod is seen on one of its boards") == look(cluster(spec))


def test_boards_of_the_same_name_on_two_nodes_are_two_boards() -> None:
    there = Spec("other", seen=(boards(0.0, device="0"),), node="node-2")
    nodes = (node(), node("node-2"))

    assert isinstance(look(cluster(Spec(seen=(boards(0.0, device="0"),)), there, nodes=nodes)), Measured)


@pytest.mark.parametrize(
    ("labels", "meaning"),
    [
        ({}, ""),
        ({"nvidia.com/gpu.replicas": "1"}, ""),
        ({"nvidia.com/gpu.replicas": "0"}, ""),
        ({"nvidia.com/gpu.replicas": "4"}, "nvidia.com/gpu.replicas=4"),
        ({"nvidia.com/gpu.replicas": "junk"}, "nvidia.com/gpu.replicas=junk"),
        ({"nvidia.com/gpu.product": "NVIDIA-A100"}, ""),
        ({"nvidia.com/gpu.product": "A100-SHARED"}, "nvidia.com/gpu.product=A100-SHARED"),
        ({"nvidia.com/gpu.product": "A100-MIG-1g.5gb"}, "nvidia.com/gpu.product=A100-MIG-1g.5gb"),
    ],
)
def test_node_labels_tell_what_one_unit_of_a_resource_is(labels: dict[str, str], meaning: str) -> None:
    assert meaning == divided_boards(labels)


@pytest.mark.parametrize(
    ("board", "age_ms", "history_ms"),
    [
        (Board(history_ms=3 * DAY_MS), 60 * DAY_MS, 3 * DAY_MS),
        (Board(history_ms=3 * DAY_MS), DAY_MS, DAY_MS),
        (Board(history_ms=0), 60 * DAY_MS, 0),
    ],
)
def test_history_is_sampled_time_and_never_older_than_the_pod(
    board: Board, age_ms: int, history_ms: int
) -> None:
    assert isinstance(found := look(cluster(Spec(seen=((board,),), age_ms=age_ms))), Measured)
    assert history_ms == found.history_ms


def test_history_is_that_of_the_board_with_the_least() -> None:
    assert isinstance(found := look(seen(Board(history_ms=5 * DAY_MS), Board(history_ms=HOUR_MS))), Measured)
    assert found.history_ms == HOUR_MS


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (Partial("", 0), "EvidencePartial"),
        (Stale("", 0), "EvidenceStale"),
        (Absent(""), "EvidenceAbsent"),
        (Unattributed(""), "EvidenceUnattributed"),
        (Contradictory(""), "EvidenceContradictory"),
        (Shared(""), "SharedBoard"),
        (Measured((), 1, 0, 0, ""), None),
    ],
)
def test_every_doubt_has_its_own_reason(kind: Observation, reason: str | None) -> None:
    assert reason == reason_of(kind)


@given(worlds(wild=False), st.sampled_from(LOSSES), st.data())
def test_a_row_that_loses_a_quality_is_not_measured(
    snapshot: Snapshot, loss: str, data: st.DataObject
) -> None:
    row = data.draw(st.integers(0, len(snapshot.holders) - 1))
    hurt = World(degrade(snapshot, [row], loss), policy(), NOW_MS)
    at = int(snapshot.holders.pod[row])
    unit = next(unit for units in hurt.units_of.values() for unit in units if unit.index == at)
    held = unit.shape.demand["nvidia.com/gpu"]

    assert not isinstance(observe_unit(hurt, unit, held=held), Measured)


@given(worlds(), st.integers(0, 9))
def test_measured_always_means_every_board_and_a_covered_window(snapshot: Snapshot, held: int) -> None:
    world = World(snapshot, policy(), NOW_MS)
    for units in world.units_of.values():
        for unit in units:
            found = observe_unit(world, unit, held=held)
            if isinstance(found, Measured):
                assert len(found.boards) == len({board.device for board in found.boards}) == held
                assert found.coverage >= 0.95
                assert found.history_ms >= 0
                assert all(0 <= board.mean <= board.history_peak <= 10_000 for board in found.boards)


@pytest.mark.parametrize(("interval_ms", "window_ms"), [(0, 1), (-5, 1), (15_000, 0), (15_000, -1)])
def test_without_an_expectation_nothing_is_covered(interval_ms: int, window_ms: int) -> None:
    source = Source("s", "s", interval_ms, interval_measured=True)
    snapshot = seen(Board(), sources=(source,), telemetry={"window_ms": window_ms})

    assert coverage_of(World(snapshot, policy(), NOW_MS), (0,)) == 0.0
