"""The horizontal pod autoscaler's own formula, for what follows a fixed target: one use per pod, a target, a tolerance.

Source: kubernetes `pkg/controller/podautoscaler/replica_calculator.go` (`GetResourceReplicas`). What it gets right and
others miss is its asymmetry: a pod without a figure counts as full when shrinking and as empty when growing, and a
direction that only filled-in figures give is refused.
"""

import math
from collections.abc import Sequence
from typing import Final

TOLERANCE: Final = 0.1
"""Share by which the use may differ from its target before anything changes; HPA's default."""
_ROUNDING: Final = 1e-9


def hpa_replicas(
    uses: Sequence[float | None], *, replicas: int, target: float, tolerance: float = TOLERANCE
) -> int:
    """Replicas that bring the mean use to its target; `uses` are of the ready pods, None where one says nothing.

    Uses and the target are shares of what a pod asks for. Without any figure the replicas stay as they are.
    """
    known = [use for use in uses if use is not None]
    missing = len(uses) - len(known)
    if not known:
        return replicas
    ratio = sum(known) / len(known) / target
    if not missing:
        return replicas if abs(ratio - 1) <= tolerance else _ceil(ratio * len(known))
    filled = missing * max(1.0, target) if ratio < 1 else 0.0
    judged = (sum(known) + filled) / len(uses) / target
    if abs(judged - 1) <= tolerance or (ratio < 1) != (judged < 1):
        return replicas
    wanted = _ceil(judged * len(uses))
    turns = (judged < 1 and wanted > replicas) or (judged > 1 and wanted < replicas)
    return replicas if turns else wanted


def _ceil(value: float) -> int:
    return math.ceil(value - _ROUNDING)
