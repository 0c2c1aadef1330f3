"""One HTTP session per process and API server: every request of this project goes through here.

It promises that each call has timeouts, ends in a value or a ``KubeError`` (also for a 200 that carries a ``Status``), carries a fresh
token, respects the client-side rate and what the server asks for in ``Retry-After``, never follows redirects and
never holds more of an answer than a cap. It knows no kinds beyond what it is told and no metrics library: it calls hooks.
"""

import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from importlib import metadata
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

import aiohttp
import msgspec
import stamina
from aiolimiter import AsyncLimiter

from autoscaler.kube.config import ClusterAccess
from autoscaler.kube.connection import NETWORK_ERRORS, describe_failure, open_connector
from autoscaler.kube.errors import (
    UNREADABLE,
    ApiError,
    KubeError,
    UnexpectedBody,
    decode_status,
    error_from_response,
    error_from_status,
)
from autoscaler.kube.kinds import Kind, Page, T
from autoscaler.kube.server_clock import ServerClock

# Read once at import: looking up the version reads files, which would block the loop.
_USER_AGENT = f"gpu-autoscaler/{metadata.version('gpu-autoscaler')}"
WriteVerb: TypeAlias = Literal["POST", "PUT", "PATCH", "DELETE"]
_ITEM = re.compile(r"\$\.items\[(\d+)\]")
_STATUS_PEEK_BYTES = 64 * 1024
"""A ``Status`` is small; larger bodies are not looked at twice (a list's own ``kind`` is checked after decoding)."""


class _Named(msgspec.Struct):
    metadata: dict[str, object] = {}


class _NamedItems(msgspec.Struct):
    items: list[_Named] = []


_named_decoder = msgspec.json.Decoder(_NamedItems)


@dataclass(frozen=True, kw_only=True)
class SessionLimits:
    """Numbers of the session, with the reason for each default."""

    connect_timeout_s: float = 5.0
    """TCP and TLS inside one data centre."""
    read_timeout_s: float = 30.0
    """Silence in the middle of an answer; the API server's own limit for a request is 60 s."""
    total_timeout_s: float = 70.0
    """A whole answer; a little more than the server's 60 s, so that its own error can still arrive."""
    reads_per_s: float = 20.0
    reads_burst: int = 40
    writes_per_s: float = 20.0
    writes_burst: int = 40
    """Reads and writes do not wait for each other."""
    max_body_bytes: int = 64 * 1024 * 1024
    """A page of 500 large pods is some 15 MB."""
    attempts: int = 4
    retry_first_s: float = 0.2
    retry_cap_s: float = 10.0
    """Four attempts over at most some seconds; what takes longer is for the caller to wait out."""


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One HTTP exchange, for metrics. ``outcome`` is the status, or the label of the error that prevented one."""

    verb: str
    path: str
    outcome: str
    seconds: float
    """Until the answer's headers."""


class KubeSession:
    """``async with KubeSession(access) as session``: opened and closed inside the loop that uses it."""

    def __init__(
        self,
        access: ClusterAccess,
        *,
        limits: SessionLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
        on_request: Callable[[RequestRecord], None] | None = None,
        agent: str = "",
    ) -> None:
        """``agent`` is added to the user agent, so that an audit log tells one replica from the other."""
        self.access = access
        self._user_agent = f"{_USER_AGENT} ({agent})" if agent else _USER_AGENT
        self.limits = limits or SessionLimits()
        self.server_clock = ServerClock(clock)
        self.request_count = 0
        """Requests sent, retries included."""
        self._clock = clock
        self._on_request = on_request
        self._http: aiohttp.ClientSession | None = None
        self._reads = AsyncLimiter(self.limits.reads_burst, self.limits.reads_burst / self.limits.reads_per_s)
        self._writes = AsyncLimiter(
            self.limits.writes_burst, self.limits.writes_burst / self.limits.writes_per_s
        )

    async def __aenter__(self) -> Self:
        self._http = aiohttp.ClientSession(
            connector=open_connector(self.access.tls),
            # Proxies come from the kubeconfig only: a stray HTTP_PROXY must not carry our token elsewhere.
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            raise_for_status=False,
            read_bufsize=256 * 1024,
            headers={
                "User-Agent": self._user_agent,
                "Accept": "application/json",
                # Unpacking gzip costs more processor time here than the bytes cost inside a cluster.
                "Accept-Encoding": "identity",
            },
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._http is not None:
            await self._http.close()
            self._http = None

    def server_time_ms(self) -> int | None:
        """The API server's present time by its last answer, within about a second; None before the first answer."""
        return self.server_clock.now_ms()

    async def get_json(
        self,
        path: str,
        params: Mapping[str, str] | None,
        decoder: "msgspec.json.Decoder[Any]",
        *,
        accept: str | None = None,
        retry: bool = True,
        timeout_s: float | None = None,
    ) -> Any:
        """The decoded answer to a GET. Overload, 5xx and network faults are retried a few times unless ``retry`` is off."""
        headers = {"Accept": accept} if accept else {}
        if not retry:
            answer = await self._fetch("GET", path, params=params, headers=headers, timeout_s=timeout_s)
            return decode_body(answer, decoder)
        async for attempt in stamina.retry_context(
            on=self._retry_wait,
            attempts=self.limits.attempts,
            timeout=None,
            wait_initial=self.limits.retry_first_s,
            wait_max=self.limits.retry_cap_s,
            wait_jitter=self.limits.retry_first_s,
        ):
            with attempt:
                answer = await self._fetch("GET", path, params=params, headers=headers, timeout_s=timeout_s)
                return decode_body(answer, decoder)
        raise AssertionError("unreachable: the last attempt raises")

    async def list_page(
        self,
        kind: Kind[T],
        *,
        limit: int,
        continue_token: str = "",
        params: Mapping[str, str] | None = None,
        retry: bool = False,
    ) -> Page[T]:
        """One page of all objects of a kind. Retried only if asked for: whoever watches has a backoff of his own.

        Anything but a list of that kind is an error: a ``Status`` read as a list would be an empty cluster.
        """
        query = {**(params or {}), "limit": str(limit)}
        if continue_token:
            query["continue"] = continue_token
        page: Page[T] = await self.get_json(kind.path, query, kind.page_decoder, retry=retry)
        if page.kind != f"{kind.name}List":
            raise UnexpectedBody(
                200, "", f"asked for {kind.name}List, got {page.kind or 'an object without kind'}"
            )
        return page

    async def post(
        self,
        path: str,
        body: object,
        decoder: "msgspec.json.Decoder[Any]",
        *,
        content_type: str = "application/json",
        timeout_s: float | None = None,
    ) -> Any:
        """The decoded answer to a POST. Sent once (twice only if the first was refused with a 401)."""
        return await self.write("POST", path, body, decoder, content_type=content_type, timeout_s=timeout_s)

    async def write(  # noqa: PLR0913 - one request has this many parts
        self,
        verb: WriteVerb,
        path: str,
        body: object,
        decoder: "msgspec.json.Decoder[Any]",
        *,
        content_type: str = "application/json",
        params: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        before_send: Callable[[], None] | None = None,
    ) -> Any:
        """The decoded answer to a changing request. Sent once (twice only if the first was refused with a 401).

        ``before_send`` is called when the rate limit has let the request pass, right before it is sent; what it raises
        ends the call with nothing sent.
        """
        answer = await self._fetch(
            verb,
            path,
            params=params,
            data=msgspec.json.encode(body),
            headers={"Content-Type": content_type},
            timeout_s=timeout_s,
            before_send=before_send,
        )
        return decode_body(answer, decoder)

    @asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, str] | None = None, *, idle_timeout_s: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The answer to a GET as it arrives. Silence longer than ``idle_timeout_s`` is ``Unreachable("timeout")``."""
        timeout = aiohttp.ClientTimeout(
            total=None,
            connect=self.limits.connect_timeout_s * 2,
            sock_connect=self.limits.connect_timeout_s,
            sock_read=idle_timeout_s,
        )
        async with (
            self._exchange("GET", path, params=params, timeout=timeout) as response,
            aclosing(_chunks(response)) as chunks,
        ):
            yield chunks

    async def _fetch(  # noqa: PLR0913 - one request has this many parts
        self,
        verb: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        data: bytes | None = None,
        timeout_s: float | None = None,
        before_send: Callable[[], None] | None = None,
    ) -> bytes:
        timeout = aiohttp.ClientTimeout(
            total=timeout_s or self.limits.total_timeout_s,
            sock_connect=self.limits.connect_timeout_s,
            sock_read=self.limits.read_timeout_s,
        )
        async with self._exchange(
            verb,
            path,
            params=params,
            headers=headers,
            before_send=before_send,
            data=data,
            timeout=timeout,
        ) as response:
            return await read_capped(response, self.limits.max_body_bytes)

    @asynccontextmanager
    async def _exchange(
        self,
        verb: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        before_send: Callable[[], None] | None = None,
        **options: Any,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """An answer with a 2xx status, or a typed error. After a 401 the token is read again and tried once more."""
        try:
            response = await self._send(verb, path, headers=headers, before_send=before_send, **options)
            if response.status == 401:
                response.release()
                self.access.credentials.invalidate()
                response = await self._send(verb, path, headers=headers, before_send=before_send, **options)
        except NETWORK_ERRORS as error:
            raise describe_failure(error) from error
        try:
            if not 200 <= response.status < 300:
                raise await _refusal(response)
            yield response
        finally:
            # Closing drops the connection when the body was not read to its end; a read one went back to the pool.
            response.close()

    async def _send(
        self,
        verb: str,
        path: str,
        *,
        headers: Mapping[str, str] | None,
        before_send: Callable[[], None] | None = None,
        **options: Any,
    ) -> aiohttp.ClientResponse:
        if self._http is None:
            raise RuntimeError("the session is not open: use it in an `async with`")
        authorization = await self.access.credentials.authorization()
        sent_headers = {**(headers or {}), **({"Authorization": authorization} if authorization else {})}
        await (self._reads if verb == "GET" else self._writes).acquire()
        if before_send is not None:
            before_send()
        self.request_count += 1
        started_s = self._clock()
        outcome = "cancelled"
        try:
            response = await self._http.request(
                verb,
                self.access.server + path,
                headers=sent_headers,
                allow_redirects=False,
                proxy=self.access.proxy,
                server_hostname=self.access.tls_server_name,
                **options,
            )
            outcome = str(response.status)
        except NETWORK_ERRORS as error:
            outcome = describe_failure(error).label
            raise
        finally:
            if self._on_request is not None:
                self._on_request(RequestRecord(verb, path, outcome, self._clock() - started_s))
        self.server_clock.heard(response.headers.get("Date"))
        return response

    def _retry_wait(self, error: Exception) -> bool | float:
        """For stamina: False to give up, True for its own backoff, seconds where the server named them."""
        if not isinstance(error, KubeError) or not error.retryable:
            return False
        if error.retry_after_s is None:
            return True
        return error.retry_after_s if error.retry_after_s <= self.limits.retry_cap_s else False


def decode_body(body: bytes, decoder: "msgspec.json.Decoder[Any]") -> Any:
    """The body as the decoder's type. A ``Status`` becomes its typed error, anything unreadable an UnexpectedBody."""
    if len(body) <= _STATUS_PEEK_BYTES and b'"Status"' in body:
        status = decode_status(body)
        if status is not None:
            raise error_from_status(status)
    try:
        return decoder.decode(body)
    except UNREADABLE as error:
        start = body[:120].decode("utf-8", errors="replace")
        text = f"unreadable answer: {error}{_whose(body, error)} (starts with {start!r})"
        raise UnexpectedBody(200, "", text) from error


def _whose(body: bytes, error: Exception) -> str:
    """Which object of a list could not be read, as far as it can be told."""
    found = _ITEM.search(str(error))
    if found is None:
        return ""
    try:
        metadata = _named_decoder.decode(body).items[int(found.group(1))].metadata
    except (*UNREADABLE, IndexError):
        return ""
    return f", which is {metadata.get('namespace', '')}/{metadata.get('name', '')}"


async def _refusal(response: aiohttp.ClientResponse) -> ApiError:
    """What an answer outside 2xx means. Redirects are not followed: a token is for one host."""
    if 300 <= response.status < 400:
        return UnexpectedBody(response.status, "", f"redirected to {response.headers.get('Location', '?')}")
    body = await read_capped(response, _STATUS_PEEK_BYTES)
    return error_from_response(response.status, body, retry_after=response.headers.get("Retry-After"))


async def read_capped(response: aiohttp.ClientResponse, cap: int) -> bytes:
    """The whole body, or UnexpectedBody as soon as it exceeds the cap."""
    parts: list[bytes] = []
    size = 0
    try:
        async for part in response.content.iter_any():
            size += len(part)
            if size > cap:
                raise UnexpectedBody(response.status, "", f"an answer larger than {cap} bytes")
            parts.append(part)
    except NETWORK_ERRORS as error:
        raise describe_failure(error) from error
    return b"".join(parts)


async def _chunks(response: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
    """Chunks of the body; network faults while reading become Unreachable."""
    try:
        async for chunk in response.content.iter_any():
            yield chunk
    except NETWORK_ERRORS as error:
        raise describe_failure(error) from error
