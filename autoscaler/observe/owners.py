"""From a pod to the workload that would be acted on: the topmost controller, as far as the stores know the chain.

An owner that is not known is a row of its own with an unknown template: it is named, not guessed.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

import msgspec

from autoscaler.model.cluster import Rollout, Run, Workload, WorkloadRef
from autoscaler.model.shapes import PodShape
from autoscaler.observe.entries import OwnerLink, OwnerRef, WorkloadEntry
from autoscaler.observe.pods import PodEntry
from autoscaler.observe.stores import StoresView

_MAX_DEPTH: Final = 8
_GROUPS: Final = {"Deployment": "apps", "StatefulSet": "apps", "Job": "batch", "CronJob": "batch"}

Key: TypeAlias = tuple[WorkloadRef, str]
"""A workload's identity and uid: an object made anew under the same name is another one."""


class OwnedRow(msgspec.Struct, frozen=True, gc=False):
    """A workload's row with its template's shape (None: unknown)."""

    row: Workload
    shape: PodShape | None


class OwnerWalk:
    """Walks owner chains over one view, each chain once."""

    def __init__(self, view: StoresView) -> None:
        self._view = view
        self._tops: dict[OwnerRef, dict[str, Key]] = {}
        self._found: dict[Key, OwnedRow] = {}
        self._runs = _runs_of(view.workloads.get("Job", {}))

    @property
    def rows(self) -> Mapping[Key, OwnedRow]:
        """Every workload met so far."""
        return self._found

    def of_pod(self, pod: PodEntry) -> Key:
        """The pod's workload. A pod without controller, or that a node's kubelet made, is its own."""
        if pod.owner is None or (pod.owner.kind == "Node" and not pod.owner.group):
            return self._bare(pod)
        tops = self._tops.setdefault(pod.owner, {})
        key = tops.get(pod.namespace)
        if key is None:
            key = tops[pod.namespace] = self._climb(pod.owner, pod.namespace, _MAX_DEPTH)
        return key

    def add_templates(self) -> None:
        """The workloads that want accelerators by template, with or without pods; finished Jobs want nothing."""
        for entries in self._view.workloads.values():
            for entry in entries.values():
                if entry.shape is not None and entry.owner is None and not entry.finished:
                    self._known(entry)

    def _climb(self, ref: OwnerRef, namespace: str, depth: int) -> Key:
        link = self._link(ref, namespace)
        above = link.owner if link is not None else None
        if above is not None and depth > 0:
            return self._climb(above, namespace, depth - 1)
        if isinstance(link, WorkloadEntry):
            return self._known(link)
        return self._unknown(ref, namespace, link)

    def _link(self, ref: OwnerRef, namespace: str) -> OwnerLink | WorkloadEntry | None:
        """The stored object that an owner reference means: same kind, name and uid."""
        name = f"{namespace}/{ref.name}"
        if (ref.group, ref.kind) == ("apps", "ReplicaSet"):
            link = self._view.replica_sets.get(name)
            return link if link is not None and link.uid == ref.uid else None
        if _GROUPS.get(ref.kind) != ref.group:
            return None
        entry = self._view.workloads.get(ref.kind, {}).get(name)
        return entry if entry is not None and entry.row.uid == ref.uid else None

    def _known(self, entry: WorkloadEntry) -> Key:
        row = entry.row
        key = (row.ref, row.uid)
        if key not in self._found:
            if row.ref.kind == "CronJob":
                runs = self._runs.get(row.uid, ())
                completed = sum(run.state == "succeeded" for run in runs)
                row = msgspec.structs.replace(row, completed_runs=completed, runs=runs)
            self._found[key] = OwnedRow(row, entry.shape)
        return key

    def _unknown(self, ref: OwnerRef, namespace: str, link: OwnerLink | WorkloadEntry | None) -> Key:
        key = (WorkloadRef(ref.group, ref.kind, namespace, ref.name), ref.uid)
        if key not in self._found:
            row = Workload(ref=key[0], uid=ref.uid, rollout=Rollout(max_surge="0"))
            if isinstance(link, OwnerLink):
                row = msgspec.structs.replace(
                    row,
                    replicas=link.replicas,
                    resource_version=link.resource_version,
                    created_ms=link.created_ms,
                )
            self._found[key] = OwnedRow(row, None)
        return key

    def _bare(self, pod: PodEntry) -> Key:
        key = (WorkloadRef("", "Pod", pod.namespace, pod.name), pod.uid)
        row = Workload(
            ref=key[0],
            uid=pod.uid,
            created_ms=pod.created_ms,
            labels=pod.labels,
            annotations=pod.annotations,
            deleting=pod.deleting,
        )
        self._found[key] = OwnedRow(row, pod.shape)
        return key


def _runs_of(jobs: Mapping[str, WorkloadEntry]) -> dict[str, tuple[Run, ...]]:
    """Jobs that still exist, oldest first, by the uid of their CronJob."""
    runs: dict[str, list[Run]] = {}
    for entry in jobs.values():
        if entry.owner is not None and entry.owner.kind == "CronJob":
            runs.setdefault(entry.owner.uid, []).append(entry.run)
    return {uid: tuple(sorted(found)) for uid, found in runs.items()}
