"""Workload kinds as store rows: the snapshot's row, the template's shape, and who controls it.

A row's `template` and counts of runs are filled in by the assembly; everything else is final here.
"""

import sys
from functools import lru_cache
from typing import Final, Literal

import msgspec

from autoscaler.kube import wire
from autoscaler.model.cluster import FieldOwner, Rollout, Run, Workload, WorkloadRef
from autoscaler.model.shapes import PodShape
from autoscaler.observe.marks import kept_marks, time_ms
from autoscaler.observe.shapes import ShapeTable, claims_devices

_ENDS: Final = ("Complete", "Failed")
_SHARED: Final = 4096
"""Pods of one owner and workloads at rest are most of a cluster: their rows share what is equal."""


class OwnerRef(msgspec.Struct, frozen=True, gc=False):
    """The controller named in an object's owner references."""

    group: str
    kind: str
    name: str
    uid: str


class OwnerLink(msgspec.Struct, frozen=True, gc=False):
    """A ReplicaSet: a link of the owner chain."""

    uid: str
    owner: OwnerRef | None
    replicas: int
    resource_version: str = ""
    created_ms: int = 0


class WorkloadEntry(msgspec.Struct, frozen=True, gc=False):
    """A Deployment, StatefulSet, Job or CronJob. `shape` is None where the template asks for no accelerator or claim.

    `succeeded`, `finished` and `took_ms` (-1 until it ended) are of Jobs.
    """

    row: Workload
    shape: PodShape | None
    owner: OwnerRef | None
    succeeded: bool = False
    finished: bool = False
    took_ms: int = -1

    @property
    def run(self) -> Run:
        """A Job as one run of the CronJob that made it."""
        state: Literal["running", "succeeded", "failed"] = "failed" if self.finished else "running"
        return Run(self.row.created_ms, "succeeded" if self.succeeded else state, self.took_ms)


def controller_of(meta: wire.ObjectMeta) -> OwnerRef | None:
    """The owner that controls the object; owners that only want to be outlived are not it."""
    for ref in meta.owner_references or ():
        if ref.controller:
            return _owner(ref.api_version, ref.kind, ref.name, ref.uid)
    return None


@lru_cache(maxsize=_SHARED)
def _owner(api_version: str, kind: str, name: str, uid: str) -> OwnerRef:
    group, slash, _ = api_version.partition("/")
    return OwnerRef(sys.intern(group if slash else ""), sys.intern(kind), sys.intern(name), sys.intern(uid))


@lru_cache(maxsize=_SHARED)
def _shared(rollout: Rollout) -> Rollout:
    """An equal rollout that another workload may have too."""
    return rollout


class WorkloadReader:
    """Turns wire objects of workload kinds into store rows."""

    def __init__(self, shapes: ShapeTable) -> None:
        self._shapes = shapes

    def replica_set(self, item: wire.ReplicaSet) -> OwnerLink:
        """A link; templates of old ReplicaSets are history and not read."""
        return OwnerLink(
            uid=sys.intern(item.metadata.uid),
            owner=controller_of(item.metadata),
            replicas=_count(item.spec.replicas),
            resource_version=item.metadata.resource_version,
            created_ms=max(0, time_ms(item.metadata.creation_timestamp)),
        )

    def deployment(self, item: wire.Deployment) -> WorkloadEntry:
        """A Deployment; an unset strategy is the API's default, 25 % surge and unavailable."""
        spec, status = item.spec, item.status
        strategy = spec.strategy or wire.UpdateStrategy()
        rolling = strategy.rolling_update or wire.RollingUpdate()
        rollout = Rollout(
            max_surge=_amount(rolling.max_surge, "25%"),
            max_unavailable=_amount(rolling.max_unavailable, "25%"),
            recreate=strategy.type == "Recreate",
            paused=spec.paused,
            observed=status.observed_generation >= item.metadata.generation,
            updated=status.updated_replicas,
            ready=status.ready_replicas,
            available=status.available_replicas,
            total=status.replicas,
            progress_deadline_s=_count(spec.progress_deadline_seconds, 600),
        )
        row = msgspec.structs.replace(
            _row(item.metadata, "apps", "Deployment"),
            replicas=_count(spec.replicas),
            rollout=_shared(rollout),
        )
        return WorkloadEntry(row, self._shape(spec.template), controller_of(item.metadata))

    def stateful_set(self, item: wire.StatefulSet) -> WorkloadEntry:
        """A StatefulSet; it never surges, and takes one pod down at a time unless told otherwise."""
        spec, status = item.spec, item.status
        strategy = spec.update_strategy or wire.UpdateStrategy()
        rolling = strategy.rolling_update or wire.RollingUpdate()
        settled = status.current_revision == status.update_revision
        rollout = Rollout(
            max_surge="0",
            max_unavailable=_amount(rolling.max_unavailable, "1"),
            on_delete=strategy.type == "OnDelete",
            partition=rolling.partition or 0,
            observed=status.observed_generation >= item.metadata.generation,
            updated=status.replicas if settled else status.updated_replicas,
            ready=status.ready_replicas,
            available=status.available_replicas,
            total=status.replicas,
        )
        row = msgspec.structs.replace(
            _row(item.metadata, "apps", "StatefulSet"), replicas=_count(spec.replicas), rollout=rollout
        )
        return WorkloadEntry(row, self._shape(spec.template), controller_of(item.metadata))

    def job(self, item: wire.Job) -> WorkloadEntry:
        """A Job; its replicas are its parallelism."""
        spec, status = item.spec, item.status
        ends = {c.type for c in status.conditions or () if c.status == "True" and c.type in _ENDS}
        ready = status.ready or 0
        rollout = Rollout(
            max_surge="0", updated=status.active, ready=ready, available=ready, total=status.active
        )
        row = msgspec.structs.replace(
            _row(item.metadata, "batch", "Job"),
            replicas=_count(spec.parallelism),
            rollout=rollout,
            suspended=spec.suspend,
            backoff_limit=_count(spec.backoff_limit, 6),
            failed_pods=status.failed,
            succeeded_pods=status.succeeded,
            completions=_count(spec.completions, -1),
            indexed=spec.completion_mode == "Indexed",
        )
        began_ms, ended_ms = time_ms(status.start_time), time_ms(status.completion_time)
        return WorkloadEntry(
            row,
            self._shape(spec.template),
            controller_of(item.metadata),
            succeeded="Complete" in ends,
            finished=bool(ends),
            took_ms=max(0, ended_ms - began_ms) if min(began_ms, ended_ms) >= 0 else -1,
        )

    def cron_job(self, item: wire.CronJob) -> WorkloadEntry:
        """A CronJob; template, parallelism and retries are those of the Jobs that it will make."""
        spec, made = item.spec, item.spec.job_template.spec
        row = msgspec.structs.replace(
            _row(item.metadata, "batch", "CronJob"),
            replicas=_count(made.parallelism),
            rollout=Rollout(max_surge="0"),
            suspended=spec.suspend,
            schedule=spec.schedule,
            backoff_limit=_count(made.backoff_limit, 6),
        )
        return WorkloadEntry(row, self._shape(made.template), controller_of(item.metadata))

    def _shape(self, template: wire.PodTemplate) -> PodShape | None:
        if self._shapes.plain_demand(template.spec) is not None and not claims_devices(template.spec):
            return None
        return self._shapes.shape(template.spec)


def _row(meta: wire.WorkloadMeta, group: str, kind: str) -> Workload:
    return Workload(
        ref=WorkloadRef(group, kind, meta.namespace, meta.name),
        uid=meta.uid,
        resource_version=meta.resource_version,
        created_ms=max(0, time_ms(meta.creation_timestamp)),
        labels=dict(sorted((meta.labels or {}).items())),
        annotations=kept_marks(meta.annotations),
        field_owners=_field_owners(meta),
        deleting=meta.deletion_timestamp is not None,
    )


def _field_owners(meta: wire.WorkloadMeta) -> tuple[FieldOwner, ...]:
    """One row for each manager of a field that we might change, by name."""
    held: dict[str, FieldOwner] = {}
    for entry in meta.field_owners:
        known = held.get(entry.manager, FieldOwner(entry.manager))
        held[entry.manager] = FieldOwner(
            manager=entry.manager,
            replicas=known.replicas or entry.owns_replicas or entry.owns_parallelism,
            template_resources=known.template_resources or entry.owns_resources,
        )
    return tuple(held[name] for name in sorted(held) if held[name].replicas or held[name].template_resources)


def _count(value: int | None, default: int = 1) -> int:
    return default if value is None else value


def _amount(value: wire.IntOrString | None, default: str) -> str:
    return default if value is None else str(value)
