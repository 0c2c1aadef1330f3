"""Resource claims, slices and device classes (Dynamic Resource Allocation) as rows, and whose a device is.

CEL is not evaluated: of selectors only the driver, the profile, and whether parts of boards are meant, are recognised in
their text.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

import msgspec

from autoscaler.kube import wire
from autoscaler.model.policy import Resources
from autoscaler.model.quantity import QuantityError, resource_amount
from autoscaler.observe.pods import PodEntry, PodsView
from autoscaler.observe.series import normal_device

DeviceId: TypeAlias = tuple[str, str, str]
"""Driver, pool and device: the name under which the API knows a device."""
CounterKey: TypeAlias = tuple[str, str]
"""Counter set and counter of a pool."""
PodName: TypeAlias = tuple[str, str]
"""Namespace and name."""

EXTENDED_CLAIM: Final = "resource.kubernetes.io/extended-resource-claim"
"""The scheduler's annotation on claims that it makes for extended resources (k8s.io/api resource/v1)."""
TEMPLATED_CLAIM: Final = "resource.kubernetes.io/pod-claim-name"
"""The claim controller's annotation on claims that it makes from a template."""
_DRIVER: Final = re.compile(r"""device\.driver\s*==\s*["']([^"']+)["']""")
_SLICE: Final = re.compile(r"""\.type\s*==\s*["']mig["']""")
_PROFILE: Final = re.compile(r"""\.profile\s*==\s*["']([^"']+)["']""")
NVIDIA: Final = "gpu.nvidia.com"
AMD: Final = "gpu.amd.com"
"""Drivers whose parts of boards are told from whole ones."""


class Wanted(msgspec.Struct, frozen=True, gc=False):
    """What one request of a claim asks for; `profile` is the slice profile that its selectors name."""

    name: str
    device_class: str
    count: int
    profile: str = ""


class Given(msgspec.Struct, frozen=True, gc=False):
    """A device that a claim was given; `shared` by the driver's own leave, beside other claims."""

    device: DeviceId
    request: str
    shared: bool


class ClaimRow(msgspec.Struct, frozen=True, gc=False):
    """A ResourceClaim. `given` is None until devices were given; access for monitoring is not listed.

    `pods` are those that may use the devices, by name and uid, or for which it was made. `extended` claims were made for
    extended resources, `templated` ones from a template that the pod names.
    """

    namespace: str
    name: str
    wanted: tuple[Wanted, ...]
    given: tuple[Given, ...] | None
    pods: tuple[tuple[str, str], ...]
    extended: bool
    templated: bool

    def class_of(self, given: Given) -> Wanted | None:
        """The request for which a device was given; an alternative is named "request/alternative"."""
        return next((wanted for wanted in self.wanted if wanted.name == given.request), None)


class DeviceRow(msgspec.Struct, frozen=True, gc=False):
    """A device of a slice; `node` is where it is, empty where any node can reach it.

    `profile` is that of a part of a board, empty for a whole one. `uses` is what it takes of its pool's counters, None
    where that cannot be read.
    """

    name: str
    node: str
    uuid: str
    profile: str
    uses: dict[CounterKey, int] | None


class SliceRow(msgspec.Struct, frozen=True, gc=False):
    """A ResourceSlice; `counters` are its pool's, which devices that overlap use up together."""

    driver: str
    pool: str
    generation: int
    slices: int
    devices: tuple[DeviceRow, ...]
    counters: dict[CounterKey, int]


class ClassRow(msgspec.Struct, frozen=True, gc=False):
    """A DeviceClass: the extended resource it backs, the driver its selectors name, and whether that is all they say."""

    name: str
    extended: str
    driver: str
    whole_driver: bool
    sliced: bool
    profile: str


class ClaimsView(msgspec.Struct, frozen=True):
    """Claims, slices and classes at one moment, by "namespace/name"; `resources` says what an accelerator is.

    `counted` says that pods and nodes of the same view have these devices already.
    """

    resources: Resources = Resources()
    claims: Mapping[str, ClaimRow] = {}
    slices: Mapping[str, SliceRow] = {}
    classes: Mapping[str, ClassRow] = {}
    counted: bool = False


def claim_row(item: wire.ResourceClaim) -> ClaimRow:
    """A claim."""
    meta, status = item.metadata, item.status
    given = None
    if status.allocation is not None:
        given = tuple(
            Given((found.driver, found.pool, found.device), found.request, shared=bool(found.share_id))
            for found in status.allocation.devices.results or ()
            if not found.admin_access
        )
    users = {c.uid: c.name for c in status.reserved_for or () if c.resource == "pods" and not c.api_group}
    users |= {o.uid: o.name for o in meta.owner_references or () if (o.api_version, o.kind) == ("v1", "Pod")}
    annotations = meta.annotations or {}
    return ClaimRow(
        namespace=meta.namespace,
        name=meta.name,
        wanted=tuple(_wanted(item.spec.devices.requests or ())),
        given=given,
        pods=tuple((name, uid) for uid, name in sorted(users.items())),
        extended=annotations.get(EXTENDED_CLAIM) == "true",
        templated=TEMPLATED_CLAIM in annotations,
    )


def _wanted(requests: Iterable[wire.DeviceRequest]) -> Iterable[Wanted]:
    """Every request and alternative under the name that a result would give it."""
    for request in requests:
        if request.first_available:
            for choice in request.first_available:
                yield _want(f"{request.name}/{choice.name}", choice)
        else:
            yield _want(request.name, request.exactly or request)


def _want(name: str, demand: wire.DeviceDemand) -> Wanted:
    everything = demand.allocation_mode == "All"
    count = 0 if demand.admin_access else 1 if everything else max(1, demand.count)
    return Wanted(name, demand.device_class_name, count, _found(_PROFILE, demand.selectors))


def slice_row(item: wire.ResourceSlice) -> SliceRow:
    """A slice of a pool."""
    spec = item.spec
    return SliceRow(
        driver=spec.driver,
        pool=spec.pool.name,
        generation=spec.pool.generation,
        slices=spec.pool.resource_slice_count,
        devices=tuple(_device(spec, device) for device in spec.devices or ()),
        counters=_counters((c.name, c.counters) for c in spec.shared_counters or ()) or {},
    )


def _device(spec: wire.ResourceSliceSpec, device: wire.Device) -> DeviceRow:
    content = device.basic or device
    texts = {
        name.rpartition("/")[2].lower(): value.string
        for name, value in (content.attributes or {}).items()
        if value.string is not None
    }
    return DeviceRow(
        name=device.name,
        node=content.node_name or spec.node_name or "",
        uuid=normal_device(texts.get("uuid", "")),
        profile=_profile(spec.driver, texts),
        uses=_counters((use.counter_set, use.counters) for use in content.consumes_counters or ()),
    )


def _profile(driver: str, texts: Mapping[str, str]) -> str:
    """The profile of a part of a board, as the vendor's device plugin spells it; empty for a whole board."""
    if driver == NVIDIA:
        return texts.get("profile", "").replace("+", ".") if texts.get("type") == "mig" else ""
    profile = texts.get("partitionprofile", "").lower() if driver == AMD else ""
    return "" if profile.startswith("spx") else profile


def _counters(
    sets: Iterable[tuple[str, Mapping[str, wire.CounterValue] | None]],
) -> dict[CounterKey, int] | None:
    try:
        return {
            (of, name): resource_amount(name, counter.value)
            for of, counters in sets
            for name, counter in (counters or {}).items()
        }
    except QuantityError:
        return None


def class_row(item: wire.DeviceClass) -> ClassRow:
    """A class of devices."""
    selectors = item.spec.selectors
    texts = [s.cel.expression.strip() for s in selectors or () if s.cel is not None]
    return ClassRow(
        name=item.metadata.name,
        extended=item.spec.extended_resource_name or "",
        driver=_found(_DRIVER, selectors),
        whole_driver=len(texts) == 1 and _DRIVER.fullmatch(texts[0]) is not None,
        sliced=any(_SLICE.search(text) for text in texts),
        profile=_found(_PROFILE, selectors),
    )


def _found(pattern: re.Pattern[str], selectors: Iterable[wire.DeviceSelector] | None) -> str:
    """The only value that selectors name; empty where they name none or several."""
    texts = (s.cel.expression for s in selectors or () if s.cel is not None)
    values = {value for text in texts for value in pattern.findall(text)}
    return values.pop() if len(values) == 1 else ""


def newest_slices(view: ClaimsView) -> dict[tuple[str, str], tuple[SliceRow, ...]]:
    """The slices of each pool's newest generation, by driver and pool."""
    pools: dict[tuple[str, str], list[SliceRow]] = {}
    for key in sorted(view.slices):
        row = view.slices[key]
        pools.setdefault((row.driver, row.pool), []).append(row)
    newest = {pool: max(row.generation for row in rows) for pool, rows in pools.items()}
    return {
        pool: tuple(row for row in rows if row.generation == newest[pool]) for pool, rows in pools.items()
    }


def claim_owners(view: ClaimsView, pods: PodsView) -> dict[PodName, PodName]:
    """The one pod, as it is known now, that may use what a claim was given; claims by namespace and name."""
    found = {}
    for row in view.claims.values():
        if row.given and len(row.pods) == 1:
            name, uid = row.pods[0]
            entry = pods.pods.get(f"{row.namespace}/{name}")
            if isinstance(entry, PodEntry) and entry.uid == uid:
                found[row.namespace, row.name] = (row.namespace, name)
    return found


def place_owners(view: ClaimsView, pods: PodsView) -> dict[DeviceId, PodName]:
    """The one pod that holds a device, by driver, pool and device; a device that several may use has none."""
    owners = claim_owners(view, pods)
    claimed: dict[DeviceId, set[PodName | None]] = {}
    for row in view.claims.values():
        for given in row.given or ():
            owner = None if given.shared else owners.get((row.namespace, row.name))
            claimed.setdefault(given.device, set()).add(owner)
    sole = {device: next(iter(found)) for device, found in claimed.items() if len(found) == 1}
    return {device: owner for device, owner in sole.items() if owner is not None}


def device_owners(view: ClaimsView, pods: PodsView) -> dict[str, PodName]:
    """The same by the device's own id in normal form, for exporters that name nothing else.

    An id that two devices bear has no owner; neither has a device of a pool that no slice shows any longer.
    """
    owners = place_owners(view, pods)
    bearers: dict[str, list[DeviceId]] = {}
    for (driver, pool), rows in newest_slices(view).items():
        for device in (device for row in rows for device in row.devices if device.uuid):
            bearers.setdefault(device.uuid, []).append((driver, pool, device.name))
    return {
        uuid: owners[found[0]]
        for uuid, found in sorted(bearers.items())
        if len(found) == 1 and found[0] in owners
    }
