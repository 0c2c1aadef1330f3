"""Whose workloads Kueue admits and stops: it is asked, and never gone past.

Kueue undoes whoever suspends, resumes or changes what it manages; the one thing that outsiders may turn is
`spec.active` of its Workload.
"""

from dataclasses import dataclass
from typing import Final

from autoscaler.decide import marks
from autoscaler.decide.proposal import Judged, Ruling
from autoscaler.decide.world import Case, World
from autoscaler.model.kueue import KueueWorkload
from autoscaler.model.reasons import Reason

GUARD: Final = "kueue"
SUSPENDED_BY_KUEUE: Final = frozenset(
    {
        ("batch", "Job"),
        ("jobset.x-k8s.io", "JobSet"),
        ("kubeflow.org", "JAXJob"),
        ("kubeflow.org", "MPIJob"),
        ("kubeflow.org", "PaddleJob"),
        ("kubeflow.org", "PyTorchJob"),
        ("kubeflow.org", "TFJob"),
        ("kubeflow.org", "XGBoostJob"),
        ("ray.io", "RayCluster"),
        ("ray.io", "RayJob"),
        ("trainer.kubeflow.org", "TrainJob"),
    }
)
"""Kinds that Kueue stops by suspending them, so that they go on once they are admitted again.

Pods that it manages one by one or as a group it deletes: their owner makes new ones at once, or nobody does.
"""


@dataclass(frozen=True, slots=True)
class Standing:
    """How a workload stands with Kueue: the mark that it carries, and the Workloads that stand for it or its pods."""

    mark: str
    rows: tuple[KueueWorkload, ...]

    @property
    def managed(self) -> bool:
        """Whether Kueue admits and stops it."""
        return bool(self.mark or self.rows)


def standing_of(world: World, case: Case) -> Standing:
    """How a case stands with Kueue."""
    return Standing(_mark(case), _rows(world, case))


def _rows(world: World, case: Case) -> tuple[KueueWorkload, ...]:
    """The Workloads that stand for it or its pods."""
    uids = (case.workload.uid, *(unit.pod.uid for unit in case.units))
    return world.queues.standing_for(case.workload.ref.namespace, uids)


def _mark(case: Case) -> str:
    workload = case.workload
    for carried in (
        workload.labels,
        workload.annotations,
        *(marks_of for unit in case.units for marks_of in (unit.pod.labels, unit.pod.annotations)),
    ):
        mark = next((key for key in marks.KUEUE if carried.get(key)), None)
        if mark:
            return f"{mark}={carried[mark]}"
    return ""


def admitted_by(world: World, case: Case) -> KueueWorkload | None:
    """The one Workload by which a case was admitted and can be released; None where there is no such one."""
    rows = _rows(world, case)
    return rows[0] if len(rows) == 1 and not _why_not_released(world, case, rows[0]) else None


def guard_kueue(world: World, judged: Judged) -> Ruling:
    """What waits in a queue is not idle; what was admitted may be released through its Workload, and only so."""
    case = judged.case
    standing = standing_of(world, case)
    if not standing.managed:
        return Ruling(GUARD, "not managed by Kueue")
    if not standing.rows:
        return Ruling(GUARD, f"{standing.mark}; its Workload is not known", Reason.KUEUE, _unknown(world))
    if len(standing.rows) > 1:
        detail = f"{len(standing.rows)} Workloads of Kueue stand for its pods: none stands for all of them"
        return Ruling(GUARD, detail, Reason.KUEUE)
    row = standing.rows[0]
    why = _why_not_released(world, case, row)
    if why:
        return Ruling(GUARD, why, Reason.KUEUE, _remedy(row))
    return Ruling(GUARD, f"admitted by ClusterQueue {row.cluster_queue} through Workload {row}")


def guard_unmanaged(world: World, judged: Judged) -> Ruling:
    """A pod of Kueue's is never evicted: its quota comes free, and its successor would have to be admitted again."""
    standing = standing_of(world, judged.case)
    if not standing.managed:
        return Ruling(GUARD, "not managed by Kueue")
    named = standing.mark or f"Workload {standing.rows[0]} stands for it"
    return Ruling(GUARD, f"{named}: its pods are Kueue's to stop", Reason.KUEUE)


def _why_not_released(world: World, case: Case, row: KueueWorkload) -> str:
    """Why a workload cannot be released through a Workload now, in words; empty where it can."""
    ref = case.workload.ref
    if not row.active:
        return f"Workload {row} is deactivated: it is not queued, and stays stopped until it is active again"
    if not row.reserved:
        return _queued(world, row)
    if row.evicted:
        return f"Kueue is stopping it ({row.evicted})"
    if not row.admitted:
        return f"its quota is reserved in ClusterQueue {row.cluster_queue}, and it is not admitted yet"
    if (ref.group, ref.kind) not in SUSPENDED_BY_KUEUE or row.controller != case.workload.uid:
        return f"Kueue would delete the pods of Workload {row}, not suspend a {ref.kind}"
    return ""


def _queued(world: World, row: KueueWorkload) -> str:
    """Where it waits, for what, and what there is: a queued workload is not idle."""
    queue = world.queues.cluster_queue_of(row)
    asks = [(name, row.asks[name]) for name in sorted(row.asks) if "/" in name]
    if queue is None:
        return f"queued in LocalQueue {row.queue or '(none)'}"
    stopped = f", which admits nobody ({queue.stop})" if queue.stop else ""
    wants = [f"asks {amount} {name}, {_left(world, row, name)}" for name, amount in asks]
    return "; ".join([f"queued in ClusterQueue {queue.name}{stopped}", *wants])


def _left(world: World, row: KueueWorkload, resource: str) -> str:
    queue = world.queues.cluster_queue_of(row)
    free = world.queues.free(queue, resource) if queue else None
    if free is None:
        return "what is left is not known"
    if not free:
        return "of which the queue has no quota"
    return "free are " + ", ".join(f"{max(0, left)} of flavor {flavor}" for flavor, left in free.items())


def _remedy(row: KueueWorkload) -> str:
    if not row.active:
        return f"gpu-autoscaler undo, where it was us; else spec.active: true on Workload {row}"
    if not row.reserved:
        return "nothing to do: what is queued holds no board"
    return ""


def _unknown(world: World) -> str:
    """What would let its Workload be known."""
    row = next((row for row in world.snapshot.access if row.kind == "Workload"), None)
    if row is not None and row.state == "forbidden":
        return "grant list and watch on workloads.kueue.x-k8s.io"
    return "wait until Kueue has made one (API kueue.x-k8s.io/v1beta2)"
