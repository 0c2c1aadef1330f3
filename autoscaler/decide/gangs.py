"""Pods that live and die together: none of them is taken alone, and a seat for one alone is of no use."""

from typing import Final

from autoscaler.decide.methods.replicas import spans_pods
from autoscaler.decide.proposal import Judged

_KINDS: Final = frozenset(
    {
        "PyTorchJob",
        "TrainJob",
        "MPIJob",
        "TFJob",
        "PaddleJob",
        "XGBoostJob",
        "JobSet",
        "LeaderWorkerSet",
        "RayCluster",
        "RayJob",
        "RayService",
        "PodGroup",
    }
)
_LABELS: Final = (
    "scheduling.x-k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io",
    "leaderworkerset.sigs.k8s.io/name",
    "jobset.sigs.k8s.io/jobset-name",
    "training.kubeflow.org/job-name",
    "ray.io/cluster",
)


def gang_of(judged: Judged) -> str:
    """Why its pods are taken for a gang, in words; empty where each works by itself."""
    case = judged.case
    workload = case.workload
    if workload.ref.kind in _KINDS:
        return f"kind {workload.ref.kind}"
    label = next((key for unit in case.units for key in _LABELS if key in unit.pod.labels), "")
    if label:
        return f"label {label}"
    if workload.replicas <= 1:
        return ""
    if workload.ref.kind == "Job":
        return f"a Job of {workload.replicas} pods at once"
    if judged.assessment.role == "training":
        return f"training ({judged.assessment.role_cause}): its replicas are part of the run"
    hint = next((hint for hint in case.parallelism if spans_pods(hint)), "")
    return f"its pods may work as one ({hint})" if hint else ""
