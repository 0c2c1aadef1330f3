from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devcluster.exporter.load import (
    Constant,
    Draws,
    Gap,
    Phase,
    Phases,
    Samples,
    Spread,
    WorkloadLoad,
    divide,
    is_visible,
    offered_boards,
)

pytestmark = pytest.mark.unit


def load(boards: float = 1.0, **settings: Any) -> WorkloadLoad:
    return WorkloadLoad(namespace="ns", kind="Deployment", name="app", offered=Constant(boards), **settings)


def engines(one: WorkloadLoad, boards_per_pod: list[int]) -> list[list[float]]:
    return [[round(board.engine, 6) for board in pod] for pod in divide(one, boards_per_pod, 0.0)]


def test_an_even_load_is_the_same_on_all_boards() -> None:
    assert engines(load(0.9), [2, 1]) == [[0.3, 0.3], [0.3]]


def test_a_right_sized_unit_gets_busier() -> None:
    assert engines(load(0.24), [2]) == [[0.12, 0.12]]
    assert engines(load(0.24), [1]) == [[0.24]]


def test_a_packed_load_fills_the_first_boards_of_every_pod() -> None:
    assert engines(load(2.4, spread="packed"), [2, 2]) == [[1.0, 0.2], [1.0, 0.2]]


def test_a_stacked_load_fills_the_oldest_pod_first() -> None:
    assert engines(load(1.2, spread="stacked"), [1, 1, 1]) == [[1.0], [0.2], [0.0]]


def test_a_unit_that_opens_one_board_never_uses_nor_fills_its_second() -> None:
    pods = divide(load(1.5, spread="packed", opens_boards=1, memory_mib=20000), [2], 0.0)

    assert [(board.engine, board.memory_mib) for board in pods[0]] == [(1.0, 20000), (0.0, 4)]


def test_a_pod_without_boards_has_no_share() -> None:
    assert engines(load(1.0), [0, 1]) == [[], [1.0]]
    assert engines(load(1.0), []) == []


@given(
    boards=st.floats(0, 20),
    counts=st.lists(st.integers(0, 4), max_size=5),
    spread=st.sampled_from(["even", "packed", "stacked"]),
    opens=st.none() | st.integers(1, 4),
)
def test_no_board_is_over_full_and_no_work_is_invented(
    boards: float, counts: list[int], spread: Spread, opens: int | None
) -> None:
    pods = divide(load(boards, spread=spread, opens_boards=opens), counts, 0.0)

    assert [len(pod) for pod in pods] == counts
    flat = [board.engine for pod in pods for board in pod]
    assert all(0 <= engine <= 1 for engine in flat)
    assert sum(flat) <= boards + 1e-9


@pytest.mark.parametrize(
    ("at_s", "boards"), [(0, 1.0), (59.9, 1.0), (60, 0.0), (119, 0.0), (120, 2.0), (1000, 2.0)]
)
def test_phases_follow_each_other_and_the_last_stays(at_s: float, boards: float) -> None:
    phases = Phases((Phase(60, 1.0), Phase(60, 0.0), Phase(60, 2.0)))

    assert offered_boards(phases, at_s) == boards


def test_repeated_phases_begin_again() -> None:
    phases = Phases((Phase(60, 1.0), Phase(60, 0.0)), repeat=True)

    assert [offered_boards(phases, at_s) for at_s in (0, 60, 120, 180)] == [1.0, 0.0, 1.0, 0.0]


def test_recorded_samples_run_step_by_step_over_and_over() -> None:
    samples = Samples(10, (0.1, 0.2, 0.3))

    assert [offered_boards(samples, at_s) for at_s in (0, 9.9, 10, 29, 30)] == [0.1, 0.1, 0.2, 0.3, 0.1]


def test_the_same_seed_draws_the_same_load_and_another_seed_another() -> None:
    curve = ((0.0, 0.0), (1.0, 1.0))

    def drawn(seed: int) -> list[float]:
        return [offered_boards(Draws(60, seed, curve), 60.0 * step) for step in range(20)]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_draws_follow_their_distribution() -> None:
    draws = Draws(1, 7, ((0.0, 0.6), (0.5, 0.9), (1.0, 1.0)))

    drawn = [offered_boards(draws, float(step)) for step in range(4000)]

    assert sum(value == 0 for value in drawn) / 4000 == pytest.approx(0.6, abs=0.03)
    assert sum(value <= 0.5 for value in drawn) / 4000 == pytest.approx(0.9, abs=0.03)
    assert max(drawn) <= 1.0


def test_a_gap_hides_the_series_for_its_time_only() -> None:
    one = load(gaps=(Gap(10, 5),))

    assert [is_visible(one, at_s) for at_s in (9.9, 10, 14.9, 15)] == [True, False, False, True]


def test_a_silent_workload_never_has_series() -> None:
    assert not is_visible(load(silent=True), 0)
