"""No policy may know what comes: with the future shuffled, all it is told and all it says up to now stays the same."""

import random
from collections.abc import Callable, Mapping

import pytest

from autoscaler.model.backtest import RELEASED
from autoscaler.replay.catalogue import VERTICAL
from autoscaler.replay.report import run_vertical
from autoscaler.replay.traces import DirectoryTraces
from autoscaler.replay.vertical import VerticalPolicy
from tests.unit.replay.recorded import START_S, STEP_S, STORED, Recorded
from tests.unit.replay.scripted import Heard, Leaking

CUT = 260
"""Everything before this step is the past."""
Samples = Mapping[str, list[float | None]]


def stored() -> tuple[Samples, Samples]:
    """The stored trace, every pod at every step."""
    source = DirectoryTraces(STORED)
    pods = source.extent().spans
    duty: dict[str, list[float | None]] = {pod: [] for pod in pods}
    memory: dict[str, list[float | None]] = {pod: [] for pod in pods}
    for step in source.steps():
        for pod in pods:
            duty[pod].append(step.duty.get(pod))
            memory[pod].append(step.memory_gib.get(pod))
    return duty, memory


def shuffled(samples: Samples, seed: int) -> Samples:
    """The same past; of the future the same values in another order, the first and the last moment aside."""
    dice = random.Random(seed)
    return {
        pod: [*values[:CUT], *dice.sample(values[CUT:-1], len(values) - CUT - 1), values[-1]]
        for pod, values in samples.items()
    }


def past_of(
    make: Callable[[], VerticalPolicy], duty: Samples, memory: Samples, *, gaps: bool
) -> list[object]:
    heard = Heard(make())
    run_vertical(Recorded(duty, memory), {"heard": lambda _: heard}, board_gib=48.0, gaps=gaps)
    return [entry for entry in heard.log if entry[0] < START_S + CUT * STEP_S]


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("name", VERTICAL)
def test_a_shuffled_future_changes_nothing_that_was_said_before(name: str, gaps: bool) -> None:
    duty, memory = stored()

    def make() -> VerticalPolicy:
        return VERTICAL[name](48.0)

    before = past_of(make, duty, memory, gaps=gaps)
    after = past_of(make, shuffled(duty, 1), shuffled(memory, 2), gaps=gaps)

    assert before == after
    assert len(before) > CUT


def test_a_policy_that_knows_the_load_is_found_out() -> None:
    duty, memory = stored()

    def leaking(samples: Samples) -> Callable[[], VerticalPolicy]:
        return lambda: Leaking(lambda pod, index: not any(samples[pod][index + 1 : index + 64]), RELEASED)

    other = shuffled(duty, 1)

    assert past_of(leaking(duty), duty, memory, gaps=False) != past_of(
        leaking(other), other, memory, gaps=False
    )
