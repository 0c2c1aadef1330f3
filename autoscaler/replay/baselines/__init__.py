"""What other tools would have done, as policies for the replay: the yardsticks beside our own."""

from collections.abc import Mapping
from typing import Final

from autoscaler.replay.baselines.kruize import Kruize
from autoscaler.replay.baselines.seed import SeedScript
from autoscaler.replay.baselines.vpa import VpaLike
from autoscaler.replay.baselines.windows import DoNothing, IdleWindow
from autoscaler.replay.report import MakePolicy

VERTICAL: Final[Mapping[str, MakePolicy]] = {
    "do-nothing": lambda _board_gib: DoNothing(),
    "seed-script": lambda _board_gib: SeedScript(),
    "gpu-pruner": lambda _board_gib: IdleWindow(window_s=1800.0, grace_s=300.0),
    "kruize-cost": lambda board_gib: Kruize(percentile=60, board_gib=board_gib),
    "kruize-performance": lambda board_gib: Kruize(percentile=98, board_gib=board_gib),
    "vpa-like": lambda board_gib: VpaLike(board_gib=board_gib),
    "idle-45min": lambda _board_gib: IdleWindow(window_s=2700.0),
    "idle-60min": lambda _board_gib: IdleWindow(window_s=3600.0),
    "idle-90min": lambda _board_gib: IdleWindow(window_s=5400.0),
}
"""By name: a new policy for boards of so many GiB."""
