"""Sockets that notice a dead peer, and plain words for what can happen to them."""

import socket
import ssl

import aiohttp
from aiohttp.connector import AddrInfoType

from autoscaler.kube.errors import Unreachable

NETWORK_ERRORS = (aiohttp.ClientError, TimeoutError, OSError)
"""Everything aiohttp raises when there is no answer."""

_KEEPALIVE_IDLE_S = 30
_KEEPALIVE_INTERVAL_S = 10
_KEEPALIVE_PROBES = 3
_USER_TIMEOUT_MS = 30_000
"""A peer that vanished without a FIN (node loss, NAT timeout) is noticed in a minute, not after two hours."""


def keepalive_socket(address: AddrInfoType) -> socket.socket:
    """A TCP socket with keepalive and a limit for unacknowledged data, as aiohttp's ``socket_factory`` wants it."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family=family, type=kind, proto=protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # Linux names; elsewhere (a developer's laptop) plain keepalive has to do.
    for name, value in (
        ("TCP_KEEPIDLE", _KEEPALIVE_IDLE_S),
        ("TCP_KEEPINTVL", _KEEPALIVE_INTERVAL_S),
        ("TCP_KEEPCNT", _KEEPALIVE_PROBES),
        ("TCP_USER_TIMEOUT", _USER_TIMEOUT_MS),
    ):
        if hasattr(socket, name):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made


def open_connector(tls: ssl.SSLContext | None) -> aiohttp.TCPConnector:
    """A pool for one API server. Watches hold a connection each, so the limit is well above the number of kinds."""
    return aiohttp.TCPConnector(
        limit=100,
        ssl=tls if tls is not None else True,
        socket_factory=keepalive_socket,
        # Idle keep-alive connections are dropped before load balancers do it silently.
        keepalive_timeout=30.0,
    )


def describe_failure(error: Exception) -> Unreachable:
    """The network error in one of six words; its text never contains headers, so no token."""
    return Unreachable(_reason(error), str(error) or type(error).__name__)


def _reason(error: Exception) -> str:
    match error:
        case TimeoutError():
            return "timeout"
        case aiohttp.ClientConnectorDNSError():
            return "dns"
        case aiohttp.ClientSSLError() | ssl.SSLError():
            return "tls"
        case aiohttp.ClientConnectorError() | ConnectionRefusedError():
            return "refused"
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientPayloadError() | ConnectionResetError():
            return "cut"
        case _:
            return "network"
