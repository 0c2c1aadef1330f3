"""Fields and workloads that another controller owns."""

from autoscaler.decide.advice import bounds_command, patch_of
from autoscaler.decide.proposal import Judged, Proposal, Ruling
from autoscaler.decide.tally import Tally
from autoscaler.decide.world import World
from autoscaler.model.cluster import Autoscaler
from autoscaler.model.reasons import Reason


def _bound_ruling(world: World, row: Autoscaler, proposal: Proposal) -> Ruling:
    """Whether an autoscaler's minimum is anybody's to lower, and whether it would then go down at all."""
    name, told = "owner", f"HorizontalPodAutoscaler {row.name}"
    if row.deleting:
        return Ruling(name, f"{told} is being deleted", Reason.OTHER_OWNER)
    if row.controller:
        remedy = f"lower the minimum of {row.controller} to {proposal.after}"
        return Ruling(name, f"{row.controller} keeps {told}", Reason.OTHER_OWNER, remedy)
    owner = next((who for who in row.minimum_owners if who.startswith(world.policy.guards.field_owners)), "")
    if owner:
        remedy = f"change it where {owner} has it from: {bounds_command(row, proposal.after)}"
        return Ruling(name, f"{owner} owns minReplicas of {told}", Reason.OTHER_OWNER, remedy)
    if row.blind or not row.scales_in:
        why = row.blind or "its policy for going down is Disabled"
        return Ruling(name, f"{told} would not take replicas: {why}", Reason.OTHER_OWNER)
    return Ruling(name, f"nobody else owns minReplicas of {told}")


def guard_field_owner(world: World, judged: Judged, proposal: Proposal, tally: Tally) -> Ruling:
    """An autoscaler that targets the workload owns how its load is met; managers on the policy's list own what they wrote.

    Replicas of another size are used to another degree, which is what a horizontal autoscaler answers to.
    """
    del tally
    name, workload = "owner", judged.case.workload
    ref = workload.ref
    autoscaler = world.autoscalers.get((ref.namespace, ref.kind, ref.name))
    if autoscaler and proposal.lever == "bounds":
        return _bound_ruling(world, autoscaler, proposal)
    if autoscaler:
        detail = f"HorizontalPodAutoscaler {autoscaler.name} owns replicas"
        if proposal.lever == "template":
            detail += ": size and replicas would chase each other"
            remedy = f"change the size, together with {autoscaler.name}'s target and bounds: {patch_of(judged, proposal)}"
        elif autoscaler.minimum > proposal.after:
            detail += f", at least {autoscaler.minimum}"
            remedy = bounds_command(autoscaler, proposal.after)
        else:
            detail += f", {autoscaler.minimum} to {autoscaler.maximum}"
            remedy = f"look at {autoscaler.name}'s metric: it may have {proposal.after} replicas, and keeps {proposal.before}"
        return Ruling(name, detail, Reason.OTHER_OWNER, remedy)
    if proposal.lever == "deactivate":
        return Ruling(name, "spec.active of its Workload is left to others by Kueue")
    field = "replicas" if proposal.lever == "scale" else "the template's resources"
    for owner in workload.field_owners:
        holds = owner.replicas if proposal.lever == "scale" else owner.template_resources
        if holds and owner.manager.startswith(world.policy.guards.field_owners):
            remedy = f"change it where {owner.manager} has it from: {patch_of(judged, proposal)}"
            return Ruling(name, f"{owner.manager} owns {field}", Reason.OTHER_OWNER, remedy)
    return Ruling(name, f"nobody else owns {field}")
