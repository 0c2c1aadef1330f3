"""Free loopback ports, all chosen at once so that no two components of a cluster get the same."""

import socket
from contextlib import ExitStack
from dataclasses import dataclass

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Ports:
    """The ports of one cluster; they stay the same when a component is started again."""

    etcd_client: int
    etcd_peer: int
    api_server: int
    kwok: int
    prometheus: int
    exporter: int


def choose_ports() -> Ports:
    """Ports that nobody listens on now."""
    return Ports(*free_ports(6))


def free_ports(count: int) -> list[int]:
    """Distinct free ports on the loopback address."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket(socket.AF_INET)) for _ in range(count)]
        for listener in sockets:
            listener.bind((LOOPBACK, 0))
        return [int(listener.getsockname()[1]) for listener in sockets]
