"""PodDisruptionBudgets, summed over the plan; also for scaling, which the API server does not hold to them."""

from autoscaler.decide.guards.rollout import readable, rounded, unavailable_of
from autoscaler.decide.proposal import Judged, Proposal, Ruling
from autoscaler.decide.tally import Tally
from autoscaler.decide.world import World
from autoscaler.model.cluster import Budget
from autoscaler.model.reasons import Reason

GUARD = "disruption budget"


def budgets_of(world: World, judged: Judged) -> tuple[Budget, ...]:
    """The budgets that select a live unit of the workload."""
    budgets = world.budgets.get(judged.case.workload.ref.namespace, ())
    return tuple(b for b in budgets if any(b.selector.selects(u.pod.labels) for u in judged.case.units))


def guard_disruption_budgets(world: World, judged: Judged, proposal: Proposal, tally: Tally) -> Ruling:
    """Pods that go at once must fit each budget's headroom, and the replicas left must satisfy it."""
    taken = unavailable_of(judged, proposal)
    budgets = budgets_of(world, judged)
    if not budgets or taken == 0:
        return Ruling(
            GUARD, "no budget selects it" if not budgets else "no ready pod goes before its successor"
        )
    if proposal.lever == "evict" and len(budgets) > 1:
        names = ", ".join(budget.name for budget in budgets)
        return Ruling(
            GUARD, f"the Eviction API takes no pod with several budgets: {names}", Reason.DISRUPTION_BUDGET
        )
    for budget in budgets:
        spent = tally.disruptions.get((budget.namespace, budget.name), 0)
        why = _exceeded(budget, taken=taken, spent=spent) or _unsatisfied(budget, judged, proposal)
        if why:
            return Ruling(GUARD, f"{budget.name}: {why}", Reason.DISRUPTION_BUDGET)
    return Ruling(GUARD, f"{taken} within {', '.join(b.name for b in budgets)}")


def _exceeded(budget: Budget, *, taken: int, spent: int) -> str:
    junk = [v for v in (budget.minimum, budget.unavailable) if v and not readable(v)]
    if junk:
        return f"its amount is unreadable: {junk[0][:40]!r}"
    if not budget.observed:
        return "its status is behind its spec"
    if taken + spent > budget.allowed:
        return f"{taken} would go, {budget.allowed - spent} allowed"
    return ""


def _unsatisfied(budget: Budget, judged: Judged, proposal: Proposal) -> str:
    """Desired healthy pods recomputed for the pods that would be left."""
    if not proposal.takes_replicas:
        return ""
    going = proposal.before - proposal.after
    expected = max(0, max(budget.expected_pods, len(judged.case.units)) - going)
    desired = rounded(budget.minimum, expected, up=True)
    if budget.unavailable:
        desired = max(desired, expected - rounded(budget.unavailable, expected, up=True))
    elif not budget.minimum:
        desired = 1  # what policy/v1 means where neither is stated
    if expected < desired:
        return f"{expected} pods would be left, {desired} must be healthy"
    return ""
