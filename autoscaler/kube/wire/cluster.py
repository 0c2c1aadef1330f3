"""Nodes and the rules of a cluster: priorities, quotas, limits, disruption budgets, other scalers."""

import msgspec

from autoscaler.kube.wire.meta import Condition, Int32, Int64, IntOrString, LabelSelector, ObjectMeta, Wire
from autoscaler.kube.wire.ownership import WorkloadMeta


class Taint(Wire):
    """A node's taint."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Wire):
    """Whether and for whom a node takes pods."""

    unschedulable: bool = False
    taints: list[Taint] | None = None


class NodeStatus(Wire):
    """Quantities as written by the API server, unparsed."""

    capacity: dict[str, str] | None = None
    allocatable: dict[str, str] | None = None
    conditions: list[Condition] | None = None


class Node(Wire):
    """A node."""

    metadata: ObjectMeta
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class NamespaceStatus(Wire):
    """``Active`` or ``Terminating``."""

    phase: str = ""


class Namespace(Wire):
    """A namespace; its labels and annotations narrow the fleet and carry policy."""

    metadata: ObjectMeta
    status: NamespaceStatus = msgspec.field(default_factory=NamespaceStatus)


class PriorityClass(Wire):
    """A priority class."""

    metadata: ObjectMeta
    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str = ""


class ScopeRequirement(Wire):
    """``PriorityClass In [...]`` and the like."""

    scope_name: str = ""
    operator: str = ""
    values: list[str] | None = None


class ScopeSelector(Wire):
    """The pods a quota counts; requirements are ANDed."""

    match_expressions: list[ScopeRequirement] | None = None


class ResourceQuotaSpec(Wire):
    """Limits of a namespace, and to which pods they apply."""

    hard: dict[str, str] | None = None
    scopes: list[str] | None = None
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(Wire):
    """What the server enforces and has counted; a key that is only in ``spec.hard`` is never enforced."""

    hard: dict[str, str] | None = None
    used: dict[str, str] | None = None


class ResourceQuota(Wire):
    """A resource quota."""

    metadata: ObjectMeta
    spec: ResourceQuotaSpec = msgspec.field(default_factory=ResourceQuotaSpec)
    status: ResourceQuotaStatus = msgspec.field(default_factory=ResourceQuotaStatus)


class LimitRangeItem(Wire):
    """Bounds and defaults for one type: ``Container``, ``Pod`` or ``PersistentVolumeClaim``."""

    type: str = ""
    max: dict[str, str] | None = None
    min: dict[str, str] | None = None
    default: dict[str, str] | None = None
    default_request: dict[str, str] | None = None
    max_limit_request_ratio: dict[str, str] | None = None


class LimitRangeSpec(Wire):
    """The items of a limit range."""

    limits: list[LimitRangeItem] | None = None


class LimitRange(Wire):
    """A limit range."""

    metadata: ObjectMeta
    spec: LimitRangeSpec = msgspec.field(default_factory=LimitRangeSpec)


class PodDisruptionBudgetSpec(Wire):
    """No selector selects nothing; an empty selector selects the whole namespace."""

    selector: LabelSelector | None = None
    min_available: IntOrString | None = None
    max_unavailable: IntOrString | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(Wire):
    """The disruption controller's arithmetic; behind ``metadata.generation`` the server refuses evictions."""

    observed_generation: Int64 = 0
    disruptions_allowed: Int32 = 0
    current_healthy: Int32 = 0
    desired_healthy: Int32 = 0
    expected_pods: Int32 = 0
    disrupted_pods: dict[str, str] | None = None


class PodDisruptionBudget(Wire):
    """A pod disruption budget."""

    metadata: ObjectMeta
    spec: PodDisruptionBudgetSpec = msgspec.field(default_factory=PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = msgspec.field(default_factory=PodDisruptionBudgetStatus)


class ScaleTarget(Wire):
    """The object an autoscaler turns."""

    api_version: str = ""
    kind: str = ""
    name: str = ""


class ScalingRules(Wire):
    """How an autoscaler goes in one direction."""

    stabilization_window_seconds: Int32 | None = None
    select_policy: str | None = None


class ScalingBehavior(Wire):
    """How an autoscaler goes down."""

    scale_down: ScalingRules | None = None


class HorizontalPodAutoscalerSpec(Wire):
    """What is scaled, and between which bounds."""

    scale_target_ref: ScaleTarget = msgspec.field(default_factory=ScaleTarget)
    min_replicas: Int32 | None = None
    max_replicas: Int32 = 0
    behavior: ScalingBehavior | None = None


class HorizontalPodAutoscalerStatus(Wire):
    """What the autoscaler wants at present."""

    current_replicas: Int32 = 0
    desired_replicas: Int32 = 0
    conditions: list[Condition] | None = None


class HorizontalPodAutoscaler(Wire):
    """A horizontal pod autoscaler (autoscaling/v2)."""

    metadata: WorkloadMeta
    spec: HorizontalPodAutoscalerSpec = msgspec.field(default_factory=HorizontalPodAutoscalerSpec)
    status: HorizontalPodAutoscalerStatus = msgspec.field(default_factory=HorizontalPodAutoscalerStatus)
