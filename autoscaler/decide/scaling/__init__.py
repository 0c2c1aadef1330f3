"""How many replicas a serving workload needs: its load's own past decides how much room the future gets.

`Scaler` takes samples and answers with a `Choice`; the other modules are the bricks that it is made of. Everything here is a
value or a plain state machine: no clock, no randomness, nothing awaited, so the same samples give the same choices.
"""

from autoscaler.decide.scaling.choice import Bounds, Choice
from autoscaler.decide.scaling.demand import Load
from autoscaler.decide.scaling.rules import ScalingRules
from autoscaler.decide.scaling.scaler import Scaler

__all__ = ["Bounds", "Choice", "Load", "Scaler", "ScalingRules"]
