"""Our own horizontal policy for the replay, beside the baselines: the same code that decides in a cluster."""

from collections.abc import Mapping
from typing import Final

from autoscaler.decide.scaling import Bounds, Load, Scaler, ScalingRules
from autoscaler.model.duration import Duration
from autoscaler.replay.baselines_horizontal import BASELINES
from autoscaler.replay.horizontal import STARTUP_S, MakeHorizontal
from autoscaler.replay.services import STEP_S

_NO_CEILING: Final = 1_000_000
"""The replay has no end of replicas: what is too many costs."""


class Ours:
    """A `Scaler` with its defaults that is told every load as one of demand."""

    def __init__(self, rules: ScalingRules | None = None) -> None:
        rules = rules or ScalingRules(interval=Duration(STEP_S * 1000))
        self._scaler = Scaler(rules, startup=Duration(STARTUP_S * 1000))
        self._bounds = Bounds(floor=1, ceiling=_NO_CEILING)

    def decide(self, now_s: int, load: float, ready: int, requested: int) -> int:
        """The scaler's choice."""
        self._scaler.observe(now_s * 1000, Load(lower=load, upper=load, signal="tokens"))
        return self._scaler.ask(now_s * 1000, requested, self._bounds).replicas


POLICIES: Final[Mapping[str, MakeHorizontal]] = {"autoscaler": Ours, **BASELINES}
"""By name: a new policy for one service, ours first."""
