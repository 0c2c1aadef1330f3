"""Every changing request of this room goes out through here: in time for the lease, or not at all."""

import asyncio
from typing import Any, Final

import msgspec

from autoscaler.act.contract import Api, Authority, Probe, Site
from autoscaler.act.live import (
    LivePod,
    LiveWorkload,
    live_pod,
    live_workload,
    pod_decoder,
    workload_decoder,
)
from autoscaler.act.requests import EVICTION, Request, pod_path, workload_path
from autoscaler.kube.errors import ApiError, NotFound, UnexpectedBody, Unreachable
from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.plan import Action, PodRef

REQUEST_S: Final = 5.0
"""A change is answered in well under a second; half of what a lease allows leaves time to write down the outcome."""
READ_S: Final = 5.0
PROBE: Probe | None = None
"""Set by a test that ends the process around a request."""
_CREATED: Final = 201
ANYTHING: "Final[msgspec.json.Decoder[Any]]" = msgspec.json.Decoder()
"""For an answer of which only matters that it came."""


class Writer:
    """Sends requests while an authority lasts, and reads what they are about."""

    def __init__(
        self, api: Api, authority: Authority, *, probe: Probe | None = None, timeout_s: float = REQUEST_S
    ) -> None:
        self.api = api
        self.authority = authority
        self._probe = probe
        self._timeout_s = timeout_s

    async def send(
        self, site: Site, request: Request, decoder: "msgspec.json.Decoder[Any]" = ANYTHING
    ) -> Any:
        """The decoded answer, None for an accepted eviction.

        Raises the transport's typed errors, or `AuthorityLostError` with nothing sent. What is sent is given up before
        the authority ends as it was when this was called; waiting for the rate limit counts.
        """
        probe = self._probe or PROBE
        limit_s = min(self._timeout_s, self.authority.remaining_s())
        if probe is not None:
            probe(site, "before")
        try:
            async with asyncio.timeout(limit_s):
                answer = await self._write(request, decoder, limit_s)
        except TimeoutError as error:
            raise Unreachable("timeout", f"no answer within {limit_s:.1f} s") from error
        except ApiError:
            if probe is not None:
                probe(site, "after")
            raise
        if probe is not None:
            probe(site, "after")
        return answer

    async def _write(self, request: Request, decoder: "msgspec.json.Decoder[Any]", limit_s: float) -> Any:
        try:
            return await self.api.write(
                request.verb,
                request.path,
                request.body,
                decoder,
                content_type=request.content_type,
                params=request.params,
                timeout_s=limit_s,
                before_send=self._last_check,
            )
        except UnexpectedBody as error:
            # An eviction is answered with a `Status` of success, which the session takes for no answer to anything.
            if request.path.endswith(EVICTION) and error.status == _CREATED:
                return None
            raise

    def _last_check(self) -> None:
        self.authority.remaining_s()

    async def workload(self, ref: WorkloadRef) -> LiveWorkload | None:
        """The workload as it is now; None where there is none of that name."""
        return await read_workload(self.api, ref)

    async def written(self, action: Action) -> LiveWorkload | None:
        """The object that an action changes, as it is now; None where that very object no longer exists."""
        ref, uid = action.written
        live = await read_workload(self.api, ref)
        return live if live is not None and live.uid == uid else None

    async def pod(self, pod: PodRef) -> LivePod | None:
        """The pod as it is now; None where that very pod no longer exists."""
        return await read_pod(self.api, pod)


async def read_workload(api: Api, ref: WorkloadRef) -> LiveWorkload | None:
    """The workload as it is now; None where there is none of that name."""
    try:
        answer = await api.get_json(workload_path(ref), None, workload_decoder, timeout_s=READ_S)
    except NotFound:
        return None
    return live_workload(ref, answer)


async def read_pod(api: Api, pod: PodRef) -> LivePod | None:
    """The pod as it is now; None where that very pod no longer exists."""
    try:
        live = live_pod(await api.get_json(pod_path(pod), None, pod_decoder, timeout_s=READ_S))
    except NotFound:
        return None
    return live if live.uid == pod.uid else None
