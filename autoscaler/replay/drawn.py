"""A horizontal backtest with what a page draws of it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.model.backtest import HorizontalReport, HorizontalRow, ReplicaLine
from autoscaler.replay.horizontal import MakeHorizontal, Progress, Replayed, replay_service, score
from autoscaler.replay.services import STEP_S, Service, services_in

BUCKETS: Final = 480
"""Points of a drawn line; more could not be told apart on a page."""


def run_drawn(traces: Path, policies: Mapping[str, MakeHorizontal], progress: Progress) -> HorizontalReport:
    """The rows of `replay.horizontal.run`, and a line for each; raises `TraceError` as it does."""
    rows: list[HorizontalRow] = []
    lines: list[ReplicaLine] = []
    for service in services_in(traces):
        for number, (name, make) in enumerate(policies.items()):
            progress(service.name, number, len(policies))
            replayed = replay_service(service, make)
            rows.append(score(name, service.name, replayed))
            lines.append(_line(name, service, replayed))
    return HorizontalReport(rows=tuple(rows), lines=tuple(lines))


def _line(policy: str, service: Service, replayed: Replayed) -> ReplicaLine:
    return ReplicaLine(
        policy=policy,
        service=service.name,
        hours=len(replayed.load) * STEP_S / 3600,
        load=tuple(round(value, 2) for value in _highest(replayed.load)),
        requested=tuple(int(value) for value in _highest(replayed.requested)),
    )


def _highest(values: NDArray[np.float64] | NDArray[np.int64]) -> list[float]:
    """The highest value of each bucket; the last bucket may be shorter."""
    size = -(-len(values) // BUCKETS)
    starts = np.arange(0, len(values), size)
    highest: list[float] = np.maximum.reduceat(values, starts).tolist()
    return highest
