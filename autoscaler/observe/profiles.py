"""Exporter profiles: which metric means what, as data.

Scale, labels and units are properties of an exporter and are never guessed from values. A profile that is not
understood completely is refused: a wrong scale would turn a busy board into an idle one.
"""

import re
from pathlib import Path
from typing import Annotated, Final, Literal, Protocol, TypeVar

import msgspec
from msgspec import Meta

from autoscaler.observe.strict_yaml import YamlError, load_yaml

Metric = Annotated[str, Meta(pattern=r"^[a-zA-Z_:][a-zA-Z0-9_:]*$", max_length=200)]
Label = Annotated[str, Meta(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$", max_length=200)]
DeviceKey = Annotated[
    str, Meta(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*(\+[a-zA-Z_][a-zA-Z0-9_]*)*$", max_length=400)
]
"""One label, or several that name a device only together, joined by `+`."""

MIB: Final = 1024 * 1024


class ProfileError(ValueError):
    """The profile is not acceptable; the message names the file, the field and what is allowed."""


class _Named(Protocol):
    @property
    def name(self) -> str: ...


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a profile file."""


class Signal(Part, frozen=True):
    """A metric of activity. `full` is the value of a board that is always active.

    `kind` tells what is counted: engine or SM activity, or `util` ("some kernel ran"), which says nothing of a slice.
    On series that carry one of the labels in `void` it is another device's value and is not read. `over` tells what a
    value over `full` is: not believed at all (`drop`), or a full board (`clamp`: flagged, it never shows a demand).
    """

    metric: Metric
    kind: Literal["engine", "sm", "util"]
    full: Literal[1, 100]
    void: tuple[Label, ...] = ()
    over: Literal["drop", "clamp"] = "drop"


class Memory(Part, frozen=True):
    """Device memory: `used`, and either `free` (with `reserved`, where it is kept apart) or `total`."""

    used: Metric
    unit: Literal["MiB", "bytes"]
    free: Metric | None = None
    reserved: Metric | None = None
    total: Metric | None = None

    def __post_init__(self) -> None:
        if (self.free is None) == (self.total is None):
            raise ValueError("memory needs exactly one of free and total")
        if self.reserved is not None and self.free is None:
            raise ValueError("memory has reserved only beside free")

    @property
    def per_mib(self) -> int:
        """Units in one MiB."""
        return 1 if self.unit == "MiB" else MIB


class Power(Part, frozen=True):
    """Board power in units of which `per_watt` are a watt; a board without activity draws at most `idle_max_watts`."""

    metric: Metric
    idle_max_watts: Annotated[float, Meta(gt=0)]
    per_watt: Literal[1, 1000] = 1


class Traffic(Part, frozen=True):
    """Memory or bus traffic of a device; over `quiet_max` something runs on it, whatever its activity says."""

    metric: Metric
    quiet_max: Annotated[float, Meta(ge=0)]


class BoardActivity(Part, frozen=True):
    """Activity of a whole board in series of their own, beside those of its owners; `device` and `full` as above."""

    metric: Metric
    full: Literal[1, 100]
    device: DeviceKey


class Variant(Part, frozen=True):
    """What an exporter of this profile is called when its series carry a label, e.g. `dra` for `dra_claim_name`."""

    name: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]{0,40}$")]
    label: Label
    value: Annotated[str, Meta(max_length=200)] = ".+"
    """Regular expression that matches the label's whole value."""

    def __post_init__(self) -> None:
        try:
            re.compile(self.value)
        except re.error as error:
            raise ValueError(f"variant {self.name}: {error}") from None


class OwnerLabels(Part, frozen=True):
    """Labels that name the owning container together; they are never mixed with another group's."""

    pod: Label
    namespace: Label
    container: Label | None = None
    uid: Label | None = None


class Profile(Part, frozen=True):
    """One exporter.

    `scope` is `device` (a series for each board, slice or share) or `pod` (one value for the pod). `device` lists the
    labels that can name a device, the first that is not empty wins. `slices` name a hardware partition of it, `shares` a
    pod's part of a board that is shared in software: on such series only the signals and the memory are the pod's own.
    Without `owners` the exporter names boards only: their pods must come from resource claims or from another exporter.
    `energy` counts up for as long as the exporter really reads the board; `last_active` is seconds since the owner's
    last kernel. `match` pins the source: only series with these labels are read, e.g. `{job: dcgm-exporter}`.
    """

    name: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]{0,30}$")]
    scope: Literal["device", "pod"]
    signals: Annotated[tuple[Signal, ...], Meta(min_length=1)]
    owners: tuple[OwnerLabels, ...] = ()
    device: DeviceKey | tuple[DeviceKey, ...] = ()
    slices: tuple[Label, ...] = ()
    shares: tuple[Label, ...] = ()
    nodes: tuple[Label, ...] = ()
    memory: Memory | None = None
    power: Power | None = None
    energy: Metric | None = None
    traffic: tuple[Traffic, ...] = ()
    board: BoardActivity | None = None
    last_active: Metric | None = None
    variants: tuple[Variant, ...] = ()
    match: dict[Label, str] = {}

    def __post_init__(self) -> None:
        if (self.scope == "device") != bool(self.device):
            raise ValueError("scope device needs a device label, scope pod has none")
        if self.scope == "pod" and not self.owners:
            raise ValueError("scope pod needs owners")

    @property
    def device_keys(self) -> tuple[tuple[str, ...], ...]:
        """The alternatives for naming a device, each a tuple of labels that name it together."""
        keys = (self.device,) if isinstance(self.device, str) else self.device
        return tuple(tuple(key.split("+")) for key in keys)

    @property
    def labels(self) -> tuple[str, ...]:
        """Every label that is read, sorted: what queries group by."""
        names = {
            *self.slices,
            *self.shares,
            *self.nodes,
            *(label for key in self.device_keys for label in key),
        }
        names |= {label for signal in self.signals for label in signal.void}
        for group in self.owners:
            names |= {label for label in (group.pod, group.namespace, group.container, group.uid) if label}
        return tuple(sorted(names))

    @property
    def metrics(self) -> tuple[str, ...]:
        """Every metric that is read, each once."""
        memory, found = self.memory, [signal.metric for signal in self.signals]
        if memory:
            found += [name for name in (memory.used, memory.free, memory.reserved, memory.total) if name]
        found += [self.power.metric] if self.power else []
        found += [name for name in (self.energy, self.last_active) if name]
        found += [traffic.metric for traffic in self.traffic]
        found += [self.board.metric] if self.board else []
        return tuple(dict.fromkeys(found))


P = TypeVar("P", bound=_Named)


def parse_profile(text: str, *, where: str) -> Profile:
    """The profile in a YAML text; raises `ProfileError` beginning with `where`."""
    return _parse(text, Profile, where=where)


def _parse(text: str, kind: type[P], *, where: str) -> P:
    try:
        return msgspec.convert(load_yaml(text), type=kind)
    except (YamlError, msgspec.ValidationError) as error:
        raise ProfileError(f"{where}: {error}") from error
    except RecursionError:
        raise ProfileError(f"{where}: nested too deeply") from None


def load_profiles(*folders: Path) -> tuple[Profile, ...]:
    """The profiles of the folders' `*.yaml` files by name, a later folder's before an earlier one's of that name.

    Raises `ProfileError` for a bad one, for one that is twice in a folder, and where there is none at all.
    """
    found = load_parts(Profile, *folders)
    if not found:
        raise ProfileError(f"{folders[0]}: no profile (*.yaml) in it")
    return found


def load_parts(kind: type[P], *folders: Path) -> tuple[P, ...]:
    """As `load_profiles`, for any kind of profile, and none is no error."""
    found: dict[str, P] = {}
    for folder in folders:
        here: dict[str, P] = {}
        try:
            texts = [(path, path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.yaml"))]
        except (OSError, UnicodeDecodeError) as error:
            raise ProfileError(f"{folder}: {error}") from error
        for path, text in texts:
            profile = _parse(text, kind, where=str(path))
            if profile.name in here:
                raise ProfileError(f"{path}: another file has a profile named {profile.name}")
            here[profile.name] = profile
        found |= here
    return tuple(found[name] for name in sorted(found))
