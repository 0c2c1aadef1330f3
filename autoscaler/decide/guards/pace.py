"""How often a workload may change, and whether a change is worth its restart."""

from autoscaler.decide.guards.rollout import waits_for_next_run
from autoscaler.decide.proposal import Judged, Proposal, Ruling
from autoscaler.decide.tally import Tally
from autoscaler.decide.world import World
from autoscaler.model.duration import format_duration
from autoscaler.model.reasons import Reason


def guard_cooldown(world: World, judged: Judged, proposal: Proposal, tally: Tally) -> Ruling:
    """At most one change per workload per cool-down, what was put back included, and none before the last has ended.

    A row without a time is no change: it only says for how long the workload is left alone.
    """
    del proposal, tally
    name, cooldown = "cool-down", world.policy.guards.cooldown
    acts = [act for act in world.acts_of(judged.case.workload.ref) if act.at_ms > 0]
    ages = [world.now_ms - act.at_ms for act in acts]
    if not all(act.verified for act in acts):
        return Ruling(name, "its last change is not verified yet", Reason.COOLDOWN)
    if ages and min(ages) < cooldown:
        left = format_duration(cooldown - min(ages))
        return Ruling(name, f"changed {format_duration(min(ages))} ago, {left} to go", Reason.COOLDOWN)
    return Ruling(name, f"no change in the last {cooldown}")


def guard_savings_floor(world: World, judged: Judged, proposal: Proposal, tally: Tally) -> Ruling:
    """A change must save at least the policy's floor."""
    del judged, tally
    floor = world.policy.methods.savings_floor
    numbers = f"saves {proposal.saved_boards} boards, the floor is {floor:g}"
    if proposal.saved_boards < floor:
        return Ruling("savings floor", numbers, Reason.BELOW_SAVINGS_FLOOR)
    return Ruling("savings floor", numbers)


def guard_worth_restart(world: World, judged: Judged, proposal: Proposal, tally: Tally) -> Ruling:
    """Board-hours saved within the cool-down must exceed factor x boards restarted x measured time to Ready."""
    del tally
    name, case = "restart cost", judged.case
    if proposal.lever != "template" or waits_for_next_run(judged):
        return Ruling(name, "nothing restarts")
    starts = [
        u.pod.ready_ms - u.pod.started_ms for u in case.units if u.pod.ready_ms >= 0 and u.pod.started_ms >= 0
    ]
    if not starts:
        return Ruling(name, "the time to Ready is not known", Reason.NOT_WORTH_RESTART)
    restarted = case.workload.replicas * case.held
    cost_ms = world.policy.methods.restart_factor * restarted * max(0, *starts)
    gain_ms = proposal.saved_boards * int(world.policy.guards.cooldown)
    numbers = f"saves {format_duration(gain_ms)} x board per cool-down, the restart costs {format_duration(round(cost_ms))}"
    if gain_ms <= cost_ms:
        return Ruling(name, numbers, Reason.NOT_WORTH_RESTART)
    return Ruling(name, numbers)
