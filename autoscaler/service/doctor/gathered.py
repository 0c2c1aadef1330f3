"""What the checks look at: the answers of the two peers as plain values, with the fault where there was none."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

from autoscaler.decide import plan
from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.plan import ExplainRow
from autoscaler.model.policy import Policy
from autoscaler.model.selectors import LabelSelector
from autoscaler.model.snapshot import Snapshot
from autoscaler.observe.profiles import Profile
from autoscaler.service.settings import Settings

StoreFaultKind = Literal[
    "unset",
    "setup",
    "dns",
    "refused",
    "tls",
    "timeout",
    "cut",
    "auth",
    "not-prometheus",
    "throttled",
    "server-error",
    "query",
]
Labels: TypeAlias = Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class StoreFault:
    """Why the store did not answer; `working_url` is an address at which it did."""

    kind: StoreFaultKind
    detail: str
    working_url: str = ""


@dataclass(frozen=True, kw_only=True)
class Published:
    """One signal metric of one scrape job inside the evidence window; times are the store's, -1 where unknown."""

    metric: str
    job: str
    series: int
    newest_ms: int = -1
    oldest_ms: int = -1


@dataclass(frozen=True, kw_only=True)
class Targets:
    """The scrape targets of one job, by what `up` says of them."""

    job: str
    up: int
    down: int = 0


@dataclass(frozen=True, kw_only=True)
class Rows:
    """The series of a profile's metric now, reduced to the labels that can name an owner, a device or a source."""

    profile: Profile
    metric: str
    rows: tuple[Labels, ...]


@dataclass(frozen=True, kw_only=True)
class StoreFacts:
    """What the metrics store said; after a `fault` the rest is what had been heard before it.

    `foreign` counts series by metric name where no profile's metric exists: names that look like a GPU exporter's.
    `retention_ms` is -1 where the store does not tell; `minus_own_ms` is its clock less this machine's.
    """

    fault: StoreFault | None = None
    now_ms: int = -1
    minus_own_ms: int | None = None
    targets: tuple[Targets, ...] = ()
    published: tuple[Published, ...] = ()
    foreign: Mapping[str, int] = field(default_factory=dict)
    rows: tuple[Rows, ...] = ()
    retention_ms: int = -1
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, order=True, kw_only=True)
class Right:
    """One verb on one resource (`pods/eviction` is a subresource), everywhere or in a namespace, perhaps on one name."""

    group: str
    resource: str
    verb: str
    namespace: str = ""
    name: str = ""
    role: str = ""
    """The role that carries it, and the file that it is shipped in."""
    kind: str = ""
    """The kind that is watched with it, empty for other uses."""


@dataclass(frozen=True, kw_only=True)
class Review:
    """What the API server says of a right; `reason` is its own words."""

    right: Right
    allowed: bool
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class LeaseFacts:
    """The Lease as it is written; `exists` is false where there is none. Times are the API server's."""

    exists: bool
    holder: str = ""
    renewed_ms: int = -1
    duration_ms: int = 15_000
    transitions: int = 0


@dataclass(frozen=True, kw_only=True)
class Monitor:
    """A ServiceMonitor or PodMonitor; `about` is all text in it that could name an exporter."""

    kind: Literal["ServiceMonitor", "PodMonitor"]
    namespace: str
    name: str
    labels: Labels
    about: str
    honors_labels: bool = False


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which monitors of a kind a Prometheus takes; None is an absent selector: no monitor, and only its own namespace."""

    monitors: LabelSelector | None
    namespaces: LabelSelector | None


@dataclass(frozen=True, kw_only=True)
class Instance:
    """A Prometheus object of the operator."""

    namespace: str
    name: str
    selections: Mapping[str, Selection]


@dataclass(frozen=True, kw_only=True)
class MonitorFacts:
    """The objects of the Prometheus operator; `absent` where the cluster has no such API, `fault` where not readable."""

    absent: bool = False
    fault: str = ""
    monitors: tuple[Monitor, ...] = ()
    instances: tuple[Instance, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ServerFacts:
    """What the API server said; `fault` is why it could not be asked at all.

    `minus_own_ms` is its clock less this machine's, within about half a second.
    """

    fault: str = ""
    server: str = ""
    user: str = ""
    reviews: tuple[Review, ...] = ()
    reviews_fault: str = ""
    lease: LeaseFacts | None = None
    lease_fault: str = ""
    monitors: MonitorFacts = MonitorFacts()
    now_ms: int = -1
    minus_own_ms: int | None = None


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """Everything; `snapshot` is None where the cluster could not be read, and `snapshot_fault` says why."""

    settings: Settings
    policy: Policy
    profiles: tuple[Profile, ...]
    store: StoreFacts
    server: ServerFacts
    snapshot: Snapshot | None = None
    snapshot_fault: str = ""

    @cached_property
    def rows(self) -> tuple[ExplainRow, ...]:
        """What would be decided, workload by workload; those that the policy's selectors leave out have no row."""
        snapshot = self.snapshot
        return () if snapshot is None else plan(snapshot, self.policy, snapshot.taken_ms).rows

    @cached_property
    def judged(self) -> frozenset[WorkloadRef]:
        """The workloads that have a row."""
        return frozenset(row.workload for row in self.rows)
