"""Policies that release a pod after a fixed time without work, and the policy that does nothing."""

from dataclasses import dataclass

from autoscaler.model.backtest import RELEASED, WHOLE


class DoNothing:
    """Every pod keeps its whole board."""

    def reset(self) -> None:
        """Nothing is remembered."""

    def pod_started(self, pod: str, now_s: float) -> None:
        """Not remembered."""

    def pod_ended(self, pod: str, now_s: float) -> None:
        """Not remembered."""

    def observe(self, pod: str, now_s: float, duty: float | None, memory_gib: float | None) -> None:
        """Not remembered."""

    def allocated(self, pod: str, now_s: float, step: int) -> None:
        """Not remembered."""

    def ask(self, pod: str, now_s: float) -> int:
        """The whole board."""
        return WHOLE


@dataclass(slots=True)
class _Idle:
    """One pod: what it holds, and when it was last seen to work (or began)."""

    busy_s: float
    began_s: float
    sample_s: float
    step: int = WHOLE


class IdleWindow:
    """Releases when no sample of the window showed work and the pod is older than the window and its grace.

    One sample in the window is enough, as it is for a maximum over a range in a metrics store.
    """

    def __init__(self, *, window_s: float, grace_s: float = 0.0) -> None:
        self._window_s = window_s
        self._age_s = window_s + grace_s
        self._pods: dict[str, _Idle] = {}

    def reset(self) -> None:
        """Forgets all pods."""
        self._pods.clear()

    def pod_started(self, pod: str, now_s: float) -> None:
        """Its age counts from here."""
        self._pods[pod] = _Idle(busy_s=float("-inf"), began_s=now_s, sample_s=float("-inf"))

    def pod_ended(self, pod: str, now_s: float) -> None:
        """Forgets it."""
        del self._pods[pod]

    def observe(self, pod: str, now_s: float, duty: float | None, memory_gib: float | None) -> None:
        """Work is any duty above zero."""
        if duty is None:
            return
        state = self._pods[pod]
        state.sample_s = now_s
        if duty > 0:
            state.busy_s = now_s

    def allocated(self, pod: str, now_s: float, step: int) -> None:
        """A pod that came back is a new pod with an age of zero."""
        state = self._pods[pod]
        if state.step == RELEASED and step != RELEASED:
            state.began_s = now_s
        state.step = step

    def ask(self, pod: str, now_s: float) -> int:
        """Released or whole."""
        state = self._pods[pod]
        if state.step == RELEASED:
            return RELEASED
        old_enough = now_s - state.began_s > self._age_s
        sampled = now_s - state.sample_s <= self._window_s
        return RELEASED if old_enough and sampled and now_s - state.busy_s > self._window_s else WHOLE
