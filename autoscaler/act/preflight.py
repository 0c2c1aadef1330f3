"""What must still be true right before an act is written down: pure, over objects that were read this moment.

Each function returns the outcome that ends the act, or None where nothing is in the way.
"""

from collections.abc import Mapping
from typing import Final

from autoscaler.act.contract import Outcome
from autoscaler.act.live import LivePod, LiveWorkload
from autoscaler.act.requests import DELETION_COST, bears_our_cost
from autoscaler.model.plan import Action, PodRef, Refusal
from autoscaler.model.reasons import Reason

_ENDED: Final = frozenset({"Succeeded", "Failed"})


def gone(action: Action) -> Outcome:
    """The workload that was judged is no longer there."""
    ref, uid = action.written
    return Outcome("gone", f"{ref.kind} {ref} of uid {uid} is no longer there")


def unfit_workload(action: Action, live: LiveWorkload, *, restoring: bool) -> Outcome | None:
    """The workload is the one that was judged, and the field is where the change starts from."""
    if live.uid != action.written[1] or live.deleting:
        return gone(action)
    value = live.value(action.lever, resource=action.resource, container=action.container)
    if value == action.before:
        return None
    seen = f"it is at {value}, the change starts from {action.before}"
    return Outcome("refused", seen, Reason.SUPERSEDED) if restoring else Outcome("conflict", seen)


def judge_answer(action: Action, again: Action | Refusal, live: LiveWorkload | None) -> Action | Outcome:
    """The action as it was asked again, where it is the same change of the object as it was read.

    `live` is None for an eviction: it carries no version.
    """
    if isinstance(again, Refusal):
        return Outcome("refused", again.evidence, again.reason)
    if again.held_by:
        return Outcome("refused", f"it is held back by {', '.join(again.held_by)}", again.held_by[0])
    if _change(again) != _change(action):
        return Outcome("conflict", f"it would be {again.lever} {again.before} -> {again.after} now")
    seen = again.resource_version
    if live is not None and seen and live.resource_version and seen != live.resource_version:
        return Outcome("conflict", f"it was judged at version {seen} and is at {live.resource_version}")
    return again


def unfit_victim(pod: PodRef, live: LivePod | None) -> Outcome | None:
    """The pod still holds what its eviction is to free."""
    if live is None or live.deleting:
        return Outcome("gone", f"pod {pod} is no longer there")
    if live.phase in _ENDED:
        return Outcome("gone", f"pod {pod} has ended ({live.phase}) and holds nothing")
    if not live.node:
        # The Eviction API deletes a pending pod without asking its budgets.
        return Outcome("conflict", f"pod {pod} runs on no node")
    return None


def unfit_beneficiary(pod: PodRef, live: LivePod | None) -> Outcome | None:
    """Somebody still waits for the seat."""
    if live is None or live.deleting:
        return Outcome("conflict", f"pod {pod}, for which this makes room, is gone")
    if live.node:
        return Outcome("conflict", f"pod {pod}, for which this makes room, is on {live.node} already")
    return None


def unfit_leaving(leaving: Mapping[PodRef, LivePod | None]) -> Outcome | None:
    """Every pod that should go is there and can be put first; otherwise another one, perhaps a busy one, would go.

    An owner's own cost is left as it is: under the default 0 it already lets the pod go before the others.
    """
    for pod, live in leaving.items():
        if live is None or live.deleting:
            return Outcome("conflict", f"pod {pod}, which should leave, is gone already")
        cost = live.annotations.get(DELETION_COST)
        if cost is not None and not bears_our_cost(live) and not _is_under_default(cost):
            why = f"pod {pod}, which should leave, carries {DELETION_COST}: {cost}"
            return Outcome("refused", why, Reason.OTHER_OWNER)
    return None


def _is_under_default(cost: str) -> bool:
    """As the ReplicaSet controller reads it: a plain int32, anything else counts as 0."""
    digits = cost.removeprefix("-")
    return cost.startswith("-") and digits.isascii() and digits.isdecimal() and int(digits) > 0


def _change(action: Action) -> tuple[object, ...]:
    return (
        action.id,
        action.lever,
        action.target,
        action.uid,
        action.resource,
        action.container,
        action.before,
        action.after,
        action.pod,
        action.through,
    )
