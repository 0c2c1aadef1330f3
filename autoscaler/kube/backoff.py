"""Waiting after failures, as values: no clock and no randomness of its own."""

from collections.abc import Callable


class Backoff:
    """Exponential with full jitter; forgets after a quiet spell (the shape of kube-rs' and client-go's reflectors)."""

    def __init__(self, *, first_s: float, cap_s: float, reset_s: float, rng: Callable[[], float]) -> None:
        self._first_s = first_s
        self._cap_s = cap_s
        self._reset_s = reset_s
        self._rng = rng
        self._step = 0
        self._quiet_since_s: float | None = None

    def next_delay_s(self, now_s: float) -> float:
        """How long to wait after a failure at ``now_s``: anything between nothing and the present ceiling."""
        if self._quiet_since_s is not None and now_s - self._quiet_since_s >= self._reset_s:
            self._step = 0
        # The exponent is capped because 2.0 ** 1024 overflows after a long outage.
        ceiling = min(self._cap_s, self._first_s * 2.0 ** min(self._step, 32))
        self._step += 1
        delay = ceiling * self._rng()
        self._quiet_since_s = now_s + delay
        return delay

    def forget(self) -> None:
        """The next failure is a first one again."""
        self._step = 0
