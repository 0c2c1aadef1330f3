"""What this API server has of the kinds we read, and what it lets us read of them.

The answer is data, one row per kind; a kind that is absent or denied is named, never guessed. Every server version we support
tells its resources in one aggregated document per root; one that does not is asked group by group.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from autoscaler.kube.errors import ApiError, Forbidden, NotFound
from autoscaler.kube.kinds import Kind
from autoscaler.kube.session import KubeSession
from autoscaler.kube.wire import Wire

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;q=0.9"
READ_VERBS = ("list", "watch")


@dataclass(frozen=True, slots=True)
class Available:
    """The kind exists and we may list and watch it."""

    kind: str


@dataclass(frozen=True, slots=True)
class Absent:
    """The server does not have the kind (or not at the version we read)."""

    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class Denied:
    """The kind exists and RBAC keeps it from us; the reason names the verbs."""

    kind: str
    reason: str


Availability: TypeAlias = Available | Absent | Denied


@dataclass(frozen=True, kw_only=True)
class Discovery:
    """What was found, by kind name in the order asked."""

    server_version: str
    kinds: Mapping[str, Availability]
    served: Mapping[str, Kind[Any]]
    """The kinds at the versions to read them at; those that are absent as they were asked for."""
    resources: frozenset[str]
    """All resources of the server as ``group/version/plural`` (``v1/pods`` for the core group)."""


class _Version(Wire):
    git_version: str = ""


class _AggregatedResource(Wire):
    resource: str = ""
    verbs: list[str] | None = None


class _AggregatedVersion(Wire):
    version: str = ""
    resources: list[_AggregatedResource] | None = None


class _AggregatedGroup(Wire):
    metadata: dict[str, Any] | None = None
    versions: list[_AggregatedVersion] | None = None


class _PlainVersion(Wire):
    group_version: str = ""


class _PlainGroup(Wire):
    name: str = ""
    versions: list[_PlainVersion] | None = None


class _Root(Wire):
    """Both forms of ``/api`` and ``/apis``: aggregated, or plain (``versions`` in /api, ``groups`` in /apis)."""

    kind: str = ""
    items: list[_AggregatedGroup] | None = None
    groups: list[_PlainGroup] | None = None
    versions: list[str] | None = None


class _PlainResource(Wire):
    name: str = ""


class _PlainResources(Wire):
    resources: list[_PlainResource] | None = None


class _ReviewStatus(Wire):
    allowed: bool = False
    denied: bool = False
    reason: str = ""
    evaluation_error: str = ""


class _Review(Wire):
    status: _ReviewStatus = msgspec.field(default_factory=_ReviewStatus)


_version_decoder = msgspec.json.Decoder(_Version)
_root_decoder = msgspec.json.Decoder(_Root)
_resources_decoder = msgspec.json.Decoder(_PlainResources)
_review_decoder = msgspec.json.Decoder(_Review)


async def discover(session: KubeSession, kinds: Iterable[Kind[Any]]) -> Discovery:
    """Ask the server about these kinds. Raises a KubeError when the server itself cannot be asked."""
    wanted = tuple(kinds)
    version: _Version = await session.get_json("/version", None, _version_decoder)
    paths = {at.base_path for kind in wanted for at in kind.versions}
    resources = await _resources(session, paths)
    served = [kind.served_by(resources) for kind in wanted]
    return Discovery(
        server_version=version.git_version,
        # One after the other: some thirty small requests at start, and a failure leaves nothing running behind.
        kinds={kind.name: await _availability(session, kind, resources) for kind in served},
        served={kind.name: kind for kind in served},
        resources=resources,
    )


async def _resources(session: KubeSession, base_paths: set[str]) -> frozenset[str]:
    found: set[str] = set()
    for root in ("/api", "/apis"):
        answer: _Root = await session.get_json(root, None, _root_decoder, accept=_AGGREGATED)
        if answer.kind == "APIGroupDiscoveryList":
            found.update(_aggregated(answer))
        else:
            found.update(await _plain(session, root, answer, base_paths))
    return frozenset(found)


def _aggregated(answer: _Root) -> Iterable[str]:
    for group in answer.items or ():
        name = (group.metadata or {}).get("name", "")
        for version in group.versions or ():
            prefix = f"{name}/{version.version}" if name else version.version
            for resource in version.resources or ():
                yield f"{prefix}/{resource.resource}"


async def _plain(session: KubeSession, root: str, answer: _Root, base_paths: set[str]) -> set[str]:
    """Only the group versions we read: a broken aggregated API of somebody else must not stop us."""
    served = set(answer.versions or ()) | {
        version.group_version for group in answer.groups or () for version in group.versions or ()
    }
    found: set[str] = set()
    for group_version in sorted(served):
        path = f"{root}/{group_version}"
        if path not in base_paths:
            continue
        try:
            listed: _PlainResources = await session.get_json(path, None, _resources_decoder)
        except NotFound:
            continue
        found.update(f"{group_version}/{resource.name}" for resource in listed.resources or ())
    return found


async def _availability(session: KubeSession, kind: Kind[Any], resources: frozenset[str]) -> Availability:
    if kind.resource not in resources:
        places = " or ".join(at.group_version for at in kind.versions)
        return Absent(kind.name, f"the server has no {kind.plural} in {places}")
    reviews = [await _review(session, kind, verb) for verb in READ_VERBS]
    refused = [f"{verb} ({why})" if why else verb for verb, why in reviews if why is not None]
    return (
        Denied(kind.name, f"may not {' or '.join(refused)} {kind.plural}")
        if refused
        else Available(kind.name)
    )


async def _review(session: KubeSession, kind: Kind[Any], verb: str) -> tuple[str, str | None]:
    """The verb, and None when it is allowed, else the server's reason (perhaps empty)."""
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {
            "resourceAttributes": {
                "group": kind.group,
                "version": kind.version,
                "resource": kind.plural,
                "verb": verb,
            }
        },
    }
    try:
        review: _Review = await session.post(
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body, _review_decoder
        )
    except (Forbidden, NotFound):
        return verb, await _try_it(session, kind)
    if review.status.allowed:
        return verb, None
    return verb, review.status.reason or review.status.evaluation_error


async def _try_it(session: KubeSession, kind: Kind[Any]) -> str | None:
    """Where reviews are not to be had, one object is asked for: that settles ``list``, and ``watch`` as well as can be."""
    try:
        await session.list_page(kind, limit=1)
    except ApiError as error:
        return error.message
    return None
