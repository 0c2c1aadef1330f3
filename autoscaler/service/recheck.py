"""The guards again, on the state of this moment, right before something is sent.

The whole plan is made anew from the stores as they are now: whatever would keep the change out of a plan keeps it from
being sent, with the same reason and the same words. A reading of the metrics store that is a few seconds old is used again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from autoscaler.model.plan import Action, Plan, Refusal
from autoscaler.model.policy import Policy
from autoscaler.model.reasons import CATALOGUE, Reason
from autoscaler.model.snapshot import Snapshot
from autoscaler.service.clock import Clock

F = TypeVar("F")
S = TypeVar("S")
RECENT_S: Final = 15.0
"""A reading spans windows of minutes; one this old judges the same as a new one and costs the store nothing."""
GUARD: Final = "recheck"


class LatestReading(Generic[S]):
    """The metrics store's newest reading, kept while something may act on it: a large one weighs tens of megabytes."""

    def __init__(self, query: Callable[[Policy], Awaitable[S]], clock: Clock) -> None:
        self._query = query
        self._clock = clock
        self._kept: tuple[S, float] | None = None

    async def read(self, policy: Policy) -> S:
        """A new one."""
        began_s = self._clock.monotonic_s()
        reading = await self._query(policy)
        self._kept = (reading, began_s) if policy.modes.acting else None
        return reading

    async def recent(self, policy: Policy) -> S:
        """The newest one if it is only seconds old, else a new one."""
        if self._kept is not None and self._clock.monotonic_s() - self._kept[1] <= RECENT_S:
            return self._kept[0]
        return await self.read(policy)


@dataclass(frozen=True, kw_only=True)
class Rechecker(Generic[F, S]):
    """Callable as a `Recheck`; `blocked`, `freeze`, `assemble` and `decide` are the cycle's own sources."""

    blocked: Callable[[], str]
    reading: LatestReading[S]
    freeze: Callable[[], F]
    assemble: Callable[[F, S, Policy], Snapshot]
    decide: Callable[[Snapshot, Policy, int], Plan]
    policy: Callable[[], Policy]

    async def __call__(self, action: Action) -> Action | Refusal:
        """The action as it would be planned now, or why it would not be."""
        blocked = self.blocked()
        if blocked:
            return refusal(action, Reason.EVIDENCE_STALE, f"the cluster is not readable: {blocked}")
        policy = self.policy()
        series = await self.reading.recent(policy)
        frozen = self.freeze()
        return await asyncio.to_thread(self._think, action, frozen, series, policy)

    def _think(self, action: Action, frozen: F, series: S, policy: Policy) -> Action | Refusal:
        snapshot = self.assemble(frozen, series, policy)
        return find_again(self.decide(snapshot, policy, snapshot.taken_ms), action)


def find_again(plan: Plan, action: Action) -> Action | Refusal:
    """The same action in a newer plan, or why it is not there or is held back."""
    again = next((one for one in plan.actions if one.id == action.id), None)
    if again is not None:
        first = _first_of_seat(plan, again)
        if first.id != again.id:
            # The last one of a seat is told by what is left to do: out of turn it would be taken for the last.
            return refusal(action, Reason.SUPERSEDED, f"pod {first.pod} goes first for this seat now")
        if not again.held_by:
            return again
        held = ", ".join(again.held_by)
        return refusal(action, again.held_by[0], f"it is planned and held back by {held}")
    row = next((one for one in plan.rows if one.workload == action.target), None)
    if row is None:
        return refusal(action, Reason.SUPERSEDED, "the workload is no longer in the plan")
    if row.action is not None:
        now = f"the plan has changed: {row.action.method} {row.action.before} -> {row.action.after}"
        return refusal(action, Reason.SUPERSEDED, now)
    return refusal(action, row.reason, row.detail)


def _first_of_seat(plan: Plan, action: Action) -> Action:
    """The eviction that a seat begins with; of anything else, itself."""
    seat = action.seat
    if seat is None:
        return action
    return next(one for one in plan.actions if one.seat is not None and one.seat.pod.uid == seat.pod.uid)


def refusal(action: Action, reason: Reason, evidence: str) -> Refusal:
    """Why an action is not carried out now, with the catalogue's remedy."""
    return Refusal(
        target=action.target,
        method=action.method,
        reason=reason,
        guard=GUARD,
        evidence=evidence,
        remedy=CATALOGUE[reason].remedy,
        before=action.before,
        after=action.after,
    )
