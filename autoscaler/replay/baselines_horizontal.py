"""What others do with replicas, as policies for the replay: the yardsticks beside our own."""

import math
from collections import deque
from collections.abc import Mapping
from typing import Final

from autoscaler.decide.scaling.formula import TOLERANCE, hpa_replicas
from autoscaler.replay.horizontal import PEAK_REPLICAS, STARTUP_S, MakeHorizontal
from autoscaler.replay.services import STEP_S

_DOWN_WINDOW_STEPS: Final = 300 // STEP_S
_PERIODS_IN_STEP: Final = STEP_S // 15
"""HPA limits growth per 15 s."""
_DAY_STEPS: Final = 86_400 // STEP_S
_SLOPE_STEPS: Final = 600 // STEP_S
_LEAD_STEPS: Final = STARTUP_S // STEP_S
_TREND_RANGE: Final = (0.5, 2.0)
_FORECAST_MARGIN: Final = 1.05
_ROUNDING: Final = 1e-9


class Hpa:
    """The horizontal pod autoscaler with its defaults: tolerance 10 %, down window 300 s, up by 4 pods or 100 % per 15 s.

    It reads use, which cannot exceed 1, of the replicas that are ready.
    """

    def __init__(self, target: float) -> None:
        self._target = target
        self._advice: deque[int] = deque(maxlen=_DOWN_WINDOW_STEPS)

    def decide(self, now_s: int, load: float, ready: int, requested: int) -> int:
        """The formula's advice, the highest of the window when going down."""
        use = min(1.0, load / ready)
        return self._paced(hpa_replicas([use] * ready, replicas=requested, target=self._target), requested)

    def _paced(self, advice: int, requested: int) -> int:
        self._advice.append(advice)
        if advice < requested:
            return min(requested, max(self._advice))
        most = requested
        for _ in range(_PERIODS_IN_STEP):
            most = max(most + 4, 2 * most)
        return min(advice, most)


class Keda(Hpa):
    """KEDA with a request-rate query and a threshold per replica: HPA on a value that use cannot cap.

    The tolerance and the windows are those of the HPA that it makes; the step from 1 to 0 is not replayed.
    """

    def decide(self, now_s: int, load: float, ready: int, requested: int) -> int:
        """The whole value over the threshold."""
        ratio = load / (self._target * requested)
        within = abs(ratio - 1) <= TOLERANCE
        return self._paced(requested if within else _whole(load / self._target), requested)


class PlainForecast:
    """Yesterday's next minutes times today's trend, and the slope of the last ten minutes; 5 % on top; no memory of acts."""

    def __init__(self) -> None:
        self._past: deque[float] = deque(maxlen=_DAY_STEPS + _SLOPE_STEPS + 1)

    def decide(self, now_s: int, load: float, ready: int, requested: int) -> int:
        """The higher of both forecasts for the time until a new replica is ready."""
        self._past.append(load)
        past = list(self._past) if len(self._past) <= _SLOPE_STEPS + 1 else None
        forecast = load
        if past is None:
            forecast += max(0.0, (load - self._past[-1 - _SLOPE_STEPS]) / _SLOPE_STEPS) * _LEAD_STEPS
        if len(self._past) == self._past.maxlen:
            forecast = max(forecast, self._yesterday())
        return max(1, _whole(forecast * _FORECAST_MARGIN))

    def _yesterday(self) -> float:
        low, high = _TREND_RANGE
        then = [self._past[index] for index in range(_SLOPE_STEPS + 1)]
        now = [self._past[-1 - index] for index in range(_SLOPE_STEPS)]
        trend = sum(now) / max(_ROUNDING, sum(then[1:]))
        following = [self._past[_SLOPE_STEPS + index] for index in range(_LEAD_STEPS + 1)]
        return max(following) * min(high, max(low, trend))


class DoNothing:
    """As many replicas as the peak needs, always: what a service gets that nobody scales."""

    def decide(self, now_s: int, load: float, ready: int, requested: int) -> int:
        """The peak's replicas."""
        return PEAK_REPLICAS


BASELINES: Final[Mapping[str, MakeHorizontal]] = {
    "do-nothing": DoNothing,
    "hpa-70": lambda: Hpa(0.7),
    "hpa-80": lambda: Hpa(0.8),
    "keda-like": lambda: Keda(0.8),
    "plain-forecast": PlainForecast,
}
"""By name: a new policy for one service."""


def _whole(replicas: float) -> int:
    return math.ceil(replicas - _ROUNDING)
