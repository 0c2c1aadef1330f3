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

SEATED_WITHIN_S = 30.0
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

    `known_records` are the ledger's records from before the phase, `idle` the pods' workloads that any plan since then judged idle,
    `run` the name of the night's training Job, `helpers_seated` how many helpers ran when the day ended.
    """

    plan: Plan | None
    entries: tuple[Entry, ...]
    deeds: Deeds
    witness: Witness
    known_records: frozenset[str] = frozenset()
    idle: frozenset[Name] = frozenset()
    run: str = ""
    helpers_seated: int = 0

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
            f"{name}: {outcome} is not verified"
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
        missing += self._helpers_seen(sight)
        missing += [f"{row}: its helpers are not measured" for row in self._unmeasured_helpers(sight)]
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

    def _helpers_seen(self, sight: Sight) -> list[str]:
        running = {(pod.namespace, pod.labels.get("app", "")) for pod in self.helpers(sight)}
        return [
            f"{namespace}/{name}: no helper runs"
            for namespace, name in sorted(self.cast.helpers)
            if (namespace, name) not in running
        ]

    def _unmeasured_helpers(self, sight: Sight) -> list[str]:
        rows = sight.plan.rows if sight.plan else ()
        return [
            str(row.workload)
            for row in rows
            if (row.workload.namespace, row.workload.name) in self.cast.helpers and row.verdict == "unknown"
        ]

    def helpers(self, sight: Sight) -> list[PodStory]:
        """The helpers that run now."""
        return [
            pod
            for pod in sight.witness.pods.values()
            if pod.holds
            and pod.phase == "Running"
            and (pod.namespace, pod.labels.get("app", "")) in self.cast.helpers
        ]

    def _night(self, sight: Sight) -> Findings:
        runs = self.trainings(sight)
        missing = [] if runs else [f"job {sight.run}: no pod yet"]
        broken = self._wrong_victims(sight)
        for pod in runs:
            if not pod.node:
                missing.append(f"{pod.full_name}: waits for a seat")
            elif pod.waited_s is None:
                broken.append(f"{pod.full_name}: a node had room for it, so no room was made")
            elif pod.waited_s > SEATED_WITHIN_S:
                broken.append(f"{pod.full_name}: waited {pod.waited_s:.1f} s for its seat")
            elif pod.nominated != pod.node:
                broken.append(
                    f"{pod.full_name}: runs on {pod.node}, its seat was {pod.nominated or 'nowhere'}"
                )
            elif pod.phase != "Running":
                missing.append(f"{pod.full_name}: {pod.phase}")
        evictions = [record for _, record in sight.new_records() if record.action.lever == "evict"]
        missing += [
            f"the eviction of {record.action.pod} is {record.state}" for record in evictions if record.is_open
        ]
        if not evictions:
            missing.append("nobody was evicted")
        return Findings(missing, broken)

    def trainings(self, sight: Sight) -> list[PodStory]:
        """The pods of the night's run."""
        return sight.witness.labelled(self.cast.training[0], "batch.kubernetes.io/job-name", sight.run)

    def _wrong_victims(self, sight: Sight) -> list[str]:
        wrong = []
        for namespace, name in sight.deeds.evicted:
            pod = sight.witness.named(namespace, name)
            is_idle = pod is not None and (namespace, pod.labels.get("app", "")) in sight.idle
            if pod is None or not (pod.priority_class in self.cast.yielding or is_idle):
                wrong.append(f"evicted, but neither a helper nor idle: {namespace}/{name}")
            elif not pod.labels.get("app"):
                wrong.append(f"evicted, but nothing brings it back: {namespace}/{name}")
        return wrong

    def _dawn(self, sight: Sight) -> Findings:
        missing = [f"{pod.full_name}: {pod.phase}" for pod in self.trainings(sight) if pod.holds]
        running = len(self.helpers(sight))
        if running < sight.helpers_seated:
            missing.append(f"helpers: {running} of {sight.helpers_seated} run again")
        return Findings(missing, self._wrong_victims(sight))

    def _evening(self, sight: Sight) -> Findings:
        return Findings([f"{pod.full_name}: still there" for pod in self.helpers(sight)])
