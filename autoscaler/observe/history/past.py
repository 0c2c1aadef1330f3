"""Which workload a series counts for: by the pod's name now, else by what the name tells of its past."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final

import msgspec

from autoscaler.model.cluster import WorkloadRef
from autoscaler.model.snapshot import Snapshot
from autoscaler.observe.entries import OwnerRef
from autoscaler.observe.history.lineage import Lineage
from autoscaler.observe.pods import FINISHED, Entry
from autoscaler.observe.series import Identity
from autoscaler.observe.stores import StoresView

UNOWNED: Final = "unowned"
"""No pod is named, or the exporter itself."""
WITHOUT_ACCELERATOR: Final = "without-accelerator"
"""A pod that lives and holds none."""


class PastOwners(msgspec.Struct, frozen=True):
    """The workloads by their pods' names at one moment.

    `live` are pods with accelerators and `everyone` all pods by "namespace/name"; `alone` are live pods by a name that no
    other namespace has.
    """

    live: Mapping[str, WorkloadRef]
    alone: Mapping[str, WorkloadRef]
    everyone: Mapping[str, Entry]
    lineage: Lineage

    @classmethod
    def of(cls, view: StoresView, snapshot: Snapshot) -> "PastOwners":
        """From the stores and the snapshot that was made of them."""
        refs = [workload.ref for workload in snapshot.workloads]
        live = {f"{pod.namespace}/{pod.name}": refs[pod.workload] for pod in snapshot.pods}
        names = Counter(pod.name for pod in snapshot.pods)
        return cls(
            live=live,
            alone={pod.name: refs[pod.workload] for pod in snapshot.pods if names[pod.name] == 1},
            everyone=view.pods.pods,
            lineage=Lineage.of(refs, makers=_makers(view, frozenset(refs))),
        )

    @property
    def workloads(self) -> frozenset[WorkloadRef]:
        """Every workload that history is kept of."""
        return self.lineage.workloads

    def of_series(self, identity: Identity, *, targets: Collection[str]) -> WorkloadRef | str:
        """The workload of a series, or in one word why it has none.

        An earlier pod of a live pod's name was one of the same workload: names are what workloads are known by.
        """
        if not identity.pod:
            return UNOWNED
        if not identity.namespace:
            return self.alone.get(identity.pod, "unknown")
        name = f"{identity.namespace}/{identity.pod}"
        if name in targets:
            return UNOWNED
        found = self.live.get(name)
        if found is not None:
            return found
        other = self.everyone.get(name)
        if other is not None and other != FINISHED:
            return WITHOUT_ACCELERATOR
        return self.lineage.of_pod(identity.namespace, identity.pod)


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
