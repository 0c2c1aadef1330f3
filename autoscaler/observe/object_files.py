"""Kubernetes objects from a file, as `kubectl get ... -o json` or `-o yaml` prints them, into the stores of a live cluster.

What a file leaves out the API server would have filled in: it is completed here, so that a few lines written by hand are
objects too. Times of pods are not those of the file: whoever reads one wants to know what its figures mean, not how old
its pods were when it was saved, so every pod counts as old.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from autoscaler.kube.kinds import KINDS, Kind
from autoscaler.observe.stores import Stores
from autoscaler.observe.strict_yaml import YamlError, load_yaml

Document: TypeAlias = dict[str, Any]

_SEPARATOR: Final = re.compile(r"^---(?:\s.*)?$", re.MULTILINE)
_MAX_DEPTH: Final = 3
"""Lists inside lists: `kubectl get` prints none, a file put together from several may."""
_CLUSTER_SCOPED: Final = frozenset(
    {
        "Node",
        "Namespace",
        "PriorityClass",
        "ResourceSlice",
        "DeviceClass",
        "NodeClaim",
        "PersistentVolume",
        "StorageClass",
        "ClusterQueue",
        "Cohort",
    }
)
_AMOUNTS: Final = frozenset(
    {"limits", "requests", "allocatable", "capacity", "hard", "used", "overhead", "max", "min", "default"}
)
_SHOWN: Final = 120


class ObjectsError(ValueError):
    """The text holds no Kubernetes object."""


class Objects(msgspec.Struct, frozen=True):
    """Objects by kind; `unread` counts kinds that nobody here reads, `faults` names documents that are no objects."""

    by_kind: Mapping[str, tuple[Document, ...]] = {}
    unread: Mapping[str, int] = {}
    faults: tuple[str, ...] = ()


_UNNAMED_NODE: Final = "unnamed-node"
"""Where running pods are that do not say where they are: somewhere, and possibly together."""


def read_objects(text: str) -> Objects:
    """The objects of a text: lists, bare objects, several documents, JSON or YAML; raises `ObjectsError`."""
    found: dict[str, list[Document]] = {}
    unread: Counter[str] = Counter()
    faults: list[str] = []
    for document in _flat(_documents(text), faults):
        kind = _kind_of(document)
        if kind is None:
            unread[str(document["kind"])] += 1
        else:
            found.setdefault(kind.name, []).append(document)
    if not found and not unread and not _is_empty_list(text):
        raise ObjectsError(faults[0] if faults else "no object in it")
    return Objects(
        {name: tuple(rows) for name, rows in found.items()}, dict(sorted(unread.items())), tuple(faults)
    )


def _is_empty_list(text: str) -> bool:
    """What kubectl prints of a namespace without objects."""
    documents = [document for document in _documents(text) if isinstance(document, dict)]
    return bool(documents) and all(document.get("items") == [] for document in documents)


def fill_stores(
    stores: Stores, objects: Objects, *, started: str, uid_of: Callable[[str, str], str]
) -> tuple[str, ...]:
    """Writes objects into the stores; returns what could not be read, by the object's name.

    Pods began at `started` (an RFC 3339 time); `uid_of(namespace, name)` is asked for the uid of a pod that states none.
    Pods' nodes that are not in the file are made up without anything on them.
    """
    faults: list[str] = []
    documents = dict(objects.by_kind)
    pods = [_whole_pod(pod, started, uid_of) for pod in documents.get("Pod", ())]
    documents["Pod"] = tuple(pods)
    documents["Node"] = (*documents.get("Node", ()), *_missing_nodes(documents))
    for name, writer in stores.writers.items():
        kind = KINDS[name]
        writer.begin_relist()
        for document in documents.get(name, ()):
            try:
                writer.relist_page([msgspec.json.decode(_encoded(document, name), type=kind.struct)])
            except (msgspec.MsgspecError, ValueError, TypeError) as error:
                faults.append(f"{name} {name_of(document)}: {str(error)[:_SHOWN]}")
        writer.commit_relist("")
    return tuple(faults)


def name_of(document: Document) -> str:
    """Namespace and name of an object, for people."""
    meta = document.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    return "/".join(str(part) for part in (meta.get("namespace"), meta.get("name")) if part) or "(no name)"


def _documents(text: str) -> list[Any]:
    stripped = text.strip()
    if stripped[:1] in {"{", "["}:
        try:
            return _json_documents(stripped)
        except (ValueError, RecursionError) as error:
            why = error
        # A flow mapping in YAML begins like JSON.
    else:
        why = None
    try:
        return [load_yaml(part) for part in _SEPARATOR.split(text) if part.strip()]
    except YamlError as error:
        raise ObjectsError(f"neither JSON nor YAML: {why or error}") from None


def _json_documents(text: str) -> list[Any]:
    decoder, found, at = json.JSONDecoder(), [], 0
    while at < len(text):
        document, at = decoder.raw_decode(text, at)
        found.append(document)
        at += len(text[at:]) - len(text[at:].lstrip())
    return found


def _flat(
    documents: Iterable[Any], faults: list[str], *, item_kind: str = "", depth: int = 0
) -> Iterable[Document]:
    """Every object, those inside of lists too."""
    for document in documents:
        if isinstance(document, list):
            yield from _flat(document, faults, item_kind=item_kind, depth=depth + 1)
            continue
        if document is None:
            continue
        if not isinstance(document, dict) or depth > _MAX_DEPTH:
            faults.append(f"no object: {str(document)[:_SHOWN]}")
            continue
        kind = document.get("kind") or item_kind
        if not isinstance(kind, str) or not kind:
            faults.append(f"an object without kind: {name_of(document)}")
        elif kind.endswith("List") and isinstance(document.get("items"), list | None):
            yield from _flat(
                document.get("items") or (), faults, item_kind=kind.removesuffix("List"), depth=depth + 1
            )
        else:
            yield {**document, "kind": kind}


def _kind_of(document: Document) -> Kind[Any] | None:
    """The kind that we read; another group's kind of the same name is not it."""
    kind = KINDS.get(document["kind"])
    version = document.get("apiVersion")
    if kind is None or not isinstance(version, str) or not version:
        return kind
    group = version.rpartition("/")[0]
    return kind if group == kind.group else None


def _encoded(document: Document, kind: str) -> bytes:
    meta = document.get("metadata")
    if not isinstance(meta, dict) or not meta.get("name"):
        raise ValueError("it has no name")
    if kind not in _CLUSTER_SCOPED and not meta.get("namespace"):
        document = {**document, "metadata": {**meta, "namespace": "default"}}
    return msgspec.json.encode(_with_texts(document))


def _with_texts(value: Any, *, amounts: bool = False) -> Any:
    """Amounts as texts: the API takes `nvidia.com/gpu: 1` and writes "1"."""
    if isinstance(value, dict):
        return {
            k: _with_texts(v, amounts=k in _AMOUNTS and isinstance(v, dict))
            if isinstance(v, dict | list)
            else (str(v) if amounts and isinstance(v, int | float) else v)
            for k, v in value.items()
        }
    if isinstance(value, list):
        return [_with_texts(item) for item in value]
    return value


def _whole_pod(pod: Document, started: str, uid_of: Callable[[str, str], str]) -> Document:
    """The pod as the API server would show it when it has run for long."""
    meta, spec, status = (dict(_mapping(pod.get(part))) for part in ("metadata", "spec", "status"))
    meta["namespace"] = meta.get("namespace") or "default"
    meta["uid"] = meta.get("uid") or uid_of(str(meta["namespace"]), str(meta.get("name")))
    meta["creationTimestamp"] = started
    for part in ("containers", "initContainers"):
        if isinstance(spec.get(part), list):
            spec[part] = [_whole_container(container) for container in spec[part]]
    status["phase"] = status.get("phase") or "Running"
    if status["phase"] == "Running":
        spec["nodeName"] = spec.get("nodeName") or _UNNAMED_NODE
    if spec.get("nodeName"):
        status["startTime"] = started
    return {**pod, "metadata": meta, "spec": spec, "status": status}


def _whole_container(container: Any) -> Any:
    """A request that is not stated is the limit, as the API server writes it."""
    if not isinstance(container, dict) or not isinstance(container.get("resources"), dict):
        return container
    resources = container["resources"]
    requests = {**_mapping(resources.get("limits")), **_mapping(resources.get("requests"))}
    return {**container, "resources": {**resources, "requests": requests}} if requests else container


def _missing_nodes(documents: Mapping[str, tuple[Document, ...]]) -> list[Document]:
    known = [_mapping(node.get("metadata")).get("name") for node in documents.get("Node", ())]
    named = [_mapping(pod.get("spec")).get("nodeName") for pod in documents.get("Pod", ())]
    missing = {name for name in named if isinstance(name, str) and name and name not in known}
    return [{"kind": "Node", "metadata": {"name": name}} for name in sorted(missing)]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
