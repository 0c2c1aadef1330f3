"""Fields and workloads that another controller owns."""

from autoscaler.decide.advice import bounds_command, patch_of
from autoscaler.decide.proposal import Judged, Proposal, Ruling
from autoscaler.decide.tally import Tally
from autoscaler.decide.world import World
from autoscaler.model.reasons import Reason


def guard_field_owner(world: World, judged: Judged, proposal: Proposal, tally: Tally) -> Ruling:
    """An autoscaler that targets the workload owns how its load is met; managers on the policy's list own what they wrote.

    Replicas of another size are used to another degree, which is what a horizontal autoscaler answers to.
    """
    del tally
    name, workload = "owner", judged.case.workload
    ref = workload.ref
    autoscaler = world.autoscalers.get((ref.namespace, ref.kind, ref.name))
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
