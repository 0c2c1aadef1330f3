"""Which annotations are kept: only those that guards read. All others may be large, secret or both."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from autoscaler.kube.wire import parse_rfc3339_ms

_DOMAINS: Final = (
    "gpu-autoscaler.io/",
    "karpenter.sh/",
    "cluster-autoscaler.kubernetes.io/",
    "descheduler.alpha.kubernetes.io/",
    "scheduling.koordinator.sh/",
    "koordinator.sh/",
    "volcano.sh/",
    "kueue.x-k8s.io/",
)
MIRROR: Final = "kubernetes.io/config.mirror"
_NONE: Final[dict[str, str]] = {}


def kept_marks(annotations: Mapping[str, str] | None) -> dict[str, str]:
    """The annotations that guards read, by key; not to be changed, the empty one is shared."""
    if not annotations:
        return _NONE
    return {key: annotations[key] for key in sorted(annotations) if key.startswith(_DOMAINS)} or _NONE


@lru_cache(maxsize=4096)
def time_ms(text: str | None) -> int:
    """Milliseconds of an API time, -1 where it is absent or unreadable."""
    if text is None:
        return -1
    try:
        return parse_rfc3339_ms(text)
    except ValueError:
        return -1
