"""Policies that do what a test says, and one that notes what it is told."""

from collections.abc import Callable, Mapping

from autoscaler.model.backtest import WHOLE
from autoscaler.replay.vertical import VerticalPolicy
from tests.unit.replay.recorded import START_S, STEP_S


class Scripted:
    """Wants an allocation from a step on; it keeps that until another is due. Everything it hears is kept."""

    def __init__(self, wanted: Mapping[int, int] | None = None) -> None:
        self.wanted = wanted or {}
        self.seen: list[tuple[int, float | None, float | None]] = []
        self.told: list[tuple[int, int]] = []
        self.asked: list[int] = []
        self.ended: list[str] = []
        self.steps: dict[str, int] = {}

    def reset(self) -> None:
        self.seen.clear()

    def pod_started(self, pod: str, now_s: float) -> None:
        self.steps[pod] = WHOLE

    def pod_ended(self, pod: str, now_s: float) -> None:
        self.ended.append(pod)

    def observe(self, pod: str, now_s: float, duty: float | None, memory_gib: float | None) -> None:
        self.seen.append((index_of(now_s), duty, memory_gib))

    def allocated(self, pod: str, now_s: float, step: int) -> None:
        self.told.append((index_of(now_s), step))
        self.steps[pod] = step

    def ask(self, pod: str, now_s: float) -> int:
        self.asked.append(index_of(now_s))
        return self.wanted.get(index_of(now_s), self.steps[pod])


class Heard:
    """A policy with an ear at its door: every sample it got and every answer it gave, in order."""

    def __init__(self, policy: VerticalPolicy) -> None:
        self._policy = policy
        self.log: list[tuple[float, str, object]] = []

    def reset(self) -> None:
        self._policy.reset()

    def pod_started(self, pod: str, now_s: float) -> None:
        self._policy.pod_started(pod, now_s)

    def pod_ended(self, pod: str, now_s: float) -> None:
        self._policy.pod_ended(pod, now_s)

    def observe(self, pod: str, now_s: float, duty: float | None, memory_gib: float | None) -> None:
        self.log.append((now_s, pod, ("saw", duty, memory_gib)))
        self._policy.observe(pod, now_s, duty, memory_gib)

    def allocated(self, pod: str, now_s: float, step: int) -> None:
        self._policy.allocated(pod, now_s, step)

    def ask(self, pod: str, now_s: float) -> int:
        answer = self._policy.ask(pod, now_s)
        self.log.append((now_s, pod, ("said", answer)))
        return answer


class Leaking(Scripted):
    """Knows a pod's whole load, as no policy may."""

    def __init__(self, knows: Callable[[str, int], bool], release: int) -> None:
        super().__init__()
        self._knows = knows
        self._release = release

    def ask(self, pod: str, now_s: float) -> int:
        return self._release if self._knows(pod, index_of(now_s)) else WHOLE


def index_of(now_s: float) -> int:
    return round((now_s - START_S) / STEP_S)
