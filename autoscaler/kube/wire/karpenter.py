"""Karpenter's orders for nodes (karpenter.sh), as far as it matters which pods they are for."""

import msgspec

from autoscaler.kube.wire.cluster import Taint
from autoscaler.kube.wire.meta import ObjectMeta, SelectorRequirement, Wire


class NodeClaimResources(Wire):
    """What the pods ask for that the node was ordered for."""

    requests: dict[str, str] | None = None


class NodeClaimSpec(Wire):
    """Which node is wanted; startup taints go away by themselves and are not read."""

    requirements: list[SelectorRequirement] | None = None
    taints: list[Taint] | None = None
    resources: NodeClaimResources | None = None


class NodeClaimStatus(Wire):
    """What the cloud has given."""

    node_name: str = ""
    allocatable: dict[str, str] | None = None


class NodeClaim(Wire):
    """A node that Karpenter has ordered."""

    metadata: ObjectMeta
    spec: NodeClaimSpec = msgspec.field(default_factory=NodeClaimSpec)
    status: NodeClaimStatus = msgspec.field(default_factory=NodeClaimStatus)
