import numpy as np
import pytest
from build import HOUR_MS, NOW_MS, Board, Spec, cluster, judge, node, policy
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from worlds import with_columns

from autoscaler.decide import plan
from autoscaler.decide.evidence import observe_unit
from autoscaler.decide.world import World
from autoscaler.model.evidence import Absent, Measured, Partial, Source
from autoscaler.model.snapshot import Snapshot

IDLE = cluster(Spec(gpus=2, seen=((Board(), Board()),), annotations={"gpu-autoscaler.io/min-replicas": "0"}))
LIMITS = {"mean": 2**16, "peak": 2**16, "history_p95": 2**16, "history_peak": 2**16, "samples": 2**32}
LIMITS |= {"history_samples": 2**32, "memory_peak_mib": 2**32, "memory_total_mib": 2**32, "flags": 2**8}


def test_the_world_that_is_made_worse_here_acts() -> None:
    assert len(plan(IDLE, policy(), NOW_MS).actions) == 1


@pytest.mark.parametrize("coverage", [0.0, 0.01])
def test_a_policy_that_asks_for_no_coverage_still_wants_a_sample_of_every_board(coverage: float) -> None:
    none = with_columns(IDLE, samples=np.array([120, 0]))

    assert plan(none, policy(evidence={"minCoverage": coverage}), NOW_MS).actions == ()


@pytest.mark.parametrize("interval_ms", [0, -1, -(2**60), HOUR_MS, 2**62])
def test_an_interval_that_makes_no_sense_covers_nothing(interval_ms: int) -> None:
    odd = cluster(Spec(), sources=(Source("s", "s", interval_ms, interval_measured=True),))
    _, judged = judge(odd, policy(evidence={"minCoverage": 0.0}))

    if interval_ms > 0:
        assert isinstance(judged.assessment.observations[0], Partial)
    assert plan(odd, policy(), NOW_MS).actions == ()


def test_twice_the_samples_are_not_twice_the_coverage() -> None:
    _, judged = judge(cluster(Spec(seen=((Board(coverage=2.0),),))))

    assert [unit.coverage for unit in judged.assessment.measured] == [1.0]


def test_activity_over_a_whole_board_is_one_whole_board() -> None:
    _, judged = judge(cluster(Spec(seen=((Board(mean=3.4, history_peak=5.0),),))))

    assert [(b.mean, b.history_peak) for b in judged.assessment.measured[0].boards] == [(10_000, 10_000)]
    assert judged.assessment.verdict == "saturated"


def test_a_unit_that_holds_nothing_is_never_measured() -> None:
    bare = cluster(Spec(shape={"demand": {}}, seen=(None,)), Spec("peer"))
    world = World(bare, policy(), NOW_MS)

    assert isinstance(observe_unit(world, world.units_of[0][0], held=0), Absent)


@pytest.mark.parametrize("store_ms", [-1, 0, NOW_MS - HOUR_MS, NOW_MS + HOUR_MS, 2**62])
def test_a_store_whose_clock_is_far_off_proves_nothing(store_ms: int) -> None:

    odd = replace(IDLE, telemetry=replace(IDLE.telemetry, store_ms=store_ms))

    assert plan(odd, policy(), NOW_MS).actions == ()


@pytest.mark.parametrize("lag_ms", [-HOUR_MS, 2**62])
def test_a_lag_that_makes_no_sense_forgives_no_more_than_the_policy(lag_ms: int) -> None:
    old = cluster(Spec(seen=((Board(age_ms=6 * 60_000),),)), telemetry={"lag_ms": lag_ms})

    assert not judge(old)[1].assessment.measured


def test_a_node_that_is_not_known_divides_nothing() -> None:
    assert judge(cluster(Spec(node="gone"), nodes=(node(),)))[1].assessment.measured


@given(st.sampled_from(sorted(LIMITS)), st.data())
def test_no_value_of_any_column_turns_a_busy_unit_into_one_that_is_lowered(
    name: str, data: st.DataObject
) -> None:
    busy = cluster(Spec(gpus=2, seen=((Board(0.9, memory_mib=70_000), Board(0.9, memory_mib=70_000)),)))
    values = data.draw(st.lists(st.integers(0, LIMITS[name] - 1), min_size=2, max_size=2))

    assert plan(with_columns(busy, **{name: np.array(values)}), policy(), NOW_MS).actions == ()


@given(st.dictionaries(st.sampled_from(sorted(LIMITS)), st.integers(0, 255), max_size=9), st.integers(0, 3))
def test_no_numbers_make_it_raise_or_measure_too_little(values: dict[str, int], held: int) -> None:
    odd: Snapshot = with_columns(IDLE, **{name: np.full(2, value) for name, value in values.items()})
    world = World(odd, policy(), NOW_MS)
    found = observe_unit(world, world.units_of[0][0], held=held)

    assert held == 2 or not isinstance(found, Measured)
