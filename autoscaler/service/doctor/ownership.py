"""D7: who else decides about the replicas and the resources of workloads with accelerators."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from autoscaler.decide.marks import KUEUE
from autoscaler.decide.world import World
from autoscaler.model.cluster import Workload, WorkloadRef
from autoscaler.service.doctor.gathered import Gathered
from autoscaler.service.doctor.outcome import Outcome, counted, skipped, some

_LABELS: Final = {
    "argocd.argoproj.io/instance": "Argo CD",
    "kustomize.toolkit.fluxcd.io/name": "Flux",
    "helm.toolkit.fluxcd.io/name": "Flux",
}
_MANAGERS: Final = {
    "argocd": "Argo CD",
    "argo-rollouts": "Argo Rollouts",
    "flux": "Flux",
    "kustomize-controller": "Flux",
    "helm-controller": "Flux",
    "keda": "KEDA",
    "vpa-": "VPA",
    "kuberay": "KubeRay",
    "kueue": "Kueue",
    "horizontal-pod-autoscaler": "HPA",
}
_KEDA_HPA: Final = "keda-hpa-"


def check_owners(seen: Gathered) -> Outcome:
    """D7: counts of workloads by owner of their fields."""
    if seen.snapshot is None:
        return skipped(f"the cluster could not be read: {seen.snapshot_fault}")
    world = World(seen.snapshot, seen.policy, seen.snapshot.taken_ms)
    workloads = [row for row in accelerator_workloads(world) if row.ref in seen.judged]
    if not workloads:
        return skipped("no workload holds or wants accelerators")
    owned: defaultdict[str, set[WorkloadRef]] = defaultdict(set)
    for workload in workloads:
        for owner in _owners(world, workload):
            owned[owner].add(workload.ref)
    if not owned:
        return Outcome("ok", f"nobody but their own authors, of {len(workloads)} workloads with accelerators")
    theirs = set().union(*owned.values())
    counts = counted([(name, len(refs)) for name, refs in owned.items()])
    found = f"{len(theirs)} of {len(workloads)} workloads with accelerators have another owner: {counts}; e.g. {some(sorted(theirs))}"
    return Outcome(
        "warning",
        found,
        "those are refused as OtherOwner or Kueue: change the bounds at that owner; guards.fieldOwners lists who counts",
    )


def accelerator_workloads(world: World) -> tuple[Workload, ...]:
    """Workloads that hold or want accelerators."""
    rows = world.snapshot.workloads
    return tuple(row for index, row in enumerate(rows) if world.case(index).resource)


def _owners(world: World, workload: Workload) -> Iterator[str]:
    ref = workload.ref
    autoscaler = world.autoscalers.get((ref.namespace, ref.kind, ref.name))
    if autoscaler is not None:
        yield f"{'KEDA' if autoscaler.name.startswith(_KEDA_HPA) else 'HPA'} (replicas)"
    for owner in workload.field_owners:
        if owner.manager.startswith(world.policy.guards.field_owners):
            yield from (
                f"{_name(owner.manager)} ({field})"
                for field, holds in (("replicas", owner.replicas), ("resources", owner.template_resources))
                if holds
            )
    yield from (f"{name} (deploys it)" for label, name in _LABELS.items() if workload.labels.get(label))
    if any(workload.labels.get(key) or workload.annotations.get(key) for key in KUEUE):
        yield "Kueue (admission)"


def _name(manager: str) -> str:
    return next((name for prefix, name in _MANAGERS.items() if manager.startswith(prefix)), manager)
