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


def _share(part: int, whole: int) -> str:
    """The least share, in hundredths, that is a part of a whole."""
    return f"{-(-100 * part // whole) / 100:g}"


def never_fits(world: World, boards: int) -> Ruling | None:
    """The refusal of a change that is over a budget of which nothing is spent, as no waiting admits it; else None."""
    budgets, fleet = world.policy.budgets, world.fleet_boards
    hour, day = at_least_one(budgets.fleet_per_hour, fleet), at_least_one(budgets.fleet_per_day, fleet)
    share = at_least_one(budgets.namespace_share, hour)
    if boards <= min(hour, day, share):
        return None
    detail = f"{boards} boards at once are over the whole budget (hour {hour}, day {day}, namespace {share})"
    if boards > fleet:
        remedy = f"no budget admits it: the nodes that are known offer {fleet} boards"
        return Ruling(GUARD, detail, Reason.BUDGET_SPENT, remedy)
    wanted = []
    if boards > hour:
        wanted.append(f"budgets.fleetPerHour to at least {_share(boards, fleet)}")
        hour = at_least_one(float(_share(boards, fleet)), fleet)
    if boards > day:
        wanted.append(f"budgets.fleetPerDay to at least {_share(boards, fleet)}")
    if boards > at_least_one(budgets.namespace_share, hour):
        wanted.append(f"budgets.namespaceShare to at least {_share(boards, hour)}")
    return Ruling(GUARD, detail, Reason.BUDGET_SPENT, f"raise {', '.join(wanted)}")


def guard_budgets(world: World, judged: Judged, proposal: Proposal, tally: Tally) -> Ruling:
    """The change, with all before it in this plan and inside the hour and day, must fit every budget."""
    budgets, boards = world.policy.budgets, proposal.saved_boards
    namespace = judged.case.workload.ref.namespace
    hour = at_least_one(budgets.fleet_per_hour, world.fleet_boards)
    day = at_least_one(budgets.fleet_per_day, world.fleet_boards)
    share = at_least_one(budgets.namespace_share, hour)
    shares = sorted({namespace, proposal.given_to or namespace})
    replicas = judged.case.workload.replicas
    going, at_once = unavailable_of(judged, proposal), step_limit(world, replicas)
    if proposal.lever == "template" and going > at_once:
        detail = f"the rollout takes {going} pods at once, {at_once} allowed"
        remedy = (
            f"lower maxUnavailable, or raise budgets.podsPerWorkload to at least {_share(going, replicas)}"
        )
        return Ruling(GUARD, detail, Reason.BUDGET_SPENT, remedy)
    if tally.in_flight >= budgets.in_flight:
        detail = f"{tally.in_flight} changes are planned or not yet verified, {budgets.in_flight} allowed"
        return Ruling(
            GUARD,
            detail,
            Reason.BUDGET_SPENT,
            "" if budgets.in_flight else "raise budgets.inFlight to at least 1",
        )
    too_many = never_fits(world, boards)
    if too_many:
        return too_many
    for what, spent, limit in (
        ("fleet, this hour", tally.boards_hour, hour),
        ("fleet, today", tally.boards_day, day),
        *((f"namespace {n}, this hour", tally.namespace_boards.get(n, 0), share) for n in shares),
    ):
        if spent + boards > limit:
            detail = f"{what}: {spent} boards changed + {boards} > {limit}"
            return Ruling(GUARD, detail, Reason.BUDGET_SPENT)
    return Ruling(GUARD, f"{tally.boards_hour} + {boards} of {hour} boards this hour")
