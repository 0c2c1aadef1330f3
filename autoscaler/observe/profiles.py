"""Exporter profiles: which metric means what, as data.

Scale, labels and units are properties of an exporter and are never guessed from values. A profile that is not
understood completely is refused: a wrong scale would turn a busy board into an idle one.
"""

from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from autoscaler.observe.strict_yaml import YamlError, load_yaml

Metric = Annotated[str, Meta(pattern=r"^[a-zA-Z_:][a-zA-Z0-9_:]*$", max_length=200)]
Label = Annotated[str, Meta(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$", max_length=200)]

MIB: Final = 1024 * 1024


class ProfileError(ValueError):
    """The profile is not acceptable; the message names the file, the field and what is allowed."""


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a profile file."""


class Signal(Part, frozen=True):
    """A metric of activity. `full` is the value of a board that is always active.

    `kind` tells what is counted: engine or SM activity, or `util` ("some kernel ran"), which says nothing of a slice.
    """

    metric: Metric
    kind: Literal["engine", "sm", "util"]
    full: Literal[1, 100]


class Memory(Part, frozen=True):
    """Device memory: `used`, and either `free` or `total`."""

    used: Metric
    unit: Literal["MiB", "bytes"]
    free: Metric | None = None
    total: Metric | None = None

    def __post_init__(self) -> None:
        if (self.free is None) == (self.total is None):
            raise ValueError("memory needs exactly one of free and total")

    @property
    def per_mib(self) -> int:
        """Units in one MiB."""
        return 1 if self.unit == "MiB" else MIB


class Power(Part, frozen=True):
    """Board power in watts; a board without activity draws no more than `idle_max_watts`."""

    metric: Metric
    idle_max_watts: Annotated[float, Meta(gt=0)]


class OwnerLabels(Part, frozen=True):
    """Labels that name the owning container together; they are never mixed with another group's."""

    pod: Label
    namespace: Label
    container: Label | None = None
    uid: Label | None = None


class Profile(Part, frozen=True):
    """One exporter.

    `scope` is `device` (a series for each board or slice, named by label `device`) or `pod` (one value for the pod).
    `match` pins the source: only series with these labels are read, e.g. `{job: dcgm-exporter}`.
    """

    name: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]{0,30}$")]
    scope: Literal["device", "pod"]
    signals: Annotated[tuple[Signal, ...], Meta(min_length=1)]
    owners: Annotated[tuple[OwnerLabels, ...], Meta(min_length=1)]
    device: Label | None = None
    slices: tuple[Label, ...] = ()
    nodes: tuple[Label, ...] = ()
    memory: Memory | None = None
    power: Power | None = None
    match: dict[Label, str] = {}

    def __post_init__(self) -> None:
        if (self.scope == "device") != (self.device is not None):
            raise ValueError("scope device needs a device label, scope pod has none")

    @property
    def labels(self) -> tuple[str, ...]:
        """Every label that is read, sorted: what queries group by."""
        names = {*self.slices, *self.nodes, *([self.device] if self.device else [])}
        for group in self.owners:
            names |= {label for label in (group.pod, group.namespace, group.container, group.uid) if label}
        return tuple(sorted(names))


def parse_profile(text: str, *, where: str) -> Profile:
    """The profile in a YAML text; raises `ProfileError` beginning with `where`."""
    try:
        return msgspec.convert(load_yaml(text), type=Profile)
    except (YamlError, msgspec.ValidationError) as error:
        raise ProfileError(f"{where}: {error}") from error
    except RecursionError:
        raise ProfileError(f"{where}: nested too deeply") from None


def load_profiles(folder: Path) -> tuple[Profile, ...]:
    """The profiles of a folder's `*.yaml` files, by name; raises `ProfileError` for a bad or a repeated one."""
    found: dict[str, Profile] = {}
    try:
        texts = [(path, path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.yaml"))]
    except (OSError, UnicodeDecodeError) as error:
        raise ProfileError(f"{folder}: {error}") from error
    for path, text in texts:
        profile = parse_profile(text, where=str(path))
        if profile.name in found:
            raise ProfileError(f"{path}: another file has a profile named {profile.name}")
        found[profile.name] = profile
    if not found:
        raise ProfileError(f"{folder}: no profile (*.yaml) in it")
    return tuple(found[name] for name in sorted(found))
