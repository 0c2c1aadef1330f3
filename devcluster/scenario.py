"""A scenario: which nodes there are, what runs on them and how busy it is.

A scenario is a YAML file that people write, so an unknown key or a wrong value is refused with its place in
the file and with what is allowed there.  What is loaded is complete: files that a scenario names are read here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, ValidationError, model_validator

from devcluster.errors import ScenarioError
from devcluster.exporter.load import WorkloadLoad
from devcluster.scenario_loads import LoadSection
from devcluster.strict_section import StrictSection


class Taint(StrictSection):
    """A taint of the nodes of a pool."""

    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class Gpu(StrictSection):
    """What each board of a pool is."""

    model: str = "NVIDIA A100-SXM4-80GB"
    memory_mib: int = Field(default=81920, gt=0)


class NodePool(StrictSection):
    """Equal nodes, named NAME-0, NAME-1 and so on."""

    name: str = Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    count: int = Field(default=1, ge=1)
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    taints: list[Taint] = Field(default_factory=list)
    capacity: dict[str, str] = Field(default={"cpu": "96", "memory": "768Gi", "pods": "110"})
    accelerators: dict[str, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    gpu: Gpu = Gpu()

    def node_names(self) -> list[str]:
        """The names of the pool's nodes."""
        return [f"{self.name}-{number}" for number in range(self.count)]


class StageSection(StrictSection):
    """What changes at one moment of a scenario's story: objects that are applied, loads that replace earlier ones."""

    objects: list[dict[str, Any]] = Field(default_factory=list)
    loads: list[LoadSection] = Field(default_factory=list)


class ScenarioFile(StrictSection):
    """The file as people write it."""

    api_version: Literal["devcluster.gpu-autoscaler.io/v1"] = Field(alias="apiVersion")
    kind: Literal["Scenario"]
    name: str
    description: str = ""
    time_scale: float = Field(default=1.0, gt=0)
    nodes: list[NodePool] = Field(min_length=1)
    objects: list[dict[str, Any]] | str = Field(default_factory=list)
    loads: list[LoadSection] = Field(default_factory=list)
    stages: dict[str, StageSection] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _loads_are_of_different_workloads(self) -> "ScenarioFile":
        named = {"loads": self.loads} | {
            f"stages.{name}.loads": one.loads for name, one in self.stages.items()
        }
        for place, loads in named.items():
            seen: set[str] = set()
            for load in loads:
                label = load.workload.label()
                if label in seen:
                    raise ValueError(f"{place}: {label} has two loads")
                seen.add(label)
        return self


@dataclass(frozen=True)
class Stage:
    """A later moment of a scenario: what is applied then, and how busy workloads are from then on."""

    objects: tuple[dict[str, Any], ...]
    loads: tuple[WorkloadLoad, ...]


@dataclass(frozen=True)
class Scenario:
    """A scenario with everything read and resolved; `stages` are its later moments by name, played by whoever asks."""

    name: str
    nodes: tuple[NodePool, ...]
    objects: tuple[dict[str, Any], ...]
    loads: tuple[WorkloadLoad, ...]
    time_scale: float = 1.0
    stages: Mapping[str, Stage] = field(default_factory=dict)


def load_scenario(path: Path) -> Scenario:
    """Read a scenario file; a wrong one raises `ScenarioError` with one line per mistake."""
    try:
        content = yaml.safe_load(path.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise ScenarioError(f"{path}: {error}") from error
    if not isinstance(content, dict):
        raise ScenarioError(f"{path}: a scenario is a mapping")
    return parse_scenario(content, origin=path)


def parse_scenario(content: dict[str, Any], *, origin: Path) -> Scenario:
    """A scenario from decoded YAML; paths inside it are relative to the folder of `origin`."""
    try:
        file = ScenarioFile.model_validate(content)
    except ValidationError as error:
        raise ScenarioError(_told(error, origin)) from error
    try:
        return Scenario(
            name=file.name,
            nodes=tuple(file.nodes),
            objects=tuple(_objects(file.objects, origin.parent)),
            loads=tuple(load.resolve(origin.parent) for load in file.loads),
            time_scale=file.time_scale,
            stages={
                name: Stage(
                    tuple(_objects(stage.objects, origin.parent, f"stages.{name}.objects")),
                    tuple(load.resolve(origin.parent) for load in stage.loads),
                )
                for name, stage in file.stages.items()
            },
        )
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ScenarioError(f"{origin}: {error}") from error


def _objects(
    objects: list[dict[str, Any]] | str, folder: Path, place: str = "objects"
) -> list[dict[str, Any]]:
    if isinstance(objects, str):
        with (folder / objects).open() as file:
            objects = [one for one in yaml.safe_load_all(file) if one is not None]
    for number, one in enumerate(objects):
        missing = [key for key in ("apiVersion", "kind", "metadata") if key not in one]
        if missing:
            raise ValueError(f"{place}[{number}]: no {', '.join(missing)}")
    return objects


def _told(error: ValidationError, origin: Path) -> str:
    lines = [f"{origin}: {_place(one['loc'])}: {_reason(one['msg'])}" for one in error.errors()]
    return "\n".join(dict.fromkeys(lines))


def _place(location: tuple[int | str, ...]) -> str:
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return place.removeprefix(".") or "the file"


def _reason(message: str) -> str:
    return message.removeprefix("Value error, ")
