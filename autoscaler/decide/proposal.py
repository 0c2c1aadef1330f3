"""What methods hand to guards, and what guards answer."""

from dataclasses import dataclass

import msgspec

from autoscaler.decide.assess import Assessment
from autoscaler.decide.world import Case
from autoscaler.model.breaker import FleetHealth
from autoscaler.model.plan import Lever, Method, Refusal
from autoscaler.model.reasons import CATALOGUE, Reason
from autoscaler.model.resources import Vector, maximum, total
from autoscaler.model.shapes import PodShape


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change that a method would make, from and to.

    It is of boards per pod (template), replicas (scale, or bounds through an autoscaler) or a pod's boards (evict).
    `saved_boards` are the boards that change hands. `agreed` says that owner or policy stated a floor that may be gone
    to on proven idleness alone. `given_to` is the namespace that an eviction makes room for.
    """

    method: Method
    reason: Reason
    lever: Lever
    before: int
    after: int
    saved_boards: int
    because: str
    agreed: bool = False
    given_to: str = ""

    @property
    def takes_replicas(self) -> bool:
        """Whether it lowers replicas, itself or by what an autoscaler then does."""
        return self.lever in {"scale", "bounds"}


@dataclass(frozen=True, slots=True)
class Ruling:
    """A guard's answer with its numbers; `reason` is None where the guard lets the proposal pass."""

    guard: str
    detail: str
    reason: Reason | None = None
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """A workload's case with its assessment, and the health of the fleet it is part of."""

    case: Case
    assessment: Assessment
    fleet: FleetHealth


def refuse(judged: Judged, ruling: Ruling, proposal: Proposal | None = None) -> Refusal:
    """The refusal that a ruling amounts to; raises `ValueError` for one that lets pass."""
    reason = ruling.reason
    if reason is None:
        raise ValueError(f"guard {ruling.guard} refused nothing")
    return Refusal(
        target=judged.case.workload.ref,
        method=proposal.method if proposal else None,
        reason=reason,
        guard=ruling.guard,
        evidence=ruling.detail,
        remedy=ruling.remedy or CATALOGUE[reason].remedy,
        before=proposal.before if proposal else None,
        after=proposal.after if proposal else None,
    )


def successor_demand(judged: Judged, proposal: Proposal) -> Vector:
    """What a pod made from the changed template will ask for: at least what the template states and live pods hold.

    A LimitRange's defaults are written into pods at admission, so a template may state less than its pods ask for.
    """
    resource, change = judged.case.resource, 0
    if proposal.lever == "template":
        change = proposal.after - proposal.before
    demand: Vector = {}
    for shape in judged.case.distinct_shapes:
        changed = {**shape.demand, resource: shape.demand.get(resource, 0) + change}
        demand = maximum(demand, changed)
    return demand


def successor_shape(judged: Judged) -> PodShape | None:
    """The shape by which a pod made from the template is placed: its own rules and those that admission added to live pods.

    A runtime class writes its node selector into every pod at admission, so a live unit's selector stands for it.
    """
    shape, units = judged.case.shape, judged.case.units
    if shape is None or not units:
        return shape
    selector = dict(shape.node_selector)
    for unit in units:
        selector |= unit.shape.node_selector
    unmodelled = tuple(rule for rule in shape.unmodelled if rule != "runtimeClassName")
    return msgspec.structs.replace(shape, node_selector=dict(sorted(selector.items())), unmodelled=unmodelled)


def successor_limits(judged: Judged) -> Vector:
    """The limits of a pod made from the template, other than boards: at least what live pods have."""
    limits: Vector = {}
    for shape in judged.case.distinct_shapes:
        limits = maximum(limits, total(c.limits for c in shape.containers if c.role != "init"))
    return limits
