"""ResourceQuota, counted as the API server counts it."""

from autoscaler.decide.guards.quota_scopes import why_not_counted
from autoscaler.decide.guards.rollout import surge_of, waits_for_next_run
from autoscaler.decide.proposal import Judged, Proposal, Ruling, successor_demand, successor_limits
from autoscaler.decide.tally import Tally
from autoscaler.decide.world import POD_SEATS, World
from autoscaler.model.cluster import Quota
from autoscaler.model.reasons import Reason
from autoscaler.model.resources import Vector


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
    """Used + accepted so far + surge must stay within every quota of the namespace that counts such pods."""
    name, namespace = "quota", judged.case.workload.ref.namespace
    stated = world.quotas.get(namespace, ())
    apart = [why for quota in stated if (why := why_not_counted(quota, judged.case.distinct_shapes))]
    quotas = [quota for quota in stated if not why_not_counted(quota, judged.case.distinct_shapes)]
    charge = quota_charge(judged, proposal)
    if not quotas or not charge:
        absent = f"no quota counts its pods: {apart[0]}" if apart else "no quota in the namespace"
        return Ruling(name, "no pod to admit" if quotas else absent)
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
