"""Everything before an act is written down: look at the objects, ask the guards again, rehearse.

Nothing here changes anything. What it hands on are the very requests that were rehearsed.
"""

import msgspec

from autoscaler.act import preflight
from autoscaler.act.answers import not_prepared
from autoscaler.act.contract import Outcome, Recheck, Site
from autoscaler.act.live import LiveWorkload, live_workload, workload_decoder
from autoscaler.act.requests import (
    DELETION_COST,
    NoRequestError,
    Request,
    change_request,
    cost_request,
    evict_request,
    nominate_request,
)
from autoscaler.act.writer import Writer
from autoscaler.kube.errors import KubeError
from autoscaler.model.plan import Action, Seat
from autoscaler.model.reasons import Reason


class Step(msgspec.Struct, frozen=True):
    """One request of an act."""

    site: Site
    request: Request


class Prepared(msgspec.Struct, frozen=True):
    """An act that nothing is in the way of: what prepares it, and the act itself."""

    action: Action
    before: tuple[Step, ...]
    act: Step


async def prepare(
    action: Action, writer: Writer, *, restoring: bool, recheck: Recheck | None
) -> Prepared | Outcome:
    """The act as it would be sent now, or the outcome where something is in the way.

    Raises the transport's errors, with nothing changed, and `NoRequestError` where no request means the action.
    """
    if action.lever == "evict":
        return await _eviction(action, writer, recheck)
    return await _change(action, writer, recheck, restoring=restoring)


async def _change(
    action: Action, writer: Writer, recheck: Recheck | None, *, restoring: bool
) -> Prepared | Outcome:
    live = await writer.workload(action.written[0])
    if live is None:
        return preflight.gone(action)
    unfit = preflight.unfit_workload(action, live, restoring=restoring)
    if unfit is not None:
        return unfit
    found = await _asked_again(action, live, recheck)
    if isinstance(found, Outcome):
        return found
    action = found
    marks = () if restoring else await _marks(action, writer)
    if isinstance(marks, Outcome):
        return marks
    act = Step(Site.CHANGE, change_request(action, live))
    # Rights and admission are the same for all marks.
    unfit = await _rehearse_steps(marks[:1], writer) or await _rehearse_change(action, act, writer)
    return unfit or Prepared(action, marks, act)


async def _eviction(action: Action, writer: Writer, recheck: Recheck | None) -> Prepared | Outcome:
    if action.pod is None:
        raise NoRequestError("an eviction names no pod")
    live = await writer.pod(action.pod)
    found = preflight.unfit_victim(action.pod, live) or await _asked_again(action, None, recheck)
    if isinstance(found, Outcome):
        return found
    nomination = await _nomination(found.seat, writer)
    if isinstance(nomination, Outcome):
        return nomination
    act = Step(Site.EVICT, evict_request(action.pod))
    unfit = await _rehearse_steps(nomination, writer)
    if unfit is not None:
        return unfit
    await writer.send(Site.DRY_RUN, act.request.rehearsed())
    return Prepared(found, nomination, act)


async def _asked_again(
    action: Action, live: LiveWorkload | None, recheck: Recheck | None
) -> Action | Outcome:
    """The action as the guards let it through now."""
    if recheck is None:
        return action
    again = await recheck(action)
    return preflight.judge_answer(action, again, live)


async def _marks(action: Action, writer: Writer) -> tuple[Step, ...] | Outcome:
    """What makes the right pods of a Deployment go first; a StatefulSet's go by their ordinals."""
    if action.lever not in {"scale", "bounds"} or action.target.kind != "Deployment":
        return ()
    pods = {pod: await writer.pod(pod) for pod in action.leaving}
    return preflight.unfit_leaving(pods) or tuple(
        Step(Site.DELETION_COST, cost_request(pod, live))
        for pod, live in pods.items()
        if live is not None and DELETION_COST not in live.annotations
    )


async def _nomination(seat: Seat | None, writer: Writer) -> tuple[Step, ...] | Outcome:
    """What keeps the seat, where there is one, for the pod that waits, unless it is kept already."""
    if seat is None:
        return ()
    waiting = await writer.pod(seat.pod)
    unfit = preflight.unfit_beneficiary(seat.pod, waiting)
    if unfit is not None:
        return unfit
    if waiting is not None and waiting.nominated == seat.node:
        return ()
    return (Step(Site.NOMINATE, nominate_request(seat.pod, seat.node)),)


async def _rehearse_steps(steps: tuple[Step, ...], writer: Writer) -> Outcome | None:
    try:
        for step in steps:
            await writer.send(Site.DRY_RUN, step.request.rehearsed())
    except KubeError as error:
        return not_prepared(error)
    return None


async def _rehearse_change(action: Action, act: Step, writer: Writer) -> Outcome | None:
    answer = await writer.send(Site.DRY_RUN, act.request.rehearsed(), workload_decoder)
    shown = live_workload(action.written[0], answer, of_scale=action.lever == "scale")
    value = shown.value(action.lever, resource=action.resource, container=action.container)
    if value == action.after:
        return None
    return Outcome("refused", f"admission makes {value} of {action.after}", Reason.OTHER_OWNER)
