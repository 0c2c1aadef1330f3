"""The score of a replay: board time freed, and the harm done for it. Nothing here is seen by a policy."""

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.model.backtest import PodOutcome

WRONG_S: Final = 3600.0
"""A shrink is wrong when demand exceeds the new allocation within this time."""
_TOLERANCE: Final = 1e-9


@dataclass(slots=True)
class Totals:
    """What happened to one pod, or to all."""

    steps: int = 0
    freed: float = 0.0
    demand: float = 0.0
    lost: float = 0.0
    oom: int = 0
    blind: int = 0
    wrong: int = 0
    restarts: int = 0
    cold_starts: int = 0

    def add(self, other: "Totals") -> None:
        """Counts the other in."""
        self.steps += other.steps
        self.freed += other.freed
        self.demand += other.demand
        self.lost += other.lost
        self.oom += other.oom
        self.blind += other.blind
        self.wrong += other.wrong
        self.restarts += other.restarts
        self.cold_starts += other.cold_starts

    @property
    def freed_pct(self) -> float:
        """Mean of (1 - allocation)."""
        return 100 * self.freed / self.steps if self.steps else 0.0

    @property
    def lost_pct(self) -> float:
        """Demand that met no usable capacity, of all demand."""
        return 100 * self.lost / self.demand if self.demand else 0.0


@dataclass(slots=True)
class _Watch:
    """A shrink whose hour is not over."""

    slot: int
    allocation: float
    until: int


@dataclass(slots=True)
class _Pod:
    name: str
    first: int
    counts: Totals = field(default_factory=Totals)
    changes: list[tuple[int, int]] = field(default_factory=list)


class Tally:
    """Counts for all slots of one arm; a slot's counts are closed when its pod ends."""

    def __init__(self, *, slots: int, step_s: float, keep: bool = False) -> None:
        self._step_s = step_s
        self._hour = int(WRONG_S // step_s)
        self._keep = keep
        self._steps = np.zeros(slots, dtype=np.int64)
        self._freed = np.zeros(slots)
        self._demand = np.zeros(slots)
        self._lost = np.zeros(slots)
        self._oom = np.zeros(slots, dtype=np.int64)
        self._pods: dict[int, _Pod] = {}
        self._watches: list[_Watch] = []
        self.total = Totals()
        self.outcomes: list[tuple[str, Totals, tuple[tuple[int, int], ...]]] = []

    def start(self, slot: int, pod: str, index: int) -> None:
        """A pod begins in the slot."""
        self._pods[slot] = _Pod(pod, index)
        for column in (self._steps, self._freed, self._demand, self._lost, self._oom):
            column[slot] = 0

    def end(self, slot: int) -> None:
        """The slot's pod is gone: its counts are final. A shrink whose hour it did not live through was not wrong."""
        pod = self._pods.pop(slot)
        self._watches = [watch for watch in self._watches if watch.slot != slot]
        counts = pod.counts
        counts.steps = int(self._steps[slot])
        counts.freed = float(self._freed[slot])
        counts.demand = float(self._demand[slot])
        counts.lost = float(self._lost[slot])
        counts.oom = int(self._oom[slot])
        self.total.add(counts)
        if self._keep:
            self.outcomes.append((pod.name, counts, tuple(pod.changes)))

    def add(
        self,
        index: int,
        *,
        mask: NDArray[np.bool_],
        allocation: NDArray[np.float64],
        demand: NDArray[np.float64],
        lost: NDArray[np.float64],
        out_of_memory: NDArray[np.bool_],
    ) -> None:
        """One step of all slots; those outside the mask count nothing."""
        self._steps += mask
        self._freed += np.where(mask, 1.0 - allocation, 0.0)
        self._demand += np.where(mask, demand, 0.0)
        self._lost += np.where(mask, lost, 0.0)
        self._oom += out_of_memory
        if self._watches:
            self._judge(index, demand)

    def shrunk(self, slot: int, allocation: float, index: int) -> None:
        """The slot got less from the next step on; whether that was wrong shows within the hour."""
        self._watches.append(_Watch(slot, allocation, index + self._hour))

    def blind(self, slot: int) -> None:
        """An act without a fresh sample."""
        self._pods[slot].counts.blind += 1

    def restart(self, slot: int) -> None:
        """A resize of a running pod."""
        self._pods[slot].counts.restarts += 1

    def cold_start(self, slot: int) -> None:
        """A released pod comes back."""
        self._pods[slot].counts.cold_starts += 1

    def changed(self, slot: int, index: int, step: int) -> None:
        """What the slot holds from this step on, for the drill-down."""
        if self._keep:
            self._pods[slot].changes.append((index, step))

    def _judge(self, index: int, demand: NDArray[np.float64]) -> None:
        still: list[_Watch] = []
        for watch in self._watches:
            if demand[watch.slot] > watch.allocation + _TOLERANCE:
                self._pods[watch.slot].counts.wrong += 1
            elif index < watch.until:
                still.append(watch)
        self._watches = still


def outcome(
    policy: str, step_s: float, pod: str, counts: Totals, changes: tuple[tuple[int, int], ...]
) -> PodOutcome:
    """One pod's counts as a value."""
    return PodOutcome(
        policy=policy,
        pod=pod,
        hours=round(counts.steps * step_s / 3600, 2),
        freed_pct=round(counts.freed_pct, 2),
        lost_pct=round(counts.lost_pct, 3),
        oom=counts.oom,
        blind=counts.blind,
        wrong=counts.wrong,
        restarts=counts.restarts,
        cold_starts=counts.cold_starts,
        changes=changes,
    )
