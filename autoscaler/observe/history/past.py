"""Which workload a series counts for: by the pod's name now, else by what the name tells of its past."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.snapshot import Snapshot
from autoscaler.observe.entries import OwnerRef
from autoscaler.observe.history.lineage import Lineage
from autoscaler.observe.pods import FINISHED, Entry, PodEntry
from autoscaler.observe.series import Identity
from autoscaler.observe.stores import StoresView

UNOWNED: Final = "unowned"
"""No pod is named, or the exporter itself."""
UNKNOWN: Final = "unknown"


@dataclass(frozen=True)
class PastOwners:
    """The workloads by their pods' names at one moment. It keeps nothing of what it was made of.

    `live` are pods with accelerators by "namespace/name". `strangers` are live pods without accelerators whose names are
    as those of a workload's pods.
    """

    live: Mapping[str, WorkloadRef]
    lineage: Lineage
    strangers: frozenset[str] = frozenset()

    @classmethod
    def of(cls, view: StoresView, snapshot: Snapshot) -> "PastOwners":
        """From the stores and the snapshot that was made of them."""
        refs = [workload.ref for workload in snapshot.workloads]
        lineage = Lineage.of(refs, makers=_makers(view, frozenset(refs)))
        return cls(
            live={f"{pod.namespace}/{pod.name}": refs[pod.workload] for pod in snapshot.pods},
            lineage=lineage,
            strangers=frozenset(_strangers(view.pods.pods, lineage)),
        )

    @property
    def workloads(self) -> frozenset[WorkloadRef]:
        """Every workload that history is kept of."""
        return self.lineage.workloads

    @cached_property
    def alone(self) -> Mapping[str, WorkloadRef]:
        """Live pods with accelerators by a name that no other namespace has."""
        names = Counter(name.partition("/")[2] for name in self.live)
        found = ((name.partition("/")[2], ref) for name, ref in self.live.items())
        return {name: ref for name, ref in found if names[name] == 1}

    def of_series(self, identity: Identity, *, targets: Collection[str]) -> WorkloadRef | str:
        """The workload of a series, or in one word why it has none.

        An earlier pod of a live pod's name was one of the same workload: names are what workloads are known by.
        """
        if not identity.pod:
            return UNOWNED
        if not identity.namespace:
            return self.alone.get(identity.pod, UNKNOWN)
        name = f"{identity.namespace}/{identity.pod}"
        if name in targets:
            return UNOWNED
        found = self.live.get(name)
        if found is not None:
            return found
        if name in self.strangers:
            return UNKNOWN
        return self.lineage.of_pod(identity.namespace, identity.pod)


def _strangers(pods: Mapping[str, Entry], lineage: Lineage) -> Iterable[str]:
    namespaces = {ref.namespace for ref in lineage.workloads}
    for key, entry in pods.items():
        namespace, _, name = key.partition("/")
        lives = not isinstance(entry, PodEntry) and entry != FINISHED
        if lives and namespace in namespaces and isinstance(lineage.of_pod(namespace, name), WorkloadRef):
            yield key


def _makers(view: StoresView, refs: Collection[WorkloadRef]) -> Iterable[tuple[str, WorkloadRef]]:
    """ReplicaSets and Jobs by name, with the live workload above them."""
    owned: list[tuple[str, OwnerRef | None]] = [(key, link.owner) for key, link in view.replica_sets.items()]
    owned += [(key, entry.owner) for key, entry in view.workloads.get("Job", {}).items()]
    for key, owner in owned:
        namespace, _, name = key.partition("/")
        if owner is not None:
            ref = WorkloadRef(owner.group, owner.kind, namespace, owner.name)
            if ref in refs:
                yield name, ref
