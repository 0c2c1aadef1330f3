"""Marks by which others say that a node is leaving or not there yet, and by which node autoscalers are known."""

from collections.abc import Iterable
from typing import Final

from autoscaler.model.cluster import NodeClaimRow, NodeRow

_LEAVING_TAINTS: Final = (
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "karpenter.sh/disrupted",
    "karpenter.sh/disruption",
    "aws-node-termination-handler/",
    "cloud.google.com/impending-node-termination",
    "node.kubernetes.io/out-of-service",
    "node.cloudprovider.kubernetes.io/shutdown",
)
"""Prefixes of keys, whatever the effect and whoever tolerates it: a seat there is gone before its pod has started."""
_LEAVING_CONDITIONS: Final = frozenset(
    {"PreemptScheduled", "TerminateScheduled", "RedeployScheduled", "RebootScheduled"}
)
"""Conditions by which a cloud's event watcher (AKS node-problem-detector) announces the end of a machine."""
_STARTING_TAINTS: Final = (
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/uninitialized",
    "node.cluster.x-k8s.io/uninitialized",
    "karpenter.sh/unregistered",
    "node.cilium.io/agent-not-ready",
    "ebs.csi.aws.com/agent-not-ready",
    "efs.csi.aws.com/agent-not-ready",
)
"""Prefixes of keys that a new node loses by itself."""
_BOARD_LABELS: Final = frozenset(
    {
        "cloud.google.com/gke-accelerator",
        "k8s.amazonaws.com/accelerator",
        "kubernetes.azure.com/accelerator",
        "accelerator",
        "karpenter.k8s.aws/instance-gpu-count",
        "nvidia.com/gpu.present",
        "nvidia.com/gpu.count",
    }
)
"""Labels that a node with boards has before its device plugin offers any; cluster-autoscaler knows it by the same ones."""
_CLUSTER_AUTOSCALER: Final = (
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "cluster-autoscaler.kubernetes.io/",
)
_KARPENTER: Final = "karpenter.sh/"


def why_leaving(node: NodeRow) -> str:
    """The mark by which the node is on its way out, empty where it has none."""
    if node.unschedulable:
        return "cordoned"
    if node.deleting:
        return "being deleted"
    taint = next((taint.key for taint in node.taints if taint.key.startswith(_LEAVING_TAINTS)), "")
    return taint or next((name for name in node.conditions if name in _LEAVING_CONDITIONS), "")


def is_starting_taint(key: str) -> bool:
    """Whether a new node loses the taint by itself."""
    return key.startswith(_STARTING_TAINTS)


def should_have_boards(node: NodeRow) -> bool:
    """Whether a node that offers no board yet says that it has some."""
    return not _BOARD_LABELS.isdisjoint(node.labels)


def node_autoscaler_of(nodes: Iterable[NodeRow], claims: Iterable[NodeClaimRow]) -> str:
    """Who buys and removes nodes, by its marks; empty where there are none."""
    if next(iter(claims), None) is not None:
        return "Karpenter"
    found = ""
    for node in nodes:
        keys = (*node.labels, *node.annotations, *(taint.key for taint in node.taints))
        if any(key.startswith(_KARPENTER) for key in keys):
            return "Karpenter"
        if any(key.startswith(_CLUSTER_AUTOSCALER) for key in keys):
            found = "cluster-autoscaler"
    return found
