"""The objects of the Prometheus operator that say which exporters are scraped, where a cluster has them."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

import msgspec

from autoscaler.kube import wire
from autoscaler.kube.errors import NotFound
from autoscaler.kube.session import KubeSession
from autoscaler.kube.wire import Wire
from autoscaler.model.selectors import LabelRequirement, LabelSelector
from autoscaler.service.doctor.gathered import Instance, Monitor, MonitorFacts, Selection

_GROUP: Final = "/apis/monitoring.coreos.com/v1"
_PAGE: Final = 500
_KINDS: Final[Mapping[Literal["ServiceMonitor", "PodMonitor"], str]] = {
    "ServiceMonitor": "servicemonitors",
    "PodMonitor": "podmonitors",
}


class _Endpoint(Wire):
    honor_labels: bool = False


class _Spec(Wire):
    selector: wire.LabelSelector | None = None
    endpoints: list[_Endpoint] | None = None
    pod_metrics_endpoints: list[_Endpoint] | None = None
    service_monitor_selector: wire.LabelSelector | None = None
    service_monitor_namespace_selector: wire.LabelSelector | None = None
    pod_monitor_selector: wire.LabelSelector | None = None
    pod_monitor_namespace_selector: wire.LabelSelector | None = None


class _Object(Wire):
    metadata: wire.ObjectMeta = msgspec.field(default_factory=wire.ObjectMeta)
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _List(Wire):
    metadata: wire.ListMeta = msgspec.field(default_factory=wire.ListMeta)
    items: list[_Object] | None = None


class _Resource(Wire):
    name: str = ""


class _Resources(Wire):
    resources: list[_Resource] | None = None


_list_decoder = msgspec.json.Decoder(_List)
_resources_decoder = msgspec.json.Decoder(_Resources)


async def read_monitors(session: KubeSession) -> MonitorFacts:
    """All monitors and all Prometheus objects; raises `KubeError` where they are there and may not be read."""
    try:
        # Asked by name first: without rights on it, an API that does not exist is answered as a forbidden one.
        served: _Resources = await session.get_json(_GROUP, None, _resources_decoder)
    except NotFound:
        return MonitorFacts(absent=True)
    known = {resource.name for resource in served.resources or ()}
    if not known & set(_KINDS.values()):
        return MonitorFacts(absent=True)
    monitors: list[Monitor] = []
    for kind, plural in _KINDS.items():
        if plural in known:
            monitors += [_monitor(kind, item) for item in await _all(session, plural)]
    instances = await _all(session, "prometheuses") if "prometheuses" in known else []
    return MonitorFacts(monitors=tuple(monitors), instances=tuple(map(_instance, instances)))


async def _all(session: KubeSession, plural: str) -> list[_Object]:
    found: list[_Object] = []
    token = ""
    while True:
        params = {"limit": str(_PAGE), **({"continue": token} if token else {})}
        page: _List = await session.get_json(f"{_GROUP}/{plural}", params, _list_decoder)
        found += page.items or []
        token = page.metadata.continue_
        if not token:
            return found


def _monitor(kind: Literal["ServiceMonitor", "PodMonitor"], item: _Object) -> Monitor:
    endpoints = [*(item.spec.endpoints or ()), *(item.spec.pod_metrics_endpoints or ())]
    return Monitor(
        kind=kind,
        namespace=item.metadata.namespace,
        name=item.metadata.name,
        labels=item.metadata.labels or {},
        about=" ".join(_words(item)),
        honors_labels=bool(endpoints) and all(endpoint.honor_labels for endpoint in endpoints),
    )


def _words(item: _Object) -> Iterator[str]:
    yield item.metadata.name
    for labels in (item.metadata.labels, item.spec.selector and item.spec.selector.match_labels):
        yield from (labels or {}).values()
    for requirement in (item.spec.selector and item.spec.selector.match_expressions) or ():
        yield from requirement.values or ()


def _instance(item: _Object) -> Instance:
    spec = item.spec
    return Instance(
        namespace=item.metadata.namespace,
        name=item.metadata.name,
        selections={
            "ServiceMonitor": Selection(
                monitors=_selector(spec.service_monitor_selector),
                namespaces=_selector(spec.service_monitor_namespace_selector),
            ),
            "PodMonitor": Selection(
                monitors=_selector(spec.pod_monitor_selector),
                namespaces=_selector(spec.pod_monitor_namespace_selector),
            ),
        },
    )


def _selector(stated: wire.LabelSelector | None) -> LabelSelector | None:
    if stated is None:
        return None
    requirements: Any = stated.match_expressions or ()
    return LabelSelector(
        match_labels=dict(stated.match_labels or {}),
        expressions=tuple(LabelRequirement(r.key, r.operator, tuple(r.values or ())) for r in requirements),
    )
