import itertools
import random

import numpy as np
import pytest

from autoscaler.model.backtest import COMPUTE, MEMORY, RELEASED, WHOLE
from autoscaler.replay.oracle import HEADROOM, Oracle

BOARD_GIB = 48.0


def freed(duty: list[float], memory_gib: list[float], *, segment: int) -> float:
    """What the programme says of one pod, in a slot between others that live longer or not at all."""
    oracle = Oracle(slots=3, step_s=60.0, board_gib=BOARD_GIB, segment_s=60.0 * segment)
    oracle.start(1)
    mask = np.array([False, True, False])
    for share, used in zip(duty, memory_gib, strict=True):
        oracle.add(mask, np.array([0.9, share, 0.0]), np.array([40.0, used, 0.0]))
    oracle.end(1)
    return oracle.freed_pct


def by_trying_everything(duty: list[float], memory_gib: list[float], *, segment: int) -> float:
    """The cheapest lawful sequence of allocations, found by trying all of them."""
    best = float(len(duty))
    for held in itertools.product(range(len(COMPUTE)), repeat=len(duty)):
        runs = [len(list(group)) for _, group in itertools.groupby(held)]
        if min(runs) >= segment and all(map(lawful, held, duty, memory_gib)):
            best = min(best, sum(COMPUTE[step] for step in held))
    return 100 * (1 - best / len(duty))


def lawful(step: int, duty: float, memory_gib: float) -> bool:
    if step == WHOLE:
        return True
    if step == RELEASED:
        return duty == 0
    return duty <= HEADROOM * COMPUTE[step] + 1e-9 and memory_gib <= MEMORY[step] * BOARD_GIB


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("segment", [1, 2, 3])
def test_it_is_the_best_of_all_lawful_sequences(seed: int, segment: int) -> None:
    dice = random.Random(seed)
    duty = [dice.choice((0.0, 0.0, 0.0, 0.1, 0.25, 0.5)) for _ in range(6)]
    memory = [dice.choice((1.0, 5.0, 11.0, 23.0, 30.0)) for _ in range(6)]

    assert freed(duty, memory, segment=segment) == pytest.approx(
        by_trying_everything(duty, memory, segment=segment)
    )


def test_an_idle_pod_is_released_whatever_its_memory() -> None:
    assert freed([0.0] * 40, [47.0] * 40, segment=32) == 100.0


def test_a_pod_shorter_than_a_segment_keeps_its_board() -> None:
    assert freed([0.0] * 10, [0.0] * 10, segment=32) == 0.0


def test_headroom_is_kept() -> None:
    assert freed([0.9 / 7] * 40, [1.0] * 40, segment=32) == pytest.approx(100 * 6 / 7)
    assert freed([0.95 / 7] * 40, [1.0] * 40, segment=32) == pytest.approx(100 * 5 / 7)


def test_without_any_pod_nothing_is_freed() -> None:
    assert Oracle(slots=1, step_s=60.0, board_gib=BOARD_GIB).freed_pct == 0.0
