"""From what exporters write into node labels to the names of nodes: some write the host's name, others the full one."""

from collections.abc import Iterable, Mapping
from ipaddress import ip_address

import msgspec


class Hosts(msgspec.Struct, frozen=True):
    """The cluster's nodes by name, and by the part before the first dot where only one node has it."""

    nodes: frozenset[str]
    by_short: Mapping[str, str]

    @classmethod
    def of(cls, nodes: frozenset[str]) -> "Hosts":
        """The hosts of these nodes."""
        bearers: dict[str, list[str]] = {}
        for node in nodes:
            bearers.setdefault(_short(node), []).append(node)
        return cls(nodes, {short: found[0] for short, found in bearers.items() if len(found) == 1})

    def node(self, labels: Iterable[str]) -> str:
        """The node that labels name: exactly, else by its unique short name; empty where none is."""
        names = sorted({_host(label) for label in labels})
        exact = next((name for name in names if name in self.nodes), "")
        if exact:
            return exact
        return next(
            (
                self.by_short[_short(name)]
                for name in names
                if _short(name) in self.by_short and not _is_address(name)
            ),
            "",
        )

    def named(self, labels: Iterable[str]) -> frozenset[str]:
        """Every node that one of the labels names."""
        return frozenset(node for label in labels if (node := self.node((label,))))


def _host(label: str) -> str:
    """A node label's value without a port."""
    host, colon, port = label.rpartition(":")
    return host if colon and port.isdigit() else label


def _short(name: str) -> str:
    return name.partition(".")[0].lower()


def _is_address(name: str) -> bool:
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
