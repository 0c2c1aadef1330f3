"""Dynamic Resource Allocation (resource.k8s.io): which devices there are, and who was given which.

One set of structs reads `v1`, `v1beta2` and `v1beta1`: where the older version is flat (`DeviceRequest`) or nested in
`basic` (`Device`), both places are declared and the reader takes what is there.
"""

import msgspec

from autoscaler.kube.wire.meta import Int64, ObjectMeta, Wire


class CelSelector(Wire):
    """A CEL expression over one device; it is never evaluated here."""

    expression: str = ""


class DeviceSelector(Wire):
    """A condition on a device."""

    cel: CelSelector | None = None


class DeviceClassSpec(Wire):
    """Which devices belong to a class, and the extended resource they stand in for (servers from 1.34)."""

    selectors: list[DeviceSelector] | None = None
    extended_resource_name: str | None = None


class DeviceClass(Wire):
    """A device class."""

    metadata: ObjectMeta
    spec: DeviceClassSpec = msgspec.field(default_factory=DeviceClassSpec)


class DeviceDemand(Wire):
    """So many devices of a class; `allocation_mode` "All" has no count."""

    name: str = ""
    device_class_name: str = ""
    selectors: list[DeviceSelector] | None = None
    allocation_mode: str = ""
    count: Int64 = 0
    admin_access: bool | None = None


class DeviceRequest(DeviceDemand):
    """One request of a claim: exact, a list of alternatives, or (v1beta1) flat in the request itself."""

    exactly: DeviceDemand | None = None
    first_available: list[DeviceDemand] | None = None


class DeviceClaim(Wire):
    """The requests of a claim."""

    requests: list[DeviceRequest] | None = None


class ResourceClaimSpec(Wire):
    """What a claim asks for."""

    devices: DeviceClaim = msgspec.field(default_factory=DeviceClaim)


class DeviceResult(Wire):
    """One device that was given for a request (`request` or `request/alternative`)."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    share_id: str | None = msgspec.field(name="shareID", default=None)


class DeviceResults(Wire):
    """All devices of an allocation."""

    results: list[DeviceResult] | None = None


class Allocation(Wire):
    """What the scheduler gave a claim."""

    devices: DeviceResults = msgspec.field(default_factory=DeviceResults)


class ClaimConsumer(Wire):
    """Who may use the devices; pods are `resource` "pods" of the core group."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class ResourceClaimStatus(Wire):
    """Present once devices were given; consumers go when they have ended."""

    allocation: Allocation | None = None
    reserved_for: list[ClaimConsumer] | None = None


class ResourceClaim(Wire):
    """A resource claim."""

    metadata: ObjectMeta
    spec: ResourceClaimSpec = msgspec.field(default_factory=ResourceClaimSpec)
    status: ResourceClaimStatus = msgspec.field(default_factory=ResourceClaimStatus)


class DeviceAttribute(Wire):
    """An attribute's value, where it is text; numbers and truth values are not read."""

    string: str | None = None


class CounterValue(Wire):
    """A quantity, unparsed."""

    value: str = ""


class CounterSet(Wire):
    """What devices that overlap (a board and its slices) share."""

    name: str = ""
    counters: dict[str, CounterValue] | None = None


class CounterUse(Wire):
    """What one device takes of a counter set."""

    counter_set: str = ""
    counters: dict[str, CounterValue] | None = None


class BasicDevice(Wire):
    """The content of a device."""

    attributes: dict[str, DeviceAttribute] | None = None
    consumes_counters: list[CounterUse] | None = None
    node_name: str | None = None
    allow_multiple_allocations: bool | None = None


class Device(BasicDevice):
    """One device of a slice; `basic` holds its content in v1beta1."""

    name: str = ""
    basic: BasicDevice | None = None


class ResourcePool(Wire):
    """Only slices of a pool's newest generation count, and only once all of them are there."""

    name: str = ""
    generation: Int64 = 0
    resource_slice_count: Int64 = 1


class ResourceSliceSpec(Wire):
    """Devices of one driver, on one node where `node_name` is set."""

    driver: str = ""
    pool: ResourcePool = msgspec.field(default_factory=ResourcePool)
    node_name: str | None = None
    devices: list[Device] | None = None
    shared_counters: list[CounterSet] | None = None


class ResourceSlice(Wire):
    """A resource slice."""

    metadata: ObjectMeta
    spec: ResourceSliceSpec = msgspec.field(default_factory=ResourceSliceSpec)
