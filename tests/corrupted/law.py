"""What may never happen in a world whose truth is known, and what ought to."""

from collections.abc import Iterator
from dataclasses import dataclass

from corrupted.worlds import Unit, Work, World, boards_needed, true_load

from autoscaler.model.plan import Action, Plan

WATERMARK = 0.30
"""The policy's: a unit used less than this yields to work of higher priority, busy or not."""


@dataclass(frozen=True)
class Found:
    """Truly idle units: how many there are, how many were seen to be, how many a plan would act on."""

    idle: int = 0
    seen: int = 0
    acted: int = 0

    def plus(self, other: "Found") -> "Found":
        return Found(self.idle + other.idle, self.seen + other.seen, self.acted + other.acted)

    @property
    def share(self) -> float:
        return self.seen / self.idle if self.idle else 1.0


def is_idle(unit: Unit) -> bool:
    """Whether it may be taken for idle: it is, and one can know it."""
    return unit.use == "idle" and _can_be_known(unit)


def _can_be_known(unit: Unit) -> bool:
    return unit.known and not unit.woke_ms


def harms(world: World, plan: Plan) -> list[str]:
    """What the plan says or does against units that are busy, or that nobody can know."""
    works = {(work.namespace, work.name): work for work in world.works}
    found: list[str] = []
    for row in plan.rows:
        work = works.get((row.workload.namespace, row.workload.name))
        if work is not None and row.verdict == "idle":
            found += [
                f"{row.workload.name}: idle, but {unit.name} is {_truth(unit)}"
                for unit in work.units
                if not (is_idle(unit) or _says_so_itself(work, unit))
            ]
    for action in plan.actions:
        work = works.get((action.target.namespace, action.target.name))
        if work is None:
            found.append(f"{action.target}: an act on what nobody drew")
            continue
        found += [
            f"{action.method} {action.lever} {action.target.name}: {why}" for why in _harm(work, action)
        ]
    return found


def _says_so_itself(work: Work, unit: Unit) -> bool:
    """An idle server that says so may be called idle, whatever is known of its boards; it may not be acted on for that."""
    return work.serving and unit.believed and unit.use == "idle" and not unit.woke_ms


def _truth(unit: Unit) -> str:
    return unit.use if _can_be_known(unit) else f"{unit.use}, and cannot be known"


def _harm(work: Work, action: Action) -> Iterator[str]:
    match action.lever:
        case "evict":
            yield from _evicted(work, action)
        case "scale":
            for unit in _leaving(work, action):
                if not is_idle(unit):
                    yield f"{action.before} to {action.after} replicas takes {unit.name}, which is {_truth(unit)}"
        case "template":
            yield from _resized(work, action)


def _evicted(work: Work, action: Action) -> Iterator[str]:
    victims = [unit for unit in work.units if action.pod and unit.uid == action.pod.uid]
    if not victims:
        yield "an eviction of nobody"
    for unit in victims:
        if not _can_be_known(unit):
            yield f"evicts {unit.name}, which cannot be known"
        elif true_load(unit) / len(unit.devices) >= WATERMARK:
            yield f"evicts {unit.name}, which is {unit.use}"


def _resized(work: Work, action: Action) -> Iterator[str]:
    for unit in work.units:
        if not _can_be_known(unit):
            yield f"resizes {unit.name}, which cannot be known"
        elif action.after < boards_needed(unit):
            yield f"{action.after} boards for {unit.name}, which needs {boards_needed(unit)}"


def _leaving(work: Work, action: Action) -> list[Unit]:
    """The pods that go: those that were named, else the highest ordinals, else the ones it would hurt most."""
    named = {ref.uid for ref in action.leaving}
    if named:
        return [unit for unit in work.units if unit.uid in named]
    count = action.before - action.after
    if work.kind == "StatefulSet" or action.after == 0:
        return list(work.units[len(work.units) - count :])
    return sorted(work.units, key=is_idle)[:count]


def found(world: World, plan: Plan) -> Found:
    """How many of the units that may be taken for idle were: by their workload's verdict, and by an act on it."""
    total = seen = acted = 0
    rows = {(row.workload.namespace, row.workload.name): row for row in plan.rows}
    touched = {(action.target.namespace, action.target.name) for action in plan.actions}
    for work in world.works:
        idle = sum(is_idle(unit) for unit in work.units)
        if idle < len(work.units):
            continue
        total += idle
        row = rows.get((work.namespace, work.name))
        seen += idle if row is not None and row.verdict == "idle" else 0
        acted += idle if (work.namespace, work.name) in touched else 0
    return Found(total, seen, acted)
