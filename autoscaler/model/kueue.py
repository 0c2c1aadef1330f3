"""Kueue's objects as rows of a snapshot: who waits, who is admitted, and what each queue and cohort may use."""

import msgspec

from autoscaler.model.duration import Instant
from autoscaler.model.resources import Int64, Vector


class FlavorQuota(msgspec.Struct, frozen=True, order=True, gc=False):
    """A quota of one resource in one flavor; a limit that is None is not stated.

    `borrowing` is how much more than `nominal` may be used of what others in the cohort leave, `lending` how much of
    `nominal` others may use.
    """

    flavor: str
    resource: str
    nominal: Int64 = 0
    borrowing: Int64 | None = None
    lending: Int64 | None = None


class FlavorUse(msgspec.Struct, frozen=True, order=True, gc=False):
    """An amount of one resource in one flavor that is reserved."""

    flavor: str
    resource: str
    amount: Int64 = 0


class KueueWorkload(msgspec.Struct, frozen=True, gc=False):
    """A Workload of Kueue: the object by which it admits what its `owners` (uids) are.

    `controller` is the uid of the owner that controls it, empty where several pods share it. `reserved`: its quota is
    reserved in `cluster_queue`, since `reserved_ms`; `admitted`: it may also run. `asks` is what all its pods ask for,
    `uses` what is reserved for them. `waits_because` are Kueue's own words while nothing is reserved.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str = ""
    controller: str = ""
    owners: tuple[str, ...] = ()
    queue: str = ""
    active: bool = True
    reserved: bool = False
    reserved_ms: Instant = -1
    admitted: bool = False
    finished: bool = False
    evicted: str = ""
    cluster_queue: str = ""
    asks: Vector = {}
    uses: tuple[FlavorUse, ...] = ()
    waits_because: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class ClusterQueueRow(msgspec.Struct, frozen=True, gc=False):
    """A ClusterQueue; `uses` is what is reserved in it, `stop` its stop policy where it admits nobody."""

    name: str
    cohort: str = ""
    stop: str = ""
    quotas: tuple[FlavorQuota, ...] = ()
    uses: tuple[FlavorUse, ...] = ()
    unreadable: tuple[str, ...] = ()


class LocalQueueRow(msgspec.Struct, frozen=True, gc=False):
    """A namespace's door to a ClusterQueue."""

    namespace: str
    name: str
    cluster_queue: str = ""
    stop: str = ""


class CohortRow(msgspec.Struct, frozen=True, gc=False):
    """A Cohort, which may have a parent and quotas of its own; one that only queues name has no row."""

    name: str
    parent: str = ""
    quotas: tuple[FlavorQuota, ...] = ()
    unreadable: tuple[str, ...] = ()
