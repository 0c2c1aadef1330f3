"""The policies that a vertical backtest compares: this program's own, and beside them what others do."""

from collections.abc import Mapping
from typing import Final

from autoscaler.replay import baselines, ours
from autoscaler.replay.report import MakePolicy

VERTICAL: Final[Mapping[str, MakePolicy]] = {**ours.POLICIES, **baselines.VERTICAL}
"""By name, in the order in which they are shown."""
