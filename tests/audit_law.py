"""What must hold of every request that the service sends, read from an audit log; knows nothing of the service's code.

The same law is held against the API server's audit log and against the histories of the model that random tests drive:
both are sequences of audit events in the order in which the server received them.

- L1 nothing is ever deleted, and nothing is forced;
- L2 every change names the uid that was judged, and every template or scale change the version that was read;
- L3 every change is written down before it is sent: the ledger carries an open record of it, written by the same process;
- L4 a process changes something only while the lease is its own and was renewed lately;
- L5 one workload is changed at most once per cool-down, putting back aside;
- L6 what is changed is an amount of one container, a replica count or an autoscaler's least,
  whether Kueue may admit, an eviction, a nomination or
  a deletion cost.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

ONE_FIELD = {"workloads": "active", "horizontalpodautoscalers": "minReplicas", "jobs": "parallelism"}
WORKLOADS = frozenset({"deployments", "statefulsets", "cronjobs"})
OWN = frozenset({"leases", "configmaps", "events"})
REVIEWS = frozenset({"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"})
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
OWN_MARKS = frozenset(
    {f"/metadata/annotations/{DELETION_COST.replace('/', '~1')}", "/status/nominatedNodeName"}
)
RENEWED_WITHIN_S = 10.0
"""The renew deadline: an older lease must not be acted on, though others may take it only 5 s later."""
ON_THE_WAY_S = 0.5
"""A request that was sent in time may be received a little later."""


@dataclass(frozen=True)
class Write:
    """One changing request, as the server received it."""

    at_s: float
    agent: str
    verb: str
    resource: str
    namespace: str
    name: str
    code: int
    dry_run: bool
    body: Any
    uri: str = ""

    @property
    def accepted(self) -> bool:
        return 200 <= self.code < 300

    def __str__(self) -> str:
        return f"{self.at_s:.3f} {self.verb} {self.resource} {self.namespace}/{self.name} {self.code}"


@dataclass
class History:
    """What is known of the world while the writes are read one after the other."""

    renewed_within_s: float = RENEWED_WITHIN_S
    holder: str = ""
    renewed_s: dict[str, float] = field(default_factory=dict)
    open_records: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Records that are written down and open, by workload uid, with the agent that wrote them under `agent`."""
    counted: dict[str, dict[str, Any]] = field(default_factory=dict)
    changed_s: dict[str, float] = field(default_factory=dict)
    seen_records: set[str] = field(default_factory=set)


def writes_of(events: Iterable[Mapping[str, Any]], user: str = "") -> list[Write]:
    """The changing requests of a user (of everybody where none is given), in the order in which they were received."""
    found = [
        _write(event)
        for event in events
        if (not user or event["user"]["username"] == user)
        and event["verb"] not in {"get", "list", "watch"}
        and event.get("objectRef", {}).get("resource") not in REVIEWS
    ]
    return sorted(found, key=lambda write: write.at_s)


def _write(event: Mapping[str, Any]) -> Write:
    target = event.get("objectRef", {})
    resource = "/".join(filter(None, (target.get("resource"), target.get("subresource"))))
    uri = event.get("requestURI", "")
    return Write(
        at_s=datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp(),
        agent=event.get("userAgent", ""),
        verb=event["verb"],
        resource=resource,
        namespace=target.get("namespace", ""),
        name=target.get("name", ""),
        code=event.get("responseStatus", {}).get("code", 0),
        dry_run="dryRun=All" in uri,
        body=event.get("requestObject") or {},
        uri=uri,
    )


def violations(
    writes: Iterable[Write],
    *,
    cooldown_s: float,
    leased: bool = True,
    renewed_within_s: float = RENEWED_WITHIN_S,
) -> list[str]:
    """Every breach of the law, in words; `leased` is false for a person's commands, which hold no lease."""
    history, found = History(renewed_within_s=renewed_within_s), list[str]()
    for write in writes:
        kind = write.resource.partition("/")[0]
        if kind == "leases":
            _hear_lease(history, write)
        elif kind == "configmaps":
            found += _hear_ledger(history, write, cooldown_s=cooldown_s)
        elif kind not in OWN:
            found += [f"{write}: {breach}" for breach in _breaches(history, write, leased=leased)]
    return found


def _hear_lease(history: History, write: Write) -> None:
    if write.accepted and isinstance(write.body, dict):
        history.holder = write.body.get("spec", {}).get("holderIdentity") or ""
        history.renewed_s[write.agent] = write.at_s
        if history.holder:
            history.counted.setdefault(history.holder, {})["agent"] = write.agent


def _hear_ledger(history: History, write: Write, *, cooldown_s: float) -> list[str]:
    """Takes in the records of a shard; a forward act that comes too early is a breach of L5."""
    found: list[str] = []
    if not write.accepted or not write.name.startswith("gpu-autoscaler-ledger-"):
        return found
    for uid, records in _records(write.body).items():
        is_open = [record for record in records if record["state"] in {"intended", "acted"}]
        if len(is_open) > 1:
            found.append(f"{write}: {len(is_open)} open records of {uid}")
        if is_open:
            _keep_open(history, write, uid, is_open[-1])
        else:
            history.open_records.pop(uid, None)
        for record in records:
            if record["state"] == "acted" and record["id"] not in history.seen_records:
                history.seen_records.add(record["id"])
                found += [f"{write}: {why}" for why in _too_early(history, uid, record, cooldown_s)]
    return found


def _records(body: Any) -> dict[str, list[dict[str, Any]]]:
    found = {}
    for uid, text in (body.get("data") or {}).items():
        try:
            entry = json.loads(text)
        except ValueError:
            continue
        if isinstance(entry, dict):
            found[uid] = list(entry.get("records", []))
    return found


def _keep_open(history: History, write: Write, uid: str, record: dict[str, Any]) -> None:
    """Open records belong to whoever wrote their shard last: a new leader takes them over with the whole of it."""
    history.open_records[uid] = {**record, "agent": write.agent}


def _too_early(history: History, uid: str, record: dict[str, Any], cooldown_s: float) -> list[str]:
    if record["actor"] in {"undo", "revert"}:
        return []
    last_s, at_s = history.changed_s.get(uid), record["intended_ms"] / 1000
    history.changed_s[uid] = at_s
    if last_s is None or at_s - last_s >= cooldown_s:
        return []
    return [f"L5 {uid} changed again after {at_s - last_s:.1f} s, cool-down {cooldown_s:g} s"]


def _breaches(history: History, write: Write, *, leased: bool) -> list[str]:
    found = []
    if write.verb in {"delete", "deletecollection"}:
        found.append("L1 a deletion")
    if "force=true" in write.uri or '"gracePeriodSeconds": 0' in json.dumps(write.body):
        found.append("L1 forced")
    if leased:
        found += _lease_breaches(history, write)
    if write.dry_run:
        return found
    return found + _shape_breaches(write) + _ledger_breaches(history, write)


def _lease_breaches(history: History, write: Write) -> list[str]:
    agent = history.counted.get(history.holder, {}).get("agent")
    if not history.holder or agent != write.agent:
        return [f"L4 sent by {write.agent} while {history.holder or 'nobody'} held the lease"]
    age_s = write.at_s - history.renewed_s[write.agent]
    if age_s > history.renewed_within_s + ON_THE_WAY_S:
        return [f"L4 the lease was renewed {age_s:.1f} s before"]
    return []


def _shape_breaches(write: Write) -> list[str]:
    """L2 and L6: what the request may contain at all."""
    body, resource = write.body, write.resource
    if resource == "pods/eviction":
        uid = (body.get("deleteOptions") or {}).get("preconditions", {}).get("uid")
        return [] if uid else ["L2 an eviction without a uid"]
    if isinstance(body, list):
        paths = [step.get("path", "") for step in body if step.get("op") != "test"]
        tested = any(step.get("op") == "test" for step in body)
        ours = all(path.startswith("/metadata/managedFields/") or path in OWN_MARKS for path in paths)
        return [] if ours and tested else [f"L6 a JSON patch of {', '.join(paths)}"]
    metadata = dict(body.get("metadata") or {})
    found = [] if metadata.pop("uid", "") else ["L2 no uid"]
    version = metadata.pop("resourceVersion", "")
    if resource in {"pods", "pods/status"}:
        annotations = metadata.pop("annotations", {})
        if set(annotations) - {DELETION_COST}:
            found.append(f"L6 annotations {sorted(annotations)}")
        if set(body.get("status") or {}) - {"nominatedNodeName"} or "spec" in body:
            found.append("L6 more of a pod than its nomination")
    elif resource in {f"{kind}/scale" for kind in WORKLOADS}:
        found += [] if version else ["L2 no version"]
        found += [] if set(body.get("spec") or {}) == {"replicas"} else ["L6 more than replicas"]
    elif resource in ONE_FIELD:
        field = ONE_FIELD[resource]
        found += [] if version else ["L2 no version"]
        found += [] if set(body.get("spec") or {}) == {field} else [f"L6 more than {field}"]
    elif resource in WORKLOADS:
        found += [] if version else ["L2 no version"]
        found += _template_breaches(body.get("spec") or {})
    else:
        found.append(f"L6 a change of {resource}")
    return found + ([f"L6 metadata {sorted(metadata)}"] if metadata else [])


def _template_breaches(spec: dict[str, Any]) -> list[str]:
    if set(spec) == {"jobTemplate"}:
        spec = spec["jobTemplate"].get("spec") or {}
    if set(spec) != {"template"} or set(spec["template"]) != {"spec"}:
        return [f"L6 a change of {sorted(spec)}"]
    containers = spec["template"]["spec"].get("containers") or []
    if set(spec["template"]["spec"]) != {"containers"} or len(containers) != 1:
        return ["L6 more than one container"]
    (container,) = containers
    amounts = {name for part in (container.get("resources") or {}).values() for name in part}
    if set(container) != {"name", "resources"} or len(amounts) != 1:
        return [f"L6 a container's {sorted(container)} with {sorted(amounts)}"]
    return []


def _ledger_breaches(history: History, write: Write) -> list[str]:
    """L3: some open record, written by the same process, is about this object."""
    for record in history.open_records.values():
        action = record["action"]
        pods = [action.get("pod"), (action.get("seat") or {}).get("pod"), *action.get("leaving", [])]
        names = {(pod["namespace"], pod["name"]) for pod in pods if pod}
        target = action["target"]
        written = (action.get("through") or target)["name"]
        about = (write.namespace, write.name) in names | {(target["namespace"], written)}
        about = about or _is_stuck_pod_of(record, write)
        if about and (record["agent"] == write.agent or not write.accepted):
            return []
    if isinstance(write.body, list) or not write.accepted or _only_clears(write):
        return []
    return ["L3 not in the ledger as an open act of this process"]


def _is_stuck_pod_of(record: Mapping[str, Any], write: Write) -> bool:
    """A StatefulSet that was put back does not replace a pod that hangs at the other size: its eviction is part of it."""
    target = record["action"]["target"]
    return (
        record["actor"] in {"undo", "revert"}
        and target["kind"] == "StatefulSet"
        and write.resource == "pods/eviction"
        and write.namespace == target["namespace"]
        and write.name.rpartition("-")[0] == target["name"]
    )


def _only_clears(write: Write) -> bool:
    """Clean-up of an act that ended, or that a former leader left: it takes nothing from anybody."""
    annotations = (write.body.get("metadata") or {}).get("annotations") or {}
    cleared = DELETION_COST in annotations and annotations[DELETION_COST] is None
    status = write.body.get("status") or {}
    return cleared or ("nominatedNodeName" in status and not status["nominatedNodeName"])
