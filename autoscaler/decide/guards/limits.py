"""ResourceQuota and LimitRange, counted as the API server counts them."""

from collections.abc import Sequence

import msgspec

from autoscaler.decide.guards.rollout import surge_of, waits_for_next_run
from autoscaler.decide.proposal import Judged, Proposal, Ruling, successor_demand, successor_limits
from autoscaler.decide.tally import Tally
from autoscaler.decide.world import POD_SEATS, World
from autoscaler.model.cluster import Limit, LimitRangeRow, Quota
from autoscaler.model.reasons import Reason
from autoscaler.model.resources import Vector, total
from autoscaler.model.shapes import ContainerShape


def quota_charge(judged: Judged, proposal: Proposal) -> Vector:
    """What the surge pods of the rollout add to quota while the old ones still count; empty where no pod is made.

    Keys of a successor that takes its predecessor's share are there with amount 0.
    Of extended resources only `requests.<name>` is counted, a `limits.<name>` key never is.
    """
    if proposal.lever != "template" or waits_for_next_run(judged):
        return {}
    surge = surge_of(judged, proposal)
    charge: Vector = {"pods": surge, "count/pods": surge}
    for name, amount in successor_demand(judged, proposal).items():
        if amount > 0 and name != POD_SEATS:
            charge[f"requests.{name}"] = amount * surge
            if _is_native(name):
                charge[name] = amount * surge
    for name, limit in successor_limits(judged).items():
        if limit > 0 and _is_native(name):
            charge[f"limits.{name}"] = limit * surge
    return charge


def _is_native(name: str) -> bool:
    """Whether a resource is one of the core's own (cpu, memory, ephemeral-storage, hugepages)."""
    return "/" not in name


def guard_quota(world: World, judged: Judged, proposal: Proposal, tally: Tally) -> Ruling:
    """Used + accepted so far + surge must stay within every quota of the namespace.

    A scoped quota is taken to apply: at worst it refuses a change that would have been admitted.
    """
    name, namespace = "quota", judged.case.workload.ref.namespace
    quotas = world.quotas.get(namespace, ())
    charge = quota_charge(judged, proposal)
    if not quotas or not charge:
        return Ruling(name, "no pod to admit" if quotas else "no quota in the namespace")
    for quota in quotas:
        if quota.unreadable:
            detail = f"quota {quota.name}: unreadable amount of {quota.unreadable[0]}"
            return Ruling(name, detail, Reason.QUOTA_SHORT, "correct the quota")
        short = _short(quota, charge, tally.quota.get(namespace, {}))
        if short:
            return Ruling(name, f"quota {quota.name}: {short}", Reason.QUOTA_SHORT)
    resource = f"requests.{judged.case.resource}"
    shown = next((q for q in quotas if resource in q.hard), None)
    numbers = (
        f": {shown.used.get(resource, 0)} + {charge.get(resource, 0)} of {shown.hard[resource]}"
        if shown
        else ""
    )
    return Ruling(name, f"the rollout fits{numbers}")


def _short(quota: Quota, charge: Vector, taken: Vector) -> str:
    """The first key that would go over; a quota that is over already would not let even a smaller successor in."""
    for key in sorted(set(quota.hard) & set(charge)):
        if key not in quota.used:
            return f"the use of {key} is not known yet"
        used, hard = quota.used[key] + taken.get(key, 0), quota.hard[key]
        if used + charge[key] > hard:
            return f"{key} {used} used + {charge[key]} for the surge > {hard}"
    return ""


def guard_limit_range(world: World, judged: Judged, proposal: Proposal, tally: Tally) -> Ruling:
    """The successor must lie within the namespace's limit ranges, per container and per pod."""
    del tally
    name, case = "limit range", judged.case
    if proposal.lever != "template" or case.shape is None:
        return Ruling(name, "the amount per pod stays")
    rows = world.limit_ranges.get(case.workload.ref.namespace, ())
    containers = [
        _resized(c, case.resource, proposal.after) if c == case.container else c
        for c in case.shape.containers
    ]
    for row in rows:
        outside = _outside(row, containers)
        if outside:
            return Ruling(name, f"{row.name}: {outside}", Reason.LIMIT_RANGE)
    return Ruling(name, f"{proposal.after} is within {len(rows)} limit ranges" if rows else "no limit range")


def _resized(container: ContainerShape, resource: str, amount: int) -> ContainerShape:
    """The container with another amount of the resource."""
    change = {resource: amount}
    return msgspec.structs.replace(
        container, requests={**container.requests, **change}, limits={**container.limits, **change}
    )


def _outside(row: LimitRangeRow, containers: Sequence[ContainerShape]) -> str:
    if row.unreadable:
        return f"unreadable amount of {row.unreadable[0]}"
    running = [c for c in containers if c.role != "init"]
    pod = ContainerShape(
        "", requests=total(c.requests for c in running), limits=total(c.limits for c in running)
    )
    for limit in row.limits:
        judged = containers if limit.kind == "Container" else [pod] if limit.kind == "Pod" else []
        for amounts in judged:
            outside = _beyond(limit, amounts)
            if outside:
                return outside
    return ""


def _beyond(limit: Limit, amounts: ContainerShape) -> str:
    """Limits are held against the maximum and requests against the minimum, each standing in for the other."""
    asked, most = {**amounts.limits, **amounts.requests}, {**amounts.requests, **amounts.limits}
    for name, maximum in sorted(limit.maximum.items()):
        if most.get(name, 0) > maximum:
            return f"{most[name]} {name} is over the {limit.kind} maximum {maximum}"
    for name, minimum in sorted(limit.minimum.items()):
        if asked.get(name, minimum) < minimum:
            return f"{asked[name]} {name} is under the {limit.kind} minimum {minimum}"
    return ""
