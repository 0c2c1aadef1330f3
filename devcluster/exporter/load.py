"""How busy the boards of a workload are at a given time.

A load is offered to the *workload*, in boards' worth of work, and divided over the boards that it holds at
that moment: give it fewer boards and the rest gets busier, up to 100 %, as in life.  Pure.
"""

import bisect
import math
import random
from collections.abc import Sequence
from typing import Literal, assert_never

import msgspec

Spread = Literal["even", "packed", "stacked"]
Profile = Literal["dcgm", "seed"]

UNOPENED_MEMORY_MIB = 4


class Constant(msgspec.Struct, frozen=True, tag="constant"):
    """The same load at all times."""

    boards: float


class Phase(msgspec.Struct, frozen=True):
    """A load for some time."""

    for_s: float
    boards: float


class Phases(msgspec.Struct, frozen=True, tag="phases"):
    """One load after the other; the last stays, or all begin again."""

    phases: tuple[Phase, ...]
    repeat: bool = False


class Samples(msgspec.Struct, frozen=True, tag="samples"):
    """A recorded load, one value per step, over and over."""

    step_s: float
    boards: tuple[float, ...]


class Draws(msgspec.Struct, frozen=True, tag="draws"):
    """A fresh draw from a distribution at each step; the same seed gives the same load.

    `curve` is the cumulative distribution: pairs of (boards, share of time at or below), ascending.
    """

    step_s: float
    seed: int
    curve: tuple[tuple[float, float], ...]


OfferedLoad = Constant | Phases | Samples | Draws


class Gap(msgspec.Struct, frozen=True):
    """A time without series, counted from the declaration of the load."""

    after_s: float
    for_s: float


class WorkloadLoad(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the exporter must know about one workload.

    `even` spreads over all boards; `packed` gives each pod the same share and fills its first boards first;
    `stacked` fills the boards of the oldest pod first.  Only the first `opens_boards` boards of a pod are ever
    used and hold the workload's memory; None means all of them.
    """

    namespace: str
    kind: str
    name: str
    offered: OfferedLoad
    spread: Spread = "even"
    opens_boards: int | None = None
    memory_mib: int = 0
    gaps: tuple[Gap, ...] = ()
    silent: bool = False
    profiles: tuple[Profile, ...] = ("dcgm",)


class BoardActivity(msgspec.Struct, frozen=True):
    """What one board does now: share of the time its engine works, and memory in use."""

    engine: float
    memory_mib: int


NO_ACTIVITY = BoardActivity(0.0, UNOPENED_MEMORY_MIB)


def offered_boards(offered: OfferedLoad, at_s: float) -> float:
    """The offered load at a time since its declaration, in boards' worth of work."""
    match offered:
        case Constant(boards=boards):
            return boards
        case Phases():
            return _phase_at(offered, at_s)
        case Samples(step_s=step_s, boards=samples):
            return samples[int(at_s // step_s) % len(samples)]
        case Draws():
            return _draw_at(offered, at_s)
        case _:
            assert_never(offered)


def is_visible(load: WorkloadLoad, at_s: float) -> bool:
    """Whether the workload's boards have series at a time since the declaration."""
    return not load.silent and not any(gap.after_s <= at_s < gap.after_s + gap.for_s for gap in load.gaps)


def divide(load: WorkloadLoad, boards_per_pod: Sequence[int], at_s: float) -> list[list[BoardActivity]]:
    """The activity of every board of every running pod, pods in order of age.

    What does not fit on the boards is lost: a workload with too few boards is simply full.
    """
    opened = [
        count if load.opens_boards is None else min(count, load.opens_boards) for count in boards_per_pod
    ]
    shares = _shares(load.spread, opened, offered_boards(load.offered, at_s))
    return [
        [BoardActivity(min(share, 1.0), max(load.memory_mib, UNOPENED_MEMORY_MIB)) for share in pod_shares]
        + [NO_ACTIVITY] * (count - len(pod_shares))
        for pod_shares, count in zip(shares, boards_per_pod, strict=True)
    ]


def _shares(spread: Spread, opened: Sequence[int], boards: float) -> list[list[float]]:
    if sum(opened) == 0:
        return [[] for _ in opened]
    match spread:
        case "even":
            return [[boards / sum(opened)] * count for count in opened]
        case "packed":
            return [_fill(boards / len(opened), count) for count in opened]
        case "stacked":
            flat = iter(_fill(boards, sum(opened)))
            return [[next(flat) for _ in range(count)] for count in opened]
        case _:
            assert_never(spread)


def _fill(boards: float, count: int) -> list[float]:
    return [min(max(boards - index, 0.0), 1.0) for index in range(count)]


def _phase_at(offered: Phases, at_s: float) -> float:
    total_s = sum(phase.for_s for phase in offered.phases)
    left_s = math.fmod(at_s, total_s) if offered.repeat else at_s
    for phase in offered.phases:
        if left_s < phase.for_s:
            return phase.boards
        left_s -= phase.for_s
    return offered.phases[-1].boards


def _draw_at(offered: Draws, at_s: float) -> float:
    draw = random.Random(f"{offered.seed}/{int(at_s // offered.step_s)}").random()  # noqa: S311 - a load, no secret
    place = bisect.bisect_left(offered.curve, draw, key=lambda point: point[1])
    if place == 0:
        return offered.curve[0][0]
    if place == len(offered.curve):
        return offered.curve[-1][0]
    (low, low_share), (high, high_share) = offered.curve[place - 1], offered.curve[place]
    return low + (high - low) * (draw - low_share) / (high_share - low_share)
