"""Stores: what the API server has, in the form and size in which cycles need it.

Each has one writer (its watch) and any number of readers. Readers get `freeze()`: a copy of the table, taken on the
event loop in well under a millisecond per thousand objects, whose rows never change. A relist fills a side table that
readers never see before it is complete. Versions and tombstones are the watch's business, not the stores'.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from autoscaler.kube import wire
from autoscaler.model.cluster import (
    Autoscaler,
    Budget,
    LimitRangeRow,
    NamespaceRow,
    NodeClaimRow,
    NodeRow,
    PriorityClassRow,
    Quota,
)
from autoscaler.model.kueue import ClusterQueueRow, CohortRow, KueueWorkload, LocalQueueRow
from autoscaler.model.policy import Resources
from autoscaler.observe import claims, kueue, rows
from autoscaler.observe.claims import ClaimsView
from autoscaler.observe.entries import OwnerLink, WorkloadEntry, WorkloadReader
from autoscaler.observe.pods import PodStore, PodsView
from autoscaler.observe.shapes import Places, ShapeTable


class Named(Protocol):
    """Any decoded object."""

    @property
    def metadata(self) -> wire.ObjectMeta:
        """Name and namespace."""


W = TypeVar("W", bound=Named)
R = TypeVar("R")


class RowStore(Generic[W, R]):
    """Keeps one row for each object, by "namespace/name"; an object whose row is None is not kept."""

    def __init__(self, convert: Callable[[W], R | None]) -> None:
        self._convert = convert
        self._rows: dict[str, R] = {}
        self._side: dict[str, R] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def begin_relist(self) -> None:
        """Start a side table; an unfinished one is thrown away."""
        self._side = {}

    def relist_page(self, items: Sequence[W], /) -> None:
        """Put objects into the side table."""
        if self._side is None:
            raise RuntimeError("a page came before its relist began")
        for item in items:
            self._put(self._side, item)

    def commit_relist(self, resource_version: str, /) -> None:  # noqa: ARG002 - part of the writer protocol
        """Readers see the side table from now on."""
        if self._side is None:
            raise RuntimeError("a relist ended that never began")
        self._rows, self._side = self._side, None

    def apply(self, obj: W, /) -> None:
        """The object is new or changed."""
        self._put(self._rows, obj)

    def delete(self, obj: W, /) -> None:
        """The object is gone."""
        self._rows.pop(object_key(obj.metadata), None)

    def freeze(self) -> Mapping[str, R]:
        """The rows as they are now."""
        return dict(self._rows)

    def _put(self, table: dict[str, R], item: W) -> None:
        key, row = object_key(item.metadata), self._convert(item)
        if row is None:
            table.pop(key, None)
        else:
            table[key] = row


def object_key(meta: wire.ObjectMeta) -> str:
    """How rows are keyed: "namespace/name", with an empty namespace for cluster-scoped objects."""
    return f"{meta.namespace}/{meta.name}"


class StoresView(msgspec.Struct, frozen=True):
    """All stores as they were at one moment; tables are keyed by "namespace/name", workloads also by kind."""

    pods: PodsView
    nodes: Mapping[str, NodeRow] = {}
    node_claims: Mapping[str, NodeClaimRow] = {}
    bound_volumes: Mapping[str, str] = {}
    volume_places: Mapping[str, Places] = {}
    namespaces: Mapping[str, NamespaceRow] = {}
    priority_classes: Mapping[str, PriorityClassRow] = {}
    replica_sets: Mapping[str, OwnerLink] = {}
    workloads: Mapping[str, Mapping[str, WorkloadEntry]] = {}
    quotas: Mapping[str, Quota] = {}
    limit_ranges: Mapping[str, LimitRangeRow] = {}
    budgets: Mapping[str, Budget] = {}
    autoscalers: Mapping[str, Autoscaler] = {}
    claims: ClaimsView = ClaimsView()
    kueue_workloads: Mapping[str, KueueWorkload] = {}
    cluster_queues: Mapping[str, ClusterQueueRow] = {}
    local_queues: Mapping[str, LocalQueueRow] = {}
    cohorts: Mapping[str, CohortRow] = {}


class Stores:
    """One store per kind; `writers` are to be filled by the watches of the kinds of those names.

    Which resources are accelerators is fixed at the start: other names need new stores and a new list.
    """

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        shapes = ShapeTable(resources)
        reader = WorkloadReader(ShapeTable(resources, templates=True))
        self.pods = PodStore(shapes)
        self.nodes = RowStore(rows.node_row)
        self.namespaces = RowStore(rows.namespace_row)
        self.priority_classes = RowStore(rows.priority_class_row)
        self.replica_sets = RowStore(reader.replica_set)
        self.deployments = RowStore(reader.deployment)
        self.stateful_sets = RowStore(reader.stateful_set)
        self.jobs = RowStore(reader.job)
        self.cron_jobs = RowStore(reader.cron_job)
        self.quotas = RowStore(rows.quota_row)
        self.limit_ranges = RowStore(rows.limit_range_row)
        self.budgets = RowStore(rows.budget_row)
        self.autoscalers = RowStore(rows.autoscaler_row)
        self.resource_claims = RowStore(claims.claim_row)
        self.resource_slices = RowStore(claims.slice_row)
        self.device_classes = RowStore(claims.class_row)
        self.node_claims = RowStore(rows.node_claim_row)
        self.bound_volumes = RowStore(rows.bound_volume)
        self.volume_places = RowStore(rows.volume_places)
        self.kueue_workloads = RowStore(kueue.workload_row)
        self.cluster_queues = RowStore(kueue.cluster_queue_row)
        self.local_queues = RowStore(kueue.local_queue_row)
        self.cohorts = RowStore(kueue.cohort_row)

    @property
    def writers(self) -> Mapping[str, Any]:
        """The writing side of every store by the name of its kind."""
        return {
            "Pod": self.pods,
            "Node": self.nodes,
            "Namespace": self.namespaces,
            "PriorityClass": self.priority_classes,
            "ReplicaSet": self.replica_sets,
            "Deployment": self.deployments,
            "StatefulSet": self.stateful_sets,
            "Job": self.jobs,
            "CronJob": self.cron_jobs,
            "ResourceQuota": self.quotas,
            "LimitRange": self.limit_ranges,
            "PodDisruptionBudget": self.budgets,
            "HorizontalPodAutoscaler": self.autoscalers,
            "ResourceClaim": self.resource_claims,
            "ResourceSlice": self.resource_slices,
            "DeviceClass": self.device_classes,
            "NodeClaim": self.node_claims,
            "PersistentVolumeClaim": self.bound_volumes,
            "PersistentVolume": self.volume_places,
            "Workload": self.kueue_workloads,
            "ClusterQueue": self.cluster_queues,
            "LocalQueue": self.local_queues,
            "Cohort": self.cohorts,
        }

    def freeze(self) -> StoresView:
        """All tables as they are now; to be called on the event loop, everything after may run in a thread."""
        return StoresView(
            pods=self.pods.freeze(),
            nodes=self.nodes.freeze(),
            node_claims=self.node_claims.freeze(),
            bound_volumes=self.bound_volumes.freeze(),
            volume_places=self.volume_places.freeze(),
            namespaces=self.namespaces.freeze(),
            priority_classes=self.priority_classes.freeze(),
            replica_sets=self.replica_sets.freeze(),
            workloads={
                "Deployment": self.deployments.freeze(),
                "StatefulSet": self.stateful_sets.freeze(),
                "Job": self.jobs.freeze(),
                "CronJob": self.cron_jobs.freeze(),
            },
            quotas=self.quotas.freeze(),
            limit_ranges=self.limit_ranges.freeze(),
            budgets=self.budgets.freeze(),
            autoscalers=self.autoscalers.freeze(),
            claims=ClaimsView(
                resources=self._resources,
                claims=self.resource_claims.freeze(),
                slices=self.resource_slices.freeze(),
                classes=self.device_classes.freeze(),
            ),
            kueue_workloads=self.kueue_workloads.freeze(),
            cluster_queues=self.cluster_queues.freeze(),
            local_queues=self.local_queues.freeze(),
            cohorts=self.cohorts.freeze(),
        )
