"""A thin client of the Prometheus query API, for Prometheus itself and stores that speak it (Thanos, Mimir, ...).

It exists because the libraries for it are synchronous, use GET, and drop warnings. It knows HTTP and what a wrong
answer looks like; it knows no query and no metric. Every call has a timeout and a size cap, nothing is retried: the
next cycle is the retry.
"""

import asyncio
import ssl
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from urllib.parse import urljoin, urlsplit

import aiohttp

from autoscaler.observe.answers import Answer, AnswerError, Failure, clock_ms, decode_answer

_CHUNK: Final = 256 * 1024
_MAX_REDIRECTS: Final = 3
_SHOWN: Final = 200


class PrometheusError(Exception):
    """The store did not answer a query; `label` is a short stable word for metrics."""

    label = "error"


class Unreachable(PrometheusError):  # noqa: N818 - the tree reads as outcomes, as kube's does
    """No answer: refused, cut, timed out, or TLS failed."""

    label = "unreachable"


class Refused(PrometheusError):  # noqa: N818
    """401 or 403."""

    label = "refused"


class NotPrometheus(PrometheusError):  # noqa: N818
    """Something answered, but not the query API: an HTML page, other JSON, a login redirect."""

    label = "not_prometheus"


class BadQuery(PrometheusError):  # noqa: N818
    """400 or 422: the store understood us and cannot evaluate the query."""

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


class TooLarge(PrometheusError):  # noqa: N818
    """The answer is over the cap."""

    label = "too_large"


class PrometheusClient:
    """One session to one store. Use as an async context manager; safe for concurrent queries.

    `url` is the base without `/api/v1`; a path prefix is kept. The bearer token file is read again for each query.
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
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f"not an http(s) URL: {url!r}")
        self._host = f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname
        self._endpoint = f"{url.rstrip('/')}/api/v1/query"
        self._timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=connect_timeout_s)
        self._max_bytes = max_bytes
        self._token_file = token_file
        self._ca_file = ca_file
        self._headers = dict(headers or {})
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        tls: ssl.SSLContext | bool = True
        if self._ca_file is not None:
            tls = await asyncio.to_thread(ssl.create_default_context, cafile=str(self._ca_file))
        self._session = aiohttp.ClientSession(
            timeout=self._timeout, headers=self._headers, connector=aiohttp.TCPConnector(ssl=tls)
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def query(self, promql: str, *, at_ms: int | None = None) -> Answer:
        """The answer to an instant query, evaluated at `at_ms` (the store's own now if None).

        Raises a `PrometheusError`; an empty vector is an answer. Warnings are in the answer, not errors.
        """
        form = {"query": promql}
        if at_ms is not None:
            form["time"] = f"{at_ms / 1000:.3f}"
        try:
            return await self._post(form)
        except TimeoutError as error:
            raise Unreachable(f"{self._host}: no answer in {self._timeout.total:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise Unreachable(f"{self._host}: {str(error) or type(error).__name__}") from error

    async def now_ms(self) -> int:
        """The store's clock: what it evaluates `time()` to."""
        answer = await self.query("time()")
        try:
            return clock_ms(answer)
        except AnswerError as error:
            raise NotPrometheus(f"time() gave no clock: {error}") from error

    async def _post(self, form: dict[str, str]) -> Answer:
        if self._session is None:
            raise RuntimeError("the client is not open: use it as an async context manager")
        target = self._endpoint
        headers = await self._authorization()
        for _ in range(_MAX_REDIRECTS):
            async with self._session.post(
                target, data=form, headers=headers, allow_redirects=False
            ) as response:
                if not 300 <= response.status < 400:
                    return self._read(response, await self._body(response))
                target = self._follow(response, target)
        raise NotPrometheus(f"more than {_MAX_REDIRECTS} redirects")

    def _follow(self, response: aiohttp.ClientResponse, target: str) -> str:
        """Where a redirect may lead: the same origin, and only with the method and body kept (307, 308)."""
        location = urljoin(target, response.headers.get("Location", ""))
        old, new = urlsplit(target), urlsplit(location)
        if response.status not in {307, 308} or (old.scheme, old.netloc) != (new.scheme, new.netloc):
            shown = f"{new.scheme}://{new.hostname}{new.path}"
            raise NotPrometheus(f"redirected ({response.status}) to {shown}: not followed")
        return location

    async def _authorization(self) -> dict[str, str]:
        if self._token_file is None:
            return {}
        try:
            token = await asyncio.to_thread(self._token_file.read_text, encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise Refused(f"the token file is unreadable: {error}") from error
        return {"Authorization": f"Bearer {token.strip()}"}

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        if (response.content_length or 0) > self._max_bytes:
            raise TooLarge(
                f"an answer of {response.content_length} bytes, at most {self._max_bytes} are read"
            )
        parts, size = [], 0
        async for chunk in response.content.iter_chunked(_CHUNK):
            size += len(chunk)
            if size > self._max_bytes:
                raise TooLarge(f"an answer of over {self._max_bytes} bytes")
            parts.append(chunk)
        return b"".join(parts)

    def _read(self, response: aiohttp.ClientResponse, body: bytes) -> Answer:
        """The answer, or the error that its status and body stand for."""
        status = response.status
        match status:
            case 401 | 403:
                raise Refused(f"{status} {response.reason}: {_words(body)}")
            case 429:
                raise Throttled(f"429: {_words(body)}")
            case _ if status >= 500:
                raise ServerError(f"{status}: {_words(body)}")
            case _:
                pass
        try:
            answer = decode_answer(body)
        except AnswerError as error:
            raise NotPrometheus(f"{status} from {self._host}: {error}") from error
        if isinstance(answer, Failure):
            raise _failure(status, answer)
        if status != 200:
            raise NotPrometheus(f"status {status} with a successful answer")
        return answer


def _failure(status: int, failure: Failure) -> PrometheusError:
    text = f"{status} {failure.error_type}: {failure.message[:_SHOWN]}"
    if failure.error_type in {"timeout", "canceled", "internal", "unavailable"}:
        return ServerError(text)
    return BadQuery(text, error_type=failure.error_type)


def _words(body: bytes) -> str:
    """The store's own message if it is in the API's form, else the beginning of the body."""
    try:
        answer = decode_answer(body)
    except AnswerError:
        answer = None
    if isinstance(answer, Failure):
        return answer.message[:_SHOWN]
    return body[:_SHOWN].decode("utf-8", "replace").strip()
