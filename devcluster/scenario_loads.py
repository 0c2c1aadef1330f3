"""The loads of a scenario file, and how each becomes a load the exporter can follow.

Trace and distribution files stay where they are: their values are read at the start of a run.
"""

import csv
import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from devcluster.exporter.load import (
    Constant,
    Draws,
    Gap,
    OfferedLoad,
    Phase,
    Phases,
    Profile,
    Samples,
    Spread,
    WorkloadLoad,
)
from devcluster.strict_section import StrictSection

_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_WEIGHT_OF_CUMULATIVE_PERCENT = 100.0


def parse_duration_s(text: object) -> float:
    """Seconds of a duration such as `90s`, `10m` or `1.5h`; a bare number is refused for its missing unit."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", text) if isinstance(text, str) else None
    if found is None:
        raise ValueError(f"{text!r} is no duration (write a number and ms, s, m, h or d, such as 90s)")
    return float(found[1]) * _UNIT_S[found[2]]


def _longer_than_nothing(duration_s: float) -> float:
    if duration_s <= 0:
        raise ValueError("must be longer than nothing")
    return duration_s


Duration = Annotated[float, BeforeValidator(parse_duration_s)]
Span = Annotated[Duration, AfterValidator(_longer_than_nothing)]
Boards = Annotated[float, Field(ge=0)]


class WorkloadReference(StrictSection):
    """Whose load it is: the topmost owner, or a single pod by its name."""

    namespace: str
    kind: Literal["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "Pod"]
    name: str

    def label(self) -> str:
        """The workload in a word."""
        return f"{self.kind} {self.namespace}/{self.name}"


class ConstantSection(StrictSection):
    """`kind: constant`."""

    kind: Literal["constant"]
    boards: Boards

    def resolve(self, folder: Path) -> OfferedLoad:  # noqa: ARG002 - one signature for all kinds
        """The load the exporter follows."""
        return Constant(self.boards)


class PhaseSection(StrictSection):
    """One phase."""

    for_s: Span = Field(alias="for")
    boards: Boards


class PhasesSection(StrictSection):
    """`kind: phases`."""

    kind: Literal["phases"]
    phases: list[PhaseSection] = Field(min_length=1)
    repeat: bool = False

    def resolve(self, folder: Path) -> OfferedLoad:  # noqa: ARG002 - one signature for all kinds
        """The load the exporter follows."""
        return Phases(tuple(Phase(one.for_s, one.boards) for one in self.phases), self.repeat)


class TraceSection(StrictSection):
    """`kind: trace`: one column of a CSV file, times `scale`, one value per step; empty cells repeat the last value."""

    kind: Literal["trace"]
    path: str
    column: str
    step: Span
    scale: float = Field(default=1.0, gt=0)

    def resolve(self, folder: Path) -> OfferedLoad:
        """The load the exporter follows."""
        values: list[float] = []
        for (cell,) in _columns(folder / self.path, [self.column]):
            if cell:
                values.append(max(float(cell) * self.scale, 0.0))
            elif values:
                values.append(values[-1])
        if not values:
            raise ValueError(f"{self.path}: column {self.column} holds no value")
        return Samples(self.step, tuple(values))


class DistributionSection(StrictSection):
    """`kind: distribution`: a CSV file with a cumulative distribution (value, percent at or below)."""

    kind: Literal["distribution"]
    path: str
    value_column: str = "c0"
    cumulative_column: str = "c1"
    step: Span
    seed: int
    scale: float = Field(default=1.0, gt=0)

    def resolve(self, folder: Path) -> OfferedLoad:
        """The load the exporter follows."""
        rows = _columns(folder / self.path, [self.value_column, self.cumulative_column])
        curve: list[tuple[float, float]] = []
        for value, percent in (
            (float(value), float(percent)) for value, percent in rows if value and percent
        ):
            share = percent / _WEIGHT_OF_CUMULATIVE_PERCENT
            if curve and share < curve[-1][1]:
                raise ValueError(f"{self.path}: column {self.cumulative_column} does not ascend")
            curve.append((value * self.scale, share))
        if not curve:
            raise ValueError(f"{self.path}: no rows")
        return Draws(self.step, self.seed, tuple(curve))


class SilenceSection(StrictSection):
    """`kind: silence`: never any series."""

    kind: Literal["silence"]

    def resolve(self, folder: Path) -> OfferedLoad:  # noqa: ARG002 - one signature for all kinds
        """The load the exporter follows."""
        return Constant(0.0)


class GapSection(StrictSection):
    """A time without series, counted from the start of the scenario."""

    after: Duration
    for_s: Span = Field(alias="for")


OfferedSection = Annotated[
    ConstantSection | PhasesSection | TraceSection | DistributionSection | SilenceSection,
    Field(discriminator="kind"),
]


class LoadSection(StrictSection):
    """The load of one workload."""

    workload: WorkloadReference
    offered: OfferedSection
    spread: Spread = "even"
    opens_boards: int | None = Field(default=None, ge=1)
    memory_mib: int = Field(default=0, ge=0)
    gaps: list[GapSection] = Field(default_factory=list)
    profiles: list[Profile] = Field(default=["dcgm"], min_length=1)

    def resolve(self, folder: Path) -> WorkloadLoad:
        """The load as the exporter takes it; files are read relative to `folder`."""
        return WorkloadLoad(
            namespace=self.workload.namespace,
            kind=self.workload.kind,
            name=self.workload.name,
            offered=self.offered.resolve(folder),
            spread=self.spread,
            opens_boards=self.opens_boards,
            memory_mib=self.memory_mib,
            gaps=tuple(Gap(gap.after, gap.for_s) for gap in self.gaps),
            silent=isinstance(self.offered, SilenceSection),
            profiles=tuple(self.profiles),
        )


def _columns(path: Path, names: list[str]) -> list[tuple[str, ...]]:
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        missing = [name for name in names if name not in (reader.fieldnames or [])]
        if missing:
            raise ValueError(
                f"{path}: no column {', '.join(missing)} (has: {', '.join(reader.fieldnames or [])})"
            )
        return [tuple(row[name] or "" for name in names) for row in reader]
