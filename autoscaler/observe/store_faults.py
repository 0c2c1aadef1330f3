"""What can go wrong between us and a metrics store, as one tree of errors, and which answer stands for which.

They are told apart because each has another remedy: a wrong path, a missing right, a limit of the store, a store that is
down. None of their texts carries a secret.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Final

import msgspec

from autoscaler.observe.answers import AnswerError, Failure, decode_answer

SHOWN: Final = 200
_READ_FOR_WORDS: Final = 64 * 1024
_LONGEST_WAIT_S: Final = 86_400.0
_TIMEOUT: Final = "timeout"
_SERVER_TYPES: Final = frozenset({_TIMEOUT, "canceled", "internal", "unavailable"})
"""Error types of the query API that say nothing against the query itself."""


class PrometheusError(Exception):
    """The store did not answer a query; `label` is a short stable word for metrics.

    `retry_after_s` is how long the store asks to be left alone, None where it does not say.
    """

    label = "error"
    retry_after_s: float | None = None


class Unreachable(PrometheusError):  # noqa: N818 - the tree reads as outcomes, as kube's does
    """No answer: refused, cut, timed out, or TLS failed."""

    label = "unreachable"


class TimedOut(Unreachable):
    """No answer within our own limit."""


class Refused(PrometheusError):  # noqa: N818
    """401 or 403."""

    label = "refused"


class NotPrometheus(PrometheusError):  # noqa: N818
    """Something answered, but not the query API: an HTML page, other JSON, a login redirect."""

    label = "not_prometheus"


class MethodRefused(NotPrometheus):
    """405: the store or a proxy before it takes no such request, e.g. no POST."""


class BadQuery(PrometheusError):  # noqa: N818
    """400 or 422: the store understood us and cannot, or will not, evaluate the query; its limits end here too."""

    label = "bad_query"

    def __init__(self, message: str, *, error_type: str) -> None:
        super().__init__(message)
        self.error_type = error_type


class Throttled(PrometheusError):  # noqa: N818
    """429."""

    label = "throttled"


class ServerError(PrometheusError):
    """5xx, or the API's own timeout or cancellation."""

    label = "server_error"

    def __init__(self, message: str, *, error_type: str = "") -> None:
        super().__init__(message)
        self.error_type = error_type

    @property
    def timed_out(self) -> bool:
        """Whether the store gave up for time."""
        return self.error_type == _TIMEOUT


class TooLarge(PrometheusError):  # noqa: N818
    """The answer is over the cap, ours or the store's (413)."""

    label = "too_large"


class Reply(msgspec.Struct, frozen=True):
    """A complete answer of some HTTP server; the body is decompressed and within the cap."""

    status: int
    reason: str
    body: bytes
    retry_after_s: float | None = None


def refusal_of(reply: Reply, *, hide: Callable[[str], str]) -> PrometheusError | None:
    """The error that a status stands for by itself; None for one whose body must be read.

    `hide` takes secrets out of what the store says: a proxy may repeat a header.
    """
    status = reply.status
    error: PrometheusError
    match status:
        case 401 | 403:
            error = Refused(f"{status} {reply.reason}: {_words(reply.body, hide)}")
        case 405:
            error = MethodRefused(f"405: {_words(reply.body, hide)}")
        case 413:
            error = TooLarge(f"413: {_words(reply.body, hide)}")
        case 429:
            error = Throttled(f"429: {_words(reply.body, hide)}")
        case _ if status >= 500:
            failure = _failure(reply.body)
            kind = failure.error_type if failure else ""
            error = ServerError(f"{status}: {_words(reply.body, hide)}", error_type=kind)
        case _:
            return None
    error.retry_after_s = reply.retry_after_s
    return error


def failure_of(status: int, failure: Failure, *, hide: Callable[[str], str]) -> PrometheusError:
    """The error that the API's own error answer stands for."""
    text = hide(f"{status} {failure.error_type}: {failure.message}")[:SHOWN]
    if failure.error_type in _SERVER_TYPES:
        return ServerError(text, error_type=failure.error_type)
    return BadQuery(text, error_type=failure.error_type)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """The wait that `Retry-After` asks for, at most a day; a date is counted from the server's own `Date`."""
    text = headers.get("Retry-After", "").strip()
    if not text:
        return None
    if text.isascii() and text.isdecimal():
        return min(float(text), _LONGEST_WAIT_S)
    until, sent = _date(text), _date(headers.get("Date", ""))
    if until is None or sent is None:
        return None
    return min(max((until - sent).total_seconds(), 0.0), _LONGEST_WAIT_S)


def _date(text: str) -> datetime | None:
    """An HTTP date; None for one that is none, or says no zone."""
    try:
        found = parsedate_to_datetime(text)
    except ValueError:
        return None
    return found if found.tzinfo else None


def _failure(body: bytes) -> Failure | None:
    try:
        answer = decode_answer(body)
    except AnswerError:
        return None
    return answer if isinstance(answer, Failure) else None


def _words(body: bytes, hide: Callable[[str], str]) -> str:
    """The store's own message if it is in the API's form, else the beginning of the body."""
    failure = _failure(body)
    text = failure.message if failure else body[:_READ_FOR_WORDS].decode("utf-8", "replace")
    return hide(text).strip()[:SHOWN]
