"""Which labels of a series could name the container that holds the device: found by name, weighed by what they hold."""

from collections.abc import Iterable
from typing import Final

import msgspec

from autoscaler.observe.profiles import Profile
from autoscaler.service.doctor.gathered import Labels

KNOWN: Final = (
    *("exported_pod", "exported_namespace", "exported_container"),
    *("pod", "namespace", "container"),
    *("pod_name", "pod_namespace", "container_name", "namespace_name"),
    *("kube_pod", "kube_namespace", "kube_container"),
    *("podname", "podnamespace", "ctrname"),
    *("podName", "cntrName"),
)
"""Every spelling that a known exporter or scrape configuration has, besides those that a profile states."""
_NAMESPACES: Final = (
    *(("pod_name", "pod_namespace"), ("pod_name", "namespace_name"), ("pod_name", "namespace")),
    *(("podname", "podnamespace"), ("podName", "namespace"), ("pod", "namespace"), ("pod", "ns")),
)
_CONTAINERS: Final = (
    *(("pod_name", "container_name"), ("podname", "ctrname"), ("podName", "cntrName"), ("pod", "container")),
)
"""How a label for the namespace, or the container, is spelled beside one for the pod. A container's label is proposed only
so: the scrape target's own `container` would name the wrong one."""
_NOT_A_NAME: Final = ("uid", "ip", "hash", "phase", "template", "image", "_id")


class LabelMapping(msgspec.Struct, frozen=True, order=True):
    """The labels that name an owner together; `namespace` and `container` are empty where there is none."""

    pod: str
    namespace: str = ""
    container: str = ""

    def owner(self, row: Labels) -> tuple[str, str]:
        """Namespace and name of the pod in a series' labels, empty texts where they say nothing."""
        return (row.get(self.namespace, "") if self.namespace else "", row.get(self.pod, ""))

    def as_line(self) -> str:
        """As a line of a profile's `owners`."""
        parts = [("pod", self.pod), ("namespace", self.namespace), ("container", self.container)]
        return f"  - {{{', '.join(f'{key}: {label}' for key, label in parts if label)}}}"


def owner_labels(names: Iterable[str]) -> tuple[str, ...]:
    """Those label names that could be part of an owner, sorted."""
    return tuple(
        sorted(name for name in names if _pod_like(name) or _namespace_like(name) or _container_like(name))
    )


def stated(profile: Profile) -> tuple[LabelMapping, ...]:
    """The mappings of a profile, in its order."""
    return tuple(
        LabelMapping(group.pod, group.namespace or "", group.container or "") for group in profile.owners
    )


def candidates(names: Iterable[str]) -> tuple[LabelMapping, ...]:
    """Every pod label with every namespace label, those that are spelled alike first, and with none."""
    names = sorted(names)
    spaces = [name for name in names if _namespace_like(name)]
    found = []
    for pod in filter(_pod_like, names):
        container = next((name for name in _spelled(pod, _CONTAINERS) if name in names), "")
        alike = _spelled(pod, _NAMESPACES)
        near = sorted((space not in alike, -_shared_prefix(pod, space), space) for space in spaces)
        found += [LabelMapping(pod, space, container) for *_, space in near]
        found.append(LabelMapping(pod, "", container))
    return tuple(found)


def _spelled(pod: str, forms: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """What another label is called where the pod's is called this."""
    return tuple(pod.replace(part, other) for part, other in forms if part in pod)


def _pod_like(name: str) -> bool:
    lower = name.lower()
    return "pod" in lower and not _namespace_like(name) and not any(part in lower for part in _NOT_A_NAME)


def _namespace_like(name: str) -> bool:
    lower = name.lower()
    return "namespace" in lower or lower.rpartition("_")[2] == "ns"


def _container_like(name: str) -> bool:
    lower = name.lower()
    named = "container" in lower or "ctr" in lower or "cntr" in lower
    return named and not _pod_like(name) and not any(part in lower for part in _NOT_A_NAME)


def _shared_prefix(one: str, other: str) -> int:
    """Length of the beginning that both have."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))
