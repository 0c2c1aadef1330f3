"""How requests reach a metrics store: one session, its credentials, its limits.

It knows HTTP and no query. Nothing is retried, a redirect never leaves the store's own origin, no proxy of the environment
is used, and no answer, compressed or not, is held beyond the cap.
"""

import asyncio
import base64
import re
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

import aiohttp

from autoscaler.observe.gunzip import Gunzip, GunzipError, OverLimitError
from autoscaler.observe.store_faults import NotPrometheus, Refused, Reply, TimedOut, TooLarge, Unreachable
from autoscaler.observe.store_faults import retry_after_s as wait_asked_s

Method = Literal["POST", "GET"]
Fields = Sequence[tuple[str, str]]

_CHUNK: Final = 256 * 1024
_MAX_REDIRECTS: Final = 3
_AUTHORIZATION: Final = "Authorization"
_MASK: Final = "**********"
_SHORT: Final = 4
"""Secrets up to this length are hidden as whole words only: a tenant called `1` is no reason to unmake a number."""


class StoreTransport:
    """One session to one store. `url` is the base without `/api/v1`; a path prefix and credentials in it are used.

    The bearer token file is read again for each request. Raises `ValueError` for a URL that cannot be one, or for two
    credentials at once.
    """

    def __init__(  # noqa: PLR0913 - each is one fact of how to reach a store
        self,
        url: str,
        *,
        timeout_s: float,
        connect_timeout_s: float,
        max_bytes: int,
        token_file: Path | None,
        ca_file: Path | None,
        headers: Mapping[str, str],
    ) -> None:
        parts = _parsed(url)
        self.host = f"{parts.hostname}:{parts.port}" if parts.port else f"{parts.hostname}"
        bare = parts.netloc.rpartition("@")[2]
        self._base = f"{parts.scheme}://{bare}{parts.path.rstrip('/')}"
        # An encoding of the caller's would be answered in one that is not read here.
        self._headers = {k: v for k, v in headers.items() if k.lower() != "accept-encoding"}
        self._headers["Accept-Encoding"] = "gzip"
        basic = _basic(parts)
        given = [name for name in headers if name.lower() == _AUTHORIZATION.lower()]
        if (token_file is not None) + bool(basic) + len(given) > 1:
            raise ValueError(
                "more than one of a token file, credentials in the URL and an Authorization header"
            )
        if basic:
            self._headers[_AUTHORIZATION] = f"Basic {basic}"
        self._secrets = [basic, parts.password or "", unquote(parts.password or ""), *headers.values()]
        self._secrets += [headers[name].rpartition(" ")[2] for name in given]
        self._token = ""
        self._token_file = token_file
        self._ca_file = ca_file
        self._timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=connect_timeout_s)
        self._timeout_s = timeout_s
        self._max_bytes = max_bytes
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        """Opens the session; raises `OSError` for an unreadable CA file."""
        tls: ssl.SSLContext | bool = True
        if self._ca_file is not None:
            tls = await asyncio.to_thread(ssl.create_default_context, cafile=str(self._ca_file))
        self._session = aiohttp.ClientSession(
            timeout=self._timeout,
            headers=self._headers,
            connector=aiohttp.TCPConnector(ssl=tls),
            auto_decompress=False,
            trust_env=False,
        )

    async def close(self) -> None:
        """Closes the session; it may be opened again."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def send(self, method: Method, path: str, fields: Fields) -> Reply:
        """The answer to a request with these fields, in the body of a POST, in the URL of a GET.

        Raises a `PrometheusError` where there is no complete answer within the limits; whatever the status is.
        """
        try:
            return await self._send(method, f"{self._base}{path}", fields)
        except TimeoutError as error:
            raise TimedOut(f"{self.host}: no answer in {self._timeout_s:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise Unreachable(self.hide(f"{self.host}: {str(error) or type(error).__name__}")) from error

    def hide(self, text: str) -> str:
        """The text without any secret that requests carry."""
        for secret in sorted({*self._secrets, self._token}, key=len, reverse=True):
            if len(secret) > _SHORT:
                text = text.replace(secret, _MASK)
            elif secret:
                text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", _MASK, text)
        return text

    async def _send(self, method: Method, target: str, fields: Fields) -> Reply:
        if self._session is None:
            raise RuntimeError("the client is not open: use it as an async context manager")
        headers = await self._authorization()
        in_url = list(fields) if method == "GET" else None
        in_body = list(fields) if method == "POST" else None
        for _ in range(_MAX_REDIRECTS):
            async with self._session.request(
                method, target, params=in_url, data=in_body, headers=headers, allow_redirects=False
            ) as response:
                if not 300 <= response.status < 400:
                    return Reply(
                        status=response.status,
                        reason=self.hide(response.reason or ""),
                        body=await self._body(response),
                        retry_after_s=wait_asked_s(response.headers),
                    )
                target, in_url = self._follow(response, str(response.url)), None
        raise NotPrometheus(f"more than {_MAX_REDIRECTS} redirects")

    def _follow(self, response: aiohttp.ClientResponse, target: str) -> str:
        """Where a redirect may lead: the same origin, and only with the method and body kept (307, 308)."""
        location = urljoin(target, response.headers.get("Location", ""))
        old, new = urlsplit(target), urlsplit(location)
        if response.status not in {307, 308} or (old.scheme, old.netloc) != (new.scheme, new.netloc):
            shown = self.hide(f"{new.scheme}://{new.hostname}{new.path}")
            raise NotPrometheus(f"redirected ({response.status}) to {shown}: not followed")
        return location

    async def _authorization(self) -> dict[str, str]:
        if self._token_file is None:
            return {}
        try:
            text = await asyncio.to_thread(self._token_file.read_text, encoding="utf-8")
        except UnicodeDecodeError:
            raise Refused("the token file is no text") from None
        except OSError as error:
            raise Refused(f"the token file is unreadable: {error}") from error
        self._token = text.strip()
        if not self._token or not self._token.isprintable() or not self._token.isascii():
            raise Refused(
                "the token file is empty or holds more than one token: one line of text is expected"
            )
        return {_AUTHORIZATION: f"Bearer {self._token}"}

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        if (response.content_length or 0) > self._max_bytes:
            raise TooLarge(
                f"an answer of {response.content_length} bytes, at most {self._max_bytes} are read"
            )
        parts, size = [], 0
        async for piece in self._decoded(response):
            size += len(piece)
            if size > self._max_bytes:
                raise TooLarge(f"an answer of over {self._max_bytes} bytes")
            parts.append(piece)
        return b"".join(parts)

    async def _decoded(self, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        """The body without its compression, piece by piece."""
        encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
        pieces = response.content.iter_chunked(_CHUNK)
        if encoding in {"identity", ""}:
            async for piece in pieces:
                yield piece
            return
        if encoding not in {"gzip", "x-gzip"}:
            raise NotPrometheus(f"an answer in the encoding {encoding[:20]!r}, asked for was gzip")
        gunzip = Gunzip(self._max_bytes)
        try:
            async for piece in pieces:
                yield await asyncio.to_thread(gunzip.feed, piece)
        except OverLimitError:
            raise TooLarge(f"an answer of over {self._max_bytes} bytes when decompressed") from None
        except GunzipError as error:
            raise NotPrometheus(f"{self.host}: {error}") from None
        if not gunzip.complete:
            raise Unreachable(f"{self.host}: the compressed answer was cut")


def _parsed(url: str) -> SplitResult:
    parts = urlsplit(url)
    try:
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment:
        shown = re.sub(r"//.*@", f"//{_MASK}@", url)
        raise ValueError(f"not an http(s) URL of a store: {shown!r}")
    return parts


def _basic(parts: SplitResult) -> str:
    """The credentials of a URL as Basic authentication writes them; empty where there are none."""
    if parts.username is None:
        return ""
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return base64.b64encode(pair.encode()).decode()
