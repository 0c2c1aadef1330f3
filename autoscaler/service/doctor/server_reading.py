"""Asks the API server what the checks need beside the snapshot: rights, the Lease, monitors, the time."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

import msgspec

from autoscaler.kube.errors import KubeError
from autoscaler.kube.lease import LeaseClient, LeaseTimes
from autoscaler.kube.session import KubeSession
from autoscaler.kube.wire import Wire
from autoscaler.kube.wire.timestamps import parse_rfc3339_ms
from autoscaler.service.clock import Clock
from autoscaler.service.doctor.gathered import LeaseFacts, MonitorFacts, Review, Right, ServerFacts
from autoscaler.service.doctor.monitor_reading import read_monitors
from autoscaler.service.wiring import LEASE

_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_WHO: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_SECOND_MS: Final = 1000

T = TypeVar("T")


class _Version(Wire):
    git_version: str = ""


class _User(Wire):
    username: str = ""


class _WhoStatus(Wire):
    user_info: _User = msgspec.field(default_factory=_User)


class _Who(Wire):
    status: _WhoStatus = msgspec.field(default_factory=_WhoStatus)


class _ReviewStatus(Wire):
    allowed: bool = False
    reason: str = ""
    evaluation_error: str = ""


class _Review(Wire):
    status: _ReviewStatus = msgspec.field(default_factory=_ReviewStatus)


_version_decoder = msgspec.json.Decoder(_Version)
_who_decoder = msgspec.json.Decoder(_Who)
_review_decoder = msgspec.json.Decoder(_Review)


async def read_server(
    session: KubeSession,
    rights: Sequence[Right],
    *,
    namespace: str,
    clock: Clock,
    show: Callable[[str], None],
) -> ServerFacts:
    """What the server says; never raises for what it does. Each part is asked for also when another was refused."""
    facts = ServerFacts(server=session.access.server)
    show("the API server")
    try:
        await session.get_json("/version", None, _version_decoder)
    except KubeError as error:
        return replace(facts, fault=str(error))
    now_ms = session.server_time_ms()
    if now_ms is not None:
        facts = replace(facts, now_ms=now_ms, minus_own_ms=now_ms - clock.now_ms())
    user, _ = await _attempt(_user(session), "")
    facts = replace(facts, user=user)
    show("rights")
    reviews, fault = await _attempt(_reviews(session, rights), ())
    facts = replace(facts, reviews=reviews, reviews_fault=fault)
    show("the Lease")
    lease, fault = await _attempt(_lease(session, namespace, clock), None)
    facts = replace(facts, lease=lease, lease_fault=fault)
    show("monitors")
    monitors, fault = await _attempt(read_monitors(session), MonitorFacts())
    return replace(facts, monitors=replace(monitors, fault=fault) if fault else monitors)


async def _attempt(asked: Awaitable[T], otherwise: T) -> tuple[T, str]:
    """The answer, or what stands for it and why there is none."""
    try:
        return await asked, ""
    except KubeError as error:
        return otherwise, str(error)


async def _user(session: KubeSession) -> str:
    """Who we are to the server."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer: _Who = await session.post(_WHO, body, _who_decoder)
    return answer.status.user_info.username


async def _reviews(session: KubeSession, rights: Sequence[Right]) -> tuple[Review, ...]:
    # One after the other: the session's own rate limit is the pace, and a failure leaves nothing running behind.
    return tuple([await _review(session, right) for right in rights])


async def _review(session: KubeSession, right: Right) -> Review:
    resource, _, subresource = right.resource.partition("/")
    attributes: dict[str, Any] = {
        "group": right.group,
        "resource": resource,
        "subresource": subresource,
        "verb": right.verb,
        "namespace": right.namespace,
        "name": right.name,
    }
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {key: value for key, value in attributes.items() if value}},
    }
    answer: _Review = await session.post(_REVIEWS, body, _review_decoder)
    status = answer.status
    return Review(right=right, allowed=status.allowed, reason=status.reason or status.evaluation_error)


async def _lease(session: KubeSession, namespace: str, clock: Clock) -> LeaseFacts:
    client = LeaseClient(session, namespace=namespace, name=LEASE, times=LeaseTimes(), wall_ms=clock.now_ms)
    found = await client.read()
    if found is None:
        return LeaseFacts(exists=False)
    spec = found.spec
    try:
        renewed_ms = parse_rfc3339_ms(spec.renew_time or "")
    except ValueError:
        renewed_ms = -1
    return LeaseFacts(
        exists=True,
        holder=spec.holder_identity or "",
        renewed_ms=renewed_ms,
        duration_ms=(spec.lease_duration_seconds or 15) * _SECOND_MS,
        transitions=spec.lease_transitions or 0,
    )
