"""What every change of the replicas has to answer: may there be fewer, how many carry the load, and which pods go."""

import re
from dataclasses import dataclass

from autoscaler.decide.guards.budgets import step_limit
from autoscaler.decide.marks import MIN_REPLICAS
from autoscaler.decide.need import MILLI, activity_of, boards_for, confident
from autoscaler.decide.proposal import Judged, Proposal, Ruling
from autoscaler.decide.world import World
from autoscaler.model.evidence import ACTIVITY_SCALE
from autoscaler.model.plan import Method, PodRef
from autoscaler.model.reasons import Reason
from autoscaler.model.shapes import layout_key

SCALABLE = frozenset({"Deployment", "StatefulSet"})
_MAX_ORDINAL = 10
"""Digits of an ordinal: replicas are an int32."""
_WITHIN_POD = re.compile(
    r"(?:.*_)?(?:(?:tensor|pipeline|expert|context|sequence)(?:_model)?_para(?:llel(?:ism)?)?(?:_(?:size|degree))?"
    r"|(?:tp|pp|ep|cp|sp|ts)(?:_(?:size|degree))?|visible_devices|tensor_split|split_mode|instance_groups?"
    r"|(?:num_|n)?(?:gpus?|devices?|shards?)(?:_per_(?:node|worker|host))?|gpu_count|(?:gpu|device)_(?:ids?|indices|list)"
    r"|nproc_per_node|local_(?:world_size|rank)|data_parallel_size_local)"
)


@dataclass(frozen=True, slots=True)
class Load:
    """Replicas that the load needs: `needed` with the doubt of a thin history, `sure` without it."""

    needed: int
    sure: int
    words: str


def obstacle(guard: str, judged: Judged) -> Ruling | None:
    """Why the replicas are not ours to change, whatever the load; None where they are."""
    kind = judged.case.workload.ref.kind
    if kind not in SCALABLE:
        return Ruling(guard, f"kind {kind} has no replicas to lower", Reason.NO_LEVER)
    return fault_of_floor(guard, judged)


def fault_of_floor(guard: str, judged: Judged) -> Ruling | None:
    """The refusal where a stated floor cannot be read; None where it can, or none is stated."""
    floor = judged.case.stated.floor
    if floor and floor.fault:
        return Ruling(guard, floor.fault, Reason.NEEDS_CONSENT)
    return None


def part_of_the_run(guard: str, judged: Judged) -> Ruling | None:
    """The refusal to change the replicas of training; None for any other role."""
    if judged.assessment.role != "training":
        return None
    detail = f"training ({judged.assessment.role_cause}): its replicas are part of the run"
    return Ruling(guard, detail, Reason.NEEDS_CONSENT, f"set annotation {MIN_REPLICAS} on the workload")


def consent_to_fewer(guard: str, judged: Judged) -> Ruling | None:
    """Why fewer replicas need the owner's word: the count may be part of the application; None where they do not.

    A server whose layout lies within each pod is the same server with fewer replicas; of other work that is not known.
    """
    if judged.case.stated.floor is not None:
        return None
    training = part_of_the_run(guard, judged)
    if training:
        return training
    hints = judged.case.parallelism
    if judged.assessment.role == "serving":
        hints = tuple(hint for hint in hints if spans_pods(hint))
    if hints:
        detail = f"a count is part of the command line or environment ({', '.join(hints[:3])})"
        return Ruling(guard, detail, Reason.NEEDS_CONSENT, f"set annotation {MIN_REPLICAS} on the workload")
    return None


def spans_pods(hint: str) -> bool:
    """Whether an argument or variable may tell how many pods work as one: all but those known to be of a single pod.

    World sizes, ranks, nodes, a master's address, data parallel, launchers, and variables that hold a whole command line.
    """
    return _WITHIN_POD.fullmatch(layout_key(hint)) is None


def load_of(world: World, judged: Judged) -> Load:
    """Replicas for the summed upper load, and enough for every peak ever seen, should all come at once."""
    units, held, need = judged.assessment.measured, judged.case.held, judged.assessment.need
    boards = [board for unit in units for board in unit.boards]
    rules, confidence = world.policy.need, need.confidence if need else 0.0
    past = judged.assessment.past
    used = max(activity_of(boards) * MILLI / ACTIVITY_SCALE, past.total_milli)
    load = used / rules.target_utilization * (1 + rules.margin)
    peak = max(
        -(-sum(board.history_peak for board in boards) * MILLI // ACTIVITY_SCALE), past.total_peak_milli
    )
    peaks = max(1, -(-peak // (MILLI * held)))
    needed = max(-(-boards_for(confident(load, confidence)) // held), peaks)
    known = f"{load / MILLI:.2f} boards of load" if confidence > 0 else "unknown load"
    return Load(
        needed=needed,
        sure=max(-(-boards_for(round(load)) // held), peaks),
        words=f"{known} (upper bound and peaks) need {needed} of {judged.case.workload.replicas} replicas",
    )


def fewer(
    world: World, judged: Judged, method: Method, *, floor: int, load: Load | None, why: str = ""
) -> Proposal | Ruling:
    """One step of the workload's budget towards the floor, never under what a load needs, or why not even that.

    `load` is None only where an agreed floor may be gone to whatever the load has been.
    """
    case = judged.case
    before, at_once = case.workload.replicas, step_limit(world, case.workload.replicas)
    after = max(floor, before - at_once, load.needed if load else 0)
    if load and after >= before:
        sure = max(floor, load.sure) < before
        return Ruling(method, load.words, Reason.THIN_HISTORY if sure else Reason.BELOW_SAVINGS_FLOOR)
    if (
        load
        and case.workload.ref.kind == "StatefulSet"
        and not _highest_unused(world, judged, before - after)
    ):
        detail = "the highest ordinals go first and they were active within their history"
        return Ruling(method, detail, Reason.NO_LEVER)
    return Proposal(
        method=method,
        reason=Reason.RELEASED if method == "idle" else Reason.SCALED_IN,
        lever="scale",
        before=before,
        after=after,
        saved_boards=(before - after) * case.held,
        because=why or (f"{load.words}; at most {at_once} at once" if load else ""),
        agreed=load is None,
    )


def leaving(judged: Judged, going: int) -> tuple[PodRef, ...]:
    """The pods of a Deployment that should go, the least used first; what else decides is their name."""
    pairs = zip(judged.case.units, judged.assessment.measured, strict=True)
    used = sorted(
        (
            sum(board.mean for board in measured.boards),
            PodRef(unit.pod.namespace, unit.pod.name, unit.pod.uid),
        )
        for unit, measured in pairs
    )
    return tuple(pod for _, pod in used[:going])


def _highest_unused(world: World, judged: Judged, going: int) -> bool:
    """Whether the pods that a StatefulSet gives up first were unused for as long as is known: each may own a shard."""
    ceiling = world.policy.evidence.idle_ceiling * ACTIVITY_SCALE
    pairs = zip(judged.case.units, judged.assessment.measured, strict=True)
    ordered = sorted(pairs, key=lambda pair: ordinal(pair[0].pod.name), reverse=True)
    return all(board.history_peak <= ceiling for _, measured in ordered[:going] for board in measured.boards)


def ordinal(pod_name: str) -> int:
    """The number at the end of a StatefulSet pod's name; -1 for a name that has none."""
    tail = pod_name.rpartition("-")[2]
    return int(tail) if tail.isdecimal() and len(tail) <= _MAX_ORDINAL else -1
