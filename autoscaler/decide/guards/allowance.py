"""How much may change in an hour and a day, now that so many days were clean."""

from dataclasses import dataclass

from autoscaler.decide.world import World
from autoscaler.model.plan import Method


def at_least_one(share: float, boards: int) -> int:
    """A share of the boards, rounded down, never under one."""
    return max(1, int(share * boards + 1e-9))


@dataclass(frozen=True, slots=True)
class Allowance:
    """Boards of the fleet per hour and day, of one namespace per hour, and of one kind of action per hour."""

    hour: int
    day: int
    namespace: int
    kind: int


def allowance(world: World, method: Method) -> Allowance:
    """The policy's rates, doubled for each clean day behind us up to the policy's limit; never more than the whole fleet."""
    budgets, fleet, factor = world.policy.budgets, world.fleet_boards, growth(world)
    hour = at_least_one(min(1.0, budgets.fleet_per_hour * factor), fleet)
    own = budgets.fleet_per_hour_by_kind.get(method)
    return Allowance(
        hour=hour,
        day=at_least_one(min(1.0, budgets.fleet_per_day * factor), fleet),
        namespace=at_least_one(budgets.namespace_share, hour),
        kind=hour if own is None else min(hour, at_least_one(own, fleet)),
    )


def growth(world: World) -> int:
    """What the rates are multiplied with: 1 as long as no day was clean."""
    doublings = min(max(0, world.snapshot.control.clean_days), world.policy.budgets.max_doublings)
    return int(2**doublings)
