"""The audit log as a witness: what did a given identity really read and write?

The control plane's own requests are left out, and so is what people read; everything else is recorded once per request,
refused requests included, with the request's body for what ServiceAccounts write.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import yaml

from devcluster.identities import CONTROLLER_MANAGER_USER, KWOK_USER, SCHEDULER_USER

_SYSTEM_USERS = ["system:apiserver", SCHEDULER_USER, CONTROLLER_MANAGER_USER, KWOK_USER]
_READ_BY_ACCOUNTS = {"level": "Metadata", "userGroups": ["system:serviceaccounts"]}
READS = frozenset({"get", "list", "watch"})
_REVIEWS = frozenset({"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"})

AuditEvent = dict[str, Any]


def write_policy(path: Path) -> None:
    """The API server's audit policy."""
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            {"level": "None", "users": _SYSTEM_USERS},
            {"level": "None", "userGroups": ["system:serviceaccounts:kube-system", "system:nodes"]},
            # A watch is told once, when it begins: it ends only with whoever watches.
            {**_READ_BY_ACCOUNTS, "verbs": ["watch"], "omitStages": ["ResponseComplete"]},
            {**_READ_BY_ACCOUNTS, "verbs": ["get", "list"]},
            {"level": "None", "verbs": sorted(READS)},
            {"level": "RequestResponse", "userGroups": ["system:serviceaccounts"]},
            {"level": "Metadata"},
        ],
    }
    path.write_text(yaml.safe_dump(policy, sort_keys=False))


def read_events(path: Path) -> list[AuditEvent]:
    """Every complete line of an audit log; a line that is still being written is left for the next read."""
    if not path.exists():
        return []
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    return [msgspec.json.decode(line) for line in whole.splitlines() if line]


class Reader:
    """Reads a growing audit log, each event once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def new_events(self) -> list[AuditEvent]:
        """The events since the last call."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._offset)
            whole, newline, _ = file.read().rpartition(b"\n")
        self._offset += len(whole) + len(newline)
        return [msgspec.json.decode(line) for line in whole.splitlines() if line]


def service_account_user(namespace: str, name: str) -> str:
    """The user name under which a ServiceAccount appears."""
    return f"system:serviceaccount:{namespace}:{name}"


def writes_by(events: Iterable[AuditEvent], user: str) -> list[AuditEvent]:
    """All writes that a user attempted, refused ones and dry runs too; questions about its own rights are none."""
    return [
        event
        for event in events
        if event["user"]["username"] == user
        and event["verb"] not in READS
        and event.get("objectRef", {}).get("resource") not in _REVIEWS
    ]


def rights_used_by(events: Iterable[AuditEvent], user: str) -> set[tuple[str, str, str]]:
    """Group, resource (with its subresource) and verb of every request of a user that was not refused for want of a right."""
    return {
        (
            target.get("apiGroup", ""),
            "/".join(filter(None, (target["resource"], target.get("subresource")))),
            event["verb"],
        )
        for event in events
        if event["user"]["username"] == user
        and event.get("responseStatus", {}).get("code") != 403
        and (target := event.get("objectRef"))
        and target["resource"] not in _REVIEWS
    }


def describe(event: AuditEvent) -> str:
    """One write in a line, such as `patch deployments/scale ml-workloads/inference 403`."""
    target = event.get("objectRef", {})
    resource = "/".join(filter(None, (target.get("resource"), target.get("subresource"))))
    name = "/".join(filter(None, (target.get("namespace"), target.get("name"))))
    return f"{event['verb']} {resource} {name} {event.get('responseStatus', {}).get('code', 0)}"
