"""A case: a world, what its exporters say and what the store does; and how corruptions change one."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import TypeAlias

from corrupted.exporter import Track, device_key
from corrupted.faulty_client import Faults
from corrupted.worlds import Unit, World


@dataclass(frozen=True)
class Case:
    """A world, what its exporters say, and what the store does; `names` are the corruptions so far."""

    world: World
    tracks: tuple[Track, ...]
    faults: Faults = field(default_factory=Faults)
    names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """The choices that a corruption made, for whoever looks at the case."""


Corruption: TypeAlias = Callable[[Case, Random], Case | None]
"""None where the case has nothing that could be corrupted so."""


def noted(case: Case, text: str) -> Case:
    """The case with a remark on how it was corrupted."""
    return replace(case, notes=(*case.notes, text))


def changed(case: Case, changes: Mapping[str, Unit]) -> Case:
    """The case with units replaced, by their former names."""
    works = tuple(
        replace(work, units=tuple(changes.get(unit.name, unit) for unit in work.units))
        for work in case.world.works
    )
    return replace(case, world=replace(case.world, works=works))


def forgotten(case: Case, pods: Iterable[str], *, servers: bool = False) -> Case:
    """The case in which nobody can know these units by their boards, nor, with `servers`, by what their servers say."""
    gone = set(pods)
    return changed(
        case,
        {
            unit.name: replace(unit, known=False, believed=unit.believed and not servers)
            for unit in case.world.units
            if unit.name in gone
        },
    )


def edited(case: Case, wanted: Callable[[Track], bool], edit: Callable[[Track], Track]) -> Case:
    """The case with some series changed; one without samples left is gone."""
    tracks = (edit(track) if wanted(track) else track for track in case.tracks)
    return replace(case, tracks=tuple(track for track in tracks if track.samples))


def scope(case: Case, draw: Random) -> tuple[Callable[[Track], bool], frozenset[str]]:
    """Series of one held device, of one node or of all nodes, and the pods they are about."""
    kind = draw.choice(("device", "node", "all"))
    unit = draw.choice(case.world.units)
    if kind == "device":
        device = draw.choice(unit.devices)
        return (lambda track: track.device == device_key(device)), frozenset({unit.name})
    if kind == "node":
        pods = frozenset(one.name for one in case.world.units if one.node == unit.node)
        return (lambda track: track.node == unit.node), pods
    return (lambda _track: True), frozenset(one.name for one in case.world.units)


def has_copies(case: Case) -> bool:
    """Whether a sample that is missing may be there under other labels."""
    return bool({"two_exporters", "two_stores"} & set(case.names))


def split(case: Case, wanted: Callable[[Track], bool], edit: Callable[[Track], Track], since_ms: int) -> Case:
    """The series up to a time as they are, and edited after it."""
    tracks: list[Track] = []
    for track in case.tracks:
        if not wanted(track):
            tracks.append(track)
            continue
        before = tuple(s for s in track.samples if s[0] < since_ms)
        after = tuple(s for s in track.samples if s[0] >= since_ms)
        tracks += [replace(track, samples=before)] if before else []
        tracks += [edit(replace(track, samples=after))] if after else []
    return replace(case, tracks=tuple(tracks))
