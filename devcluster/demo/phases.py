"""The phases of the day, and what must hold in each: pure claims about one sight of the cluster and the service.

A claim that does not hold yet keeps its phase going until the deadline; a claim that must never be broken ends the story at once.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from autoscaler.model.ledger import Entry, Record
from autoscaler.model.plan import Plan
from devcluster.demo.cast import Cast, Name
from devcluster.demo.deeds import Deeds
from devcluster.demo.expectation import Expected, differences
from devcluster.demo.witness import PodStory, Witness

SEATED_WITHIN_S = 15.0
"""From the scheduler's no to the training pod's seat: one cycle, its debounce, the evictions, and a busy machine."""


class Phase(StrEnum):
    """The phases in their order; the first two are played once, the others again each day."""

    RECOMMEND = "recommend"
    APPLY = "apply"
    DAY = "day"
    NIGHT = "night"
    DAWN = "dawn"
    EVENING = "evening"


@dataclass(frozen=True, kw_only=True)
class Sight:
    """What is known at one moment.

    `known_records` are the ledger's records from before the phase, `idle` the workloads that any plan of this day judged
    idle, `runs` the names of the night's training Jobs, `seated` how many visitors' pods ran when the day ended.
    """

    plan: Plan | None
    entries: tuple[Entry, ...]
    deeds: Deeds
    witness: Witness
    known_records: frozenset[str] = frozenset()
    idle: frozenset[Name] = frozenset()
    runs: tuple[str, ...] = ()
    seated: int = 0

    def new_records(self) -> list[tuple[Entry, Record]]:
        """What the ledger got since the phase began."""
        return [
            (entry, record)
            for entry in self.entries
            for record in entry.records
            if record.id not in self.known_records
        ]


@dataclass(frozen=True)
class Findings:
    """`missing` does not hold yet; `broken` must never have happened."""

    missing: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Claims:
    """What the phases claim, for one scenario."""

    cast: Cast
    expected: Mapping[str, Expected]

    def of(self, phase: Phase, sight: Sight) -> Findings:
        """How far a phase has come."""
        own: Callable[[Sight], Findings] = {
            Phase.RECOMMEND: self._recommend,
            Phase.APPLY: self._apply,
            Phase.DAY: self._day,
            Phase.NIGHT: self._night,
            Phase.DAWN: self._dawn,
            Phase.EVENING: self._evening,
        }[phase]
        found = own(sight)
        failed = [
            f"{entry.ref}: {record.action.lever} {record.state} ({record.detail})"
            for entry, record in sight.new_records()
            if record.state in {"failed", "superseded"}
        ]
        strange = [f"neither its own nor a workload's: {write}" for write in sight.deeds.strange]
        return Findings(found.missing, [*sight.witness.breaches, *strange, *failed, *found.broken])

    def _recommend(self, sight: Sight) -> Findings:
        missing = differences(sight.plan.rows, self.expected) if sight.plan else ["no plan yet"]
        return Findings(missing, [f"written in mode recommend: {write}" for write in sight.deeds.all])

    def _apply(self, sight: Sight) -> Findings:
        acted = {
            (str(entry.ref), record.action.before, record.action.after)
            for entry, record in sight.new_records()
            if record.state == "verified"
        }
        missing = [
            f"{name}: {outcome} has not proved itself yet"
            for name, outcome in sorted(self.expected.items())
            if outcome.before is not None and (name, outcome.before, outcome.after) not in acted
        ]
        return Findings(missing, [f"evicted: {'/'.join(name)}" for name in sight.deeds.evicted])

    def _day(self, sight: Sight) -> Findings:
        verdicts = {str(row.workload): row.verdict for row in sight.plan.rows} if sight.plan else {}
        missing = [
            f"{namespace}/{name}: not busy, {verdicts.get(f'{namespace}/{name}', 'not in the plan')}"
            for namespace, name in sorted(self.cast.peaking)
            if verdicts.get(f"{namespace}/{name}") not in {"busy", "saturated"}
        ]
        missing += self._visitors_missing(sight, verdicts)
        missing += [
            f"node {node}: free boards: {free}"
            for node, free in sorted(sight.witness.free_boards().items())
            if free
        ]
        shrunk = [
            f"{entry.ref}: {record.action.lever} {record.action.before} -> {record.action.after} while it is busy"
            for entry, record in sight.new_records()
            if (entry.ref.namespace, entry.ref.name) in self.cast.peaking
        ]
        return Findings(missing, shrunk)

    def _visitors_missing(self, sight: Sight, verdicts: Mapping[str, str]) -> list[str]:
        """Visitors that do not run, or whose evidence does not allow yet what the night asks of them."""
        running = {_owner(pod) for pod in self.visitors(sight)}
        missing = [f"{'/'.join(name)}: does not run" for name in sorted(self.cast.visitors - running)]
        for name in sorted(self.cast.visitors & running):
            verdict = verdicts.get("/".join(name), "unknown")
            if verdict == "unknown" or (name in self.cast.idlers and verdict != "idle"):
                missing.append(f"{'/'.join(name)}: {verdict}")
        return missing

    def visitors(self, sight: Sight) -> list[PodStory]:
        """The visitors' pods that run now."""
        return [
            pod
            for pod in sight.witness.pods.values()
            if pod.holds and pod.phase == "Running" and _owner(pod) in self.cast.visitors
        ]

    def _night(self, sight: Sight) -> Findings:
        pods = self.trainings(sight)
        missing = (
            [] if len(pods) == len(sight.runs) else [f"{len(pods)} of {len(sight.runs)} runs have a pod"]
        )
        broken = self._wrong_victims(sight)
        for pod in pods:
            seat = _seat_of(pod)
            missing += seat.missing
            broken += seat.broken
        records = [record for _, record in sight.new_records() if record.action.lever == "evict"]
        missing += [f"eviction of {one.action.pod}: {one.state}" for one in records if one.is_open]
        victims = {_owner(pod) for pod in self.victims(sight)}
        missing += [] if victims - self.cast.idlers else ["no helper has made room"]
        missing += [] if victims & self.cast.idlers else ["no idle unit has made room"]
        return Findings(missing, broken)

    def trainings(self, sight: Sight) -> list[PodStory]:
        """The pods of the night's runs."""
        label, namespace = "batch.kubernetes.io/job-name", self.cast.training[0]
        return [pod for run in sight.runs for pod in sight.witness.labelled(namespace, label, run)]

    def victims(self, sight: Sight) -> list[PodStory]:
        """The pods that were evicted and that the witness knows."""
        found = [sight.witness.named(namespace, name) for namespace, name in sight.deeds.evicted]
        return [pod for pod in found if pod is not None]

    def _wrong_victims(self, sight: Sight) -> list[str]:
        known = self.victims(sight)
        wrong = [] if len(known) == len(sight.deeds.evicted) else ["evicted, but never seen by the witness"]
        for pod in known:
            if pod.priority_class not in self.cast.yielding and _owner(pod) not in sight.idle:
                wrong.append(f"evicted, but neither a helper nor idle: {pod.full_name}")
            elif not pod.labels.get("app"):
                wrong.append(f"evicted, but nothing brings it back: {pod.full_name}")
        return wrong

    def _dawn(self, sight: Sight) -> Findings:
        missing = [f"{pod.full_name}: {pod.phase}" for pod in self.trainings(sight) if pod.holds]
        running = len(self.visitors(sight))
        if running < sight.seated:
            missing.append(f"{running} of {sight.seated} helpers and others run again")
        return Findings(missing, self._wrong_victims(sight))

    def _evening(self, sight: Sight) -> Findings:
        return Findings([f"{pod.full_name}: still there" for pod in self.visitors(sight)])


def _owner(pod: PodStory) -> Name:
    """Namespace and name of its Deployment, by the label that the scenario gives; no name for a bare pod."""
    return (pod.namespace, pod.labels.get("app", ""))


def _seat_of(pod: PodStory) -> Findings:
    """Whether a training pod waited, got the seat that was made for it, in time, and runs there."""
    if not pod.node:
        return Findings([f"{pod.full_name}: waits for a seat"])
    if pod.waited_s is None:
        return Findings(broken=[f"{pod.full_name}: a node had room for it, so no room was made"])
    if pod.waited_s > SEATED_WITHIN_S:
        return Findings(broken=[f"{pod.full_name}: waited {pod.waited_s:.1f} s for its seat"])
    if pod.nominated != pod.node:
        where = pod.nominated or "nowhere"
        return Findings(broken=[f"{pod.full_name}: runs on {pod.node}, its seat was {where}"])
    return Findings([] if pod.phase == "Running" else [f"{pod.full_name}: {pod.phase}"])
