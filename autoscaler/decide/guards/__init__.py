"""Guards: small pure functions, each with one reason to say no.

Subject guards judge a workload before anything is proposed, change guards judge one proposal against the tally of
what the plan has accepted already. Every guard answers with its numbers, also when it lets pass.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from autoscaler.decide.guards.budgets import guard_budgets
from autoscaler.decide.guards.disruption import guard_disruption_budgets
from autoscaler.decide.guards.fleet import guard_access, guard_clock_skew, guard_fleet_coverage
from autoscaler.decide.guards.freeze import guard_freeze
from autoscaler.decide.guards.kueue import guard_kueue
from autoscaler.decide.guards.limit_range import guard_limit_range
from autoscaler.decide.guards.limits import guard_quota
from autoscaler.decide.guards.memory import guard_backoff, guard_contested
from autoscaler.decide.guards.ownership import guard_field_owner
from autoscaler.decide.guards.pace import guard_cooldown, guard_savings_floor, guard_worth_restart
from autoscaler.decide.guards.rollout import guard_peers_ready, guard_rollout
from autoscaler.decide.guards.subject import (
    guard_evidence,
    guard_lever,
    guard_priority,
    guard_protection,
    guard_start_grace,
    guard_system,
    guard_use,
)
from autoscaler.decide.guards.successor import guard_placement, guard_scheduler, guard_volumes
from autoscaler.decide.guards.thin_history import guard_history
from autoscaler.decide.proposal import Judged, Proposal, Ruling
from autoscaler.decide.tally import Tally
from autoscaler.decide.world import World

SubjectGuard: TypeAlias = Callable[[World, Judged], Ruling]
ChangeGuard: TypeAlias = Callable[[World, Judged, Proposal, Tally], Ruling]

SUBJECT_GUARDS: Final[tuple[SubjectGuard, ...]] = (
    guard_system,
    guard_protection,
    guard_priority,
    guard_kueue,
    guard_lever,
    guard_clock_skew,
    guard_start_grace,
    guard_evidence,
    guard_fleet_coverage,
    guard_use,
)

CHANGE_GUARDS: Final[tuple[ChangeGuard, ...]] = (
    guard_access,
    guard_history,
    guard_field_owner,
    guard_rollout,
    guard_peers_ready,
    guard_scheduler,
    guard_volumes,
    guard_limit_range,
    guard_quota,
    guard_placement,
    guard_disruption_budgets,
    guard_cooldown,
    guard_contested,
    guard_backoff,
    guard_freeze,
    guard_savings_floor,
    guard_worth_restart,
    guard_budgets,
)
