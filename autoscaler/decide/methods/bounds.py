"""Bounds: where an autoscaler keeps replicas at its minimum, fewer of them are a lower minimum, and the rest is its own.

A change of the replicas themselves would be undone by it within seconds.
"""

from dataclasses import replace

from autoscaler.decide.proposal import Judged, Proposal
from autoscaler.decide.world import Case, World
from autoscaler.model.cluster import Autoscaler

LEAST = 1
"""What the API takes for a minimum without the alpha gate HPAScaleToZero."""


def sole_autoscaler(world: World, case: Case) -> Autoscaler | None:
    """The HorizontalPodAutoscaler that holds the replicas of a workload; None where there is none, or more than one."""
    ref = case.workload.ref
    found = world.autoscalers_of.get((ref.namespace, ref.kind, ref.name), ())
    return found[0] if len(found) == 1 else None


def through_bounds(world: World, judged: Judged, proposal: Proposal) -> Proposal:
    """The same change as a lower minimum, where it is the minimum that holds the replicas and policy lets it be lowered."""
    row, allowed = sole_autoscaler(world, judged.case), world.policy.methods.autoscaler_bounds
    agreed = allowed == "always" or (allowed == "agreed" and judged.case.stated.floor is not None)
    after = max(LEAST, proposal.after)
    if row is None or not agreed or proposal.lever != "scale":
        return proposal
    if row.minimum != proposal.before or after >= row.minimum:
        return proposal
    return replace(
        proposal,
        lever="bounds",
        after=after,
        saved_boards=(proposal.before - after) * judged.case.held,
        because=f"{proposal.because}; HorizontalPodAutoscaler {row.name} keeps no fewer than {row.minimum}",
    )
