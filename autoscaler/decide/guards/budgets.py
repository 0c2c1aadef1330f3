"""Budgets on the rate of change: acts in flight, boards per hour and day, one namespace's share, a workload's pods."""

from autoscaler.decide.guards.rollout import unavailable_of
from autoscaler.decide.proposal import Judged, Proposal, Ruling
from autoscaler.decide.tally import Tally
from autoscaler.decide.world import World
from autoscaler.model.reasons import Reason

GUARD = "budget"


def at_least_one(share: float, boards: int) -> int:
    """A share of the boards, rounded down, never under one."""
    return max(1, int(share * boards + 1e-9))


def step_limit(world: World, replicas: int) -> int:
    """Replicas that may go at once: the policy's share, at least one."""
    return at_least_one(world.policy.budgets.pods_per_workload, replicas)


def guard_budgets(world: World, judged: Judged, proposal: Proposal, tally: Tally) -> Ruling:
    """The change, with all before it in this plan and inside the hour and day, must fit every budget."""
    budgets, boards = world.policy.budgets, proposal.saved_boards
    namespace = judged.case.workload.ref.namespace
    hour = at_least_one(budgets.fleet_per_hour, world.fleet_boards)
    day = at_least_one(budgets.fleet_per_day, world.fleet_boards)
    share = at_least_one(budgets.namespace_share, hour)
    spent_here = tally.namespace_boards.get(namespace, 0)
    going, at_once = unavailable_of(judged, proposal), step_limit(world, judged.case.workload.replicas)
    if proposal.lever == "template" and going > at_once:
        detail = f"the rollout takes {going} pods at once, {at_once} allowed"
        return Ruling(
            GUARD, detail, Reason.BUDGET_SPENT, "lower maxUnavailable, or raise budgets.podsPerWorkload"
        )
    if tally.in_flight >= budgets.in_flight:
        detail = f"{tally.in_flight} changes are planned or not yet verified, {budgets.in_flight} allowed"
        return Ruling(GUARD, detail, Reason.BUDGET_SPENT)
    for what, spent, limit in (
        ("fleet, this hour", tally.boards_hour, hour),
        ("fleet, today", tally.boards_day, day),
        (f"namespace {namespace}, this hour", spent_here, share),
    ):
        if spent + boards > limit:
            detail = f"{what}: {spent} boards changed + {boards} > {limit}"
            return Ruling(GUARD, detail, Reason.BUDGET_SPENT)
    return Ruling(GUARD, f"{tally.boards_hour} + {boards} of {hour} boards this hour")
