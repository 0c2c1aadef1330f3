"""D11 and D12: what stands in the way whatever the evidence says, with counts, so that an empty report explains itself."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from autoscaler.decide.guards.rollout import surge_and_unavailable
from autoscaler.decide.world import World, is_accelerator
from autoscaler.model.cluster import Budget, Workload, WorkloadRef
from autoscaler.model.plan import ExplainRow
from autoscaler.model.reasons import Reason
from autoscaler.service.doctor.gathered import Gathered
from autoscaler.service.doctor.outcome import Outcome, counted, skipped, some
from autoscaler.service.doctor.ownership import accelerator_workloads

_LIKE_A_BOARD: Final = ("gpu", "npu", "xpu", "gaudi", "accelerator", "mig-", "neuron", "tpu")
_GUARDS: Final = {
    "system": "system pods and DaemonSets",
    "protection": "do-not-disrupt marks",
    "priority": "over the priority floor",
    "kueue": "managed by Kueue",
}
_FIXES: Final = {
    "bare pods": "run them under a Deployment, StatefulSet or CronJob",
    "do-not-disrupt marks": "take the mark away, or give it an end: gpu-autoscaler.io/do-not-disrupt=4h",
    "update strategy OnDelete": "updateStrategy: RollingUpdate",
    "the only replica of a server, no surge": "maxSurge: 1, or two replicas",
    "over the priority floor": "guards.priorityFloor",
}


def check_budgets(seen: Gathered) -> Outcome:
    """D11: disruption budgets that cover pods with accelerators and allow nothing."""
    if seen.snapshot is None:
        return skipped(f"the cluster could not be read: {seen.snapshot_fault}")
    if any(row.kind == "PodDisruptionBudget" and row.state != "available" for row in seen.snapshot.access):
        return skipped("PodDisruptionBudgets may not be read (D6)")
    covering = [(budget, count) for budget in seen.snapshot.budgets if (count := _covered(seen, budget))]
    if not covering:
        return Outcome("ok", f"none of {len(seen.snapshot.budgets)} budgets covers a pod with accelerators")
    shut = [(budget, count) for budget, count in covering if budget.allowed <= 0]
    if not shut:
        return Outcome(
            "ok", f"{len(covering)} budgets cover pods with accelerators, each allows a disruption"
        )
    pods = sum(count for _, count in shut)
    found = f"{len(shut)} of {len(covering)} budgets allow nothing and cover {pods} pods with accelerators: "
    return Outcome("warning", found + some(map(_why_shut, [budget for budget, _ in shut])), _mend(shut[0][0]))


def _covered(seen: Gathered, budget: Budget) -> int:
    if seen.snapshot is None:
        return 0
    snapshot, resources = seen.snapshot, seen.policy.resources
    return sum(
        1
        for pod in snapshot.pods
        if pod.namespace == budget.namespace
        and pod.node
        and snapshot.workloads[pod.workload].ref in seen.judged
        and any(is_accelerator(name, resources) for name in snapshot.shapes[pod.shape].demand)
        and budget.selector.selects(pod.labels)
    )


def _never(budget: Budget) -> bool:
    """Whether it allows nothing even when every pod is healthy."""
    return budget.expected_pods > 0 and budget.desired_healthy >= budget.expected_pods


def _why_shut(budget: Budget) -> str:
    name = f"{budget.namespace}/{budget.name}"
    if not budget.observed:
        return f"{name} (its controller has not seen the latest change)"
    numbers = f"{budget.current_healthy} of {budget.expected_pods} healthy, {budget.desired_healthy} wanted"
    return f"{name} ({numbers}{'; it can never allow one' if _never(budget) else ''})"


def _mend(budget: Budget) -> str:
    if _never(budget):
        patch = '{"spec":{"maxUnavailable":1,"minAvailable":null}}'
        return f"kubectl -n {budget.namespace} patch pdb {budget.name} --type=merge -p '{patch}'"
    return f"kubectl -n {budget.namespace} get pods: those it covers are not ready"


def check_reach(seen: Gathered) -> Outcome:
    """D12: workloads that are never acted on, by cause."""
    if seen.snapshot is None:
        return skipped(f"the cluster could not be read: {seen.snapshot_fault}")
    world = World(seen.snapshot, seen.policy, seen.snapshot.taken_ms)
    holding = accelerator_workloads(world)
    if not holding:
        return _nobody(seen)
    workloads = {(row.ref, row.uid): row for row in holding}
    by_ref = {ref: row for (ref, _), row in workloads.items()}
    causes: defaultdict[str, list[WorkloadRef]] = defaultdict(list)
    for ref in sorted(by_ref.keys() - seen.judged):
        causes["outside of resources.namespaces, namespaceSelector or podSelector"].append(ref)
    for row in seen.rows:
        cause = next(_causes(row, by_ref.get(row.workload)), "")
        if cause:
            causes[cause].append(row.workload)
    total = len(by_ref.keys() | seen.judged)
    if not causes:
        return Outcome("ok", f"{total} workloads with accelerators, all within reach")
    return _told(causes, total)


def _told(causes: dict[str, list[WorkloadRef]], total: int) -> Outcome:
    out = sum(map(len, causes.values()))
    counts = counted([(cause, len(refs)) for cause, refs in causes.items()])
    examples = some(sorted(ref for refs in causes.values() for ref in refs))
    found = f"{out} of {total} workloads with accelerators are out of reach: {counts}; e.g. {examples}"
    return Outcome("warning", found, "; ".join(dict.fromkeys(_fix_lines(causes))))


def _fix_lines(causes: Iterable[str]) -> Iterator[str]:
    for cause in sorted(causes):
        if cause in _FIXES:
            yield f"{cause}: {_FIXES[cause]}"


def _causes(row: ExplainRow, workload: Workload | None) -> Iterator[str]:
    """What keeps a workload from ever being acted on, the widest first."""
    if row.action is not None:
        return
    refused = {refusal.guard: refusal for refusal in row.refusals}
    yield from (words for guard, words in _GUARDS.items() if guard in refused)
    lever = refused.get("lever")
    if (
        lever is not None
        and lever.reason == Reason.NO_LEVER
        and workload is not None
        and not workload.deleting
    ):
        kind = workload.ref.kind
        yield "bare pods" if kind == "Pod" else _without_lever(lever.evidence, kind)
    if workload is None:
        return
    if workload.rollout.on_delete:
        yield "update strategy OnDelete"
    if row.role == "serving" and workload.replicas == 1 and not _surge(workload):
        yield "the only replica of a server, no surge"


def _without_lever(evidence: str, kind: str) -> str:
    if "not counted in whole boards" in evidence or "not judged" in evidence:
        return "slices, shares or claims: reported only"
    if evidence.startswith("unreadable"):
        return "unreadable fields"
    return f"no lever for kind {kind}"


def _surge(workload: Workload) -> int:
    if workload.ref.kind != "Deployment":
        return 0
    return surge_and_unavailable(workload.rollout, workload.replicas)[0]


def _nobody(seen: Gathered) -> Outcome:
    """Nobody holds accelerators: is there anything to hold, and do we know its name."""
    offered: defaultdict[str, int] = defaultdict(int)
    for node in seen.snapshot.nodes if seen.snapshot else ():
        for name, amount in node.allocatable.items():
            if amount > 0 and "/" in name:
                offered[name] += amount
    known = {name: count for name, count in offered.items() if is_accelerator(name, seen.policy.resources)}
    foreign = {name: count for name, count in offered.items() if name not in known and _like_a_board(name)}
    nobody = "no workload holds or wants accelerators"
    if foreign:
        found = (
            f"{nobody} by the names that the policy knows; nodes also offer {counted(list(foreign.items()))}"
        )
        names = ",".join([*seen.policy.resources.boards, *sorted(foreign)])
        return Outcome("warning", found, f"AUTOSCALER_RESOURCES_BOARDS={names} (or resources.slices)")
    if known:
        return Outcome("ok", f"{nobody}; nodes offer {counted(list(known.items()))}")
    return Outcome(
        "warning",
        f"{nobody}, and no node offers any",
        "kubectl get nodes -o json | jq '.items[].status.allocatable': does the device plugin run?",
    )


def _like_a_board(name: str) -> bool:
    return any(word in name.lower() for word in _LIKE_A_BOARD)
