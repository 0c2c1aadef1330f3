"""What RBAC objects grant, as sorted lines that a person can review: where, on what, which verbs."""

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any, NamedTuple

FORBIDDEN_VERBS = frozenset({"*", "impersonate", "bind", "escalate", "delete", "deletecollection"})
FORBIDDEN_RESOURCES = frozenset(
    {
        *("*", "secrets", "serviceaccounts", "serviceaccounts/token", "nodes/proxy"),
        *("pods/exec", "pods/attach", "pods/portforward", "pods/proxy", "pods/ephemeralcontainers"),
        *("roles", "rolebindings", "clusterroles", "clusterrolebindings"),
    }
)


class Right(NamedTuple):
    """One verb on one resource; an empty namespace is every namespace, an empty name every name."""

    namespace: str
    group: str
    resource: str
    name: str
    verb: str


def rights_of(objects: Iterable[Mapping[str, Any]]) -> set[Right]:
    """What the bindings among some objects grant."""
    items = list(objects)
    roles = {
        (item["kind"], item["metadata"]["name"]): item
        for item in items
        if item["kind"] in {"Role", "ClusterRole"}
    }
    granted: set[Right] = set()
    for binding in items:
        if binding["kind"] in {"RoleBinding", "ClusterRoleBinding"}:
            role = roles[binding["roleRef"]["kind"], binding["roleRef"]["name"]]
            where = binding["metadata"].get("namespace", "")
            for rule in role["rules"]:
                axes = (rule["apiGroups"], rule["resources"], rule.get("resourceNames", [""]), rule["verbs"])
                granted |= {Right(where, *one) for one in product(*axes)}
    return granted


def table(rights: Iterable[Right]) -> list[str]:
    """One line for each resource."""
    verbs: dict[tuple[str, str, str, str], set[str]] = {}
    for right in rights:
        verbs.setdefault(right[:4], set()).add(right.verb)
    return sorted(
        f"{namespace or 'everywhere'}: {resource}{'.' + group if group else ''}{' ' + name if name else ''}:"
        f" {', '.join(sorted(found))}"
        for (namespace, group, resource, name), found in verbs.items()
    )


def faults(role: Mapping[str, Any]) -> list[str]:
    """What a role must never grant, and what would make it grant more than it says."""
    found = ["aggregates other roles"] if "aggregationRule" in role else []
    for rule in role["rules"]:
        found += ["grants URLs"] if "nonResourceURLs" in rule else []
        found += ["grants every group"] if "*" in rule.get("apiGroups", []) else []
        found += [f"grants {verb}" for verb in sorted(FORBIDDEN_VERBS & {*rule["verbs"]})]
        found += [f"grants {name}" for name in sorted(FORBIDDEN_RESOURCES & {*rule.get("resources", [])})]
    return found
