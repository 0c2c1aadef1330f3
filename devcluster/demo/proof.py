"""Whether everything is as it was: the comparison of workload objects before the first act and after the last undo.

What the API server and the controllers write by themselves says nothing about what an owner wanted, so it is left out:
versions, generations, timestamps, field managers, status, and the number of a Deployment's revision.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

WORKLOAD_LISTS = {
    "Deployment": "/apis/apps/v1/deployments",
    "StatefulSet": "/apis/apps/v1/statefulsets",
    "CronJob": "/apis/batch/v1/cronjobs",
    "Job": "/apis/batch/v1/jobs",
}
"""Where every object that a workload's owner writes is listed, by kind."""

_COUNTED_BY_CONTROLLERS = frozenset({"deployment.kubernetes.io/revision"})
_ABSENT = "nothing"

Key = tuple[str, str, str]
Objects = Mapping[Key, Mapping[str, Any]]
"""What owners wrote, by kind, namespace and name."""


def owned_part(item: Mapping[str, Any]) -> dict[str, Any]:
    """The part of an object that its owner wrote, with the uid: an object made anew is another one."""
    metadata = item["metadata"]
    annotations = metadata.get("annotations") or {}
    return {
        "uid": metadata["uid"],
        "labels": metadata.get("labels") or {},
        "annotations": {
            name: value for name, value in annotations.items() if name not in _COUNTED_BY_CONTROLLERS
        },
        "ownerReferences": metadata.get("ownerReferences") or [],
        "spec": item["spec"],
    }


def by_key(kind: str, items: Iterable[Mapping[str, Any]]) -> dict[Key, dict[str, Any]]:
    """The owned parts of a list's items."""
    return {
        (kind, item["metadata"]["namespace"], item["metadata"]["name"]): owned_part(item) for item in items
    }


def differing(before: Objects, after: Objects) -> dict[Key, list[str]]:
    """By object that was there before: the fields that are not as they were; objects that came later do not count."""
    found = {key: list(_differences("", part, after.get(key, _ABSENT))) for key, part in before.items()}
    return {key: lines for key, lines in found.items() if lines}


def _differences(path: str, before: Any, after: Any) -> Iterator[str]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in sorted(before.keys() | after.keys()):
            yield from _differences(f"{path}.{name}", before.get(name, _ABSENT), after.get(name, _ABSENT))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _differences(f"{path}[{number}]", one, other)
    elif before != after:
        yield f"{path.removeprefix('.') or 'the object'}: {before} -> {after}"
