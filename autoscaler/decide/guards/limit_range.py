"""LimitRange, applied as its admission plugin does: defaults first, then minimum, maximum and ratio.

Follows kube-apiserver's `plugin/pkg/admission/limitranger`; on what LimitRange itself defaults see
`SetDefaults_LimitRangeItem` of core/v1: a maximum alone is also the default of every container that states nothing.
"""

from collections.abc import Iterable, Sequence

import msgspec

from autoscaler.decide.proposal import Judged, Proposal, Ruling
from autoscaler.decide.tally import Tally
from autoscaler.decide.world import World, is_accelerator
from autoscaler.model.cluster import Limit, LimitRangeRow
from autoscaler.model.reasons import Reason
from autoscaler.model.resources import total
from autoscaler.model.shapes import ContainerShape

_MILLI = 1000


def guard_limit_range(world: World, judged: Judged, proposal: Proposal, tally: Tally) -> Ruling:
    """The successor must lie within the namespace's limit ranges, and none of them may add accelerators to it."""
    del tally
    name, case = "limit range", judged.case
    if proposal.lever != "template" or case.shape is None:
        return Ruling(name, "the amount per pod stays")
    rows = world.limit_ranges.get(case.workload.ref.namespace, ())
    containers = [
        _resized(c, case.resource, proposal.after) if c == case.container else c
        for c in case.shape.containers
    ]
    given = with_defaults(rows, containers)
    why = _added_accelerator(world, containers, given) or broken_bound(rows, given)
    if why:
        return Ruling(name, why, Reason.LIMIT_RANGE)
    return Ruling(name, f"{proposal.after} is within {len(rows)} limit ranges" if rows else "no limit range")


def with_defaults(
    rows: Iterable[LimitRangeRow], containers: Iterable[ContainerShape]
) -> list[ContainerShape]:
    """The containers as admission would write them: what they do not state has the limit ranges' defaults."""
    filled = [_with_default(container, Limit("Container")) for container in containers]
    for limit in (limit for row in rows for limit in row.limits if limit.kind == "Container"):
        filled = [_with_default(container, limit) for container in filled]
    return filled


def broken_bound(rows: Iterable[LimitRangeRow], containers: Sequence[ContainerShape]) -> str:
    """The first bound that containers with their defaults break, in words; empty where admission lets them in."""
    for row in rows:
        outside = f"unreadable amount of {row.unreadable[0]}" if row.unreadable else _outside(row, containers)
        if outside:
            return f"{row.name}: {outside}"
    return next(filter(None, map(_uneven, containers)), "")


def _uneven(container: ContainerShape) -> str:
    """A limit range's minimum becomes a default request without a limit, and that is no valid pod (core/v1 validation)."""
    for name, request in sorted(container.requests.items()):
        if "/" in name and container.limits.get(name) != request:
            return f"{request} {name} requested by {container.name} have no equal limit"
    return ""


def _resized(container: ContainerShape, resource: str, amount: int) -> ContainerShape:
    """The container with another amount of the resource."""
    change = {resource: amount}
    return msgspec.structs.replace(
        container, requests={**container.requests, **change}, limits={**container.limits, **change}
    )


def _with_default(container: ContainerShape, limit: Limit) -> ContainerShape:
    """A stated limit is a request too, before a default is (the API's own defaulting comes before admission)."""
    stated = {**container.limits, **container.requests}
    return msgspec.structs.replace(
        container,
        requests={**limit.default_request, **stated},
        limits={**limit.default, **container.limits},
    )


def _added_accelerator(
    world: World, before: Sequence[ContainerShape], after: Sequence[ContainerShape]
) -> str:
    for old, new in zip(before, after, strict=True):
        stated = {**old.limits, **old.requests}
        for name, amount in sorted({**new.requests, **new.limits}.items()):
            if amount > 0 and name not in stated and is_accelerator(name, world.policy.resources):
                return f"a default would give {amount} {name} to container {old.name}"
    return ""


def _outside(row: LimitRangeRow, containers: Sequence[ContainerShape]) -> str:
    pod = _together(containers)
    for limit in row.limits:
        judged = containers if limit.kind == "Container" else [pod] if limit.kind == "Pod" else []
        for amounts in judged:
            outside = _beyond(limit, amounts)
            if outside:
                return outside
    return ""


def _together(containers: Iterable[ContainerShape]) -> ContainerShape:
    running = [c for c in containers if c.role != "init"]
    return ContainerShape(
        "", requests=total(c.requests for c in running), limits=total(c.limits for c in running)
    )


def _beyond(limit: Limit, amounts: ContainerShape) -> str:
    """The first bound that is broken; an amount that is bound and not stated breaks it too."""
    asked, most, kind = {**amounts.limits, **amounts.requests}, amounts.limits, limit.kind
    for name, maximum in sorted(limit.maximum.items()):
        if name not in most:
            return f"it states no limit of {name}, which has the {kind} maximum {maximum}"
        top = max(most[name], asked[name])
        if top > maximum:
            return f"{top} {name} is over the {kind} maximum {maximum}"
    for name, minimum in sorted(limit.minimum.items()):
        if name not in asked:
            return f"it states no request of {name}, which has the {kind} minimum {minimum}"
        least = min(asked[name], most.get(name, asked[name]))
        if least < minimum:
            return f"{least} {name} is under the {kind} minimum {minimum}"
    for name, ratio in sorted(limit.ratio_milli.items()):
        request, ceiling = asked.get(name, 0), most.get(name, 0)
        if ceiling <= 0 or ceiling * _MILLI > ratio * request:
            return f"limit {ceiling} of request {request} {name} is over the {kind} ratio {ratio / _MILLI:g}"
    return ""
