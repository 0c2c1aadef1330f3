"""Events of events.k8s.io/v1: what a tenant sees of us with `kubectl describe`. Pure; sending is the caller's."""

from datetime import UTC, datetime
from typing import Any, Final, Literal
from urllib.parse import quote

CONTROLLER: Final = "gpu-autoscaler.io/gpu-autoscaler"
_WORD_LIMIT: Final = 128
_NOTE_LIMIT: Final = 1024

EventType = Literal["Normal", "Warning"]


def event_path(namespace: str) -> str:
    """Where an Event about an object of the namespace is created."""
    return f"/apis/events.k8s.io/v1/namespaces/{quote(namespace, safe='')}/events"


def event_object(  # noqa: PLR0913 - the API's own fields
    *,
    api_version: str,
    kind: str,
    namespace: str,
    name: str,
    uid: str,
    reason: str,
    action: str,
    note: str,
    instance: str,
    now_ms: int,
    kind_of_event: EventType = "Normal",
) -> dict[str, Any]:
    """One Event; words and note are cut to the bytes that the API takes, between characters."""
    at = datetime.fromtimestamp(now_ms / 1000, tz=UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"generateName": "gpu-autoscaler-", "namespace": namespace},
        "eventTime": at,
        "reportingController": CONTROLLER,
        "reportingInstance": _cut(instance, _WORD_LIMIT) or CONTROLLER,
        "action": _cut(action, _WORD_LIMIT),
        "reason": _cut(reason, _WORD_LIMIT),
        "note": _cut(note, _NOTE_LIMIT),
        "type": kind_of_event,
        "regarding": {
            "apiVersion": api_version,
            "kind": kind,
            "namespace": namespace,
            "name": name,
            "uid": uid,
        },
    }


def _cut(text: str, limit: int) -> str:
    return text.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")
