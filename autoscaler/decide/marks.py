"""Annotations that owners write: the names of ours, and do-not-touch marks, ours and other projects'.

A mark that cannot be read is never guessed: it protects, and the explanation names it.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from autoscaler.model.duration import DurationError, format_duration, parse_duration
from autoscaler.model.plan import Role

DOMAIN: Final = "gpu-autoscaler.io"
DO_NOT_DISRUPT: Final = f"{DOMAIN}/do-not-disrupt"
ALLOWED_GPUS: Final = f"{DOMAIN}/allowed-gpus"
MIN_REPLICAS: Final = f"{DOMAIN}/min-replicas"
EVICTABLE: Final = f"{DOMAIN}/evictable"
REASON: Final = f"{DOMAIN}/reason"
MIN_GPUS: Final = f"{DOMAIN}/min-gpus"
MODE: Final = f"{DOMAIN}/mode"
ROLE: Final = f"{DOMAIN}/role"
KUEUE: Final = (
    "kueue.x-k8s.io/queue-name",
    "kueue.x-k8s.io/managed",
    "kueue.x-k8s.io/pod-group-name",
)
ROLES: Final[tuple[Role, ...]] = ("training", "serving", "interactive")
_KARPENTER: Final = "karpenter.sh/do-not-disrupt"
_EVICTION_COST: Final = "scheduling.koordinator.sh/eviction-cost"
_WORDS: Final = 120
_INT32_MAX: Final = 2**31 - 1


def protection(annotations: Mapping[str, str], *, since_ms: int, now_ms: int) -> str:
    """Why these annotations forbid a disruption now; empty if they do not.

    Durations count from `since_ms` (the unit's start; -1 means not started and is protected), as Karpenter's do.
    """
    if _MARKS.isdisjoint(annotations):
        return ""
    return next(filter(None, _protections(annotations, since_ms=since_ms, now_ms=now_ms)), "")


def _protections(annotations: Mapping[str, str], *, since_ms: int, now_ms: int) -> Iterable[str]:
    ours = annotations.get(DO_NOT_DISRUPT)
    if ours is not None:
        found = _timed(DO_NOT_DISRUPT, ours, since_ms=since_ms, now_ms=now_ms, unreadable_protects=True)
        why = annotations.get(REASON, "").strip()[:_WORDS]
        yield f"{found} ({why})" if found and why else found
    karpenter = annotations.get(_KARPENTER)
    if karpenter is not None:
        # Karpenter itself ignores a value that it cannot parse.
        yield _timed(_KARPENTER, karpenter, since_ms=since_ms, now_ms=now_ms, unreadable_protects=False)
    for key, values in _PLAIN_MARKS.items():
        if annotations.get(key, "").strip().lower() in values:
            yield f"{key}={annotations[key][:40]}"
    cost = annotations.get(_EVICTION_COST, "").strip()
    if cost == str(_INT32_MAX):
        yield f"{_EVICTION_COST}={cost}"


_PLAIN_MARKS: Final[dict[str, tuple[str, ...]]] = {
    "karpenter.sh/do-not-evict": ("true",),
    "karpenter.sh/do-not-consolidate": ("true",),
    "cluster-autoscaler.kubernetes.io/safe-to-evict": ("false",),
    "descheduler.alpha.kubernetes.io/prefer-no-eviction": ("true",),
    "koordinator.sh/eviction-disabled": ("true",),
    "volcano.sh/preemptable": ("false",),
}
_MARKS: Final = frozenset({DO_NOT_DISRUPT, _KARPENTER, _EVICTION_COST, *_PLAIN_MARKS})
"""Looked for first: nearly all places carry none, and a cycle looks at several of every pod."""


def _timed(key: str, text: str, *, since_ms: int, now_ms: int, unreadable_protects: bool) -> str:
    value = text.strip().lower()
    if value == "false":
        return ""
    if value == "true":
        return f"{key}=true"
    until_ms = _until_ms(text.strip(), since_ms=since_ms)
    if until_ms is None:
        return f"{key} is unreadable: {text[:40]!r}" if unreadable_protects else ""
    if since_ms < 0:
        return f"{key}={value} and the unit has not started"
    if now_ms < until_ms:
        return f"{key}={text[:40]} for another {format_duration(until_ms - now_ms)}"
    return ""


def _until_ms(text: str, *, since_ms: int) -> int | None:
    """End of a protection stated as an age ("4h") or as an RFC 3339 time; None if it is neither."""
    try:
        return since_ms + parse_duration(text)
    except DurationError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return round(moment.timestamp() * 1000) if moment.tzinfo else None
