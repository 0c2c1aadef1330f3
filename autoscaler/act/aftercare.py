"""What follows an act: our marks are taken back, and only ours. Everything here may be repeated, by whoever leads then."""

from typing import Final

from autoscaler.act.contract import Site
from autoscaler.act.requests import (
    Request,
    bears_our_cost,
    disown_request,
    uncost_request,
    unnominate_request,
)
from autoscaler.act.writer import Writer
from autoscaler.kube.errors import Conflict, Invalid, NotFound
from autoscaler.model.plan import Action, PodRef, Seat

DISOWN_TRIES: Final = 8


async def disown(action: Action, writer: Writer) -> None:
    """Takes our entries out of `managedFields`.

    While a rollout runs its controller's entry moves in front of ours and back, so the index is read anew; raises the
    last refusal where that never helped.
    """
    for attempt in range(DISOWN_TRIES):
        live = await writer.written(action)
        if live is None:
            return
        request = disown_request(action, live)
        if request is None:
            return
        try:
            await writer.send(Site.DISOWN, request)
        except NotFound:
            return
        except (Conflict, Invalid):
            if attempt + 1 == DISOWN_TRIES:
                raise
        else:
            return


async def clear_costs(leaving: tuple[PodRef, ...], writer: Writer) -> None:
    """Takes our deletion cost off the pods that are still there."""
    for pod in leaving:
        live = await writer.pod(pod)
        if live is not None and not live.deleting and bears_our_cost(live):
            await _take_off(Site.CLEAR_DELETION_COST, uncost_request(pod), writer)


async def give_up_seat(seat: Seat, writer: Writer) -> None:
    """Clears our nomination of a pod that is still waiting; the scheduler's own is left alone."""
    live = await writer.pod(seat.pod)
    if live is not None and not live.node and live.nominated == seat.node and live.nominated_by_us:
        await _take_off(Site.UNNOMINATE, unnominate_request(seat.pod, seat.node), writer)


async def _take_off(site: Site, request: Request, writer: Writer) -> None:
    """A 422 says that the mark or the pod is no longer the one that was read: it is not ours any more."""
    try:
        await writer.send(site, request)
    except (NotFound, Conflict, Invalid):
        return
