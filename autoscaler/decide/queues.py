"""Kueue's queues as one cycle sees them: which Workload stands for whom, and how much quota a queue may still use."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Final

from autoscaler.model.kueue import ClusterQueueRow, CohortRow, FlavorQuota, FlavorUse, KueueWorkload
from autoscaler.model.snapshot import Snapshot

_DEEPEST: Final = 32
"""Cohorts above each other; a chain that is longer is a circle, which Kueue admits nobody in."""


class Queues:
    """Look-ups over the Kueue rows of one snapshot; nothing in it changes."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._cluster_queues = {row.name: row for row in snapshot.cluster_queues}
        self._doors = {(row.namespace, row.name): row.cluster_queue or "" for row in snapshot.local_queues}
        self._trees: dict[tuple[str, str], _Tree] = {}

    @cached_property
    def _by_owner(self) -> Mapping[tuple[str, str], tuple[KueueWorkload, ...]]:
        """Workloads that have not ended, by namespace and uid of each owner, in the order of their names."""
        found: dict[tuple[str, str], list[KueueWorkload]] = {}
        for row in sorted(self._snapshot.kueue_workloads, key=lambda row: (row.name, row.uid)):
            for owner in row.owners if not row.finished else ():
                found.setdefault((row.namespace, owner), []).append(row)
        return {key: tuple(rows) for key, rows in found.items()}

    def standing_for(self, namespace: str, uids: Iterable[str]) -> tuple[KueueWorkload, ...]:
        """The Workloads whose owners are among some objects of a namespace, each once."""
        rows = {row.uid: row for uid in uids for row in self._by_owner.get((namespace, uid), ())}
        return tuple(sorted(rows.values(), key=lambda row: (row.name, row.uid)))

    def cluster_queue_of(self, row: KueueWorkload) -> ClusterQueueRow | None:
        """Where it is admitted, or would be; None where that queue is not known."""
        name = row.cluster_queue or self._doors.get((row.namespace, row.queue), "")
        return self._cluster_queues.get(name)

    def free(self, queue: ClusterQueueRow, resource: str) -> dict[str, int] | None:
        """What the queue may still use of a resource, by flavor, with what it may borrow; None where that is not known.

        Kueue v0.17 `pkg/cache/scheduler/resource_node.go`, `available`: what neither it nor its cohort has promised
        elsewhere, up to its borrowing limit. An amount below zero says that more is reserved than there is.
        """
        flavors = sorted({quota.flavor for quota in queue.quotas if quota.resource == resource})
        if queue.unreadable:
            return None
        found = {flavor: self._tree(flavor, resource).free(queue) for flavor in flavors}
        return (
            None
            if None in found.values()
            else {name: left for name, left in found.items() if left is not None}
        )

    def _tree(self, flavor: str, resource: str) -> "_Tree":
        key = (flavor, resource)
        tree = self._trees.get(key)
        if tree is None:
            tree = self._trees[key] = _Tree(self._snapshot, flavor, resource)
        return tree


class _Tree:
    """Quota and use of one resource of one flavor over all queues and cohorts."""

    def __init__(self, snapshot: Snapshot, flavor: str, resource: str) -> None:
        self._what = (flavor, resource)
        self._cohorts = {row.name: row for row in snapshot.cohorts}
        self._members: dict[str, list[ClusterQueueRow]] = {}
        self._children: dict[str, list[str]] = {}
        for queue in snapshot.cluster_queues:
            self._members.setdefault(queue.cohort, []).append(queue)
        for cohort in snapshot.cohorts:
            self._children.setdefault(cohort.parent, []).append(cohort.name)

    def free(self, queue: ClusterQueueRow) -> int | None:
        """What is available to a queue; None where part of its cohort cannot be read, or the cohorts form a circle."""
        quota, used = self._quota(queue.quotas), self._used(queue.uses)
        total = quota.nominal
        if not queue.cohort:
            return total - used
        above = self._free_in(queue.cohort, depth=0)
        return None if above is None else _within(quota, total, used, above)

    def _free_in(self, name: str, *, depth: int) -> int | None:
        """What is available in a cohort, as its members see it."""
        seen = self._sums(name, depth=depth)
        if seen is None:
            return None
        total, used = seen
        row = self._cohorts.get(name)
        if row is None or not row.parent:
            return total - used
        above = self._free_in(row.parent, depth=depth + 1)
        return None if above is None else _within(self._quota(row.quotas), total, used, above)

    def _sums(self, name: str, *, depth: int) -> tuple[int, int] | None:
        """Quota of a cohort with what its members lend it, and what they use of that."""
        row = self._cohorts.get(name) or CohortRow(name)
        if depth > _DEEPEST or row.unreadable:
            return None
        total, used = self._quota(row.quotas).nominal, 0
        for queue in self._members.get(name, ()):
            if queue.unreadable:
                return None
            quota = self._quota(queue.quotas)
            kept = _kept(quota, quota.nominal)
            total += quota.nominal - kept
            used += max(0, self._used(queue.uses) - kept)
        for child in self._children.get(name, ()):
            seen = self._sums(child, depth=depth + 1)
            if seen is None:
                return None
            kept = _kept(self._quota(self._cohorts[child].quotas), seen[0])
            total += seen[0] - kept
            used += max(0, seen[1] - kept)
        return total, used

    def _quota(self, quotas: Iterable[FlavorQuota]) -> FlavorQuota:
        """The stated quota; nothing of one's own and no limit where none is stated."""
        return next((q for q in quotas if (q.flavor, q.resource) == self._what), FlavorQuota(*self._what))

    def _used(self, uses: Iterable[FlavorUse]) -> int:
        return sum(use.amount for use in uses if (use.flavor, use.resource) == self._what)


def _kept(quota: FlavorQuota, total: int) -> int:
    """What is never lent."""
    return 0 if quota.lending is None else max(0, total - quota.lending)


def _within(quota: FlavorQuota, total: int, used: int, above: int) -> int:
    """What is left of one's own and of what the cohort has, inside the borrowing limit."""
    kept = _kept(quota, total)
    if quota.borrowing is not None:
        stored, taken = total - kept, max(0, used - kept)
        above = min(stored - taken + quota.borrowing, above)
    return max(0, kept - used) + above
