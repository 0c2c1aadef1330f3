"""The policies that a vertical backtest compares: what others do, and this program's own beside it."""

from collections.abc import Mapping
from typing import Final

from autoscaler.replay import baselines
from autoscaler.replay.report import MakePolicy

VERTICAL: Final[Mapping[str, MakePolicy]] = {**baselines.VERTICAL}
"""By name, in the order in which they are shown."""
