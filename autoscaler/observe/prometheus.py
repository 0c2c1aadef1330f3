"""A thin client of the Prometheus query API, for Prometheus itself and stores that speak it (Thanos, Mimir, ...).

It exists because the libraries for it are synchronous, use GET, and drop warnings. It knows what a wrong answer looks
like; it knows no query and no metric. Every call has a timeout and a size cap, nothing is retried: the next cycle is the
retry.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self, TypeVar
from urllib.parse import quote

import msgspec

from autoscaler.observe.answers import (
    Answer,
    AnswerError,
    Failure,
    Names,
    clock_ms,
    decode_answer,
    decode_facts,
    decode_names,
)
from autoscaler.observe.matrix import MatrixAnswer
from autoscaler.observe.store_faults import (
    BadQuery,
    MethodRefused,
    NotPrometheus,
    PrometheusError,
    Refused,
    Reply,
    ServerError,
    Throttled,
    TimedOut,
    TooLarge,
    Unreachable,
    failure_of,
    refusal_of,
)
from autoscaler.observe.store_http import Method, StoreTransport

__all__ = [
    "RESERVED_PARAMS",
    "BadQuery",
    "Fact",
    "Method",
    "MethodRefused",
    "NotPrometheus",
    "NotServed",
    "PrometheusClient",
    "PrometheusError",
    "Refused",
    "ServerError",
    "Throttled",
    "TimedOut",
    "TooLarge",
    "Unreachable",
]

RESERVED_PARAMS: Final = frozenset(
    {"query", "time", "start", "end", "step", "timeout", "limit", "match", "match[]"}
)
"""Parameters that decide what is asked and how much of it is answered; they cannot be given from outside."""
Fact = Literal["buildinfo", "flags", "runtimeinfo"]
_STORE_SHARE: Final = 0.9
"""The store's part of the timeout: it gives up, and says so, before we stop to listen."""
_T = TypeVar("_T")


class NotServed(msgspec.Struct, frozen=True):
    """The store has no such page, or does not show it to us; not every store has every one."""

    told: str


class PrometheusClient:
    """One session to one store. Use as an async context manager; safe for concurrent queries.

    `url` is the base without `/api/v1`; a path prefix is kept. The bearer token file is read again for each query.
    `params` go with every query, e.g. `partial_response=false` (Thanos) or `nocache=1` (VictoriaMetrics); `method` is for
    stores and proxies that take no POST.
    """

    def __init__(  # noqa: PLR0913 - each is one fact of how to reach a store, with a default
        self,
        url: str,
        *,
        timeout_s: float = 30.0,
        connect_timeout_s: float = 5.0,
        max_bytes: int = 256 * 1024 * 1024,
        token_file: Path | None = None,
        ca_file: Path | None = None,
        headers: Mapping[str, str] | None = None,
        params: Sequence[tuple[str, str]] = (),
        method: Method = "POST",
    ) -> None:
        if taken := sorted(RESERVED_PARAMS.intersection(name for name, _ in params)):
            raise ValueError(f"parameters that queries set themselves: {', '.join(taken)}")
        self._transport = StoreTransport(
            url,
            timeout_s=timeout_s,
            connect_timeout_s=connect_timeout_s,
            max_bytes=max_bytes,
            token_file=token_file,
            ca_file=ca_file,
            headers=headers or {},
        )
        self._params = tuple(params)
        self._method: Method = method
        self._store_timeout = f"{timeout_s * _STORE_SHARE:g}"

    async def __aenter__(self) -> Self:
        await self._transport.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._transport.close()

    async def query(self, promql: str, *, at_ms: int | None = None) -> Answer:
        """The answer to an instant query, evaluated at `at_ms` (the store's own now if None).

        Raises a `PrometheusError`; an empty vector is an answer. Warnings are in the answer, not errors.
        """
        time = () if at_ms is None else (("time", _seconds(at_ms)),)
        return await self._evaluate("/api/v1/query", (("query", promql), *time))

    async def query_range(self, promql: str, *, start_ms: int, end_ms: int, step_ms: int) -> MatrixAnswer:
        """The answer to a query evaluated every `step_ms` from `start_ms` to `end_ms`, both included.

        Raises as `query` does. Stores allow 11,000 steps at most and limit the samples too; over that it is a `BadQuery`.
        """
        if step_ms <= 0 or end_ms < start_ms:
            raise ValueError(f"no range: from {start_ms} to {end_ms} every {step_ms} ms")
        fields = (
            ("query", promql),
            ("start", _seconds(start_ms)),
            ("end", _seconds(end_ms)),
            ("step", _seconds(step_ms)),
        )
        answer = await self._evaluate("/api/v1/query_range", fields)
        if answer.kind != "matrix":
            raise NotPrometheus(f"expected a matrix, got a {answer.kind[:20]}")
        return MatrixAnswer(
            result=answer.result,
            start_ms=start_ms,
            end_ms=end_ms,
            step_ms=step_ms,
            warnings=answer.warnings,
            infos=answer.infos,
        )

    async def now_ms(self) -> int:
        """The store's clock: what it evaluates `time()` to."""
        answer = await self.query("time()")
        try:
            return clock_ms(answer)
        except AnswerError as error:
            raise NotPrometheus(f"time() gave no clock: {error}") from error

    async def label_values(
        self, label: str, *, match: Sequence[str] = (), since_ms: int | None = None
    ) -> Names:
        """The values of a label (`__name__`: the metrics) among the series that a selector in `match` finds.

        Without `since_ms` the store looks as far back as it likes. Raises as `query` does.
        """
        fields = [("match[]", selector) for selector in match]
        if since_ms is not None:
            fields.append(("start", _seconds(since_ms)))
        path = f"/api/v1/label/{quote(label, safe='')}/values"
        return self._read(await self._transport.send("GET", path, (*fields, *self._params)), decode_names)

    async def status(self, fact: Fact) -> Mapping[str, str] | NotServed:
        """What the store says of itself, as text by name; `NotServed` where it, or a proxy, does not show it.

        Raises a `PrometheusError` when it cannot be reached or fails.
        """
        reply = await self._transport.send("GET", f"/api/v1/status/{fact}", self._params)
        try:
            return self._read(reply, decode_facts)
        except ServerError as error:
            if reply.status != 501:
                raise
            return NotServed(str(error))
        except (NotPrometheus, Refused, BadQuery) as error:
            return NotServed(str(error))

    async def _evaluate(self, path: str, fields: Sequence[tuple[str, str]]) -> Answer:
        asked = (*fields, ("timeout", self._store_timeout), *self._params)
        return self._read(await self._transport.send(self._method, path, asked), decode_answer)

    def _read(self, reply: Reply, decode: Callable[[bytes], _T | Failure]) -> _T:
        """The answer, or the error that its status and body stand for."""
        hide, status = self._transport.hide, reply.status
        if (refusal := refusal_of(reply, hide=hide)) is not None:
            raise refusal
        try:
            answer = decode(reply.body)
        except AnswerError as error:
            raise NotPrometheus(hide(f"{status} from {self._transport.host}: {error}")) from error
        if isinstance(answer, Failure):
            raise failure_of(status, answer, hide=hide)
        if status != 200:
            raise NotPrometheus(f"status {status} with a successful answer")
        return answer


def _seconds(ms: int) -> str:
    return f"{ms / 1000:.3f}"
