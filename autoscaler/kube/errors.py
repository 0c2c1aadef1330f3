# ruff: noqa: N818  # the names are the API's own reasons
"""What can go wrong between us and an API server, as types.

An answer with a status becomes an ``ApiError`` (also when a 200 carries a ``Status`` object); no answer at all becomes
``Unreachable``. Which of them may be retried is a property of the error, decided here once. This module does no I/O.
"""

from collections.abc import Mapping

import msgspec

from autoscaler.kube.wire import Int32, Wire

DISRUPTION_BUDGET = "DisruptionBudget"
"""The cause a 429 carries when a disruption budget refused an eviction; priority-and-fairness has no cause."""

_MESSAGE_LIMIT = 400
UNREADABLE = (msgspec.MsgspecError, ValueError, OverflowError, RecursionError)
"""All that decoding raises for hostile bytes; nesting too deep to follow is a ``RecursionError``."""


class Cause(Wire):
    """One ``Status.details.causes`` entry."""

    reason: str = ""
    message: str = ""
    field: str = ""


class Details(Wire):
    """``Status.details``: what the error is about."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: list[Cause] | None = None
    retry_after_seconds: Int32 = 0


class Status(Wire):
    """A ``Status`` object, the API server's own form of an error."""

    kind: str = ""
    status: str | None = None
    code: Int32 = 0
    reason: str = ""
    message: str = ""
    details: Details | None = None


class KubeError(Exception):
    """Anything that stops us from talking to the API server. ``label`` is short and stable: metrics use it."""

    label = "error"
    retryable = False
    retry_after_s: float | None = None


class AccessError(KubeError):
    """The way to the API server cannot be worked out: no, unreadable or contradictory configuration."""

    label = "access"


class Unreachable(KubeError):
    """No answer. ``reason``, which is also the label, is one of refused, dns, tls, timeout, cut, network."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"API server unreachable ({reason}): {message}")
        self.label = self.reason = reason
        self.message = message
        self.retryable = reason != "tls"


class ApiError(KubeError):
    """The API server answered, and the answer is not what was asked for."""

    label = "api"

    def __init__(
        self,
        status: int,
        reason: str = "",
        message: str = "",
        *,
        details: Details | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(f"{status} {reason}: {message}" if reason else f"{status}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after_s = retry_after_s

    @property
    def causes(self) -> tuple[Cause, ...]:
        """The causes the server named, possibly none."""
        return tuple((self.details and self.details.causes) or ())

    @property
    def expired(self) -> bool:
        """Whether the version or continue token we hold is too old, in whichever form the server says so."""
        return (
            self.status == 410
            or self.reason in {"Expired", "Gone"}
            or "too old resource version" in self.message
        )


class Unauthorized(ApiError):
    """401: our credentials are not accepted, also not after reading them again."""

    label = "unauthorized"


class Forbidden(ApiError):
    """403: we are known and may not."""

    label = "forbidden"


class NotFound(ApiError):
    """404: the object or the kind does not exist."""

    label = "not_found"


class Conflict(ApiError):
    """409: the object changed since it was read, or exists already."""

    label = "conflict"


class Gone(ApiError):
    """410: the resourceVersion or continue token is too old."""

    label = "expired"


class Invalid(ApiError):
    """422: the object would break a rule of the API."""

    label = "invalid"


class TooManyRequests(ApiError):
    """429, for one of two reasons that must not be confused: see ``from_disruption_budget``."""

    label = "throttled"

    @property
    def from_disruption_budget(self) -> bool:
        """True when a PodDisruptionBudget refused an eviction, false when the server protects itself."""
        return any(cause.reason == DISRUPTION_BUDGET for cause in self.causes)

    @property
    def retryable(self) -> bool:  # type: ignore[override]
        """Only overload passes by itself; a budget is an answer."""
        return not self.from_disruption_budget


class ServerError(ApiError):
    """5xx: the server, or something in front of it, failed."""

    label = "server_error"
    retryable = True


class UnexpectedBody(ApiError):
    """The status was fine, the body was not: undecodable, too large, or of another kind."""

    label = "unexpected_body"


_BY_STATUS: Mapping[int, type[ApiError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}
_status_decoder = msgspec.json.Decoder(Status)


def error_from_response(status: int, body: bytes, *, retry_after: str | None = None) -> ApiError:
    """The typed error for an answer with a status outside 2xx; the body may be anything, as proxies send HTML."""
    decoded = decode_status(body)
    hinted = _seconds(retry_after)
    if decoded is None:
        text = body[:_MESSAGE_LIMIT].decode("utf-8", errors="replace").strip()
        return _error_type(status)(status, "", text or "no message", retry_after_s=hinted)
    return _typed(decoded, status=status, retry_after_s=hinted)


def error_from_status(decoded: Status) -> ApiError:
    """The typed error for a ``Status`` object found where something else was asked for, whatever it claims.

    A ``Status`` without a failure code (even a ``Success``) is an ``UnexpectedBody``: it is not what was asked for.
    """
    if decoded.code < 400:
        text = f"a Status object instead of an answer: {decoded.message or decoded.status or 'empty'}"
        return UnexpectedBody(decoded.code or 200, decoded.reason, text, details=decoded.details)
    return _typed(decoded, status=decoded.code, retry_after_s=None)


def decode_status(body: bytes) -> Status | None:
    """The body as a ``Status`` object, or None when it is something else."""
    try:
        decoded = _status_decoder.decode(body)
    except UNREADABLE:
        return None
    return decoded if decoded.kind == "Status" else None


def _typed(decoded: Status, *, status: int, retry_after_s: float | None) -> ApiError:
    if retry_after_s is None and decoded.details is not None and decoded.details.retry_after_seconds > 0:
        retry_after_s = float(decoded.details.retry_after_seconds)
    return _error_type(status)(
        status,
        decoded.reason,
        decoded.message[:_MESSAGE_LIMIT],
        details=decoded.details,
        retry_after_s=retry_after_s,
    )


def _error_type(status: int) -> type[ApiError]:
    if status >= 500:
        return ServerError
    return _BY_STATUS.get(status, ApiError)


def _seconds(retry_after: str | None) -> float | None:
    """A Retry-After header in seconds; its date form is not used by API servers and is ignored."""
    return float(retry_after) if retry_after is not None and retry_after.strip().isdecimal() else None
