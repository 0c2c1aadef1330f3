"""Queries of some namespaces only, for a policy that names them: less to answer, and nothing less to see.

A matcher leaves out only series that certainly name a pod of another namespace. Why that is all that is safe is in
docs/design/0005.
"""

import re
from collections.abc import Collection
from typing import Final

from autoscaler.observe.profiles import Profile
from autoscaler.observe.quoting import quoted

_TARGET_LABELS: Final = frozenset({"namespace", "kubernetes_namespace"})
"""Labels that a scrape configuration writes: on a board without owner they name the exporter's own namespace."""


def scoped(profile: Profile, source: str, namespaces: Collection[str]) -> str:
    """`source` with the matchers that a restriction to `namespaces` adds for this profile; no names restrict nothing.

    The label of the first owner group is matched, since that group names the owner wherever it names a pod; what has no
    such label stays.
    """
    first = profile.owners[0].namespace if profile.owners else ""
    if not namespaces or not first or first in _TARGET_LABELS:
        return source
    matcher = _one_of(first, (*sorted(set(namespaces)), ""))
    return f"{source},{matcher}" if source else matcher


def served_from(label: str, namespaces: Collection[str]) -> str:
    """The matcher of series whose scrape target is in `namespaces`; empty where no names restrict."""
    return _one_of(label, sorted(set(namespaces))) if namespaces else ""


def _one_of(label: str, names: Collection[str]) -> str:
    """A regular expression of literal names; one that is empty also matches series without the label."""
    pattern = "|".join(re.escape(name) for name in names)
    return f"{label}=~{quoted(pattern)}"
