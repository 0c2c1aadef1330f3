"""Budgets on the rate of change: acts, boards and pods, by cycle, hour, day, namespace, kind of action and workload."""

from autoscaler.decide.guards.allowance import allowance, at_least_one, growth
from autoscaler.decide.guards.rollout import unavailable_of, waits_for_next_run
from autoscaler.decide.proposal import Judged, Proposal, Ruling
from autoscaler.decide.tally import Tally
from autoscaler.decide.world import World
from autoscaler.model.plan import Method
from autoscaler.model.reasons import Reason

GUARD = "budget"


def step_limit(world: World, replicas: int) -> int:
    """Replicas that may go at once: the policy's share, at least one."""
    return at_least_one(world.policy.budgets.pods_per_workload, replicas)


def _share(part: int, whole: int) -> str:
    """The least share, in hundredths, that is a part of a whole."""
    return f"{-(-100 * part // whole) / 100:g}"


def pods_of(judged: Judged, proposal: Proposal) -> int:
    """Pods that a change ends: all of them where the template changes, none where only the next run has the new one."""
    if proposal.lever != "template":
        return unavailable_of(judged, proposal)
    return 0 if waits_for_next_run(judged) else judged.case.workload.replicas


def never_fits(world: World, boards: int, *, method: Method, pods: int) -> Ruling | None:
    """The refusal of a change that is over a budget of which nothing is spent, as no waiting admits it; else None."""
    budgets, fleet, allowed = world.policy.budgets, world.fleet_boards, allowance(world, method)
    if pods > budgets.pods_per_hour:
        detail = f"{pods} pods are over the whole budget of {budgets.pods_per_hour} pods per hour"
        return Ruling(GUARD, detail, Reason.BUDGET_SPENT, f"raise budgets.podsPerHour to at least {pods}")
    if boards <= min(allowed.hour, allowed.day, allowed.namespace, allowed.kind):
        return None
    own = f", {method} {allowed.kind}" if method in budgets.fleet_per_hour_by_kind else ""
    whole = f"hour {allowed.hour}, day {allowed.day}, namespace {allowed.namespace}{own}"
    detail = f"{boards} boards at once are over the whole budget ({whole})"
    if boards > fleet:
        remedy = f"no budget admits it: the nodes that are known offer {fleet} boards"
        return Ruling(GUARD, detail, Reason.BUDGET_SPENT, remedy)
    wanted, hour, share = [], allowed.hour, _share(boards, fleet)
    if boards > hour:
        wanted.append(f"budgets.fleetPerHour to at least {share}")
        hour = at_least_one(float(share), fleet)
    if boards > allowed.day:
        wanted.append(f"budgets.fleetPerDay to at least {share}")
    if boards > at_least_one(budgets.namespace_share, hour):
        wanted.append(f"budgets.namespaceShare to at least {_share(boards, hour)}")
    if own and boards > at_least_one(budgets.fleet_per_hour_by_kind[method], fleet):
        wanted.append(f"budgets.fleetPerHourByKind of {method} to at least {share}")
    return Ruling(GUARD, detail, Reason.BUDGET_SPENT, f"raise {', '.join(wanted)}")


def guard_budgets(world: World, judged: Judged, proposal: Proposal, tally: Tally) -> Ruling:
    """The change, with all before it in this plan and inside the hour and day, must fit every budget."""
    boards, pods = proposal.saved_boards, pods_of(judged, proposal)
    refused = (
        _too_many_at_once(world, judged, proposal)
        or _too_many_acts(world, tally)
        or never_fits(world, boards, method=proposal.method, pods=pods)
    )
    if refused:
        return refused
    namespace, allowed = judged.case.workload.ref.namespace, allowance(world, proposal.method)
    shares = sorted({namespace, proposal.given_to} - {""})
    of_kind = tally.method_boards.get(proposal.method, 0)
    for what, unit, spent, more, limit in (
        ("fleet, this hour", "boards", tally.boards_hour, boards, allowed.hour),
        ("fleet, today", "boards", tally.boards_day, boards, allowed.day),
        *(
            (
                f"namespace {n}, this hour",
                "boards",
                tally.namespace_boards.get(n, 0),
                boards,
                allowed.namespace,
            )
            for n in shares
        ),
        (f"{proposal.method}, this hour", "boards", of_kind, boards, allowed.kind),
        ("fleet, this hour", "pods", tally.pods_hour, pods, world.policy.budgets.pods_per_hour),
    ):
        if spent + more > limit:
            return Ruling(GUARD, f"{what}: {spent} {unit} changed + {more} > {limit}", Reason.BUDGET_SPENT)
    grown = f", {growth(world)} x after clean days" if growth(world) > 1 else ""
    return Ruling(GUARD, f"{tally.boards_hour} + {boards} of {allowed.hour} boards this hour{grown}")


def _too_many_at_once(world: World, judged: Judged, proposal: Proposal) -> Ruling | None:
    """A rollout that takes more of the workload's pods at once than its share."""
    replicas = judged.case.workload.replicas
    going, at_once = unavailable_of(judged, proposal), step_limit(world, replicas)
    if proposal.lever != "template" or going <= at_once:
        return None
    remedy = f"lower maxUnavailable, or raise budgets.podsPerWorkload to at least {_share(going, replicas)}"
    detail = f"the rollout takes {going} pods at once, {at_once} allowed"
    return Ruling(GUARD, detail, Reason.BUDGET_SPENT, remedy)


def _too_many_acts(world: World, tally: Tally) -> Ruling | None:
    """Acts that wait for their proof, and acts of this plan."""
    budgets = world.policy.budgets
    if tally.in_flight >= budgets.in_flight:
        detail = f"{tally.in_flight} changes are planned or not yet verified, {budgets.in_flight} allowed"
        remedy = "" if budgets.in_flight else "raise budgets.inFlight to at least 1"
        return Ruling(GUARD, detail, Reason.BUDGET_SPENT, remedy)
    if tally.planned >= budgets.acts_per_cycle:
        detail = f"{tally.planned} changes are planned in this cycle, {budgets.acts_per_cycle} allowed"
        remedy = "" if budgets.acts_per_cycle else "raise budgets.actsPerCycle to at least 1"
        return Ruling(GUARD, detail, Reason.BUDGET_SPENT, remedy)
    return None
