"""Pods, and the pod templates of workload kinds: what placement, sizing and guards read, and nothing else."""

import msgspec

from autoscaler.kube.wire.meta import (
    Condition,
    Int32,
    Int64,
    LabelSelector,
    ObjectMeta,
    Present,
    SelectorRequirement,
    TemplateMeta,
    Wire,
)


class NodeSelectorTerm(Wire):
    """Requirements of one term are ANDed; the terms themselves are ORed."""

    match_expressions: list[SelectorRequirement] | None = None
    match_fields: list[SelectorRequirement] | None = None


class NodeSelector(Wire):
    """The terms of a required node affinity."""

    node_selector_terms: list[NodeSelectorTerm] | None = None


class NodeAffinity(Wire):
    """Only the hard part: preferences do not decide whether a pod fits."""

    required: NodeSelector | None = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=None
    )


class PodAffinityTerm(Wire):
    """A hard inter-pod term; its topology key says over which domain it reaches."""

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: Present | None = None


class WeightedPodAffinityTerm(Wire):
    """A soft inter-pod term."""

    pod_affinity_term: PodAffinityTerm = msgspec.field(default_factory=PodAffinityTerm)


class PodAffinity(Wire):
    """The terms of a pod affinity or anti-affinity; the soft ones matter only to quotas."""

    required: list[PodAffinityTerm] | None = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=None
    )
    preferred: list[WeightedPodAffinityTerm] | None = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=None
    )


class Affinity(Wire):
    """The three affinities of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Wire):
    """``when_unsatisfiable == "DoNotSchedule"`` is the hard form."""

    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""


class Toleration(Wire):
    """A toleration; an empty key with operator Exists tolerates everything."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class ResourceRequirements(Wire):
    """Quantities as written by the API server, unparsed."""

    requests: dict[str, str] | None = None
    limits: dict[str, str] | None = None
    claims: list[Present] | None = None


class EnvVar(Wire):
    """A variable with its literal value; ``value`` is empty when it comes from elsewhere."""

    name: str = ""
    value: str = ""


class ContainerPort(Wire):
    """A declared port; a host port is one of the node's own."""

    name: str = ""
    container_port: Int32 = 0
    host_port: Int32 = 0


class Container(Wire):
    """A container or init container; an init container with restart policy ``Always`` is a sidecar."""

    name: str = ""
    image: str = ""
    command: list[str] | None = None
    args: list[str] | None = None
    env: msgspec.Raw = msgspec.Raw(b"null")
    """Undecoded, since few containers' variables are ever read: see `environment`."""
    ports: list[ContainerPort] | None = None
    resources: ResourceRequirements | None = None
    restart_policy: str = ""
    tty: bool = False


_environment_decoder = msgspec.json.Decoder(list[EnvVar] | None)


def environment(container: Container) -> list[EnvVar]:
    """The container's variables; raises `msgspec.DecodeError` where they are none."""
    return _environment_decoder.decode(container.env) or []


class ClaimSource(Wire):
    """A volume that is a persistent volume claim."""

    claim_name: str = ""


class Volume(Wire):
    """A volume; the sources that bind a pod to a place or lose data when it moves are told apart."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: Present | None = None
    empty_dir: Present | None = None
    host_path: Present | None = None


class SchedulingGate(Wire):
    """A gate that keeps the scheduler away from the pod."""

    name: str = ""


class PodResourceClaim(Wire):
    """A claim that a pod uses: by its name, or made from a template under a name that only the status tells."""

    name: str = ""
    resource_claim_name: str | None = None


class PodSpec(Wire):
    """A pod's specification, live or in a template."""

    node_name: str = ""
    host_network: bool = False
    runtime_class_name: str | None = None
    scheduler_name: str = ""
    priority: Int32 | None = None
    priority_class_name: str = ""
    preemption_policy: str = ""
    restart_policy: str = ""
    active_deadline_seconds: Int64 | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    topology_spread_constraints: list[TopologySpreadConstraint] | None = None
    tolerations: list[Toleration] | None = None
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    overhead: dict[str, str] | None = None
    scheduling_gates: list[SchedulingGate] | None = None
    volumes: list[Volume] | None = None
    resource_claims: list[PodResourceClaim] | None = None


class TerminatedState(Wire):
    """Why a container ended last time, for instance ``OOMKilled``."""

    reason: str = ""
    exit_code: Int32 = 0
    finished_at: str | None = None


class ContainerState(Wire):
    """The part of a container state that tells of past ends."""

    terminated: TerminatedState | None = None


class ContainerStatus(Wire):
    """What the kubelet says about one container."""

    name: str = ""
    ready: bool = False
    started: bool | None = None
    restart_count: Int32 = 0
    last_state: ContainerState | None = None


class ClaimStatus(Wire):
    """The generated name of a claim; None where the pod needs none."""

    name: str = ""
    resource_claim_name: str | None = None


class ExtendedRequest(Wire):
    """An extended resource that devices of a claim stand in for."""

    resource_name: str = ""


class ExtendedClaimStatus(Wire):
    """The claim that the scheduler made for extended resources that a device class backs."""

    request_mappings: list[ExtendedRequest] | None = None
    resource_claim_name: str = ""


class PodStatus(Wire):
    """A pod's status."""

    phase: str = ""
    reason: str = ""
    start_time: str | None = None
    nominated_node_name: str = ""
    qos_class: str = ""
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    resource_claim_statuses: list[ClaimStatus] | None = None
    extended_resource_claim_status: ExtendedClaimStatus | None = None


class Pod(Wire):
    """A pod."""

    metadata: ObjectMeta
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)


class PodTemplate(Wire):
    """What a workload stamps its pods from."""

    metadata: TemplateMeta = msgspec.field(default_factory=TemplateMeta)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
