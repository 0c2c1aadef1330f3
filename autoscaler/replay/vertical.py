"""One policy against recorded load: who holds what when, what of the demand that serves, and what the policy gets to see.

The rules are the same for every policy. It is asked every five minutes and sees samples up to now only, clipped by its own
acts: a slice caps what can be seen, a released pod shows nothing. A change holds from the next step. A resize makes the pod
unavailable for a minute. A released pod gets its whole board back at the next demand, after a cold start of a minute.
A pod whose memory does not fit its slice does not run.
"""

from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from autoscaler.model.backtest import COMPUTE, MEMORY, RELEASED, WHOLE
from autoscaler.replay.score import Tally

ASK_S: Final = 300.0
"""How often a policy is asked."""
RESIZE_S: Final = 60.0
"""Unavailability after a resize."""
COLD_START_S: Final = 60.0
"""From the demand that wakes a released pod to the board being usable."""
BLIND_STEPS: Final = 3
"""An act on a pod whose last sample is older than this many steps is blind."""

_COMPUTE: Final = np.array(COMPUTE)
_MEMORY: Final = np.array(MEMORY)
_TOLERANCE: Final = 1e-9

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


class VerticalPolicy(Protocol):
    """What decides about pods. Steps of the allocation are indices into `autoscaler.model.backtest.COMPUTE`."""

    def reset(self) -> None:
        """Forget everything; a new run begins."""

    def pod_started(self, pod: str, now_s: float) -> None:
        """A pod holds a whole board from now on."""

    def pod_ended(self, pod: str, now_s: float) -> None:
        """The pod is gone; nothing more is said of it."""

    def observe(self, pod: str, now_s: float, duty: float | None, memory_gib: float | None) -> None:
        """A visible sample, the whole board's share and GiB; None where that half of it is missing."""

    def allocated(self, pod: str, now_s: float, step: int) -> None:
        """From now on the pod holds this: after its own change, and when demand woke a released pod."""

    def ask(self, pod: str, now_s: float) -> int:
        """The allocation that the pod should hold from the next step on."""
        ...


class Arm:
    """One policy, one board size, with or without holes in what it sees; pods live in slots that the caller hands out."""

    def __init__(
        self, policy: VerticalPolicy, *, slots: int, step_s: float, board_gib: float, keep: bool = False
    ) -> None:
        self._policy = policy
        self._step_s = step_s
        self._memory_gib = _MEMORY * board_gib
        self._names: list[str] = [""] * slots
        self._held = np.full(slots, WHOLE, dtype=np.int64)
        self._ready_s = np.full(slots, -np.inf)
        self._last_duty_s = np.full(slots, -np.inf)
        self._out_of_memory = np.zeros(slots, dtype=np.bool_)
        self.tally = Tally(slots=slots, step_s=step_s, keep=keep)
        policy.reset()

    def start(self, slot: int, pod: str, index: int, now_s: float) -> None:
        """A pod begins in a free slot, with a whole board."""
        self._names[slot] = pod
        self._held[slot] = WHOLE
        self._ready_s[slot] = -np.inf
        self._last_duty_s[slot] = -np.inf
        self._out_of_memory[slot] = False
        self.tally.start(slot, pod, index)
        self._policy.pod_started(pod, now_s)

    def end(self, slot: int, now_s: float) -> None:
        """The pod of the slot is gone."""
        self._policy.pod_ended(self._names[slot], now_s)
        self.tally.end(slot)

    def live(
        self, index: int, now_s: float, active: Sequence[int], demand: Floats, memory_gib: Floats
    ) -> tuple[Floats, Floats]:
        """One step passes over all slots; what of duty and memory could be seen of each (NaN: nothing)."""
        mask = np.zeros(len(self._held), dtype=np.bool_)
        mask[list(active)] = True
        for slot in np.flatnonzero(mask & (self._held == RELEASED) & (demand > 0)):
            self._wake(int(slot), index, now_s)
        held = self._held
        running = held != RELEASED
        ready = np.clip((now_s + self._step_s - self._ready_s) / self._step_s, 0.0, 1.0) * running
        over = mask & running & (held != WHOLE) & (memory_gib > self._memory_gib[held] + _TOLERANCE)
        capacity = _COMPUTE[held] * ~over
        served = ready * np.minimum(demand, capacity)
        self.tally.add(
            index,
            mask=mask,
            allocation=_COMPUTE[held],
            demand=demand,
            lost=demand - served,
            out_of_memory=over & ~self._out_of_memory,
        )
        self._out_of_memory = over
        shown = mask & (ready > 0)
        return (
            np.where(shown, np.minimum(demand, capacity), np.nan),
            np.where(shown, np.minimum(memory_gib, self._memory_gib[held]), np.nan),
        )

    def show(self, now_s: float, slots: Sequence[int], duty: Floats, memory_gib: Floats) -> None:
        """Hands the policy what it may see of these slots; NaN is what it may not."""
        observe = self._policy.observe
        for slot, seen, used in zip(slots, duty[slots].tolist(), memory_gib[slots].tolist(), strict=True):
            if seen == seen:  # noqa: PLR0124  NaN is the one value that differs from itself; isnan costs three times as much
                self._last_duty_s[slot] = now_s
                observe(self._names[slot], now_s, seen, used if used == used else None)  # noqa: PLR0124
            elif used == used:  # noqa: PLR0124
                observe(self._names[slot], now_s, None, used)

    def ask(self, index: int, now_s: float, active: Sequence[int]) -> None:
        """Asks the policy about each pod; changes hold from the next step."""
        for slot in active:
            wanted = self._policy.ask(self._names[slot], now_s)
            if wanted != self._held[slot]:
                self._change(slot, wanted, index, now_s)

    def _change(self, slot: int, wanted: int, index: int, now_s: float) -> None:
        if not RELEASED <= wanted <= WHOLE:
            raise ValueError(f"allocation {wanted} of pod {self._names[slot]} is not on the ladder")
        held = int(self._held[slot])
        from_s = now_s + self._step_s
        if held != RELEASED and now_s - self._last_duty_s[slot] > BLIND_STEPS * self._step_s + _TOLERANCE:
            self.tally.blind(slot)
        if wanted < held:
            self.tally.shrunk(slot, COMPUTE[wanted], index)
        if held == RELEASED:
            self.tally.cold_start(slot)
            self._ready_s[slot] = from_s + COLD_START_S
        elif wanted != RELEASED:
            self.tally.restart(slot)
            self._ready_s[slot] = from_s + RESIZE_S
        self._held[slot] = wanted
        self.tally.changed(slot, index + 1, wanted)
        self._policy.allocated(self._names[slot], from_s, wanted)

    def _wake(self, slot: int, index: int, now_s: float) -> None:
        self._held[slot] = WHOLE
        self._ready_s[slot] = now_s + COLD_START_S
        self.tally.cold_start(slot)
        self.tally.changed(slot, index, WHOLE)
        self._policy.allocated(self._names[slot], now_s, WHOLE)
