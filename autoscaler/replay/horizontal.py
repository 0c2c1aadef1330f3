"""Replays a serving workload's recorded load against policies that choose its replicas, and scores them alike.

The load is measured in replicas: the trace's peak is what `PEAK_REPLICAS` can carry. A policy decides every 30 s and has seen
the load up to that moment, never beyond. What it requests is paid at once and carries load `STARTUP_S` later; what it removes
is gone at once, those that still start first. Unserved is the load over what is ready. The oracle knows the future and holds
what the next start-up time needs at most, so it never fails anything. The first ten minutes are not scored.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, Protocol, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from autoscaler.model.backtest import HorizontalRow
from autoscaler.replay.services import STEP_S, Service, services_in
from autoscaler.replay.traces import TraceError

PEAK_REPLICAS: Final = 20
STARTUP_S: Final = 120
UNSCORED_S: Final = 600
_STARTUP_STEPS: Final = STARTUP_S // STEP_S
_PROGRESS_EVERY: Final = 2_000
_ROUNDING: Final = 1e-9

Counts: TypeAlias = NDArray[np.int64]
Progress: TypeAlias = Callable[[str, int, int], None]
"""Told a service's name, the decisions made so far by all policies, and how many there will be."""


class HorizontalPolicy(Protocol):
    """What chooses the replicas of one service. A new one is made for every service."""

    def decide(self, now_s: int, load: float, ready: int, requested: int) -> int:
        """The replicas to have, at least 1: asked every `STEP_S` with the newest load, in replicas' worth of work.

        `requested` are all there are, `ready` those that have started. What a policy that reads use would see is
        min(1, load / ready).
        """
        ...


MakeHorizontal: TypeAlias = Callable[[], HorizontalPolicy]


class Replayed(msgspec.Struct, frozen=True):
    """One policy over one service, a value a decision: the load, what carried it, what was paid, what the oracle held."""

    load: NDArray[np.float64]
    ready: Counts
    requested: Counts
    oracle: Counts


def run(traces: Path, policies: Mapping[str, MakeHorizontal], progress: Progress) -> Iterator[HorizontalRow]:
    """A row for every policy and every service found under `traces`; raises `TraceError` where there is none."""
    for service in services_in(traces):
        steps = len(service.load)
        for number, (name, make) in enumerate(policies.items()):
            done = number * steps

            def tell(step: int, done: int = done, service: Service = service, steps: int = steps) -> None:
                progress(service.name, done + step, steps * len(policies))

            yield score(name, service.name, replay_service(service, make, tell))


def replay_service(
    service: Service, make: MakeHorizontal, tell: Callable[[int], None] = lambda _step: None
) -> Replayed:
    """What one policy would have done with one service. `tell` hears how many decisions are made."""
    peak = float(service.load.max(initial=0.0))
    if peak <= 0 or len(service.load) <= UNSCORED_S // STEP_S:
        raise TraceError(
            f"{service.name}: it has no load, or no more than the {UNSCORED_S} s that are not scored"
        )
    load = service.load * (PEAK_REPLICAS / peak)
    policy, fleet = make(), _Fleet(_whole(float(load[0])))
    ready, requested = np.zeros(len(load), np.int64), np.zeros(len(load), np.int64)
    for step, now in enumerate(load.tolist()):
        fleet.start(step)
        fleet.become(step, max(1, policy.decide(step * STEP_S, now, fleet.ready, fleet.requested)))
        ready[step], requested[step] = fleet.ready, fleet.requested
        if not (step + 1) % _PROGRESS_EVERY or step + 1 == len(load):
            tell(step + 1)
    return Replayed(load, ready, requested, oracle(load))


def oracle(load: NDArray[np.float64]) -> Counts:
    """The most replicas that the load needs from each decision until a replica requested then is ready."""
    needed = np.maximum(1, np.ceil(load - _ROUNDING)).astype(np.int64)
    padded = np.concatenate((needed, np.repeat(needed[-1:], _STARTUP_STEPS)))
    held: Counts = np.lib.stride_tricks.sliding_window_view(padded, _STARTUP_STEPS + 1).max(axis=1)
    return held


def score(policy: str, service: str, replayed: Replayed) -> HorizontalRow:
    """Replica-hours over the oracle's, the share of the load that came while too little was ready, changes per hour."""
    scored = slice(UNSCORED_S // STEP_S, None)
    load, ready, requested = replayed.load[scored], replayed.ready[scored], replayed.requested[scored]
    acts = np.count_nonzero(np.diff(replayed.requested)[scored.start - 1 :])
    unserved = np.maximum(0.0, load - ready).sum()
    return HorizontalRow(
        policy=policy,
        service=service,
        replica_hours_x_oracle=round(float(requested.sum() / replayed.oracle[scored].sum()), 4),
        unserved_pct=round(float(100 * unserved / max(load.sum(), _ROUNDING)), 4),
        acts_per_hour=round(float(acts * 3600 / (STEP_S * len(load))), 2),
    )


class _Fleet:
    """The replicas of one service: ready ones, and requested ones with the step at which they are."""

    def __init__(self, ready: int) -> None:
        self.ready = max(1, ready)
        self._starting: deque[tuple[int, int]] = deque()

    @property
    def requested(self) -> int:
        return self.ready + sum(count for _, count in self._starting)

    def start(self, step: int) -> None:
        """Those whose time has come are ready."""
        while self._starting and self._starting[0][0] <= step:
            self.ready += self._starting.popleft()[1]

    def become(self, step: int, wanted: int) -> None:
        """Requests what is missing, or removes what is too many: the youngest first."""
        surplus = self.requested - wanted
        if surplus < 0:
            self._starting.append((step + _STARTUP_STEPS, -surplus))
        while surplus > 0 and self._starting:
            at, count = self._starting.pop()
            if count > surplus:
                self._starting.append((at, count - surplus))
            surplus -= min(count, surplus)
        self.ready -= max(0, surplus)


def _whole(load: float) -> int:
    return math.ceil(load - _ROUNDING)
