"""The script this project starts from: utilisation under 30 % means one unit, whatever the memory; no data means 0 %."""

from typing import Final

from autoscaler.model.backtest import WHOLE

LOW_WATERMARK: Final = 0.30
ONE_UNIT: Final = 1
"""The smallest slice: for a pod with one board there is no other "one" below what it has."""
LOOKBACK_S: Final = 300.0
"""How long a metrics store repeats the last sample in an instant query."""


class SeedScript:
    """Down only, and for good: the script has no way up."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[float, float]] = {}
        self._step: dict[str, int] = {}

    def reset(self) -> None:
        """Forgets all pods."""
        self._last.clear()
        self._step.clear()

    def pod_started(self, pod: str, now_s: float) -> None:
        """Nothing is known of it."""

    def pod_ended(self, pod: str, now_s: float) -> None:
        """Forgets it."""
        self._last.pop(pod, None)
        self._step.pop(pod, None)

    def observe(self, pod: str, now_s: float, duty: float | None, memory_gib: float | None) -> None:
        """The newest duty counts."""
        if duty is not None:
            self._last[pod] = (now_s, duty)

    def allocated(self, pod: str, now_s: float, step: int) -> None:
        """The script reads no allocation; the replay needs an answer each time."""
        self._step[pod] = step

    def ask(self, pod: str, now_s: float) -> int:
        """One unit, or what it has."""
        seen_s, duty = self._last.get(pod, (float("-inf"), 0.0))
        if (duty if now_s - seen_s <= LOOKBACK_S else 0.0) < LOW_WATERMARK:
            return ONE_UNIT
        return self._step.get(pod, WHOLE)
